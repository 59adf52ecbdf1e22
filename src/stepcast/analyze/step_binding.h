// What binds a recorded step: what would shorten it most if it were twice as fast.
//
//   STEPCAST_ASSIGN(const StepBinding binding, step_binding(recorded, costs, timeline));
//   binding.gains.front().resource, .saved_us        // of the step in a row of them (predict/step_orbit.h)
//   binding.bound_by()                               // "host-bound"
//
// Every resource is simulated at twice its speed, as `predict --what-if host=2x` does it: nothing is concluded from
// shares of time.
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

enum class StepResource : std::uint8_t {
  gpu,            // kernels, fills and copies of all ranks
  host,           // CPU threads, and hand-offs between them
  communication,  // transfers of collectives
};
inline constexpr std::size_t kStepResourceCount = 3;
[[nodiscard]] std::string_view to_string(StepResource resource);

struct ResourceGain {
  StepResource resource{};
  double saved_us = 0;  // of the step if it were twice as fast
};

struct StepBinding {
  double step_us = 0;                                    // in a row of such steps
  std::array<ResourceGain, kStepResourceCount> gains{};  // that save most first
  double copies_saved_us = 0;  // of what the GPU saves, where it saves most: by copies alone

  // "GPU-bound", "bound by copies", "host-bound", "bound by communication"; where nothing saves a hundredth of the
  // step: "bound by what the traces do not show".
  [[nodiscard]] std::string_view bound_by() const;
};

// `alone`: the step simulated with `costs`. Errors: those of StepOrbit::period().
[[nodiscard]] Result<StepBinding> step_binding(const RecordedProgram& recorded, const Costs& costs,
                                               const Timeline& alone);

}  // namespace stepcast
