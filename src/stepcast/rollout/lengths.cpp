#include "stepcast/rollout/lengths.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/spelled_number.h"

namespace stepcast {
namespace {

// Standard deviation of the logarithm of lengths, for answers of reasoning models to mathematical questions. Assumed.
constexpr double kUsualSigma = 0.6;

// P(Z > z) of the standard normal distribution.
double normal_above(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// Mean of min(X, most) for lognormal X.
double cut_mean(double mu, double sigma, double most) {
  const double z = (std::log(most) - mu) / sigma;
  return std::exp(mu + sigma * sigma / 2) * normal_above(sigma - z) + most * normal_above(z);
}

Error unusable_lengths(std::string found) {
  return Error::at("", "--lengths")
      .found(std::move(found))
      .expected("mean=TOKENS,max=TOKENS of prompt and answer, or a CSV file with a column tokens");
}

}  // namespace

Result<Lengths> Lengths::lognormal(double mean_tokens, double max_tokens, double sigma) {
  if (!(mean_tokens >= 1) || !(max_tokens <= 1e9) || !(sigma > 0.01) || !(sigma < 5))
    return unusable_lengths(fmt::format("mean={:g},max={:g},sigma={:g}", mean_tokens, max_tokens, sigma));
  if (mean_tokens > max_tokens) {
    return Error::at("", "--lengths", "the mean is above the maximum")
        .found(fmt::format("mean={:g},max={:g}", mean_tokens, max_tokens))
        .advice(fmt::format("nearest that works: max={:g}", mean_tokens));
  }
  Lengths out;
  out.mean_ = mean_tokens;
  out.max_ = max_tokens;
  out.sigma_ = sigma;
  // Bisection for the mu that gives the mean after clipping.
  double low = std::log(mean_tokens) - 20, high = std::log(max_tokens) + 20 * sigma;
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (cut_mean(middle, sigma, max_tokens) < mean_tokens ? low : high) = middle;
  }
  out.mu_ = (low + high) / 2;
  return out;
}

Result<Lengths> Lengths::parse_csv(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  Lengths out;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    STEPCAST_ASSIGN(const double tokens, rows.number("tokens", 1));
    constexpr double kMost = 1e9;
    if (tokens > kMost) return rows.error("tokens").expected("tokens of one sequence, at most 1e9");
    out.samples_.push_back(tokens);
  }
  if (out.samples_.empty())
    return Error::at(name, "the rows").found("none").expected("a column tokens, one row per sequence");
  std::sort(out.samples_.begin(), out.samples_.end());
  out.max_ = out.samples_.back();
  out.mean_ = std::accumulate(out.samples_.begin(), out.samples_.end(), 0.0) /
              static_cast<double>(out.samples_.size());
  return out;
}

Result<Lengths> Lengths::read(const std::string& text) {
  if (text.empty()) return unusable_lengths("nothing");
  if (text.find('=') == std::string::npos) {
    STEPCAST_ASSIGN(const std::string content, read_file(text));
    return parse_csv(content, text);
  }
  std::optional<double> mean, most, sigma;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) return unusable_lengths("`" + pair.substr(0, 80) + "`");
    const std::string key = pair.substr(0, equals);
    std::string value = pair.substr(equals + 1);
    std::optional<double>* to = key == "mean"    ? &mean
                                : key == "max"   ? &most
                                : key == "sigma" ? &sigma
                                                 : nullptr;
    const bool is_letter = !value.empty() && (value.back() < '0' || value.back() > '9') && key != "sigma";
    if (is_letter && !spell_out_whole(value).empty()) to = nullptr;
    if (to != nullptr) *to = scan<double>(value);
    if (to == nullptr || !*to) return unusable_lengths("`" + pair.substr(0, 80) + "`");
  }
  if (!mean || !most) return unusable_lengths(text.substr(0, 80));
  return lognormal(*mean, *most, sigma.value_or(kUsualSigma));
}

double Lengths::survival(double tokens) const {
  if (tokens >= max_) return 0;
  if (tokens < 1) return 1;
  if (samples_.empty()) return normal_above((std::log(tokens) - mu_) / sigma_);
  const auto longer = samples_.end() - std::upper_bound(samples_.begin(), samples_.end(), tokens);
  return static_cast<double>(longer) / static_cast<double>(samples_.size());
}

}  // namespace stepcast
