// What no prediction from traces may break, whatever was recorded: laws that need no measured answer.
//
//   physical    no step is shorter than the work of one stream of a rank
//   monotonic   what is faster never lengthens a step, what is slower never shortens it
//   overlap     perfect overlap of transfers takes no longer than the recorded one, and none no less
//   verdict     what a replay says binds the step is what saves most of it when twice as fast, within a hundredth
//   unchanged   a prediction without a change is the replayed step
//
// Every trace set of a folder and of those below, every step that all ranks have.
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
  std::vector<std::string> refused;  // "SET WHAT_IF: why"

  [[nodiscard]] std::size_t count(std::string_view law) const;
};

// Of one recorded step, called `set`.
void check_what_if_laws(const RecordedProgram& recorded, const std::string& set, WhatIfLaws& laws);

// Errors: a folder without traces.
[[nodiscard]] Result<WhatIfLaws> check_what_if_laws(const std::filesystem::path& data, unsigned threads = 0);

// One line for every law and one for every break.
[[nodiscard]] std::string what_if_laws_text(const WhatIfLaws& laws);

}  // namespace stepcast
