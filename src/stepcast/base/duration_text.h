// Times for people: in s, ms or us, with three or four significant digits.
#pragma once

#include <string>

namespace stepcast {

// A time in s, ms or us, whichever leaves 1 to 999 before the point, with `digits` significant digits: "6.72 s",
// "152 ms", "84.1 us".
[[nodiscard]] std::string duration_text(double ms, int digits = 3);
// The same for a time with an interval: three digits, or four if the interval is below 2 % of the time.
[[nodiscard]] std::string duration_text(double ms, double p10_ms, double p90_ms);
// The interval of a time, in the unit that duration_text() gives the time: "p10 6.23, p90 7.65". Empty if it has
// no width.
[[nodiscard]] std::string band_text(double ms, double p10_ms, double p90_ms);
}  // namespace stepcast
