#include "stepcast/program/task_work.h"

#include <gtest/gtest.h>

#include "stepcast/program/program.h"

namespace stepcast::task_work_test {
namespace {

TEST(WorkTable, StoresEqualWorkOnce) {
  WorkTable works;
  const WorkId up = works.intern(gemm({.m = 8, .n = 16, .k = 4}, DType::bf16));
  const WorkId again = works.intern(gemm({.m = 8, .n = 16, .k = 4}, DType::bf16));
  const WorkId other = works.intern(gemm({.m = 8, .n = 16, .k = 4}, DType::fp32));
  EXPECT_EQ(up, again);
  EXPECT_NE(up, other);
  EXPECT_EQ(works.size(), 2u);
  ASSERT_NE(works.operation(up), nullptr);
  EXPECT_EQ(works.operation(up)->dtype, DType::bf16);
}

TEST(WorkTable, TellsKindsOfWorkApart) {
  WorkTable works;
  const GroupId tensor{0}, data{1};
  const WorkId a = works.intern(CollectiveWork{CollectiveOp::all_reduce, DType::bf16, Bytes{1024}, tensor});
  const WorkId b = works.intern(CollectiveWork{CollectiveOp::all_reduce, DType::bf16, Bytes{1024}, data});
  const WorkId c = works.intern(CollectiveWork{CollectiveOp::all_reduce, DType::bf16, Bytes{2048}, tensor});
  const WorkId launch = works.intern(HostWork{HostWork::Activity::kernel_launches, {}, {}});
  const WorkId between = works.intern(HostWork{HostWork::Activity::between_steps, {}, {}});
  const WorkId waiting = works.intern(Waiting{});
  EXPECT_EQ(works.size(), 6u);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(launch, between);
  EXPECT_EQ(works.collective(b)->group, data);
  EXPECT_EQ(works.operation(a), nullptr);
  EXPECT_EQ(works.host(launch)->activity, HostWork::Activity::kernel_launches);
  EXPECT_TRUE(std::holds_alternative<Waiting>(works.of(waiting)));
}

TEST(WorkTable, UnknownWorkHasNoId) {
  WorkTable works;
  EXPECT_FALSE(works.intern(TaskWork{}).valid());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(works.of(WorkId{})));
  EXPECT_EQ(works.operation(WorkId{}), nullptr);
  EXPECT_EQ(works.size(), 0u);
}

TEST(Program, KeepsEqualGroupsOnce) {
  Program program;
  const GroupId tensor = program.add_group({"tensor", {0, 1}});
  const GroupId other = program.add_group({"tensor", {2, 3}});
  EXPECT_EQ(program.add_group({"tensor", {0, 1}}), tensor);
  EXPECT_NE(tensor, other);
  ASSERT_EQ(program.groups().size(), 2u);
  EXPECT_EQ(program.groups()[other.index()].ranks, (std::vector<std::uint32_t>{2, 3}));
}

}  // namespace
}  // namespace stepcast::task_work_test
