// The five kinds of host time in a training step (Lin et al., TPDS 2024).
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// T1: between two top-level ops. T2: from the begin of an op to its first launch. T3: from its last launch to
// its end. T4: the runtime call itself. T5: between two launches, or an op without any.
enum class OverheadType : std::uint8_t { t1, t2, t3, t4, t5 };
[[nodiscard]] std::string_view to_string(OverheadType type);  // "T1" .. "T5"

}  // namespace stepcast
