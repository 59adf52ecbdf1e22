// Ends of many scenarios on one structure: what Plan::simulate(span of Costs) gives back.
//
//   std::vector<Costs> what_ifs(64, Costs{program});   // each changed as wanted
//   Result<ScenarioEnds> ends = plan.simulate(what_ifs);
//   double best_us = ends->end_us(17);
//
// Ends of lanes say when all is done. Where a step ends before that, or where somebody wants to know when a
// collective began, moments are watched:
//
//   plan.simulate(what_ifs, {.start_offset_us = offsets, .watched = {{{rank, instance, task}, false}}})
//   ends->watched_us(17)[0]
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

class Plan;

// The end (or start) of a task of the first rank of a class.
struct WatchedMoment {
  RankClassId rank_class{};
  InstanceId instance{};
  TaskId task{};
  bool at_start = false;
};

struct ScenarioOptions {
  // When a rank's lanes become free, in all scenarios: one per class; empty: all 0.
  std::vector<double> start_offset_us{};
  std::vector<WatchedMoment> watched{};
  std::size_t max_bytes = std::size_t{16} << 30;  // for the times of the scenarios that run side by side
};

class ScenarioEnds {
 public:
  // How many scenarios were simulated.
  [[nodiscard]] std::size_t size() const { return scenarios_; }
  // Latest end over all ranks.
  [[nodiscard]] double end_us(std::size_t scenario) const;
  // End of the last task of a rank of the class.
  [[nodiscard]] double rank_end_us(std::size_t scenario, RankClassId c) const;
  // [lane] -> free from, after the last instance of the class.
  [[nodiscard]] std::span<const double> lane_free_us(std::size_t scenario, RankClassId c) const;
  // In the order of ScenarioOptions::watched.
  [[nodiscard]] std::span<const double> watched_us(std::size_t scenario) const {
    return std::span{watched_}.subspan(scenario * n_watched_, n_watched_);
  }

 private:
  friend class Plan;
  std::size_t n_watched_ = 0;
  std::vector<double> watched_;  // [scenario, moment]
  std::size_t scenarios_ = 0;
  std::vector<std::size_t> first_lane_;  // [class], one more at the end: lanes of a scenario
  std::vector<double> lane_free_;        // [scenario, class, lane]
};

}  // namespace stepcast
