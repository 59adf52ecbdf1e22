// What the overheads of a host are called by (HostWork::op, OverheadRecord::op).
//
//   aten::mm                                  around and inside of the operator; T4: of the runtime call
//   enumerate(DataLoader) aten::to            of an operator that runs in a data loader: it says nothing of the host
//                                             elsewhere, as it works on other tensors
//   aten::mm after aten::view                 T1 by the operators on both sides of the gap
//   (hand-off) DESCRIPTION                    latency between threads, or of a launch inside of its call
#pragma once

#include <string>
#include <string_view>

#include "stepcast/operation/overhead_type.h"

namespace stepcast {

// Begin of the label that PyTorch puts around a data loader: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__".
inline constexpr std::string_view kDataLoader = "enumerate(DataLoader)";

// `after`: T1: the operator before the gap; empty at the begin of a thread.
[[nodiscard]] std::string overhead_name_of(OverheadType type, std::string_view op, bool in_data_loader,
                                           std::string_view after);
[[nodiscard]] std::string hand_off_name(std::string_view description);

[[nodiscard]] bool is_in_data_loader(std::string_view overhead);
// True for gaps by the operators on both sides.
[[nodiscard]] bool names_both_sides(std::string_view overhead);
// What stands in where nothing is known of it: "enumerate(DataLoader) aten::mm after aten::view", "enumerate(DataLoader)
// aten::mm", "aten::mm"; empty: nothing does.
[[nodiscard]] std::string_view less_special(std::string_view overhead);

}  // namespace stepcast
