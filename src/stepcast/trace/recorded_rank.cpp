#include "stepcast/trace/recorded_rank.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace stepcast {

std::optional<std::int64_t> profiler_step_number(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc{} || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

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
