// Rematerialisation policies of MaxText (models/decoders.py, get_remat_policy): what a layer keeps and what the CPU keeps.
#pragma once

#include <string>

#include "stepcast/describe/detail/framework_rows.h"

namespace stepcast::detail {

// All names are jax's; "custom" leaves it to the keys of single results. False: no policy is called so.
[[nodiscard]] bool use_remat_policy(const std::string& name, ConfigWords& words);

}  // namespace stepcast::detail
