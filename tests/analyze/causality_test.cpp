// Cause and effect on real and generated traces: a change moves what depends on it by as much as it must, and
// nothing else.
//
// On the 8-rank DLRM set the numbers can be worked out from the record: transfer and arrival of every
// collective are there, so how long a rank waits after another began later follows by subtraction.
#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/simulate/engine.h"
#include "stepcast/sources/trace_set.h"

#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace stepcast::causality_test {
namespace {

class Job {
 public:
  explicit Job(const std::filesystem::path& folder) {
    const std::vector<std::filesystem::path> places{folder};
    auto listing = list_traces(places);
    EXPECT_TRUE(listing.ok());
    auto set = read_trace_set(*listing);
    EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message());
    set_ = std::move(*set);
    auto recorded = rebuild_program(set_.inputs());
    EXPECT_TRUE(recorded.ok()) << (recorded.ok() ? "" : recorded.error().message());
    recorded_.emplace(std::move(*recorded));
    auto plan = Plan::compile(recorded_->program);
    EXPECT_TRUE(plan.ok());
    plan_.emplace(std::move(*plan));
    flat_.emplace(recorded_->program);
  }

  [[nodiscard]] const Program& program() const { return recorded_->program; }
  [[nodiscard]] const FlatProgram& flat() const { return *flat_; }
  [[nodiscard]] std::size_t ranks() const { return recorded_->start_offset_us.size(); }
  [[nodiscard]] const std::vector<double>& offsets() const { return recorded_->start_offset_us; }
  [[nodiscard]] Costs costs() const { return Costs{recorded_->program}; }

  [[nodiscard]] Timeline run(const Costs& costs, const std::vector<double>& offsets) const {
    SimulateOptions options;
    options.start_offset_us = offsets;
    auto timeline = plan_->simulate(costs, options);
    EXPECT_TRUE(timeline.ok());
    return std::move(*timeline);
  }
  // With rank `rank` beginning `by_us` later.
  [[nodiscard]] Timeline late(std::size_t rank, double by_us) const {
    std::vector<double> offsets = recorded_->start_offset_us;
    offsets[rank] += by_us;
    return run(costs(), offsets);
  }
  // With one task longer by `by_us`.
  [[nodiscard]] Timeline longer(std::size_t rank, std::size_t task, double by_us) const {
    Costs changed = costs();
    changed.duration_us(program().rank_classes()[rank].instances[0].block)[task] += by_us;
    return run(changed, recorded_->start_offset_us);
  }
  [[nodiscard]] double rank_end(const Timeline& t, std::size_t rank) const {
    return t.rank_end_us(RankClassId{rank});
  }
  // How long a rank waits in the k-th collective.
  [[nodiscard]] double wait(const Timeline& t, std::size_t k, std::size_t rank) const {
    const TaskTimes times = TaskTimes::simulated(*flat_, t);
    const CollectiveId id{k};
    const auto stretches = collective_stretches(*flat_, times, id);
    const auto& members = program().collectives()[k].members;
    for (std::size_t m = 0; m < members.size(); ++m)
      if (members[m].rank_class.index() == rank) return stretches[m].wait_us();
    ADD_FAILURE() << "rank " << rank << " is no member of collective " << k;
    return 0;
  }
  // Of the unchanged job.
  [[nodiscard]] CriticalPath path() const {
    const Timeline t = run(costs(), recorded_->start_offset_us);
    return critical_path(*flat_, TaskTimes::simulated(*flat_, t), costs(), recorded_->start_offset_us);
  }

 private:
  TraceSet set_;
  std::optional<RecordedProgram> recorded_;
  std::optional<Plan> plan_;
  std::optional<FlatProgram> flat_;
};

// A task on the path makes the end later by as much as it grows; a task off the path by less.
void expect_path_decides(const Job& job, double by_us, std::size_t tasks_each) {
  const Timeline before = job.run(job.costs(), job.offsets());
  const CriticalPath path = job.path();
  std::set<std::pair<std::size_t, std::size_t>> on_path;
  std::size_t checked_on = 0;
  for (const PathStep& step : path.steps) {
    if (step.kind != PathStep::Kind::task) continue;
    const std::size_t rank = step.rank_class.index();
    on_path.insert({rank, step.task});
    const TaskKind kind = job.flat().info(step.rank_class, step.task).kind;
    // GPU work is rare on the path of a job that its CPU holds back: all of it is tried, and a sample of the
    // rest.
    if (kind < TaskKind::kernel && step.task % 97 != 0) continue;
    if (checked_on >= tasks_each) continue;
    ++checked_on;
    const Timeline after = job.longer(rank, step.task, by_us);
    EXPECT_NEAR(after.end_us() - before.end_us(), by_us, 1e-6)
        << job.program().names.text(job.flat().info(step.rank_class, step.task).name);
  }
  EXPECT_GT(checked_on, 0u);
  std::size_t checked_off = 0;
  for (std::size_t rank = 0; rank < job.ranks(); ++rank) {
    for (std::size_t t = rank; t < job.flat().task_count(RankClassId{rank}) && checked_off < tasks_each;
         t += 211) {
      if (on_path.contains({rank, t})) continue;
      ++checked_off;
      const double later = job.longer(rank, t, by_us).end_us() - before.end_us();
      EXPECT_GE(later, 0);
      EXPECT_LT(later, by_us);
    }
  }
  EXPECT_GT(checked_off, 0u);
}

