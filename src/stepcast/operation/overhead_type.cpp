#include "stepcast/operation/overhead_type.h"

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

// In records of platform files and in reports.
constexpr auto kOverheadTypeNames = names<OverheadType::t5>({"T1", "T2", "T3", "T4", "T5"});

}  // namespace

std::string_view to_string(OverheadType type) { return kOverheadTypeNames[type]; }

}  // namespace stepcast
