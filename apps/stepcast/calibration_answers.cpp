#include "calibration_answers.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/fields/answer_fields.h"

namespace stepcast {

constexpr AnswerHead answer_head(const CalibratedCollectives*) {
  return {"stepcast.calibrate_collectives/1", "stepcast calibrate collectives --json"};
}
constexpr AnswerHead answer_head(const CalibratedIterations*) {
  return {"stepcast.calibrate_iterations/1", "stepcast calibrate iterations --json"};
}
constexpr AnswerHead answer_head(const CalibratedKernels*) {
  return {"stepcast.calibrate_kernels/1", "stepcast calibrate kernels --json"};
}
constexpr AnswerHead answer_head(const CalibratedOverheads*) {
  return {"stepcast.calibrate_overheads/1", "stepcast calibrate overheads --json"};
}

std::string CalibratedCollectives::Curve::weakness() const {
  std::string text;
  if (fit.measured_from > 16) text += "start-up not measured (begin at 8 B); ";
  if (fit.measured_to < 26) text += "full bandwidth not measured (go on to 1 GiB); ";
  if (fit.n_outliers > 0) text += fmt::format("{} outliers; ", fit.n_outliers);
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

void fields(auto& a, Is<CalibratedCollectives::Curve> auto& c) {
  a("curve", c.name);
  a("n_samples", c.fit.n_samples);
  a("n_sizes", c.fit.n_sizes);
  a("n_outliers", c.fit.n_outliers);
  a("message_bytes_min", std::exp2(c.fit.measured_from));
  a("message_bytes_max", std::exp2(c.fit.measured_to));
  a("startup_us", c.fit.form.startup());
  a("max_bus_bandwidth_GBps", c.fit.form.max_bus_bandwidth().value() / 1e9);
  a("mape_pct", c.fit.mape_pct);
  a("p90_ape_pct", c.fit.p90_ape_pct);
  a("form_mape_pct", c.fit.form_mape_pct);
  a("weakness", c.weakness());
}

void fields(auto& a, Is<UnusedRows> auto& rows) {
  a("what", rows.what);
  a("why", rows.why);
  a("n", rows.n);
}

void fields(auto& a, Is<CalibratedCollectives> auto& c) {
  a("platform", c.platform);
  a("curves", c.curves);
  a("moved", c.moved,
    "curves with too few sizes for a fit: shape from measured nodes of other machines, shifted to these "
    "points");
  a("refused", c.refused);
  a("skipped", c.unused);
  a("denser_sizes", c.denser_sizes, "commands that measure sizes between which NCCL changes protocol");
  a("not_measured", c.not_measured, "commands that measure groups of the platform without measurements");
  a("changes", c.changes,
    "forecast with the largest change of its step, before and after; empty: no forecast that was tried "
    "changes");
  a("used_by_nothing", c.used_by_nothing, "curves that no forecast that was tried uses, and why");
}

void fields(auto& a, Is<CalibratedIterations> auto& c) {
  std::vector<std::pair<std::string_view, double>> factors;
  for (const FittedFactor& f : fitted_factors()) factors.emplace_back(f.name, c.fit.assumptions.*(f.member));
  a("platform", c.platform);
  a("n", c.fit.n, "steps");
  a("mape_before", c.fit.mape_before);
  a("mape_after", c.fit.mape_after);
  a("median_ape_before", c.fit.median_before);
  a("median_ape_after", c.fit.median_after);
  a("factors", factors);
  a("undetermined", c.fit.undetermined,
    "factors that these steps cannot separate from the others; they stay at 1");
  a("notes", c.notes, "settings of logs that come from other sources");
  a("skipped", c.fit.skipped);
}

void fields(auto& a, Is<KernelFitNote::Candidate> auto& candidate) {
  a("family", candidate.family);
  a("gmae_pct", fixed<4>(candidate.gmae_percent));
  a("mape_pct", fixed<4>(candidate.mape_percent));
}

void fields(auto& a, Is<KernelFitNote> auto& note) {
  a("record", note.record);
  a("n_rows", note.n_rows);
  a("chosen", note.chosen);
  a("candidates", note.candidates);
}

void fields(auto& a, Is<SkippedRows> auto& rows) {
  a("what", rows.what);
  a("why", rows.why);
  a("n", rows.n);
}

void fields(auto& a, Is<CalibratedKernels> auto& c) {
  a("platform", c.platform);
  a("device", c.device);
  a("records", c.fit.notes);
  a("skipped", c.skipped);
}

void fields(auto& a, Is<OverheadSource> auto& source) {
  a("name", source.name);
  a("device", source.device, "empty: not in the file");
  a("n_ranks", source.ranks);
  a("n_steps", source.steps, "number of ordinary steps; 1 if the whole file counts");
}

void fields(auto& a, Is<OverheadRecord> auto& r) {
  a("type", r.type);
  a("op", r.op, "operator, runtime call, or family in brackets; empty: all of them");
  a("mean_us", r.mean_us);
  a("std_us", r.std_us.value_or(0));
  a("p10_us", r.p10_us.value_or(0));
  a("p50_us", r.p50_us.value_or(0));
  a("p90_us", r.p90_us.value_or(0));
  a("outlier_us", r.outlier_us.value_or(0), "of the mean");
  a("n", r.n);
}

void fields(auto& a, Is<TraceOverheads::LeftOut> auto& left_out) {
  a("what", left_out.what);
  a("why", left_out.why);
}

void fields(auto& a, Is<CalibratedOverheads> auto& c) {
  a("platform", c.platform);
  a("rules", Constant{"sum_keeping"});
  a("profiler_cost_us", c.profiler_cost_us,
    "profiler overhead subtracted per event, in us; 0: times as profiled");
  a("host_time_us", c.fit.sum_us, "host time of all occurrences before the subtraction");
  a("taken_off_us", c.fit.profiler_cost_us, "for the profiler");
  a("traces", c.sources);
  a("job_speeds", c.fit.job_speed,
    "host time of each trace over that of the median trace, by which times are divided; empty: they are not");
  a("other_job_band", c.fit.band,
    "relative error of a job's host time predicted from other jobs, within which 80 % of jobs lie; null: one "
    "trace");
  a("overheads", c.fit.records);
  a("launches", Each{c.fit.launches, [](auto& one, const LaunchTable::value_type& of_op) {
                       one("op", of_op.first);
                       one("mean_calls", of_op.second.mean_calls);
                       one("n", of_op.second.n);
                       one("calls", of_op.second.calls);
                     }});
  a("left_out", c.left_out);
  a("notes", c.notes);
}

std::string calibration_json(const CalibratedCollectives& answer) { return answer_json(answer); }
std::string calibration_json(const CalibratedIterations& answer) { return answer_json(answer); }
std::string calibration_json(const CalibratedKernels& answer) { return answer_json(answer); }
std::string calibration_json(const CalibratedOverheads& answer) { return answer_json(answer); }

std::span<const AnswerSchema> calibration_schemas() {
  static constexpr AnswerSchema kSchemas[] = {
      {"calibrate_collectives.json", "calibrate collectives", answer_schema<CalibratedCollectives>},
      {"calibrate_iterations.json", "calibrate iterations", answer_schema<CalibratedIterations>},
      {"calibrate_kernels.json", "calibrate kernels", answer_schema<CalibratedKernels>},
      {"calibrate_overheads.json", "calibrate overheads", answer_schema<CalibratedOverheads>},
  };
  return kSchemas;
}

}  // namespace stepcast
