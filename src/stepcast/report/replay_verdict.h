// Sentences about what delays a replayed step, and which rank the others wait for.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/analyze/replay_analysis.h"

namespace stepcast {

// The longest step over all ranks, measured and simulated. The two maxima may belong to different ranks.
[[nodiscard]] TimePair longest_step(const ReplayAnalysis& analysis);

// One sentence: "host-bound: twice as fast, the host would save 35.0 % of the step (3.50 ms), the GPUs 2.0
// %; GPUs compute 35.0 % of the step, idle 40.0 % (4.00 ms) for the CPU; rank 3 comes last in 5 of 8
// collectives and causes 60.0 % of the waiting for other ranks (1.20 ms)". The resource that binds the step
// is the one that would save most (step_binding.h). Shares of what GPUs do are means over ranks.
[[nodiscard]] std::string replay_verdict(const ReplayAnalysis& analysis);

// The times by culprit, longest first: "of the mean step of 10.0 ms: host 6.10 ms, GPU 2.90 ms, network
// 1.00 ms; ...". Waiting for another rank is charged to the cause of that rank's delay. Empty without
// results.
[[nodiscard]] std::string culprit_sentence(const ReplayAnalysis& analysis);

// The name of a culprit in sentences: "GPU", "data skew".
[[nodiscard]] std::string_view culprit_name(Culprit culprit);

}  // namespace stepcast
