// Reads the device and the node of a platform file, over what another file says of them.
#pragma once

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/detail/record_reader.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

[[nodiscard]] Status read_device(ObjectReader& o, Device& device, const Documents& documents);
[[nodiscard]] Status read_node(ObjectReader& o, Node& node, const Documents& documents);

}  // namespace stepcast::detail
