#include "stepcast/analyze/step_binding.h"

#include <algorithm>

#include "stepcast/base/names.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/retrace/host_prices.h"

namespace stepcast {
namespace {

constexpr double kLeastGain = 0.01;    // fraction of the step; smaller gains are not named
constexpr double kMostlyCopies = 0.5;  // fraction of the GPU's gain

// A copy of the costs with half the durations of the tasks that `meant` selects.
template <class Meant>
Costs twice_as_fast(const RecordedProgram& recorded, const Costs& costs, const Meant& meant) {
  Costs faster = costs;
  for (std::size_t b = 0; b < recorded.program.blocks().size(); ++b) {
    const Block& block = recorded.program.block(BlockId{b});
    for (std::uint32_t t = 0; t < block.task_count(); ++t)
      if (meant(block.tasks()[t])) faster.duration_us(BlockId{b})[t] *= 0.5;
  }
  faster.rescale_shared_delays(recorded.program);
  return faster;
}

// The same distinction as for `--what-if` (recorded_prices.h).
bool is_transfer(const Program& program, const TaskInfo& task) {
  return task.kernel_class == KernelClass::communication || program.works.collective(task.work) != nullptr;
}

// Tasks on GPU streams, except waiting.
bool is_gpu_work(const TaskInfo& task) {
  return task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy || task.kind == TaskKind::memset ||
         task.kind == TaskKind::collective;
}

// The costs with one resource at twice its speed.
Costs twice_as_fast(const RecordedProgram& recorded, const Costs& costs, StepResource resource) {
  if (resource != StepResource::host) {
    return twice_as_fast(recorded, costs, [&](const TaskInfo& task) {
      return is_gpu_work(task) &&
             is_transfer(recorded.program, task) == (resource == StepResource::communication);
    });
  }
  Costs faster = costs;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c)
    scale_host_time(recorded, RankClassId{c}, faster, 0.5);
  return faster;
}

bool is_copy(const TaskInfo& task) { return task.kind == TaskKind::memcpy; }

}  // namespace

std::string_view to_string(StepResource resource) {
  return name_of<StepResource::communication>(resource, {"gpu", "host", "communication"});
}

std::string_view StepBinding::bound_by() const {
  const ResourceGain& most = gains.front();
  if (!(most.saved_us >= kLeastGain * step_us)) return "bound by what the traces do not show";
  switch (most.resource) {
    case StepResource::gpu:
      return copies_saved_us > kMostlyCopies * most.saved_us ? "bound by copies" : "GPU-bound";
    case StepResource::host: return "host-bound";
    case StepResource::communication: return "bound by communication";
  }
  return "GPU-bound";
}

Result<StepBinding> step_binding(const RecordedProgram& recorded, const Costs& costs, const Timeline& alone) {
  StepOrbit orbit{recorded};
  StepBinding binding;
  STEPCAST_ASSIGN(const StepPeriod step, orbit.period(costs, alone));
  binding.step_us = step.us;
  const auto saved = [&](const Costs& faster) -> Result<double> {
    STEPCAST_ASSIGN(const StepPeriod shorter, orbit.period(faster));
    return step.us - shorter.us;
  };
  for (std::size_t r = 0; r < kStepResourceCount; ++r) {
    ResourceGain& gain = binding.gains[r];
    gain.resource = static_cast<StepResource>(r);
    STEPCAST_ASSIGN(gain.saved_us, saved(twice_as_fast(recorded, costs, gain.resource)));
  }
  std::stable_sort(binding.gains.begin(), binding.gains.end(),
                   [](const ResourceGain& a, const ResourceGain& b) { return a.saved_us > b.saved_us; });
  // Distinguishes "bound by copies" from "GPU-bound".
  if (binding.gains.front().resource == StepResource::gpu) {
    STEPCAST_ASSIGN(binding.copies_saved_us, saved(twice_as_fast(recorded, costs, is_copy)));
  }
  return binding;
}

}  // namespace stepcast
