// Reads the records of a platform file: curves of collectives, models, overheads.
#pragma once

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/detail/provenance_reader.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

[[nodiscard]] Result<CollectiveCurve> read_curve(ObjectReader& o, const Documents& documents);
[[nodiscard]] Result<ModelRecord> read_model(ObjectReader& o, const Documents& documents);
// Name, kind and device alone: nothing else is looked at.
[[nodiscard]] Result<ModelRecord> read_model_names(ObjectReader& o, const Documents& documents);
[[nodiscard]] Result<OverheadRecord> read_overhead(ObjectReader& o, const Documents& documents);

}  // namespace stepcast::detail
