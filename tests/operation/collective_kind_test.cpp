#include "stepcast/operation/collective_kind.h"

#include <gtest/gtest.h>

namespace stepcast::collective_kind_test {
namespace {

TEST(CollectiveOp, TakesTheSpellingsOfFrameworksAndKernels) {
  struct Case {
    const char* text;
    CollectiveOp op;
  };
  constexpr Case kCases[] = {
      {"allreduce", CollectiveOp::all_reduce},
      {"all_reduce", CollectiveOp::all_reduce},
      {"allreduce_coalesced", CollectiveOp::all_reduce},
      {"nccl:all_reduce", CollectiveOp::all_reduce},
      {"c10d::allreduce_", CollectiveOp::all_reduce},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
       CollectiveOp::all_reduce},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", CollectiveOp::all_reduce},
      {"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", CollectiveOp::all_reduce},
      {"allgather", CollectiveOp::all_gather},
      {"all_gather", CollectiveOp::all_gather},
      {"_allgather_base", CollectiveOp::all_gather},
      {"nccl:_all_gather_base", CollectiveOp::all_gather},
      {"all_gather_into_tensor_coalesced", CollectiveOp::all_gather},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", CollectiveOp::all_gather},
      {"reduce_scatter", CollectiveOp::reduce_scatter},
      {"_reduce_scatter_base", CollectiveOp::reduce_scatter},
      {"reduce_scatter_tensor_coalesced", CollectiveOp::reduce_scatter},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(...)", CollectiveOp::reduce_scatter},
      {"all_to_all", CollectiveOp::all_to_all},
      {"all_to_allv", CollectiveOp::all_to_all},
      {"alltoall_base", CollectiveOp::all_to_all},
      {"nccl:all_to_all", CollectiveOp::all_to_all},
      {"broadcast", CollectiveOp::broadcast},
      {"_broadcast_oop", CollectiveOp::broadcast},
      {"ncclDevKernel_Broadcast_RING_LL(...)", CollectiveOp::broadcast},
      {"reduce", CollectiveOp::reduce},
      {"_reduce_oop", CollectiveOp::reduce},
      {"ncclDevKernel_Reduce_Sum_f32_RING_LL(...)", CollectiveOp::reduce},
      {"gather", CollectiveOp::gather},
      {"scatter", CollectiveOp::scatter},
      {"send", CollectiveOp::send},
      {"nccl:send 0->1", CollectiveOp::send},
      {"nccl:recv 0<-1", CollectiveOp::receive},
      {"recv", CollectiveOp::receive},
      {"recvAnySource", CollectiveOp::receive},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
       CollectiveOp::send_receive},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", CollectiveOp::send_receive},
      {"barrier", CollectiveOp::barrier},
      {"ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)", CollectiveOp::unknown},
      {"wait", CollectiveOp::unknown},
      {"", CollectiveOp::unknown},
      {"at::native::reduce_kernel<512, 1>", CollectiveOp::unknown},
      {"reduce_kernel", CollectiveOp::unknown},
      {"aten::scatter", CollectiveOp::unknown},
      {"gather_topk", CollectiveOp::unknown},
  };
  for (const Case& c : kCases) EXPECT_EQ(to_string(parse_collective_op(c.text)), to_string(c.op)) << c.text;
}

TEST(CollectiveOp, ReadsItsOwnNames) {
  for (int i = 1; i <= static_cast<int>(CollectiveOp::barrier); ++i) {
    const auto op = static_cast<CollectiveOp>(i);
    EXPECT_EQ(parse_collective_op(to_string(op)), op) << to_string(op);
  }
}

}  // namespace
}  // namespace stepcast::collective_kind_test
