#include "stepcast/formats/layout_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/resolve_job.h"

namespace stepcast::layout_choice_test {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

Job job_of(const std::string& model, std::int64_t n_gpus, std::int64_t seq_len = 1024) {
  Job job{.model = model, .n_gpus = n_gpus};
  job.settings.seq_len_tokens = seq_len;
  return job;
}

LayoutSearch search(const Job& job, double memory_GiB = 80) {
  return LayoutSearch{job, {.memory = Bytes{memory_GiB * kGiB}, .gpus_per_node = 8}};
}

TEST(LayoutChoice, IsOpenUntilAnythingIsSaidOfHowTheWorkIsSpread) {
  Job job = job_of("llama-3-8b", 8);
  job.settings.global_batch_sequences = 64;
  EXPECT_TRUE(leaves_layout_open(job));
  Job spread = job;
  spread.settings.tensor = 1;
  EXPECT_FALSE(leaves_layout_open(spread));
  Job sharded = job;
  sharded.settings.zero_stage = 0;
  EXPECT_FALSE(leaves_layout_open(sharded));
  Job line = job;
  line.command_line = "--bf16";
  EXPECT_FALSE(leaves_layout_open(line));
}

// A layout that scripts would spell is whole; anything less leaves the rest to a search.
TEST(LayoutChoice, IsWholeOnceDegreesAndBatchAreSaid) {
  Job job = job_of("llama-3-8b", 8);
  EXPECT_TRUE(leaves_part_open(job));
  job.settings.tensor = 2;
  job.settings.recompute = Recompute::full;
  job.settings.global_batch_sequences = 64;
  EXPECT_TRUE(leaves_part_open(job));
  Job whole = job;
  whole.settings.pipeline = 1;
  EXPECT_FALSE(says_whole_layout(whole.settings));
  whole.settings.micro_batch_sequences = 1;
  EXPECT_TRUE(says_whole_layout(whole.settings));
  EXPECT_TRUE(leaves_part_open(whole));
  Job counted = job;
  counted.settings.data = 4;
  EXPECT_FALSE(leaves_part_open(counted));
  Job line = job;
  line.command_line = "--bf16";
  EXPECT_FALSE(leaves_part_open(line));
}

// The usual layouts keep to what is said.
TEST(LayoutChoice, WhatIsSaidStays) {
  Job job = job_of("llama-3-70b", 64, 8192);
  job.settings.tensor = 2;
  job.settings.recompute = Recompute::full;
  for (const auto& chosen : {search(job).usual(), search(job).smallest()}) {
    ASSERT_TRUE(chosen.has_value());
    EXPECT_EQ(chosen->job.layout.degrees.tensor, 2);
    EXPECT_EQ(chosen->job.layout.layer.recompute.kind, Recompute::full);
  }
  job.settings.zero_stage = 1;
  EXPECT_EQ(search(job).smallest()->job.layout.sharding.kind, Sharding::zero1);
}

// 0.12 billion parameters of 18 bytes are 2.1 GiB.
TEST(LayoutChoice, NeedsNothingWhereDataParallelismFits) {
  const auto chosen = search(job_of("gpt2", 8)).usual();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->flags, "");
  EXPECT_EQ(chosen->job.layout.degrees.data, 8);
}

// 8.03 billion parameters on 64 GPUs: 18 bytes of each are 134.6 GiB; with sharded states 2 + 4 + 12 / 64 = 6.2 bytes,
// 46.3 GiB.
TEST(LayoutChoice, ShardsStatesFirst) {
  const auto chosen = search(job_of("llama-3-8b", 64)).usual();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->flags, "--use-distributed-optimizer");
  EXPECT_EQ(chosen->memory.verdict, MemoryVerdict::fits);
}

TEST(LayoutChoice, SplitsTensorsInsideANodeThenLayers) {
  const auto chosen = search(job_of("llama-3-70b", 64, 8192)).usual();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->job.layout.degrees.tensor, 8);
  EXPECT_GT(chosen->job.layout.degrees.pipeline, 1);
  // Four micro-batches a stage.
  EXPECT_EQ(chosen->job.layout.batch.global_batch_sequences,
            4 * chosen->job.layout.degrees.pipeline * chosen->job.layout.degrees.data);
  EXPECT_THAT(chosen->flags, HasSubstr("--tp 8 --pp "));
}

TEST(LayoutChoice, FlagsGiveTheSameLayoutAgain) {
  Job job = job_of("llama-3-70b", 64, 8192);
  const auto chosen = search(job).usual();
  ASSERT_TRUE(chosen.has_value());
  job.settings = over(job.settings, chosen->settings);
  const auto again = resolve(job);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->layout, chosen->job.layout);
}

TEST(LayoutChoice, FsdpShardsWeightsAndSplitsNothing) {
  Job job = job_of("llama-3-8b", 8, 8192);
  job.framework = Framework::fsdp;
  const auto chosen = search(job).usual();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->job.layout.sharding.kind, Sharding::zero3);
  EXPECT_EQ(chosen->job.layout.degrees.data, 8);
}

TEST(LayoutChoice, SaysHowManyGpusWouldHoldIt) {
  const LayoutSearch one = search(job_of("llama-3-70b", 1, 8192));
  EXPECT_FALSE(one.usual().has_value());
  ASSERT_TRUE(one.smallest().has_value());
  const auto more = one.on_more_gpus();
  ASSERT_TRUE(more.has_value());
  EXPECT_GE(*more->job.n_gpus, 16);
  EXPECT_THAT(more->flags, HasSubstr("--gpus "));
}

// What is said stays: the change that needs least comes first, and all of it is in the flags.
TEST(LayoutChoice, NearestChangesAreThoseThatFit) {
  Job job = job_of("llama-3-8b", 64);
  job.settings.tensor = 1;
  const auto nearest = search(job).nearest(3);
  ASSERT_EQ(nearest.size(), 3U);
  EXPECT_EQ(nearest.front().flags, "--use-distributed-optimizer");
  EXPECT_EQ(nearest[1].flags, "--use-distributed-optimizer --recompute-granularity full");
  EXPECT_EQ(nearest[2].flags, "--zero-stage 3");
  for (const LayoutChoice& choice : nearest) {
    EXPECT_NE(choice.memory.verdict, MemoryVerdict::does_not_fit);
    EXPECT_EQ(choice.job.layout.world_size(), 64);
  }
}

// 16 Ki tokens need recomputation on top of sharded states.
TEST(LayoutChoice, NearestNamesEveryChange) {
  Job job = job_of("llama-3-8b", 64, 16384);
  job.settings.tensor = 1;
  const auto nearest = search(job).nearest(1);
  ASSERT_EQ(nearest.size(), 1U);
  EXPECT_EQ(nearest.front().flags, "--use-distributed-optimizer --recompute-granularity full");
}

TEST(LayoutChoice, NothingIsNearWhereNothingHelps) {
  EXPECT_TRUE(search(job_of("llama-3-8b", 1), 8).nearest(3).empty());
}

}  // namespace
}  // namespace stepcast::layout_choice_test
