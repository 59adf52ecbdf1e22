#include "stepcast/retrace/sample_ranks.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::sample_ranks_test {
namespace {

using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

struct Transfer {
  CollectiveOp op;
  std::vector<std::uint32_t> ranks;
  const char* inside;
  double bytes = 1e6;
};

const char* const kBackward = "autograd::engine::evaluate_function: AddmmBackward0";
const char* const kForward = "aten::linear";

// Ranks of a job of four with these transfers.
RecordedProgram job_of(const std::vector<Transfer>& transfers, std::uint32_t n_recorded = 4) {
  RecordedProgram recorded;
  Program& program = recorded.program;
  BlockBuilder block{"rank 0"};
  const LaneId lane = block.add_lane({LaneKind::gpu_stream, "stream 7", 7});
  RecordedFileFacts file;
  file.world_size = 4;
  recorded.files.push_back(file);
  for (const Transfer& t : transfers) {
    const GroupId group = program.add_group({"group", t.ranks});
    TaskInfo info{.kind = TaskKind::kernel,
                  .name = program.names.intern("nccl"),
                  .stack = program.stacks.push(StackId{}, program.names.intern(t.inside)),
                  .work = program.works.intern(CollectiveWork{t.op, DType::bf16, Bytes{t.bytes}, group})};
    info.kernel_class = KernelClass::communication;
    block.add_task(lane, info, Microseconds{10});
  }
  const BlockId id = program.add_block(value_of(std::move(block).finish()));
  RankClass ranks;
  ranks.multiplicity = n_recorded;
  ranks.lanes = {{LaneKind::gpu_stream, "stream 7", 7}};
  program.add_instance(program.add_rank_class(std::move(ranks)), {.block = id});
  return recorded;
}

const std::vector<std::uint32_t> kAll{0, 1, 2, 3};

TEST(SampleRanks, AreAllWhereGradientsAreSummedAlone) {
  const Transfer gradients{CollectiveOp::all_reduce, kAll, kBackward};
  EXPECT_EQ(value_of(sample_ranks(job_of({gradients}))), 4);
  EXPECT_EQ(value_of(sample_ranks(job_of({gradients, {CollectiveOp::all_to_all, kAll, kForward}}))), 4)
      << "embeddings go to the ranks of their samples";
  EXPECT_EQ(value_of(sample_ranks(job_of({gradients, {CollectiveOp::all_reduce, kAll, kForward, 8}}))), 4)
      << "a loss";
}

TEST(SampleRanks, AreThoseThatWereRecorded) {
  const Transfer gradients{CollectiveOp::all_reduce, kAll, kBackward};
  EXPECT_EQ(value_of(sample_ranks(job_of({gradients}, 2))), 2);
  EXPECT_EQ(value_of(sample_ranks(job_of({{CollectiveOp::all_reduce, kAll, kForward}}, 1))), 1);
}

TEST(SampleRanks, TensorParallelRanksShareThem) {
  EXPECT_EQ(value_of(sample_ranks(job_of({{CollectiveOp::all_reduce, kAll, kForward}}))), 1);
  const Transfer tensor{CollectiveOp::all_reduce, {0, 1}, kForward};
  EXPECT_EQ(value_of(sample_ranks(job_of({tensor, {CollectiveOp::all_reduce, {0, 2}, kBackward}}))), 2);
}

TEST(SampleRanks, AreAskedForWhereGroupsDoNotTell) {
  // Shards and their replicas, or experts and their replicas?
  const auto two_groups = sample_ranks(job_of({{CollectiveOp::all_gather, {0, 1}, kForward}}));
  EXPECT_THAT(two_groups, test::FailsWith("do not show how many ranks have their own samples"));
  EXPECT_THAT(two_groups.error().message(), HasSubstr("--samples-per-step"));
  EXPECT_THAT(sample_ranks(job_of({{CollectiveOp::send, {0, 1}, kForward}})),
              test::FailsWith("stages of a pipeline"));
}

}  // namespace
}  // namespace stepcast::sample_ranks_test
