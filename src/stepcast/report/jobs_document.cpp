// Several trainings on one pool of GPUs, as text and as a page.

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/plan_answer.h"

namespace stepcast {
namespace {

std::string job_verdict(const JobPool& pool, const PooledJob& job) {
  const TrainingOption* option = job.chosen ? &job.curve[*job.chosen] : nullptr;
  if (option != nullptr && option->meets)
    return !job.job.deadline_days ? "" : option->surely ? "in time" : "in time, not at p90";
  const std::string what = option != nullptr ? "late" : "does not run";
  if (!job.gpus_in_time) return what + fmt::format(", nor in time on {}", table_count(8 * pool.n_gpus));
  return what + fmt::format("; in time on {} GPUs", table_count(*job.gpus_in_time));
}

ReportTable jobs_table(const JobPool& pool) {
  ReportTable table{
      "job< | GPUs | step\nms | days | p90\ndays | deadline\ndays | slack\ndays | price | < | layout<"};
  table.indent = 0;
  for (const PooledJob& job : pool.jobs) {
    const std::string deadline = job.job.deadline_days ? table_number(*job.job.deadline_days, 1) : "-";
    if (!job.chosen) {
      table.row({job.job.name, "-", "", "", "", deadline, "", "", job_verdict(pool, job),
                 shorten(job.curve.back().why_not, 100)});
      continue;
    }
    const TrainingOption& o = job.curve[*job.chosen];
    const auto slack = job.slack_days(), price = job.price(o);
    table.row({job.job.name, table_count(o.n_gpus), table_number(o.step_ms, 1), table_number(o.days, 1),
               table_number(o.days_p90, 1), deadline, slack ? table_number(*slack, 1) : "-",
               price ? table_number(*price, 0) : "-", job_verdict(pool, job), o.layout});
  }
  return table;
}

}  // namespace

ReportDocument jobs_document(const JobPool& pool) {
  ReportDocument document;
  document.title =
      fmt::format("{} on {} GPUs ({})", counted(static_cast<std::int64_t>(pool.jobs.size()), "job", "jobs"),
                  table_count(pool.n_gpus), pool.platform);
  std::size_t missed = 0;
  for (const PooledJob& job : pool.jobs)
    if (!job.chosen || !job.curve[*job.chosen].meets) ++missed;
  document.verdict =
      missed == 0
          ? fmt::format("Every job is in time, on {} GPUs.", table_count(pool.n_used))
          : fmt::format("{} of {} jobs {} not in time; {}.", missed, pool.jobs.size(),
                        missed == 1 ? "is" : "are",
                        pool.pool_in_time ? fmt::format("all are on {} GPUs", table_count(*pool.pool_in_time))
                                          : "no pool that was tried is enough for all");
  document
      .add("Jobs",
           {jobs_table(pool),
            ReportText{"all jobs run at the same time, each on whole nodes of its own until its end", 0}})
      .opening = fmt::format("{}\n{}\n\n", document.title, document.verdict);
  document.json = jobs_json(pool);
  return document;
}

}  // namespace stepcast
