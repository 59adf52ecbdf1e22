#include "stepcast/operation/overhead_type.h"

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

constexpr auto kOverheadTypeNames = names<OverheadType>({{OverheadType::t1, "T1"},
                                                         {OverheadType::t2, "T2"},
                                                         {OverheadType::t3, "T3"},
                                                         {OverheadType::t4, "T4"},
                                                         {OverheadType::t5, "T5"}});

}  // namespace

std::string_view to_string(OverheadType type) { return kOverheadTypeNames[type]; }

}  // namespace stepcast
