// Numbers, sizes and names as cells of tables and sentences show them.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "stepcast/base/text.h"

namespace stepcast {

// A number with a fixed count of decimals and thousands separators: 1,234.50. "-" for what is not finite.
[[nodiscard]] std::string table_number(double number, int decimals);
// An amount of money, hours or energy: from 100 on with so many decimals, below with cents or two digits that are not 0.
[[nodiscard]] std::string table_amount(double number, int decimals);
// As table_number, but an empty text for a number that would be shown as zero.
[[nodiscard]] std::string table_number_or_blank(double number, int decimals);
// A sign always: +0.03, -1.20, 0.00 without.
[[nodiscard]] std::string table_signed(double number, int decimals);
// 1,234 with thousands separators.
[[nodiscard]] std::string table_count(std::integral auto count) {
  return with_separators(std::to_string(count));
}
// "1 GPU", "1,024 GPUs".
[[nodiscard]] std::string counted(std::integral auto n, std::string_view one, std::string_view many) {
  return table_count(n).append(" ").append(n == 1 ? one : many);
}
// A large number in words where they are exact to four digits: "2 trillion", "1.5 billion", "640,000".
[[nodiscard]] std::string amount_text(double amount);
// With a capital first letter.
[[nodiscard]] std::string sentence(std::string text);
// A number of bytes in the unit that a person would choose: "512 B", "24.0 KiB", "1.5 MiB". "-" for less than 0.
[[nodiscard]] std::string table_bytes(double bytes);
// Milliseconds with as many decimals as their size asks for: "8,654.8", "12.35", "0.123".
[[nodiscard]] std::string ms_text(double ms);
[[nodiscard]] std::string percent_text(double part, double whole);
// "p10 447.9, p90 541.2"; empty for a time without a band.
[[nodiscard]] std::string band_text(double p10_ms, double p90_ms);
// The same of a rate that `step_ms` gives: the longest step has the lowest rate.
[[nodiscard]] std::string rate_band_text(double rate, double step_ms, double p10_ms, double p90_ms,
                                         int decimals);
// One decimal.
[[nodiscard]] std::string gib(double value);
// Characters on a terminal.
[[nodiscard]] std::size_t width_of(std::string_view text);
// At most `width` characters: the end is replaced by "..".
[[nodiscard]] std::string shorten(std::string text, std::size_t width);

}  // namespace stepcast
