// Readers of the device and node objects of a platform file. Stated members overwrite those that were read
// from an extended file; others stay.
#pragma once

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/detail/record_reader.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

[[nodiscard]] Status read_device(ObjectReader& o, Device& device, const Documents& documents);
[[nodiscard]] Status read_node(ObjectReader& o, Node& node, const Documents& documents);

}  // namespace stepcast::detail
