#include "stepcast/plan/job_pool.h"

#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::job_pool_test {
namespace {

using Cost = std::tuple<std::int64_t, std::int64_t, double>;

Cost cost_of(const std::vector<PoolChoices>& jobs, const std::vector<std::optional<std::size_t>>& chosen) {
  Cost cost{0, 0, 0.0};
  auto& [missed, idle, sum] = cost;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const PoolPart* part = chosen[j] ? &jobs[j].parts[*chosen[j]] : nullptr;
    if (part == nullptr || part->misses) missed += jobs[j].weight;
    if (part == nullptr) ++idle;
    if (part != nullptr) sum += part->cost;
  }
  return cost;
}

std::int64_t size_of(const std::vector<PoolChoices>& jobs,
                     const std::vector<std::optional<std::size_t>>& chosen) {
  std::int64_t size = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j)
    if (chosen[j]) size += jobs[j].parts[*chosen[j]].size;
  return size;
}

// Every way to give each job a part or none.
Cost least_of_all(const std::vector<PoolChoices>& jobs, std::int64_t pool) {
  std::vector<std::optional<std::size_t>> chosen(jobs.size());
  Cost least = cost_of(jobs, chosen);
  while (true) {
    std::size_t j = 0;
    for (; j < jobs.size(); ++j) {
      const std::size_t next = chosen[j] ? *chosen[j] + 1 : 0;
      if (next < jobs[j].parts.size()) {
        chosen[j] = next;
        break;
      }
      chosen[j].reset();
    }
    if (j == jobs.size()) return least;
    if (size_of(jobs, chosen) <= pool) least = std::min(least, cost_of(jobs, chosen));
  }
}

// By hand: of four nodes the heavy job takes the three that its deadline needs, which leaves the light one late on one;
// with five both are in time, and with two the light one is.
TEST(JobPool, GivesTheHeavierDeadlineItsNodes) {
  const std::vector<PoolChoices> jobs{{{{1, true, 30}, {2, true, 16}, {3, false, 11}, {4, false, 9}}, 5},
                                      {{{1, true, 8}, {2, false, 4}}, 1}};
  using Chosen = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(assign_parts(jobs, 4), (Chosen{2, 0}));
  EXPECT_EQ(assign_parts(jobs, 5), (Chosen{2, 1}));
  EXPECT_EQ(assign_parts(jobs, 6), (Chosen{3, 1}));
  EXPECT_EQ(assign_parts(jobs, 2), (Chosen{std::nullopt, 1}));
  EXPECT_EQ(assign_parts(jobs, 0), (Chosen{std::nullopt, std::nullopt}));
}

TEST(JobPool, IsAsGoodAsEveryOtherWay) {
  std::mt19937 random{29};
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution{from, to}(random); };
  for (int i = 0; i < 300; ++i) {
    std::vector<PoolChoices> jobs(static_cast<std::size_t>(draw(1, 5)));
    for (PoolChoices& job : jobs) {
      job.weight = draw(1, 4);
      for (int p = draw(0, 4); p > 0; --p)
        job.parts.push_back({draw(1, 9), draw(0, 1) == 1, static_cast<double>(draw(1, 40))});
    }
    const std::int64_t pool = draw(0, 24);
    const auto chosen = assign_parts(jobs, pool);
    EXPECT_LE(size_of(jobs, chosen), pool);
    EXPECT_EQ(cost_of(jobs, chosen), least_of_all(jobs, pool)) << "instance " << i;
  }
}

TEST(JobPool, ReadsJobsAndSaysWhatIsWrong) {
  const auto jobs = parse_pool_jobs(
      "[[job]]\nname = \"a\"\nmodel = \"llama-3-8b\"\ngbs = 4\nseq = 1024\nsteps = 10\nweight = 2\n"
      "deadline_days = 3.5\n",
      "jobs.toml");
  ASSERT_TRUE(jobs.ok()) << jobs.error().message();
  EXPECT_EQ(jobs->front().tokens, 40960);
  EXPECT_EQ(jobs->front().weight, 2);
  EXPECT_EQ(jobs->front().deadline_days, 3.5);
  const std::string job = "[[job]]\nname = \"a\"\nmodel = \"m\"\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "[[job]]"},
      {"job = 3\n", "[[job]]"},
      {job, "tokens and steps"},
      {job + "tokens = 1\nsteps = 2\n", "contradict each other"},
      {job + "steps = 2\n", "gbs and seq"},
      {job + "tokens = -1\n", "above 0"},
      {job + "tokens = 1\nweight = 0\n", "weight"},
      {job + "tokens = 1\nlate_price_per_hour = 2\n", "deadline_days"},
      {job + "tokens = 1\nwhat = 2\n", "what"},
      {job + "tokens = 1\n" + job + "tokens = 1\n", "another job"}};
  for (const auto& [text, words] : cases) {
    const auto bad = parse_pool_jobs(text, "jobs.toml");
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_NE(bad.error().message().find(words), std::string::npos) << bad.error().message();
    EXPECT_NE(bad.error().message().find("jobs.toml"), std::string::npos) << bad.error().message();
  }
}

}  // namespace
}  // namespace stepcast::job_pool_test
