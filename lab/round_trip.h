// The round trip: what was concluded from a trace has to be concluded again from what the conclusions
// predict.
//
//   trace --rebuild--> Program --simulate--> times                       (the original)
//                         | change the scenario: later starts, longer kernels
//                         v
//                      Program --simulate--> times --write--> trace --rebuild--> Program
//                                                                       | undo the change
//                                                                       v
//                         (to compare with the original)  times <-- simulate
//
// In the changed scenario other things wait than in the recorded one, so a wait that was taken for work, a
// constant that holds waiting or an edge that was found in the wrong place shows here even where it leaves
// the plain replay exact.
//
// What changes: `kernel_factor` multiplies the durations of kernels, copies and fills that are launched in
// the step. Transfers of collectives keep theirs (the factor stands for a slower device and not for a slower
// network), and so does work left over from before the step, which enters at its recorded time whatever
// happens.
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
  std::vector<double> start_shift_us;  // by rank, ascending; shorter lists end in zeros
  bool through_file = false;           // write the trace as text and read it, not only as events
  RebuildOptions rebuild;
};

struct RoundTripResult {
  struct RankEnd {
    std::int32_t rank = 0;
    double step_us = 0;      // length of the original step
    double original_us = 0;  // end of the step on the common clock
    double returned_us = 0;  // the same after the way there and back
    double changed_us = 0;   // end in the changed scenario, to see what it moved
    [[nodiscard]] double error_us() const { return returned_us - original_us; }
    [[nodiscard]] double error_percent() const { return 100 * error_us() / step_us; }
  };
  std::string scenario;
  std::vector<RankEnd> ends;
  std::vector<double> kernel_start_error_us;  // absolute, of every work on every GPU stream, ascending
  std::size_t lost = 0;                       // work that the second import did not take up

  [[nodiscard]] double largest_end_error_percent() const;
  // share 0.5: the median.
  [[nodiscard]] double kernel_start_error_quantile_us(double share) const;
};

// Later and earlier starts of single ranks, and kernels of 3, 10 and 30 times their length.
[[nodiscard]] std::vector<RoundTripScenario> standard_round_trips(std::size_t ranks);

// Errors: those of rebuild_program and of the engine, on the way there and back.
[[nodiscard]] Result<RoundTripResult> round_trip(std::span<const RecordedInput> input,
                                                 const RoundTripScenario& scenario);

}  // namespace stepcast
