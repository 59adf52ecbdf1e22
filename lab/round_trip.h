// The round trip: what the import infers from a trace must be inferred again from a simulated trace.
//
//   trace --rebuild--> Program --simulate--> times                       (the original)
//                         | change the scenario: later starts, longer kernels
//                         v
//                      Program --simulate--> times --write--> trace --rebuild--> Program
//                                                                       | undo the change
//                                                                       v
//                         (to compare with the original)  times <-- simulate
//
// In the changed scenario, waits occur in other places than in the recorded one. So wrong inference (a wait taken for work,
// a constant that includes waiting, an edge in the wrong place) shows here even if the plain replay is exact.
//
// What changes: `kernel_factor` multiplies the durations of kernels, copies and fills launched in the step. Transfers of
// collectives are unchanged, because the factor represents a slower device, not a slower network. Work launched before the
// step is unchanged too: it enters at its recorded time in any case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct RoundTripScenario {
  std::string name;
  double kernel_factor = 1;
  std::vector<double> start_shift_us;  // by rank, ascending; missing ranks are 0
  bool through_file = false;           // write the trace as text and read it, not only as events
  RebuildOptions rebuild;
};

struct RoundTripResult {
  struct RankEnd {
    std::int32_t rank = 0;
    double step_us = 0;      // length of the original step
    double original_us = 0;  // end of the step on the common clock
    double returned_us = 0;  // the same after the round trip
    double changed_us = 0;   // end in the changed scenario, to show the effect of the change
    [[nodiscard]] double error_us() const { return returned_us - original_us; }
    [[nodiscard]] double error_percent() const { return 100 * error_us() / step_us; }
  };
  std::string scenario;
  std::vector<RankEnd> ends;
  std::vector<double> kernel_start_error_us;  // absolute, of all work on all GPU streams, ascending
  std::size_t lost = 0;                       // work missing after the second import

  [[nodiscard]] double largest_end_error_percent() const;
  // `share` 0.5 is the median.
  [[nodiscard]] double kernel_start_error_quantile_us(double share) const;
};

// Scenarios: later and earlier starts of single ranks, and kernels of 3, 10 and 30 times their length.
[[nodiscard]] std::vector<RoundTripScenario> standard_round_trips(std::size_t ranks);

// Errors: those of rebuild_program and of the engine, in both directions.
[[nodiscard]] Result<RoundTripResult> round_trip(std::span<const RecordedInput> input,
                                                 const RoundTripScenario& scenario);

}  // namespace stepcast
