#include "stepcast/sweep/sweep_shard.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::sweep_shard_test {
namespace {

using test::FailsWith;

Result<SweepShard> of(const std::map<std::string, std::string>& variables,
                      std::optional<std::uint32_t> count = std::nullopt) {
  return shard_of_environment(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      },
      count);
}

TEST(SweepShard, IsReadFromIndexAndCount) {
  const SweepShard shard = *parse_shard("2/16");
  EXPECT_EQ(shard.index, 2U);
  EXPECT_EQ(shard.count, 16U);
  EXPECT_EQ(shard.file_name(), "shard-0002-of-0016.jsonl");
  for (const char* wrong : {"", "3", "4/4", "-1/4", "a/4", "1/", "/4", "1/4/2", "0/0", "1/9999999"}) {
    EXPECT_THAT(parse_shard(wrong), FailsWith("--shard")) << wrong;
  }
}

TEST(SweepShard, EveryPointIsInOne) {
  std::string list = "[1";
  for (int i = 2; i <= 1000; ++i) list += "," + std::to_string(i);
  const SweepSpec spec = *parse_sweep("model = \"a\"\ngbs = " + list + "]\n", "s.toml");
  for (const std::uint32_t count : {1U, 4U, 7U}) {
    std::vector<std::size_t> members(count, 0);
    for (const SweepPoint& point : spec.points) {
      for (std::uint32_t i = 0; i < count; ++i) members[i] += SweepShard{i, count, {}}.has(point) ? 1U : 0U;
    }
    std::size_t all = 0;
    for (const std::size_t n : members) {
      all += n;
      // Binomial with p = 1 / count: five standard deviations are below 80.
      EXPECT_NEAR(static_cast<double>(n), 1000.0 / count, 80);
    }
    EXPECT_EQ(all, 1000U);
  }
}

TEST(SweepShard, ASlurmArraySaysAll) {
  const SweepShard shard = *of({{"SLURM_ARRAY_TASK_ID", "3"},
                                {"SLURM_ARRAY_TASK_COUNT", "4"},
                                {"SLURM_ARRAY_TASK_MIN", "1"},
                                {"SLURM_ARRAY_TASK_MAX", "4"}});
  EXPECT_EQ(shard.index, 2U);
  EXPECT_EQ(shard.count, 4U);
  EXPECT_EQ(shard.origin, "SLURM_ARRAY_TASK_ID");
  // --array=0-6:2 has the tasks 0, 2, 4, 6.
  const SweepShard stepped = *of({{"SLURM_ARRAY_TASK_ID", "4"},
                                  {"SLURM_ARRAY_TASK_COUNT", "4"},
                                  {"SLURM_ARRAY_TASK_MIN", "0"},
                                  {"SLURM_ARRAY_TASK_MAX", "6"},
                                  {"SLURM_ARRAY_TASK_STEP", "2"}});
  EXPECT_EQ(stepped.index, 2U);
  // --array=0,1,5.
  EXPECT_THAT(of({{"SLURM_ARRAY_TASK_ID", "1"},
                  {"SLURM_ARRAY_TASK_COUNT", "3"},
                  {"SLURM_ARRAY_TASK_MIN", "0"},
                  {"SLURM_ARRAY_TASK_MAX", "5"}}),
              FailsWith("the array has gaps"));
  EXPECT_THAT(of({{"SLURM_ARRAY_TASK_ID", "x"}}), FailsWith("SLURM_ARRAY_TASK_ID: found `x`"));
  EXPECT_THAT(of({{"SLURM_ARRAY_TASK_ID", "1"}}), FailsWith("SLURM_ARRAY_TASK_COUNT"));
  EXPECT_THAT(of({{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}, 8),
              FailsWith("expected 4"));
}

TEST(SweepShard, AnIndexedJobSaysItsIndex) {
  const SweepShard shard = *of({{"JOB_COMPLETION_INDEX", "5"}}, 8);
  EXPECT_EQ(shard.index, 5U);
  EXPECT_EQ(shard.count, 8U);
  EXPECT_THAT(of({{"JOB_COMPLETION_INDEX", "5"}}), FailsWith("say --shards"));
  EXPECT_THAT(of({{"JOB_COMPLETION_INDEX", "8"}}, 8), FailsWith("expected less than --shards 8"));
}

TEST(SweepShard, IsTheWholeElsewhere) {
  EXPECT_EQ(of({})->count, 1U);
  EXPECT_THAT(of({}, 4), FailsWith("say --shard i/n"));
}

}  // namespace
}  // namespace stepcast::sweep_shard_test
