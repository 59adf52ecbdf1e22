// Scores recommendation models: lookup operators (dlrm_lookups.h) and whole steps predicted from a description.
#pragma once

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Suite dlrm_suite();

}  // namespace stepcast
