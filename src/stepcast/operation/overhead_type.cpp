#include "stepcast/operation/overhead_type.h"

namespace stepcast {

std::string_view to_string(OverheadType type) {
  switch (type) {
    case OverheadType::t1: return "T1";
    case OverheadType::t2: return "T2";
    case OverheadType::t3: return "T3";
    case OverheadType::t4: return "T4";
    case OverheadType::t5: return "T5";
  }
  return "unknown";
}

}  // namespace stepcast
