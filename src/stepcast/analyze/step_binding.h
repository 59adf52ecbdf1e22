// Finds what binds a recorded step: the resource that would shorten the step most if it were twice as fast.
//
//   STEPCAST_ASSIGN(const StepBinding binding, step_binding(recorded, costs, timeline));
//   binding.gains.front().resource, .saved_us        // of a step in a steady series of steps (predict/step_orbit.h)
//   binding.bound_by()                               // "host-bound"
//
// Each resource is simulated at twice its speed, as `predict --what-if host=2x` does. Shares of time are not
// used, because time on a resource may be hidden behind other work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// The resources that are tried.
enum class StepResource : std::uint8_t {
  gpu,            // kernels, fills and copies of all ranks
  host,           // CPU threads, and the delays of hand-offs between them
  communication,  // transfers of collectives
};
inline constexpr std::size_t kStepResourceCount = 3;
[[nodiscard]] std::string_view to_string(StepResource resource);

// The gain from a resource at twice its speed.
struct ResourceGain {
  StepResource resource{};
  // The step time saved, in microseconds.
  double saved_us = 0;
};

// The result for all resources.
struct StepBinding {
  double step_us = 0;                                    // in a steady series of steps
  std::array<ResourceGain, kStepResourceCount> gains{};  // largest gain first
  // If the GPU saves most: the part of that gain from copies alone.
  double copies_saved_us = 0;

  // "GPU-bound", "bound by copies", "host-bound" or "bound by communication". If no resource saves 1 % of the
  // step: "bound by what the traces do not show".
  [[nodiscard]] std::string_view bound_by() const;
};

// `alone`: the timeline of the step simulated with `costs`. Errors: those of StepOrbit::period().
[[nodiscard]] Result<StepBinding> step_binding(const RecordedProgram& recorded, const Costs& costs,
                                               const Timeline& alone);

}  // namespace stepcast
