// Distribution of the total length (prompt plus answer) of the sequences of a step.
//
//   STEPCAST_ASSIGN(const Lengths lengths, Lengths::read("mean=5698,max=8192"));
//   lengths.survival(4096)        share of sequences with more tokens
//
// A mean and a maximum give a lognormal distribution clipped at the maximum, where longer sequences are cut off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// Either a lognormal distribution or measured samples.
class Lengths {
 public:
  // Reads "mean=5698,max=8192[,sigma=0.6]" or a CSV file with a column `tokens` and one row per sequence. Errors: a mean above
  // the maximum, values that are not numbers above 0.
  [[nodiscard]] static Result<Lengths> read(const std::string& text);
  // Parses the text of a CSV file; `name` names it in errors.
  [[nodiscard]] static Result<Lengths> parse_csv(std::string_view text, const std::string& name);
  // `sigma`: standard deviation of the logarithm before clipping. Errors as above.
  [[nodiscard]] static Result<Lengths> lognormal(double mean_tokens, double max_tokens, double sigma);

  // Mean and maximum in tokens, after clipping.
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double max() const { return max_; }
  // Share of the sequences with more than `tokens` tokens, 0 to 1.
  [[nodiscard]] double survival(double tokens) const;

 private:
  double mean_ = 0, max_ = 0;
  double mu_ = 0, sigma_ = 0;    // of the lognormal
  std::vector<double> samples_;  // ascending; empty: the lognormal
};

}  // namespace stepcast
