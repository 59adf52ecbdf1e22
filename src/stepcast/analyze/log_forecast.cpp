#include "stepcast/analyze/log_forecast.h"

#include "stepcast/analyze/step_forecast.h"

namespace stepcast {

Forecast log_forecast(const LoggedRun& run) {
  const LoggedTimes& times = run.times;
  Forecast f;
  f.kind = "log";
  f.traces = run.log.file;
  f.step_time_ms = times.median_ms;
  if (times.n > 1) {  // one time has no spread
    f.step_time_p10_ms = times.p10_ms;
    f.step_time_p90_ms = times.p90_ms;
  }
  f.source = EstimateSource::measured;
  f.coverage.measured = 1;
  if (run.job && !run.job->gpu.empty()) f.gpu = run.job->gpu;
  ForecastThroughput& t = f.throughput;
  if (run.resolved) {
    const ResolvedJob& job = *run.resolved;
    // Arguments describe a model and do not name it.
    if (job.model.name != "model") f.model = job.model.name;
    f.parameters = static_cast<std::uint64_t>(parameter_count(job.model).total());
    f.n_gpus = static_cast<std::uint64_t>(job.n_gpus.value_or(job.layout.world_size()));
    f.layout = settings_of(job.layout);
    const Batch& batch = job.layout.batch;
    t.samples_per_step = static_cast<double>(batch.global_batch_sequences);
    t.tokens_per_step = *t.samples_per_step * static_cast<double>(batch.seq_len_tokens);
  } else if (times.batch_sequences > 0) {
    t.samples_per_step = times.batch_sequences;
  }
  const double seconds = times.median_ms * 1e-3;
  if (t.samples_per_step) t.samples_per_s = *t.samples_per_step / seconds;
  if (t.tokens_per_step) t.tokens_per_s = *t.tokens_per_step / seconds;
  if (t.tokens_per_s && f.n_gpus > 0)
    t.tokens_per_s_per_gpu = *t.tokens_per_s / static_cast<double>(f.n_gpus);
  else if (times.tokens_per_s_per_gpu > 0)
    t.tokens_per_s_per_gpu = times.tokens_per_s_per_gpu;
  if (times.tflops_per_gpu > 0) t.tflops_per_gpu = times.tflops_per_gpu;
  if (run.log.peak_memory_GiB > 0) {
    f.memory.emplace();
    f.memory->verdict = "fits";  // it ran
    f.memory->peak_memory_GiB = run.log.peak_memory_GiB;
  }
  return f;
}

}  // namespace stepcast