TEST(Causality, PathDecidesTheEndOfTheBundledExample) {
  expect_path_decides(Job{test::source_dir() / "examples" / "dlrm_4gpu"}, 300, 40);
}

TEST(Causality, AllRanksLaterMovesEverythingAlike) {
  const Job job{test::source_dir() / "examples" / "dlrm_4gpu"};
  std::vector<double> offsets = job.offsets();
  for (double& o : offsets) o += 1000;
  const Timeline before = job.run(job.costs(), job.offsets());
  const Timeline after = job.run(job.costs(), offsets);
  for (std::size_t rank = 0; rank < job.ranks(); ++rank) {
    EXPECT_NEAR(job.rank_end(after, rank), job.rank_end(before, rank) + 1000, 1e-6);
    for (std::size_t k = 0; k < job.program().collectives().size(); ++k)
      EXPECT_NEAR(job.wait(after, k, rank), job.wait(before, k, rank), 1e-6);
  }
}

class Dlrm8 : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_DATA();
    job_.emplace(*test::measured_data() / "traces" / "dlrm8");
    before_.emplace(job_->run(job_->costs(), job_->offsets()));
  }
  std::optional<Job> job_;
  std::optional<Timeline> before_;
};

// Rank 7 comes last to collective 0: all others already wait for it there. 1,000 us later it makes each of
// them wait 1,000 us longer in that collective, itself not at all, and every rank ends 1,000 us later.
TEST_F(Dlrm8, LastRankLaterDelaysAll) {
  const Timeline after = job_->late(7, 1000);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(job_->rank_end(after, rank) - job_->rank_end(*before_, rank), 1000, 1e-6) << rank;
    EXPECT_NEAR(job_->wait(after, 0, rank) - job_->wait(*before_, 0, rank), rank == 7 ? 0 : 1000, 1e-6)
        << rank;
  }
}

// Rank 1 waits more than 7 ms in collective 0. Beginning 500 us later it waits 500 us less, and nothing else
// moves.
TEST_F(Dlrm8, EarlyRankLaterOnlyWaitsLess) {
  const Timeline after = job_->late(1, 500);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(job_->rank_end(after, rank), job_->rank_end(*before_, rank), 1e-6) << rank;
    EXPECT_NEAR(job_->wait(after, 0, rank) - job_->wait(*before_, 0, rank), rank == 1 ? -500 : 0, 1e-6)
        << rank;
  }
}

// 9,000 us later rank 1 comes last itself: what it waited (w) is used up, the others wait 9,000 - w longer.
TEST_F(Dlrm8, EarlyRankMuchLaterBecomesTheLast) {
  const double waited = job_->wait(*before_, 0, 1);
  EXPECT_GT(waited, 7000);
  EXPECT_LT(waited, 8000);
  const Timeline after = job_->late(1, 9000);
  EXPECT_NEAR(job_->wait(after, 0, 1), 0, 1e-6);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    if (rank == 1) continue;
    EXPECT_NEAR(job_->wait(after, 0, rank) - job_->wait(*before_, 0, rank), 9000 - waited, 1e-6) << rank;
  }
}

TEST_F(Dlrm8, PathDecidesTheGlobalEnd) { expect_path_decides(*job_, 300, 60); }

// On this job the CPU holds nearly everything back: more than 90 % of the path is CPU work.
TEST_F(Dlrm8, PathIsMostlyCpu) {
  const CriticalPath path = job_->path();
  double cpu = 0, total = 0;
  for (const PathShare& share : path_by_class(job_->flat(), path)) {
    if (share.what == "late start") continue;  // before the rank began
    total += share.time_us;
    if (share.what == "cpu") cpu += share.time_us;
  }
  EXPECT_GT(cpu / total, 0.9);
}

}  // namespace
}  // namespace stepcast::causality_test
