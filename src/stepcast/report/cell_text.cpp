#include "stepcast/report/cell_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace stepcast {

std::size_t width_of(std::string_view text) {
  // Continuation bytes of UTF-8 have no width of their own.
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// All numbers of documents pass through this function or one that calls it, so that they look the same
// everywhere.
std::string table_number(double number, int decimals) {
  if (!std::isfinite(number)) return "-";
  std::string digits = fmt::format("{:.{}f}", number, decimals);
  // Avoid "-0.00".
  if (digits.starts_with('-') && digits.find_first_not_of("-0.") == std::string::npos) digits.erase(0, 1);
  return with_separators(digits);
}

std::string table_amount(double number, int decimals) {
  const double size = std::abs(number);
  constexpr double kLarge = 100;
  // Small amounts keep two significant digits, so that no job seems to cost nothing.
  constexpr int kCents = 2, kMostDecimals = 6;
  if (size >= kLarge || !(size > 0)) return table_number(number, decimals);
  if (size >= 1) return table_number(number, decimals == 0 ? kCents : decimals);
  const int digits = 1 - static_cast<int>(std::floor(std::log10(size)));  // two significant digits
  return table_number(number, std::clamp(digits, std::max(decimals, kCents), kMostDecimals));
}

std::string table_number_or_blank(double number, int decimals) {
  std::string text = table_number(number, decimals);
  return text.find_first_not_of("0.") == std::string::npos ? std::string{} : text;
}

std::string table_signed(double number, int decimals) {
  std::string text = table_number(number, decimals);
  const bool shown_as_zero = text.find_first_of("123456789") == std::string::npos;
  return number > 0 && std::isfinite(number) && !shown_as_zero ? "+" + text : text;
}

std::string amount_text(double amount) {
  static constexpr std::pair<double, std::string_view> kNames[] = {
      {1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
  for (const auto& [size, name] : kNames) {
    if (amount < size || !std::isfinite(amount)) continue;
    std::string digits = fmt::format("{:.4g}", amount / size);
    if (digits.find('e') != std::string::npos) break;  // 1e19: too large for the words; show all digits
    return fmt::format("{} {}", digits, name);
  }
  return table_number(amount, 0);
}

std::string ms_text(double ms) {
  constexpr double kCoarse = 100, kMedium = 10;
  const double size = std::abs(ms);
  return table_number(ms, size >= kCoarse ? 1 : size >= kMedium ? 2 : 3);
}

std::string percent_text(double part, double whole) {
  return whole > 0 ? table_number(100 * part / whole, 1) : std::string{"-"};
}

// Rates are inversely proportional to the step time.
std::string rate_band_text(double rate, double step_ms, double p10_ms, double p90_ms, int decimals) {
  if (p10_ms <= 0 || p10_ms >= p90_ms) return {};
  return fmt::format("p10 {}, p90 {}", table_number(rate * step_ms / p90_ms, decimals),
                     // The longest step has the lowest rate.
                     table_number(rate * step_ms / p10_ms, decimals));
}

std::string gib(double value) { return table_number(value, 1); }

std::string sentence(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string table_bytes(double bytes) {
  if (!(bytes >= 0) || !std::isfinite(bytes)) return "-";
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

// Cuts between code points, never inside one.
std::string shorten(std::string text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0U) != 0x80U;
    if (begins && characters++ == (width > 2 ? width - 2 : 0)) break;
  }
  text.resize(bytes);
  return text + "..";
}

}  // namespace stepcast
