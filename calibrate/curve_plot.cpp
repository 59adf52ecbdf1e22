#include "calibrate/curve_plot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace stepcast {
namespace {

std::string size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace

std::string bandwidth_plot(const CollectiveFit& fit, std::size_t width, std::size_t height) {
  if (fit.points.empty() || width < 2 || height < 2) return {};
  const double factor = fit.form.factor;
  const auto ln_bus = [&](double bytes, double us) { return std::log(factor * bytes / us / 1000); };
  const double x_min = fit.measured_from, x_max = std::max(fit.measured_to, x_min + 1);
  double y_min = 1e300, y_max = -1e300;
  for (const FitPoint& p : fit.points) {
    for (const double us : {p.measured_us, p.fitted_us}) {
      y_min = std::min(y_min, ln_bus(p.message_bytes, us));
      y_max = std::max(y_max, ln_bus(p.message_bytes, us));
    }
  }
  if (y_max - y_min < 0.1) y_max = y_min + 0.1;
  std::vector<std::string> rows(height, std::string(width, ' '));
  const auto cell = [](double v, double low, double high, std::size_t n) {
    const double share = std::clamp((v - low) / (high - low), 0.0, 1.0);
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(n - 1)));
  };
  const auto row_of = [&](double y) { return height - 1 - cell(y, y_min, y_max, height); };
  for (std::size_t c = 0; c < width; ++c) {
    const double x = x_min + (x_max - x_min) * static_cast<double>(c) / static_cast<double>(width - 1);
    rows[row_of(ln_bus(std::exp2(x), std::exp(fit.curve().ln_time_us(x))))][c] = '.';
  }
  for (const FitPoint& p : fit.points) {
    char& mark = rows[row_of(ln_bus(p.message_bytes, p.measured_us))]
                     [cell(std::log2(p.message_bytes), x_min, x_max, width)];
    mark = mark == '.' || mark == '@' ? '@' : 'o';
  }
  std::string text = "      GB/s\n";
  for (std::size_t r = 0; r < height; ++r) {
    std::string label;
    if (r == 0) label = fmt::format("{:.3g}", std::exp(y_max));
    if (r == height - 1) label = fmt::format("{:.3g}", std::exp(y_min));
    std::string& line = rows[r];
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{:>10} |{}\n", label, line);
  }
  const std::string left = size_text(std::exp2(x_min)), right = size_text(std::exp2(x_max));
  text += fmt::format("{:>10} +{}\n", "", std::string(width, '-'));
  const std::size_t gap = width > left.size() + right.size() ? width - left.size() - right.size() : 1;
  text += fmt::format("{:>10}  {}{}{}\n", "", left, std::string(gap, ' '), right);
  return text;
}

}  // namespace stepcast
