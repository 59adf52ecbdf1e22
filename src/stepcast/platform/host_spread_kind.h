// The name of the record of how far the host times of jobs on one machine lie apart (HostOverheads::band()).
#pragma once

#include <string_view>

namespace stepcast {

// Name and `kind` of the model. It goes with the overheads, as `kHostLaunchesKind` does.
inline constexpr std::string_view kHostSpreadKind = "host_spread";

}  // namespace stepcast
