// Simulates many straggler scenarios of one recorded or predicted step. In each scenario, the host and GPU
// times of every rank, and the network times, are multiplied by random factors.
//
//   SlowdownDraws draws = jitter_draws({.host = 0.05, .gpu = 0.02}, n_ranks);
//   STEPCAST_ASSIGN(const SweptScenarios s, sweep_scenarios(recorded, costs, draws, {.n = 1000, .seed = 7}));
//   s.step_us[17]                      // longest step over all ranks in scenario 17
//   scenario_costs(recorded, costs, draw_scenario(draws, n_ranks, 7, 17))   // its Costs, for a closer look
//
// The scenario with number n of a seed does not depend on other scenarios or on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Factors on the times of one rank.
struct Slowdown {
  double host = 1, gpu = 1;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

// Standard deviations of ln(factor): 0.05 is about 5 %.
struct Jitter {
  double host = 0, gpu = 0, network = 0;
  [[nodiscard]] bool any() const { return host > 0 || gpu > 0 || network > 0; }
};
// Parses "5%" (host and GPU), "host=10%", "gpu=2%" or "network=20%". Parts without a value are 0. Errors name
// the text.
[[nodiscard]] Result<Jitter> parse_jitter(const std::vector<std::string>& texts);

// The distribution of factors. From a list, one value is drawn uniformly and independently for every rank.
struct SlowdownDraws {
  std::vector<std::vector<Slowdown>> of_rank;  // [rank class]; empty lists: factor 1
  std::vector<double> network;  // factors on the transfers of all ranks together; empty: factor 1
  Jitter jitter;                // multiplied with the factors above
  std::string from;             // description for reports: "12 steps"
};

// Busy times of a rank in a step, in microseconds. draws_of_steps() computes factors from them.
struct RankTimes {
  double host_us = 0;     // of CPU threads, without waiting
  double gpu_us = 0;      // kernels, copies and fills
  double network_us = 0;  // transfers of its collectives
};
// [rank class] Sums of the task durations.
[[nodiscard]] std::vector<RankTimes> rank_times(const RecordedProgram& recorded, const Costs& costs);

// Every rank draws one of its own steps, relative to the swept step `base`. `steps`: [step][rank class].
[[nodiscard]] SlowdownDraws draws_of_steps(const std::vector<std::vector<RankTimes>>& steps,
                                           const std::vector<RankTimes>& base);
// For a single recorded step: every rank draws the speed of any of its ranks. For a single rank: the spread
// of steps of public training runs around their median.
[[nodiscard]] SlowdownDraws draws_of_ranks(const std::vector<RankTimes>& base);

// The factors of one scenario.
struct ScenarioDraw {
  std::vector<Slowdown> ranks;  // [rank class]
  double network = 1;
};
// Depends only on the arguments: the generator is seeded with `seed` and `scenario`.
[[nodiscard]] ScenarioDraw draw_scenario(const SlowdownDraws& draws, std::size_t n_ranks, std::uint64_t seed,
                                         std::uint64_t scenario);

// The mean of the distribution, without jitter.
[[nodiscard]] ScenarioDraw mean_draw(const SlowdownDraws& draws, std::size_t n_ranks);

// Number of scenarios, seed and threads.
struct SweepOptions {
  std::size_t n = 1000;
  std::uint64_t seed = 1;
  unsigned threads = 0;  // 0: one per hardware thread
};

struct SweptScenarios {
  std::vector<double> step_us;                    // [scenario] longest of all ranks
  std::vector<std::vector<double>> rank_step_us;  // [rank class][scenario]
};
// Simulates the scenarios in parallel. Start offsets of ranks are those of the recording. Errors: those of
// Plan::simulate().
[[nodiscard]] Result<SweptScenarios> sweep_scenarios(const RecordedProgram& recorded, const Costs& costs,
                                                     const SlowdownDraws& draws, const SweepOptions& options);

// `costs` multiplied by the factors of a draw.
[[nodiscard]] Costs scenario_costs(const RecordedProgram& recorded, const Costs& costs,
                                   const ScenarioDraw& draw);

}  // namespace stepcast
