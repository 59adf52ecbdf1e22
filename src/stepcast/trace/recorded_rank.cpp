#include "stepcast/trace/recorded_rank.h"

#include <algorithm>
#include <string_view>

#include "stepcast/base/names.h"
#include "stepcast/base/scan.h"

namespace stepcast {

std::string_view to_string(ProfileFormat format) {
  return name_of<ProfileFormat::xplane>(format, {"kineto", "xplane"}, "kineto");
}

std::optional<std::int64_t> profiler_step_number(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const auto number = scan<std::int64_t>(name);
  return number.value_or(-1) >= 0 ? number : std::nullopt;
}

// The states are sorted by time, so the first one is found by binary search.
std::optional<AllocatorPeak> allocator_peak(const RecordedRank& rank, Nanoseconds from, Nanoseconds to) {
  const std::vector<AllocatorState>& states = rank.allocator_states;
  std::optional<AllocatorPeak> peak;
  for (auto state = std::partition_point(states.begin(), states.end(),
                                         [&](const AllocatorState& s) { return s.start < from; });
       state != states.end() && state->start <= to; ++state) {
    if (!peak) peak.emplace();
    peak->allocated_bytes = std::max(peak->allocated_bytes, state->allocated_bytes);
    peak->reserved_bytes = std::max(peak->reserved_bytes, state->reserved_bytes);
  }
  return peak;
}

}  // namespace stepcast
