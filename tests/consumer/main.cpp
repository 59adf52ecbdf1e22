// Uses the installed package as a user's program would: one prediction, one replay, both through the facade.
//   consumer TRACES
#include <cstdio>
#include <string>

#include "stepcast/api/stepcast.h"

int main(int argc, char** argv) {
  if (stepcast::version() != STEPCAST_EXPECTED_VERSION) {
    std::fprintf(stderr, "version %s\n", stepcast::version().data());
    return 5;
  }
  const stepcast::Session session;
  const auto predicted =
      session.predict({.job = {.model = "gpt3-175b", .n_gpus = 64}, .platform = "dgx-a100"});
  if (!predicted.ok()) {
    std::fprintf(stderr, "%s\n", predicted.error().message().c_str());
    return 1;
  }
  // 6 x 175e9 FLOPs per token on 64 GPUs of at most 312e12 FLOP/s each: no step can be faster.
  const double tokens = predicted->throughput.tokens_per_step.value_or(0);
  if (predicted->step_time_ms < 6 * 175e9 * tokens / (64 * 312e12) * 1e3) return 6;
  const auto read = stepcast::forecast_from_json(stepcast::forecast_json(*predicted));
  if (!read.ok() || !(read->step_time_ms > 0) || read->n_gpus != 64) return 2;
  const auto replayed = session.replay({.places = {argc > 1 ? argv[1] : "."}});
  if (!replayed.ok()) {
    std::fprintf(stderr, "%s\n", replayed.error().message().c_str());
    return 3;
  }
  const stepcast::Comparison differences = stepcast::compare(replayed->measured, replayed->simulated);
  std::printf("predicted %.1f ms; replayed %.3f ms, measured %.3f ms\n", predicted->step_time_ms,
              replayed->simulated.step_time_ms, replayed->measured.step_time_ms);
  return differences.parts.empty() ? 4 : 0;
}
