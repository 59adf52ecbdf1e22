// Collective operations and their spellings in traces.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// The operations that the models distinguish.
enum class CollectiveOp : std::uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,  // with equal or unequal splits
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  receive,
  send_receive,  // grouped point-to-point, in both directions
  barrier,
};

// "all_reduce", "all_gather", ...; `unknown` gives "unknown".
[[nodiscard]] std::string_view to_string(CollectiveOp op);

// The operation in a framework or kernel name: "allreduce", "all_reduce", "_allgather_base", "all_to_allv",
// "reduce_scatter_tensor_coalesced", "nccl:all_to_all", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)",
// "ncclKernel_SendRecv_...". `unknown` for anything else.
[[nodiscard]] CollectiveOp parse_collective_op(std::string_view text);

}  // namespace stepcast
