// A second simulator, written from the definitions in program.h alone: every time of every rank is one
// equation, and all of them are evaluated again and again until nothing changes. Slow, and without any notion
// of order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast::fixtures {

struct ReferenceTimes {
  std::map<TaskRef, Interval> tasks;                           // of every rank
  std::vector<std::vector<std::vector<double>>> lane_free_us;  // [class][rank][lane]
};

// Unfolded. `start_offset_us`: one per rank, classes in order; empty: all 0. Nothing, if the times do not
// settle: ranks wait for each other in a circle that takes time.
[[nodiscard]] std::optional<ReferenceTimes> reference_simulate(
    const Program& program, const Costs& costs, const std::vector<double>& start_offset_us = {});

}  // namespace stepcast::fixtures
