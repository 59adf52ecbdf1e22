#include "lab/trace_mutants.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"

#include "lab/what_if_laws.h"
#include "tests/support/paths.h"
#include "tests/support/trace_generator.h"

namespace stepcast::trace_mutants_test {
namespace {

std::vector<RecordedRank> recorded() {
  std::vector<RecordedRank> ranks;
  for (const test::GeneratedRank& rank : test::generate_job({}).ranks) ranks.push_back(rank.recorded);
  return ranks;
}

std::vector<RecordedRank> mutant(std::string_view name) {
  std::vector<RecordedRank> ranks = recorded();
  for (const TraceMutation& mutation : trace_mutations())
    if (mutation.name == name) mutation.apply(ranks);
  return ranks;
}

TEST(TraceMutants, ChangeWhatTheySay) {
  const std::vector<RecordedRank> was = recorded();
  EXPECT_LT(mutant("launches removed")[0].runtime_calls.size(), was[0].runtime_calls.size());
  EXPECT_LT(mutant("first events cut")[0].cpu_ops.size(), was[0].cpu_ops.size());
  EXPECT_EQ(mutant("rank offsets")[0].gpu_ops[0].start, was[0].gpu_ops[0].start);
  EXPECT_GT(mutant("rank offsets")[1].gpu_ops[0].start, was[1].gpu_ops[0].start);
  EXPECT_GT(mutant("large rank offsets")[1].gpu_ops[0].start, mutant("rank offsets")[1].gpu_ops[0].start);
  for (const char* name : {"another profiler", "no metadata of collectives"})
    EXPECT_TRUE(mutant(name)[0].collective_infos.empty());
  for (const char* name : {"launches of transfers removed", "launches of copies removed"}) {
    EXPECT_LT(mutant(name)[0].runtime_calls.size(), was[0].runtime_calls.size());
    EXPECT_GT(mutant(name)[0].runtime_calls.size(), mutant("launches removed")[0].runtime_calls.size());
  }
  EXPECT_LT(mutant("half of the first events cut")[0].cpu_ops.size(),
            mutant("first events cut")[0].cpu_ops.size());
  EXPECT_EQ(mutant("tens of microseconds")[0].gpu_ops[0].start.count() % 10'000, 0);
  EXPECT_TRUE(std::ranges::none_of(mutant("no step markers")[0].cpu_ops,
                                   [](const CpuOp& op) { return op.kind == CpuOp::Kind::step; }));
  const auto step_ns = [](const RecordedRank& rank) {
    return std::ranges::find(rank.cpu_ops, CpuOp::Kind::step, &CpuOp::kind)->duration.count();
  };
  EXPECT_NEAR(static_cast<double>(step_ns(mutant("steps of 4 times the length")[0])),
              4 * static_cast<double>(step_ns(was[0])), 10);
  EXPECT_TRUE(std::ranges::any_of(mutant("collectives spread")[0].gpu_ops,
                                  [](const GpuOp& op) { return op.stream == 1001; }));
}

// Ends scatter by up to 30 us and clocks are up to 1 ms apart: the same collectives all the same.
TEST(TraceMutants, ClocksDoNotChangeHowManyCollectivesThereAre) {
  test::GeneratorOptions options;
  options.ranks = 8;
  std::vector<RecordedRank> ranks;
  for (const test::GeneratedRank& rank : test::generate_job(options).ranks) ranks.push_back(rank.recorded);
  std::uint64_t draws = 1;
  const auto up_to = [&](std::uint64_t most) {
    draws = draws * 6364136223846793005U + 1442695040888963407U;  // Knuth's generator
    return Nanoseconds{static_cast<std::int64_t>((draws >> 33U) % (1000 * most + 1))};
  };
  const auto collectives_of = [](const std::vector<RecordedRank>& of) {
    std::vector<RecordedInput> inputs;
    for (const RecordedRank& rank : of) inputs.push_back({&rank, nullptr});
    const Result<RecordedProgram> recorded = rebuild_program(inputs);
    EXPECT_TRUE(recorded.ok());
    return recorded.ok() ? recorded->program.collectives().size() : 0;
  };
  const std::size_t all = collectives_of(ranks);
  EXPECT_GT(all, 3U);
  for (const std::uint64_t apart_us : {0U, 10U, 30U, 50U, 100U, 300U, 1000U}) {
    std::vector<RecordedRank> moved = ranks;
    for (RecordedRank& rank : moved) {
      const Nanoseconds ahead = up_to(apart_us);
      for (CpuOp& op : rank.cpu_ops) op.start += ahead;
      for (RuntimeCall& call : rank.runtime_calls) call.start += ahead;
      for (GpuOp& op : rank.gpu_ops) {
        op.start += ahead;
        op.duration += up_to(30);
      }
    }
    EXPECT_EQ(collectives_of(moved), all) << apart_us;
  }
}

TEST(TraceMutants, OfTheExampleKeepTheLaws) {
  const Result<WhatIfLaws> laws =
      check_what_if_laws(test::source_dir() / "examples" / "dlrm_4gpu", {.recorded = false, .mutants = true});
  ASSERT_TRUE(laws.ok()) << laws.error().message();
  EXPECT_EQ(laws->mutants, trace_mutations().size());
  for (const char* law : {"physical", "monotonic", "upper", "overlap", "band"}) {
    EXPECT_TRUE(laws->checked.contains(law)) << law;
    EXPECT_EQ(laws->count(law), 0) << what_if_laws_text(*laws);
  }
}

}  // namespace
}  // namespace stepcast::trace_mutants_test
