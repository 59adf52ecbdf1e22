// Shardings of embedding tables as a page (report/document.h): how long each makes the step, and what every rank carries.
#pragma once

#include <string>

#include "stepcast/plan/sharding_comparison.h"
#include "stepcast/report/document.h"

namespace stepcast {

// `platform` as it was asked for.
[[nodiscard]] ReportDocument sharding_document(const ShardingComparison& answer, const std::string& platform);

}  // namespace stepcast
