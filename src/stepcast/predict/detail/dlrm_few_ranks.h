// The Program of a recommendation step of some of its ranks: those that have a say in how long it takes.
#pragma once

#include <cstdint>

#include "stepcast/predict/dlrm_program.h"

namespace stepcast::detail {

// As dlrm_program() of `n_ranks`, but of the first `n_written` of them alone, which wait for each other.
[[nodiscard]] Result<DlrmProgram> dlrm_program_of(const Dlrm& model, const DlrmTraining& training,
                                                  const DlrmBehavior& habits, std::int64_t n_ranks,
                                                  std::int64_t n_written);

}  // namespace stepcast::detail
