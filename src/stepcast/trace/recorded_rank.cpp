#include "stepcast/trace/recorded_rank.h"

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

}  // namespace stepcast
