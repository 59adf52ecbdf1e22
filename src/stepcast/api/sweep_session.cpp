// Sweeps: single points, and shards of many points.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/api/subject.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/sweep_document.h"
#include "stepcast/sweep/option_table.h"
#include "stepcast/sweep/sweep_folder.h"
#include "stepcast/sweep/sweep_keys.h"
#include "stepcast/sweep/sweep_question.h"

namespace stepcast {
namespace {

// Collects rows and writes the file of a shard. Every write replaces the whole file, so it waits for at least
// 250 ms and for 20 times the duration of the last write. Thread-safe.
class RowWriter {
 public:
  RowWriter(const SweepFolder& folder, std::string file, const SweepSpec& spec, SweepRows rows)
      : folder_(folder), file_(std::move(file)), spec_(spec), rows_(std::move(rows)), last_(Clock::now()) {}

  // Adds the row of a point, and writes the file if the last write is long enough ago.
  Status add(const std::string& id, std::string row) {
    const std::scoped_lock lock{mutex_};
    rows_.insert_or_assign(id, std::move(row));
    if (Clock::now() - last_ < std::max<Clock::duration>(kShortestPeriod, kWorkPerWriting * took_))
      return Ok{};
    return write();
  }
  Status finish() {
    const std::scoped_lock lock{mutex_};
    return write();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kShortestPeriod{250};
  static constexpr int kWorkPerWriting = 20;

  Status write() {
    const Clock::time_point begin = Clock::now();
    STEPCAST_TRY(folder_.write(file_, spec_, rows_));
    last_ = Clock::now();
    took_ = last_ - begin;
    return Ok{};
  }

  const SweepFolder& folder_;
  const std::string file_;
  const SweepSpec& spec_;
  std::mutex mutex_;
  SweepRows rows_;
  Clock::time_point last_;
  Clock::duration took_{};
};

// The question about the step of a sweep point, with options that make it cheap. `platform` is given if the
// point counts nodes; its nodes have the size of the point or of the platform. Errors: an invalid `--layout`.
Result<StepQuestion> step_of(SweepQuestion&& point, const Platform* platform) {
  StepQuestion asked;
  PredictRequest& step = asked.step;
  if (!point.open_layout.empty()) STEPCAST_TRY(step.set_open_layout(point.open_layout));
  step.job = std::move(point.job);
  if (platform != nullptr)
    step.job.n_gpus = *point.nodes * point.gpus_per_node.value_or(platform->node.gpus_per_node);
  step.platform = std::move(point.platform);
  step.what_if = std::move(point.what_if);
  step.measured = std::move(point.measured);
  step.budget = point.budget;
  step.pools = std::move(point.pools);
  step.zones = std::move(point.zones);
  step.only_critical = true;
  step.compares_types = false;
  step.collectives = 1;
  asked.rl = std::move(point.rl);
  PredictDlrmRequest& recommendation = asked.recommendation;
  recommendation.tables = std::move(point.tables);
  recommendation.indices = std::move(point.indices);
  recommendation.plan = std::move(point.sharding_plan);
  recommendation.batch_per_rank = point.batch_per_rank;
  recommendation.links_of = std::move(point.links_of);
  return asked;
}

// Errors: a key of the point that belongs to another subject.
Status check_keys(const SweepPoint& point, const Subject& subject) {
  for (const Option& option : option_table()) {
    if (option.sweep == SweepValue::none || point.find(option.sweep_key()) == nullptr) continue;
    const Subject* owner = owner_of(option.of & questions_of(point.mode), subject);
    if (owner == nullptr) continue;
    return Error::at("", option.sweep_key(), fmt::format("belongs to {}", owner->plural))
        .advice(owner->own_flag.empty() ? "" : fmt::format("add {}", owner->own_flag.substr(2)));
  }
  return Ok{};
}

}  // namespace

Result<std::string> Session::run(const SweepPoint& point) const {
  Result<std::string> row = answer(point);
  if (row.ok() || row.error().is_of_machine()) return row;
  return sweep_row(point, row.error());
}

Result<std::string> Session::answer(const SweepPoint& point) const {
  STEPCAST_ASSIGN(SweepQuestion question, question_of(point));
  // Points of mode `plan` search a layout; all others forecast a step.
  if (point.mode == SweepMode::plan) {
    STEPCAST_ASSIGN(const MeantPlatform meant,
                    impl_->meant_platform(question.platform, question.plan.n_gpus));
    STEPCAST_ASSIGN(const Impl::Lease priced, impl_->lease(meant.name, question.gpus_per_node));
    STEPCAST_ASSIGN(LayoutPlan plan, plan_layouts(question.plan, *priced->platform));
    if (!meant.note.empty()) plan.notes.push_back(meant.note);
    if (plan.found.priced.empty()) return why_none(plan);
    std::optional<TrainingOption> training;
    if (const TrainingBudget& budget = question.budget; budget.tokens) {
      TrainingGoal goal;
      goal.tokens = *budget.tokens;
      goal.price_per_gpu_hour = budget.price_per_gpu_hour;
      STEPCAST_ASSIGN(training, training_option(plan, chosen_layout(plan), goal,
                                                {.name = meant.name, .platform = *priced->platform}, {}));
    }
    return sweep_row(point, plan, training);
  }
  std::shared_ptr<const Platform> platform;
  if (question.nodes) {
    STEPCAST_ASSIGN(platform, impl_->platform(question.platform));
  }
  STEPCAST_ASSIGN(const StepQuestion asked, step_of(std::move(question), platform.get()));
  const Subject& subject = subject_of(asked.step.job, asked.rl);
  STEPCAST_TRY(check_keys(point, subject));
  STEPCAST_TRY(check_what_ifs(subject, asked.step.what_if));
  STEPCAST_ASSIGN(const StepAnswer answer, subject.predict(*this, asked));
  return std::visit([&](const auto& given) { return sweep_row(point, given.forecast); }, answer);
}

Result<SweepReport> Session::sweep(const SweepSpec& spec, const SweepRun& run) const {
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::open(run.folder, spec, run.extends));
  const std::string file = run.shard.file_name();
  folder.clear_leftovers(file);
  // Points with a row from any shard are skipped. Only the rows of this shard's file are rewritten.
  STEPCAST_ASSIGN(const SweepRows done, folder.rows(spec));
  STEPCAST_ASSIGN(SweepRows own, folder.rows_of(file, spec));
  SweepReport report;
  report.file = folder.path() / file;
  std::vector<const SweepPoint*> left;
  for (const SweepPoint& point : spec.points) {
    if (!run.shard.has(point)) continue;
    ++report.n_points;
    if (!done.contains(point.id)) left.push_back(&point);
  }
  report.n_before = report.n_points - left.size();
  RowWriter writer{folder, file, spec, std::move(own)};
  std::mutex mutex;
  std::size_t n_run = 0;
  const auto one = [&](std::size_t i) -> Status {
    STEPCAST_ASSIGN(std::string row, this->run(*left[i]));
    STEPCAST_TRY(not_stopped());  // an interrupted point has no valid row
    STEPCAST_TRY(writer.add(left[i]->id, std::move(row)));
    const std::scoped_lock lock{mutex};
    ++n_run;
    if (run.progress) run.progress(report.n_before + n_run, report.n_points);
    return Ok{};
  };
  const Status all = parallel_for(left.size(), run.threads, one);
  STEPCAST_TRY(writer.finish());  // also after a failure, so that finished points are kept
  if (!all.ok()) return all.error();
  report.n_run = n_run;
  return report;
}

}  // namespace stepcast
