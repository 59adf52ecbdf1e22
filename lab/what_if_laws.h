// What no prediction from traces may break, whatever was recorded: laws that need no measured answer.
//
//   physical    no step is shorter than the work of one stream of a rank
//   monotonic   what is faster never lengthens a step, what is slower never shortens it
//   upper       all parts k times as fast leave at most step/k and (1 - 1/k) of the step without any duration: what launches,
//               gaps of streams and kept delays take
//   overlap     perfect overlap of transfers takes no longer than the recorded one, and none no less
//   verdict     what a replay says binds the step is what saves most of it when twice as fast, within a hundredth
//   unchanged   a prediction without a change is the replayed step
//   band        and has the recorded step in its band, and calls it measured only where it is within a hundredth
//   cadence     it is the time from step to step, where a file has four ordinary steps that differ by at most 3 %: within 4 %
//
// Every trace set of a folder and of those below, every step that all ranks have; and of every set the typical step of its
// mutants (trace_mutants.h), which need no recording.
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
  double step_ms = 0;             // that was predicted
  double bound_ms = 0;            // that it had to keep
};

struct WhatIfLaws {
  std::size_t steps = 0, answers = 0;
  std::map<std::string, std::size_t> checked{};  // by law
  std::vector<BrokenLaw> broken;
  // Of steps that were asked `upper`: the step without any duration, as a share of the step. Of sets with a cadence: how far
  // the answer is off it.
  std::vector<double> remainders{}, cadence_errors{};
  std::size_t mutants = 0,
              far_off =
                  0;  // steps of mutants; and of all whose what-ifs are refused: their replay is too far off
  std::vector<std::string> refused;  // "SET WHAT_IF: why"

  [[nodiscard]] std::size_t count(std::string_view law) const;
};

// Of one recorded step, called `set`.
void check_what_if_laws(const RecordedProgram& recorded, const std::string& set, WhatIfLaws& laws);

struct LawOptions {
  unsigned threads = 0;  // 0: one per hardware thread
  bool recorded = true;  // every step of every set
  bool mutants = false;  // of every set of profiler traces
};
// Errors: a folder without traces.
[[nodiscard]] Result<WhatIfLaws> check_what_if_laws(const std::filesystem::path& data,
                                                    const LawOptions& options = {});

// One line for every law and one for every break.
[[nodiscard]] std::string what_if_laws_text(const WhatIfLaws& laws);

}  // namespace stepcast
