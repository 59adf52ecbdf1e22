// What a training log tells, in the words that its text and its page share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/compare.h"
#include "stepcast/logs/logged_run.h"

namespace stepcast::detail {

// "training log of Megatron-LM, 1,204 lines".
[[nodiscard]] std::string log_format_text(const LoggedRun& run);
// "11 to 500, 480 lines count; left out: 2 with a stall".
[[nodiscard]] std::string steps_text(const LoggedRun& run);
// Throughput as the log has it; empty where it has none.
[[nodiscard]] std::string rates_text(const LoggedTimes& times);
// "median 2,129.8 ms (p10 2,124.8, p90 2,135.4)"; one time has no spread.
[[nodiscard]] std::string middle_text(const LoggedTimes& times);
// "+0.01 % from begin to end".
[[nodiscard]] std::string trend_text(const LoggedTimes& times);
[[nodiscard]] std::string_view cause_text(LogEvent cause);
// "3, 12.4 s lost; likely cause: checkpoint 3".
[[nodiscard]] std::string stalls_text(const LoggedTimes& times);
// The `most` that lost most time, those first.
[[nodiscard]] std::vector<LoggedStall> longest(std::vector<LoggedStall> stalls, std::size_t most);
// The likely reason of the difference between a forecast (a) and its log (b), in a sentence without a capital.
[[nodiscard]] std::string reason_of(const Forecast& forecast, const LoggedRun& run,
                                    const Comparison& comparison);

}  // namespace stepcast::detail
