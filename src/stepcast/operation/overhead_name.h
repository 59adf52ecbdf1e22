// Names of host overheads (HostWork::op, OverheadRecord::op).
//
//   aten::mm                                  around and inside of the operator; T4: of the runtime call
//   enumerate(DataLoader) aten::to            of an operator in a data loader; separate, because it works on
//                                             other tensors than the same operator elsewhere
//   aten::mm after aten::view                 T1 by the operators before and after the gap
//   (hand-off) DESCRIPTION                    latency between threads, or of a launch inside of its call
#pragma once

#include <string>
#include <string_view>

#include "stepcast/operation/overhead_type.h"

namespace stepcast {

// Beginning of the label that PyTorch puts around a data loader:
// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__".
inline constexpr std::string_view kDataLoader = "enumerate(DataLoader)";

// The name of an overhead. `after`, for T1: the operator before the gap; empty at the start of a thread.
[[nodiscard]] std::string overhead_name_of(OverheadType type, std::string_view op, bool in_data_loader,
                                           std::string_view after);
// "(hand-off) DESCRIPTION".
[[nodiscard]] std::string hand_off_name(std::string_view description);

// Whether the name belongs to an operator in a data loader.
[[nodiscard]] bool is_in_data_loader(std::string_view overhead);
// Whether the name is of a gap with the operators on both sides.
[[nodiscard]] bool names_both_sides(std::string_view overhead);
// The next more general name, used where the name itself has no record: "enumerate(DataLoader) aten::mm after
// aten::view", "enumerate(DataLoader) aten::mm", "aten::mm"; empty: there is none.
[[nodiscard]] std::string_view less_special(std::string_view overhead);

}  // namespace stepcast
