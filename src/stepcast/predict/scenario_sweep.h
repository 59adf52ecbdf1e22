// Many straggler scenarios of one recorded (or predicted) step at once: in each, the host and the GPU of every
// rank, and the network, are faster or slower by factors that are drawn.
//
//   SlowdownDraws draws = jitter_draws({.host = 0.05, .gpu = 0.02}, n_ranks);
//   STEPCAST_ASSIGN(const SweptScenarios s, sweep_scenarios(recorded, costs, draws, {.n = 1000, .seed = 7}));
//   s.step_us[17]                      // longest step of all ranks in scenario 17
//   scenario_costs(recorded, costs, draws, 7, 17)     // its Costs, to look at it alone
//
// Draw n of a seed is the same whatever was drawn before and however many threads draw.
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

// Factors on times of one rank.
struct Slowdown {
  double host = 1, gpu = 1;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

// Standard deviations of the logarithm of the factors: 0.05 is about 5 %.
struct Jitter {
  double host = 0, gpu = 0, network = 0;
  [[nodiscard]] bool any() const { return host > 0 || gpu > 0 || network > 0; }
};
// "5%", "host=10%", "gpu=2%", "network=20%"; a part that is not named: 0. Errors name the text.
[[nodiscard]] Result<Jitter> parse_jitter(const std::vector<std::string>& texts);

// What is drawn from. Of a list one value, each as likely as any other, for every rank by itself.
struct SlowdownDraws {
  std::vector<std::vector<Slowdown>> of_rank;  // [rank class]; empty lists: 1
  std::vector<double> network;                 // factors on transfers of all ranks; empty: 1
  Jitter jitter;                               // on top
  std::string from;                            // for people: "12 steps"
};

// Host and GPU time of a rank in a step. What SlowdownDraws of measured steps are made of.
struct RankTimes {
  double host_us = 0;     // of CPU threads, without waiting
  double gpu_us = 0;      // kernels, copies and fills
  double network_us = 0;  // transfers of its collectives
};
// [rank class]
[[nodiscard]] std::vector<RankTimes> rank_times(const RecordedProgram& recorded, const Costs& costs);

// Every rank draws one of its own steps, relative to the step `base` that is swept. `steps` [step][rank class].
[[nodiscard]] SlowdownDraws draws_of_steps(const std::vector<std::vector<RankTimes>>& steps,
                                           const std::vector<RankTimes>& base);
// Of one step alone: every rank draws to be as fast as any of them was. Of one rank alone: as steps of public training
// runs are spread around their median.
[[nodiscard]] SlowdownDraws draws_of_ranks(const std::vector<RankTimes>& base);

struct ScenarioDraw {
  std::vector<Slowdown> ranks;  // [rank class]
  double network = 1;
};
[[nodiscard]] ScenarioDraw draw_scenario(const SlowdownDraws& draws, std::size_t n_ranks, std::uint64_t seed,
                                         std::uint64_t scenario);

// The mean of all that can be drawn, jitter left out.
[[nodiscard]] ScenarioDraw mean_draw(const SlowdownDraws& draws, std::size_t n_ranks);

struct SweepOptions {
  std::size_t n = 1000;
  std::uint64_t seed = 1;
  unsigned threads = 0;  // 0: one per hardware thread
};

struct SweptScenarios {
  std::vector<double> step_us;                    // [scenario] longest of all ranks
  std::vector<std::vector<double>> rank_step_us;  // [rank class][scenario]
};
// Start offsets of the ranks stay as recorded. Errors: those of Plan::simulate.
[[nodiscard]] Result<SweptScenarios> sweep_scenarios(const RecordedProgram& recorded, const Costs& costs,
                                                     const SlowdownDraws& draws, const SweepOptions& options);

// `costs` under the factors of a draw.
[[nodiscard]] Costs scenario_costs(const RecordedProgram& recorded, const Costs& costs,
                                   const ScenarioDraw& draw);

}  // namespace stepcast
