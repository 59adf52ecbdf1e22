// Any bytes as the log of a training run: an error with a message, or times and settings that hold together.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/log_document.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  auto log = stepcast::parse_training_log(text, "fuzz.log");
  if (!log.ok()) {
    require(!log.error().message().empty());
    return 0;
  }
  const auto run = stepcast::logged_run(*std::move(log));
  if (!run.ok()) {
    require(!run.error().message().empty());
    return 0;
  }
  const stepcast::LoggedTimes& times = run->times;
  if (times.why_no_time.empty()) {
    require(std::isfinite(times.median_ms) && times.median_ms > 0);
    require(times.p10_ms <= times.median_ms && times.median_ms <= times.p90_ms);
  }
  require(run->resolved.has_value() == run->why_no_job.empty());
  require(!stepcast::report_text(stepcast::log_document(*run)).empty());
  require(!stepcast::inspect_json({{*run}}).empty());
  require(stepcast::log_forecast(*run).kind == "log");
  return 0;
}
