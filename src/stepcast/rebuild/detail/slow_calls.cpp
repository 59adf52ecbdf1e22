// Finds single runtime calls that are much slower than usual, such as the first launch of a kernel with code
// that has to be loaded. A note names them, because a replay keeps their length whatever is changed.
#include "stepcast/rebuild/detail/slow_calls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/duration_text.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"

namespace stepcast::detail {
namespace {

constexpr double kShareOfStep = 0.01;   // a shorter call does not matter
constexpr double kTimesTheMedian = 10;  // multiple of the median of calls with the same name
constexpr double kLeastUs = 50;         // microseconds, about ten launches of a usual driver
constexpr std::size_t kMostNamed = 3;

// True if the call launched a kernel that had not run before in the file.
bool is_first_use(const RankGraph& g, const Call& call) {
  if (call.gpu.empty() || g.work(call.gpu.front()).kind != GpuOp::Kind::kernel) return false;
  const GpuOp& launched = g.recorded->gpu_ops[g.work(call.gpu.front()).recorded];
  return std::ranges::none_of(g.recorded->gpu_ops, [&](const GpuOp& op) {
    return op.name == launched.name && op.start < launched.start;
  });
}

// The likely cause, from the name of the call and its kernel.
std::string_view why_slow(const RankGraph& g, const Call& call, std::string_view name) {
  const std::string lowered = lower(name);
  const auto holds = [&](std::string_view word) { return lowered.find(word) != std::string::npos; };
  if (holds("graphlaunch")) return "graph launch";
  if (holds("graphinstantiate")) return "a graph is built";
  if (std::ranges::any_of(std::array{"moduleload", "libraryload", "getfunction", "getkernel"}, holds))
    return "code is loaded";
  if (std::ranges::any_of(std::array{"malloc", "free", "hostalloc", "hostregister"}, holds))
    return "memory of the driver";
  if (is_first_use(g, call)) return "first use of a kernel: its code is loaded then";
  return "no cause in the trace";
}

// The calls of threads in the step that are not waits.
std::vector<const Call*> calls_that_work(const RankGraph& g, const CpuLanes& lanes) {
  std::vector<bool> waits(g.calls.size(), false);
  for (const CpuWait& wait : lanes.waits) waits[static_cast<std::size_t>(wait.call)] = true;
  std::vector<const Call*> calls;
  for (std::size_t i = 0; i < g.calls.size(); ++i) {
    const Call& call = g.calls[i];
    const auto thread = static_cast<std::int32_t>(call.thread);
    const bool is_wait = waits[i] || call.blocking_copy || call.kind == CallKind::stream_sync ||
                         call.kind == CallKind::device_sync || call.kind == CallKind::event_sync;
    if (!is_wait && std::ranges::find(lanes.threads, thread) != lanes.threads.end()) calls.push_back(&call);
  }
  return calls;
}

}  // namespace

// A call is slow if it is far above the median of calls with its name, or the only one, and long enough to
// matter.
std::string slow_calls_note(const RankGraph& g, const CpuLanes& lanes) {
  const auto name_of = [&](const Call& call) { return g.recorded->runtime_calls[call.recorded].name; };
  const auto length_of = [](const Call* call) { return call->end_us - call->start_us; };
  std::vector<const Call*> calls = calls_that_work(g, lanes);
  std::map<std::size_t, std::vector<double>> lengths;  // [name]
  for (const Call* call : calls) lengths[name_of(*call).index()].push_back(length_of(call));
  const double step_us = g.window.end_us - g.window.start_us;
  std::erase_if(calls, [&](const Call* call) {
    const std::vector<double>& alike = lengths[name_of(*call).index()];
    const bool stands_out = alike.size() == 1 || length_of(call) > kTimesTheMedian * median(alike);
    return !stands_out || length_of(call) < std::max(kLeastUs, kShareOfStep * step_us);
  });
  if (calls.empty()) return {};
  std::ranges::stable_sort(calls, std::ranges::greater{}, length_of);
  double sum_us = 0;
  std::vector<std::string> named;
  for (const Call* call : calls) {
    sum_us += length_of(call);
    const std::string_view name = g.recorded->names.text(name_of(*call));
    if (named.size() < kMostNamed)
      named.push_back(
          fmt::format("{} {} ({})", name, duration_text(length_of(call) * 1e-3), why_slow(g, *call, name)));
  }
  return fmt::format(
      "rank {}: {} {} of the step: {}{}", g.rank,
      calls.size() == 1 ? "a single slow call takes" : fmt::format("{} single slow calls take", calls.size()),
      duration_text(sum_us * 1e-3), fmt::join(named, ", "), calls.size() > kMostNamed ? ", ..." : "");
}

}  // namespace stepcast::detail
