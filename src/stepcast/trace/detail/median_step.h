// Which of several recorded steps stands for them where nobody says: the one of median length of those that are
// ordinary (step_kind.h), or of all where none is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::detail {

struct StepLength {
  std::int64_t number = 0;
  double us = 0;            // of the longest rank
  bool is_special = false;  // on one rank or more
};

// Of an even number the later of the two in the middle. Nothing of none.
[[nodiscard]] inline std::optional<std::int64_t> median_step(std::vector<StepLength> steps) {
  if (!std::ranges::all_of(steps, &StepLength::is_special)) std::erase_if(steps, &StepLength::is_special);
  if (steps.empty()) return std::nullopt;
  std::ranges::sort(steps, [](const StepLength& a, const StepLength& b) {
    return a.us != b.us ? a.us < b.us : a.number < b.number;
  });
  const std::size_t middle = steps.size() / 2;
  if (steps.size() % 2 == 1) return steps[middle].number;
  return std::max(steps[middle - 1].number, steps[middle].number);
}

}  // namespace stepcast::detail
