// Finds special steps (step_kind.h) and the amount of work of each step by its shapes (step_shapes.h), from
// the events of a profiler trace in any order and without keeping them.
//
//   StepSigns signs;
//   for (...) signs.add(event);
//   signs.special(steps), signs.sizes(steps);
//
// A step is special if events of one kind take more than twice as long in it as in the median step, and the
// difference is at least 5 % of a step; or if it runs operators without a backward pass although most steps
// have one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/recorded_rank.h"
#include "stepcast/trace/step_kind.h"

namespace stepcast::detail {

// The kind of step that a name indicates: the name of an operator, an annotation, a Python frame or time of
// the profiler. Empty if it indicates none.
[[nodiscard]] std::optional<StepKind> sign_in(std::string_view name);

// A step on the clock of the added events, in nanoseconds.
struct StepStretch {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
};

// Time covered by stretches that are added in any order. Stretches with a gap of at most `apart_ns` are
// merged.
class CoveredTime {
 public:
  explicit CoveredTime(std::int64_t apart_ns) : apart_ns_(apart_ns) {}
  // Adds a stretch. Amortised O(log n) per stretch.
  void add(std::int64_t start_ns, std::int64_t end_ns);
  // Covered nanoseconds in each of the steps.
  [[nodiscard]] std::vector<double> in(std::span<const StepStretch> steps);

 private:
  struct Stretch {
    std::int64_t start_ns, end_ns;
  };
  // Sorts and merges the stretches.
  void unite();

  std::int64_t apart_ns_;
  std::size_t unite_at_ = 1024;
  std::vector<Stretch> stretches_;
};

// Collects the signs of one trace.
class StepSigns {
 public:
  StepSigns();
  // Adds an event of any class; other classes than those with signs are ignored.
  void add(const KinetoEvent& event);
  // The same for an event in parts. `input_dims` is the text of "Input Dims" of an operator, else empty.
  void add(EventClass what, std::string_view name, std::int64_t start_ns, std::int64_t duration_ns,
           std::string_view input_dims);
  // The special steps, ordered by start; no step occurs twice.
  [[nodiscard]] std::vector<SpecialStep> special(std::span<const StepStretch> steps);
  // The size of each step. `steps` must be ordered by start.
  [[nodiscard]] std::vector<StepSize> sizes(std::span<const StepStretch> steps) const;

 private:
  std::vector<CoveredTime> of_kind_;  // [StepKind]
  CoveredTime operators_, backward_;
  // The size of an operator by its shapes, with its start to find its step.
  struct Sized {
    std::int64_t start_ns;
    double size;
  };
  std::vector<Sized> sized_;  // operators that determine the size of a step
};

// Sets the special steps and step sizes of a rank from its events in memory.
void tell_steps_apart(RecordedRank& rank);

}  // namespace stepcast::detail
