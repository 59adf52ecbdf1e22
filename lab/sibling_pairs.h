// How well a device that nobody measured is known from its sibling, beside the answer that takes the sibling's times as
// they are.
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/expert_measurements.h"
#include "calibrate/kernel_measurements.h"
#include "lab/suite.h"

namespace stepcast {

// `sibling_pairs`: for H100 and H200, B200 and GB200, both ways: products and attention by type of the tables, priced by
// records that were fitted to the sibling's rows alone, and `sibling_pairs_experts`: balanced and uneven expert layers by
// rates of the sibling. Rows are those that both devices measured at equal shapes in one regime, the one that has more.
// The same of GPUs that later tables brought stands apart: `sibling_pairs_later`, `sibling_pairs_later_experts`; and
// `sibling_pairs_large` has of all these pairs the products that take 300 us and more, which training steps are made of.
// Numbers beside the metrics: `as_is_mape_pct`, error of the sibling's own time of the same row, `of_as_is_pct`, ours over it,
// and of kernels the errors of that time by the ratio of the bandwidths and of the analytic model.
[[nodiscard]] Result<std::vector<TestScore>> score_sibling_pairs(
    const std::vector<KernelMeasurement>& rows, const std::vector<MeasuredExpertLayer>& layers,
    const SuiteOptions& options);

// Reads the tables of the folder (modern/kernels), and newer/kernels beside its parent, and scores them.
[[nodiscard]] Result<SuiteResult> validate_siblings(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

}  // namespace stepcast
