// Where a measured curve bends because NCCL changes algorithm or protocol. Half of the error of held-out octaves lies
// between 2 and 32 MB, where that happens: sizes in steps of a factor of 2 do not show on which side of a bend they are.
#pragma once

#include <string>
#include <vector>

#include "stepcast/cost/nccl_choice.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"

namespace stepcast {

struct ProtocolSwitch {
  double message_bytes = 0;  // estimate by NCCL, right within about a factor of 2
  NcclEstimate before, after;
};

// Switches from 64 KiB to 1 GiB, in order of size. Below 64 KiB, a change costs little.
[[nodiscard]] std::vector<ProtocolSwitch> protocol_switches(const NcclFabric& fabric, CollectiveOp op,
                                                            std::uint32_t n_ranks, std::uint32_t n_nodes);

// The command that measures additional sizes so that the bends show, for example "all_reduce_perf -b 2M -e 32M -f 1.41 -g
// 8". Empty if sizes are already denser, if there is no switch within the measured sizes, and for other vendors and
// collectives.
[[nodiscard]] std::string denser_sizes_command(const CollectiveMeasurements& measured, const Device& device,
                                               const Node& node);

}  // namespace stepcast
