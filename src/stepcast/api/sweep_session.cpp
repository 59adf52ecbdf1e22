// The points of a sweep, one by one and shard by shard.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/report/sweep_document.h"
#include "stepcast/sweep/sweep_folder.h"
#include "stepcast/sweep/sweep_question.h"

namespace stepcast {
namespace {

// Rows are written as a whole, all of the shard: the longer that takes, the rarer.
class RowWriter {
 public:
  RowWriter(const SweepFolder& folder, std::string file, const SweepSpec& spec, SweepRows rows)
      : folder_(folder), file_(std::move(file)), spec_(spec), rows_(std::move(rows)), last_(Clock::now()) {}

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

PredictDlrmRequest dlrm_request(const SweepQuestion& question) {
  PredictDlrmRequest request;
  request.model = question.job.model;
  request.tables = question.tables;
  request.indices = question.indices;
  request.platform = question.platform;
  request.n_gpus = question.n_gpus.value_or(0);
  request.gpus_per_node = question.gpus_per_node;
  request.global_batch = question.job.settings.global_batch_sequences;
  request.plan = question.sharding_plan;
  request.what_if = question.what_if;
  request.batch_per_rank = question.batch_per_rank;
  request.links_of = question.links_of;
  request.budget = question.budget;
  request.collectives = 1;
  return request;
}

}  // namespace

Result<std::string> Session::run(const SweepPoint& point) const {
  Result<std::string> row = answer(point);
  if (row.ok() || row.error().is_of_machine()) return row;
  return sweep_row(point, row.error());
}

Result<std::string> Session::answer(const SweepPoint& point) const {
  STEPCAST_ASSIGN(SweepQuestion question, question_of(point));
  if (point.mode == SweepMode::plan) {
    STEPCAST_ASSIGN(const MeantPlatform meant,
                    impl_->meant_platform(question.platform, question.plan.n_gpus));
    STEPCAST_ASSIGN(const Impl::Lease priced, impl_->lease(meant.name, question.gpus_per_node));
    STEPCAST_ASSIGN(LayoutPlan plan, plan_layouts(question.plan, *priced->platform));
    if (!meant.note.empty()) plan.notes.push_back(meant.note);
    if (plan.found.priced.empty()) return why_none(plan);
    return sweep_row(point, plan, question.budget);
  }
  if (is_dlrm_job(question.job.model)) {
    STEPCAST_ASSIGN(const Forecast forecast, predict(dlrm_request(question)));
    return sweep_row(point, forecast);
  }
  if (question.nodes) {
    STEPCAST_ASSIGN(const std::shared_ptr<const Platform> platform, impl_->platform(question.platform));
    question.job.n_gpus = *question.nodes * question.gpus_per_node.value_or(platform->node.gpus_per_node);
  }
  if (question.post_training) {
    STEPCAST_ASSIGN(const RlForecast forecast,
                    predict(PredictRlRequest{std::move(question.job), *std::move(question.post_training),
                                             question.platform, std::move(question.what_if)}));
    return sweep_row(point, forecast);
  }
  PredictRequest request;
  request.job = std::move(question.job);
  request.platform = question.platform;
  request.what_if = std::move(question.what_if);
  request.budget = question.budget;
  request.pools = question.pools;
  request.zones = std::move(question.zones);
  request.only_critical = true;
  request.compares_types = false;
  STEPCAST_ASSIGN(const Forecast forecast, predict(request));
  return sweep_row(point, forecast);
}

Result<SweepReport> Session::sweep(const SweepSpec& spec, const SweepRun& run) const {
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::open(run.folder, spec, run.extends));
  const std::string file = run.shard.file_name();
  folder.clear_leftovers(file);
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
    STEPCAST_TRY(not_stopped());  // a row of a point that was not run to its end says nothing of it
    STEPCAST_TRY(writer.add(left[i]->id, std::move(row)));
    const std::scoped_lock lock{mutex};
    ++n_run;
    if (run.progress) run.progress(report.n_before + n_run, report.n_points);
    return Ok{};
  };
  const Status all = parallel_for(left.size(), run.threads, one);
  STEPCAST_TRY(writer.finish());  // also what was done until something failed
  if (!all.ok()) return all.error();
  report.n_run = n_run;
  return report;
}

}  // namespace stepcast
