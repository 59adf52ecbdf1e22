#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/sweep/sweep_question.h"
#include "stepcast/sweep/sweep_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Longer ones are lists of a million points, which are slow and nothing else.
  constexpr std::size_t kMostBytes = 2048, kMostPoints = 64;
  if (size > kMostBytes) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto spec = stepcast::parse_sweep(text, "fuzz.toml", "no-such-folder");
  if (!spec.ok() || spec->points.size() > kMostPoints) return 0;
  for (const stepcast::SweepPoint& point : spec->points) {
    (void)stepcast::question_of(point);
    // A point is a spec of itself, with the same id.
    const auto again = stepcast::parse_sweep(point.json(), "point", "no-such-folder");
    if (!again.ok() || again->points.size() != 1 || again->points.front().id != point.id) __builtin_trap();
  }
  return 0;
}
