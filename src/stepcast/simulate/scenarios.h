// Ends of many scenarios on one structure: what Plan::simulate(span of Costs) gives back.
//
//   std::vector<Costs> what_ifs(64, Costs{program});   // each changed as wanted
//   Result<ScenarioEnds> ends = plan.simulate(what_ifs);
//   double best_us = ends->end_us(17);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

class Plan;

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

 private:
  friend class Plan;
  std::size_t scenarios_ = 0;
  std::vector<std::size_t> first_lane_;  // [class], one more at the end: lanes of a scenario
  std::vector<double> lane_free_;        // [scenario, class, lane]
};

}  // namespace stepcast
