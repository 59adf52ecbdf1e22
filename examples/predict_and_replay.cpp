// Predicts a training step from a description, replays recorded traces, and says what differs.
//
//   predict_and_replay [FOLDER OF TRACES]

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

#include "stepcast/api/stepcast.h"

namespace {

void print(const stepcast::NamedTimes& parts) {
  for (const stepcast::NamedTime& part : parts)
    std::printf("  %-36s %10.3f ms\n", part.key.c_str(), part.time_ms);
}

int fail(const stepcast::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const stepcast::Session session;  // keeps platforms and prices; any number of threads may use it

  // Llama 3 70B on 512 H100: 4-way tensor and pipeline parallelism, 512 sequences per step.
  stepcast::PredictRequest request;
  request.job.model = "llama-3-70b";
  request.job.n_gpus = 512;
  request.job.settings.tensor = 4;
  request.job.settings.pipeline = 4;
  request.job.settings.global_batch_sequences = 512;
  request.platform = "dgx-h100";
  request.budget.tokens = 1e12;
  const auto predicted = session.predict(request);
  if (!predicted.ok()) return fail(predicted.error());
  std::printf("%s: %.1f ms (p10 %.1f, p90 %.1f), %.0f GPU-hours for 1e12 tokens\n", predicted->model->c_str(),
              predicted->step_time_ms, predicted->step_time_p10_ms, predicted->step_time_p90_ms,
              predicted->training->gpu_hours);
  print(predicted->critical().parts());

  // The same with links twice as fast.
  request.what_if = {"nvlink=2x", "network=2x"};
  const auto faster = session.predict(request);
  if (!faster.ok()) return fail(faster.error());
  const stepcast::Comparison links = stepcast::compare(*predicted, *faster);
  std::printf("links twice as fast: %+.1f ms, most of it %s\n", links.step_difference_ms,
              links.parts.empty() ? "nowhere" : links.parts.front().key.c_str());

  // A recorded step: work as recorded, waiting simulated.
  const auto replayed = session.replay({.places = {argc > 1 ? argv[1] : "examples/dlrm_4gpu"}});
  if (!replayed.ok()) return fail(replayed.error());
  const stepcast::Comparison record = stepcast::compare(replayed->measured, replayed->simulated);
  std::printf("replay: measured %.3f ms, simulated %.3f ms; what differs most:\n", record.a_step_time_ms,
              record.b_step_time_ms);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, record.parts.size()); ++i) {
    const stepcast::Difference& part = record.parts[i];
    std::printf("  %-36s %+10.3f ms\n", part.key.c_str(), part.difference_ms());
  }
  return 0;
}
