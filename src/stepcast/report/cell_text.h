// Formats numbers, sizes and names for cells of tables and for sentences.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "stepcast/base/duration_text.h"
#include "stepcast/base/text.h"

namespace stepcast {

// A number with a fixed number of decimals and separators of thousands: 1,234.50. "-" if it is not finite.
[[nodiscard]] std::string table_number(double number, int decimals);
// An amount of money, hours or energy. From 100 on with `decimals` decimals; below that with cents, or with
// two significant digits: "0.012".
[[nodiscard]] std::string table_amount(double number, int decimals);
// Like table_number(), but an empty text for a number that would be shown as zero.
[[nodiscard]] std::string table_number_or_blank(double number, int decimals);
// Like table_number(), with a sign: +0.03, -1.20. Without a sign if it would be shown as zero: 0.00.
[[nodiscard]] std::string table_signed(double number, int decimals);
// An integer with separators of thousands: 1,234.
[[nodiscard]] std::string table_count(std::integral auto count) {
  return with_separators(std::to_string(count));
}
// A number with its noun: "1 GPU", "1,024 GPUs".
[[nodiscard]] std::string counted(std::integral auto n, std::string_view one, std::string_view many) {
  return table_count(n).append(" ").append(n == 1 ? one : many);
}
// A large number in words, rounded to four digits: "2 trillion", "1.5 billion"; below a million in digits:
// "640,000".
[[nodiscard]] std::string amount_text(double amount);
// The text with a capital first letter.
[[nodiscard]] std::string sentence(std::string text);
// A number of bytes in the largest unit that leaves at least 1: "512 B", "24.0 KiB", "1.5 MiB". "-" below 0.
[[nodiscard]] std::string table_bytes(double bytes);
// Milliseconds with one to three decimals, depending on the size: "8,654.8", "12.35", "0.123".
[[nodiscard]] std::string ms_text(double ms);
// part / whole in percent with one decimal, without "%"; "-" if whole is not above 0.
[[nodiscard]] std::string percent_text(double part, double whole);
// The interval of a rate that belongs to `step_ms`, as in band_text(): the rate at p90 of the step time is the
// lowest, and is shown as p10.
[[nodiscard]] std::string rate_band_text(double rate, double step_ms, double p10_ms, double p90_ms,
                                         int decimals);
// A number of GiB with one decimal.
[[nodiscard]] std::string gib(double value);
// The width on a terminal, in characters: code points of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text);
// The text, if needed cut to `width` characters with ".." at its end.
[[nodiscard]] std::string shorten(std::string text, std::size_t width);

}  // namespace stepcast
