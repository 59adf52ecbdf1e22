// Scores predictions of an unmeasured device from its sibling, and the trivial answer: the times of the sibling unchanged.
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/expert_measurements.h"
#include "calibrate/kernel_measurements.h"
#include "lab/suite.h"

namespace stepcast {

// `sibling_pairs`: H100 and H200, B200 and GB200, in both directions: GEMMs and attention of the tables by type, priced by
// records fitted only to the rows of the sibling. `sibling_pairs_experts`: balanced and uneven expert layers by rates of the
// sibling. Rows are shapes that both devices measured in one regime, the one with more such shapes.
// `sibling_pairs_later`, `sibling_pairs_later_experts`: the same for GPUs of later tables. `sibling_pairs_large`: the GEMMs of
// all these pairs that take 300 us or more and dominate training steps. Extras: `as_is_mape_pct`, error of the sibling's
// unchanged time; `of_as_is_pct`, our error over it; for kernels also the errors of that time scaled by the ratio of the
// bandwidths and by that of the analytic model.
[[nodiscard]] Result<std::vector<TestScore>> score_sibling_pairs(
    const std::vector<KernelMeasurement>& rows, const std::vector<MeasuredExpertLayer>& layers,
    const SuiteOptions& options);

// Reads the tables of the folder (modern/kernels) and of newer/kernels, in the folder next to its parent, and scores them.
[[nodiscard]] Result<SuiteResult> validate_siblings(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

}  // namespace stepcast
