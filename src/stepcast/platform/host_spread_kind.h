// The name of the record of the spread of host times between jobs on one machine (HostOverheads::band()).
#pragma once

#include <string_view>

namespace stepcast {

// Name and `kind` of the model. It is inherited and dropped together with the overheads, like
// `kHostLaunchesKind`.
inline constexpr std::string_view kHostSpreadKind = "host_spread";

}  // namespace stepcast
