// How long the sequences of a step are, prompt and answer together.
//
//   STEPCAST_ASSIGN(const Lengths lengths, Lengths::read("mean=5698,max=8192"));
//   lengths.survival(4096)        share of sequences longer than this
//
// A mean and a maximum mean a lognormal that is cut at the maximum: sequences that would go on end there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

class Lengths {
 public:
  // "mean=5698,max=8192[,sigma=0.6]", or the name of a CSV file with a column `tokens`, a row for each sequence. Errors: a
  // mean above the maximum, what is no number above 0.
  [[nodiscard]] static Result<Lengths> read(const std::string& text);
  // The file's text; `name` stands for it in errors.
  [[nodiscard]] static Result<Lengths> parse_csv(std::string_view text, const std::string& name);
  // Errors as above. `sigma` of the logarithm before the cut.
  [[nodiscard]] static Result<Lengths> lognormal(double mean_tokens, double max_tokens, double sigma);

  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double max() const { return max_; }
  [[nodiscard]] double survival(double tokens) const;

 private:
  double mean_ = 0, max_ = 0;
  double mu_ = 0, sigma_ = 0;    // of the lognormal
  std::vector<double> samples_;  // ascending; empty: the lognormal
};

}  // namespace stepcast
