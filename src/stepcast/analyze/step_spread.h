// How the step of recorded ranks is distributed: over the steps of a file, and over straggler scenarios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/scenario_sweep.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

struct SpreadOptions {
  bool all_steps = false;
  std::size_t scenarios = 0;  // 0: none
  std::uint64_t seed = 1;
  Jitter jitter;         // where there is any, all that is drawn from
  unsigned threads = 0;  // 0: one per hardware thread
  [[nodiscard]] bool asked() const { return all_steps || scenarios > 0; }
};

// Simulates a recorded step and shows it; may be called from several threads at once.
using ShowStep = std::function<void(const RecordedProgram&, const Costs&, const ReplayScores&)>;
using SimulateStep = std::function<Status(std::int64_t step, const ShowStep& show)>;

// Into forecast.series and forecast.scenarios what `options` ask for. `steps`: numbers of the steps that all ranks
// have; `recorded` and `costs`: the step that the forecast is of, which scenarios are drawn on. Without jitter they
// are drawn from the steps that count (at least three), else from the ranks of the one step. Errors: nothing to draw
// from, no step that counts, those of Plan::simulate.
[[nodiscard]] Status add_spread(const SpreadOptions& options, std::span<const std::int64_t> steps,
                                const SimulateStep& simulate, const RecordedProgram& recorded,
                                const Costs& costs, Forecast& forecast);

// Straggler scenarios of a step: how they are distributed, and which rank's host or GPU, or the network, makes the
// slow ones slow. Slow is the slowest tenth. The cause of a slow scenario is what its draw adds most of to the critical path to the
// end of its longest step: of the time that the path spends on the host or the GPU of a rank, or on the network, the
// part that factors above their mean account for. Errors: those of Plan::simulate.
[[nodiscard]] Result<ForecastScenarios> sweep_with_causes(const RecordedProgram& recorded, const Costs& costs,
                                                          const SlowdownDraws& draws,
                                                          const SweepOptions& options);

}  // namespace stepcast
