// What the public calls cost whoever makes them: measure_public_calls TRACES [SECONDS]. One line for each, with blanks in
// between: the name of the call, milliseconds of processor time of all threads (median), allocations and the megabytes that
// they asked for, each of one call. Session, platform and kernels were used before, but for "session", which makes them. TRACES
// is the folder of a job (examples/dlrm_4gpu). docs/performance.md is written of it (bench/performance.py).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/sweep/sweep_spec.h"
#include "stepcast/trace/rank_file.h"

#include "call_cost.h"

namespace stepcast {
namespace {

template <class Value>
Value value_or_exit(Result<Value> result) {
  if (result.ok()) return std::move(result).value();
  fmt::print(stderr, "{}\n", result.error().message());
  std::exit(2);
}

// Calls for so long, but three times at least; the first call, which may fill what is kept, does not count. No two calls
// of a run are alike: they get their number.
void measure(const char* name, double seconds, const std::function<void(std::int64_t)>& call) {
  call(0);
  std::vector<CallCost> calls;
  const double end_ms = processor_ms() + seconds * 1e3;
  for (std::int64_t i = 1; calls.size() < 3 || processor_ms() < end_ms; ++i)
    calls.push_back(cost_of([&] { call(i); }));
  fmt::print("{} {:.4f} {:.0f} {:.3f}\n", name, median(calls, &CallCost::ms),
             median(calls, &CallCost::allocations), median(calls, &CallCost::megabytes));
  std::fflush(stdout);
}

// GPT-3 175B on 512 A100, interleaved; i changes the batch.
PredictRequest gpt3(std::int64_t i) {
  PredictRequest request;
  request.platform = "dgx-a100";
  request.job.model = "gpt3-175b";
  request.job.n_gpus = 512;
  JobSettings& settings = request.job.settings;
  settings.tensor = 8;
  settings.pipeline = 8;
  settings.virtual_stages = 3;
  settings.micro_batch_sequences = 1;
  settings.seq_len_tokens = 2048;
  settings.sequence_parallel = true;
  settings.global_batch_sequences = 8 * (64 + 8 * (i % 1000));
  return request;
}

void measure_all(const std::filesystem::path& traces, double seconds) {
  const Session session;
  measure("session", seconds,
          [](std::int64_t i) { static_cast<void>(value_or_exit(Session{}.predict(gpt3(i)))); });
  measure("predict", seconds,
          [&](std::int64_t i) { static_cast<void>(value_or_exit(session.predict(gpt3(i)))); });
  measure("sweep_point", seconds, [&](std::int64_t i) {
    const std::string text = fmt::format(
        R"({{"mode": "predict", "model": "gpt3-175b", "platform": "dgx-a100", "gpus": 512, "tp": 8, "pp": 8, "gbs": {}}})",
        512 + 8 * (i % 1000));
    const SweepSpec spec = value_or_exit(parse_sweep(text, "bench"));
    static_cast<void>(value_or_exit(session.run(spec.points.front())));
  });
  const Platform platform = value_or_exit(load_platform("dgx-a100"));
  measure("plan", seconds, [&](std::int64_t i) {
    PlanRequest request;
    request.job.model = "gpt3-175b";
    request.job.settings.global_batch_sequences = 1536 + 64 * (i % 16);
    request.job.settings.seq_len_tokens = 2048;
    request.n_gpus = 512;
    static_cast<void>(value_or_exit(plan_layouts(request, platform)));
  });
  measure("replay", seconds,
          [&](std::int64_t) { static_cast<void>(value_or_exit(session.replay({.places = {traces}}))); });
  const std::vector<std::filesystem::path> rank{traces / "kineto_rank0.json.gz", traces / "et_rank0.json.gz"};
  measure("import", seconds, [&](std::int64_t) {
    const TraceListing listing = value_or_exit(list_traces(rank));
    static_cast<void>(value_or_exit(rank_file_bytes(value_or_exit(import_rank(listing)))));
  });
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("usage: {} TRACES [SECONDS]\n", argv[0]);
    return 0;
  }
  stepcast::measure_all(argv[1], argc > 2 ? std::atof(argv[2]) : 1);
  return 0;
}
