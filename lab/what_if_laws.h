// Laws that no prediction from traces may break, for any recording. They need no measured answer.
//
//   physical    no step is shorter than the work of one stream of a rank
//   monotonic   a faster part never lengthens a step, a slower part never shortens it
//   upper       all parts k times as fast leave at most step/k plus (1 - 1/k) of the step without any durations: launches, gaps
//               of streams and kept delays
//   overlap     perfect overlap of transfers takes at most the time of the recorded overlap, and no overlap at least that time
//   verdict     the resource that a replay names as the bound saves most time when twice as fast, within a hundredth
//   unchanged   a prediction without a change is the replayed step
//   band        the band of that prediction includes the recorded step; it is called measured only within a hundredth
//   cadence     that prediction is within 4 % of the time from step to step, if a file has four ordinary steps that differ by at
//               most 3 %
//
// Checked for every step that all ranks have, in every trace set of a folder and its sub-folders, and for the typical step
// of the mutants of every set (trace_mutants.h), which need no recording.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct BrokenLaw {
  std::string law, set, what_if;  // "physical", "dlrm8 step 12", "host=2x"
  double step_ms = 0;             // predicted
  double bound_ms = 0;            // that the prediction must keep
};

struct WhatIfLaws {
  std::size_t steps = 0, answers = 0;
  std::map<std::string, std::size_t> checked{};  // by law
  std::vector<BrokenLaw> broken;
  // Of steps checked for `upper`: the step without any durations, as a share of the step. Of sets with a cadence: error of
  // the prediction.
  std::vector<double> remainders{}, cadence_errors{};
  std::size_t
      mutants = 0,
      far_off =
          0;  // steps of mutants, and of all steps those with refused what-ifs: their replay is too far off
  std::vector<std::string> refused;  // "SET WHAT_IF: why"

  [[nodiscard]] std::size_t count(std::string_view law) const;
};

// Checks one recorded step, named `set`.
void check_what_if_laws(const RecordedProgram& recorded, const std::string& set, WhatIfLaws& laws);

struct LawOptions {
  unsigned threads = 0;  // 0: one per hardware thread
  bool recorded = true;  // every step of every set
  bool mutants = false;  // check mutants of every set of profiler traces
};
// Errors: a folder without traces.
[[nodiscard]] Result<WhatIfLaws> check_what_if_laws(const std::filesystem::path& data,
                                                    const LawOptions& options = {});

// One line for every law and one for every violation.
[[nodiscard]] std::string what_if_laws_text(const WhatIfLaws& laws);

}  // namespace stepcast
