// The five kinds of host time in a training step (Lin et al., TPDS 2024).
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// T1: between two top-level operators. T2: from the start of an operator to its first launch. T3: from its
// last launch to its end. T4: the runtime call. T5: between two launches, or an operator without launches.
enum class OverheadType : std::uint8_t { t1, t2, t3, t4, t5 };
[[nodiscard]] std::string_view to_string(OverheadType type);  // "T1" .. "T5"

}  // namespace stepcast
