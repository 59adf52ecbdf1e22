// Tells special steps (step_kind.h), and how much steps have to do by their shapes (step_shapes.h), from the events of a profiler
// trace, which come in any order and are not kept.
//
//   StepSigns signs;
//   for (...) signs.add(event);
//   signs.special(steps), signs.sizes(steps);
//
// A step is special where events of one kind take more than twice as long in it as in the middle one of all steps, and
// longer by a twentieth of a step; or where it runs operators without a backward pass while most steps have one.
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

// What the name of a stretch of CPU time says: of an operator, an annotation, a frame of Python or the profiler's own.
[[nodiscard]] std::optional<StepKind> sign_in(std::string_view name);

// On the clock of the events that were added.
struct StepStretch {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
};

// Time covered by stretches that are added in any order; those close to each other become one.
class CoveredTime {
 public:
  explicit CoveredTime(std::int64_t apart_ns) : apart_ns_(apart_ns) {}
  void add(std::int64_t start_ns, std::int64_t end_ns);
  // In each of the steps.
  [[nodiscard]] std::vector<double> in(std::span<const StepStretch> steps);

 private:
  struct Stretch {
    std::int64_t start_ns, end_ns;
  };
  void unite();

  std::int64_t apart_ns_;
  std::size_t unite_at_ = 1024;
  std::vector<Stretch> stretches_;
};

class StepSigns {
 public:
  StepSigns();
  void add(const KinetoEvent& event);
  void add(EventClass what, std::string_view name, std::int64_t start_ns, std::int64_t duration_ns,
           std::string_view input_dims);
  // By start. Of no step twice.
  [[nodiscard]] std::vector<SpecialStep> special(std::span<const StepStretch> steps);
  // Of each of them, which are by start.
  [[nodiscard]] std::vector<StepSize> sizes(std::span<const StepStretch> steps) const;

 private:
  std::vector<CoveredTime> of_kind_;  // [StepKind]
  CoveredTime operators_, backward_;
  struct Sized {
    std::int64_t start_ns;
    double size;
  };
  std::vector<Sized> sized_;  // the few operators that tell the shapes of a step
};

// Of the events of a rank that is read already.
void tell_steps_apart(RecordedRank& rank);

}  // namespace stepcast::detail
