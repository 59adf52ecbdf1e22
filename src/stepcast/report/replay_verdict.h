// What holds a replayed step back, in one sentence, and who lets the others wait.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/analyze/replay_analysis.h"

namespace stepcast {

// The longest step of all ranks: measured, and simulated.
[[nodiscard]] TimePair longest_step(const ReplayAnalysis& analysis);

// "host-bound: twice as fast, the host would save 35.0 % of the step (3.500 ms), the GPUs 2.0 %; GPUs compute 35.0 % of
// the step, idle 40.0 % (4.000 ms) for the CPU; rank 3 comes last in 5 of 8 collectives and causes 60.0 % of the waiting
// for other ranks (1.200 ms)". What binds the step is what would save most of it (step_binding.h); shares of what GPUs do
// are means over ranks.
[[nodiscard]] std::string replay_verdict(const ReplayAnalysis& analysis);

// "of the mean step of 10.000 ms: host 6.100 ms, GPU 2.900 ms, network 1.000 ms; ..." (Culprit), longest first;
// waiting for another rank counts for what held that one. Empty where nothing was looked for.
[[nodiscard]] std::string culprit_sentence(const ReplayAnalysis& analysis);

// As people call it: "GPU", "data skew".
[[nodiscard]] std::string_view culprit_name(Culprit culprit);

}  // namespace stepcast
