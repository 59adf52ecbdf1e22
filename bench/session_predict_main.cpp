// What a call of Session::predict costs whoever calls it: measure_session_predict [CALLS]. GPT-3 175B on 512 A100,
// tensor parallel 8, pipeline parallel 8 in one and in three virtual stages, with every part of the answer; then the same
// with other layouts, micro-batches and what-ifs in turn.
//
//   ms           of processor time a call, median and mean; platform and kernels of the session were used before. The batch
//                changes from call to call: no two of 1,000 are alike. What repeats in a step is simulated once for all
//                batches, so that the median is mostly of calls that find it; "fresh" has a sequence length of its own in
//                each of at most 40 calls, which find nothing
//   allocations  of memory in a call, and MB that they asked for: median
//
// Instructions of a call, on all threads, do not depend on what else the machine does: Collected, divided by two (a call
// for each of the two layouts), of a program that was built where valgrind's headers are
//   valgrind --tool=callgrind --instr-atstart=no build/release/bench/measure_session_predict 1
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"

#include "call_cost.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

namespace stepcast {
namespace {

// The i-th of questions of which no two are alike.
void vary(int i, PredictRequest& request) {
  JobSettings& settings = request.job.settings;
  constexpr std::int64_t kPipelines[] = {8, 4, 16};
  constexpr const char* kWhatIfs[] = {"", "network=2x", "nvlink=2x", "gpu=1.5x"};
  settings.pipeline = kPipelines[i % 3];
  settings.micro_batch_sequences = 1 + i / 3 % 2;
  request.what_if.clear();
  if (const char* what_if = kWhatIfs[i / 6 % 4]; *what_if != 0) request.what_if.emplace_back(what_if);
}

enum class Calls : std::uint8_t { batches, layouts, fresh };

double mean_ms(const std::vector<CallCost>& calls) {
  double sum = 0;
  for (const CallCost& call : calls) sum += call.ms;
  return sum / static_cast<double>(calls.size());
}

void measure(std::int64_t virtual_stages, Calls what, int n_calls) {
  PredictRequest request;
  request.platform = "dgx-a100";
  request.job.model = "gpt3-175b";
  request.job.n_gpus = 512;
  JobSettings& settings = request.job.settings;
  settings.tensor = 8;
  settings.pipeline = 8;
  settings.virtual_stages = virtual_stages;
  settings.micro_batch_sequences = 1;
  settings.seq_len_tokens = 2048;
  settings.sequence_parallel = true;
  const Session session;
  settings.global_batch_sequences = 1024;
  if (const Result<Forecast> first = session.predict(request); !first.ok()) {
    fmt::print(stderr, "{}\n", first.error().message());
    std::exit(2);
  }
  std::vector<CallCost> calls;
  double step_ms = 0;
  for (int i = 0; i < n_calls; ++i) {
    if (what == Calls::layouts) vary(i, request);
    if (what == Calls::fresh) settings.seq_len_tokens = 2048 - 16 * (i + 1);
    // 64 micro-batches and more, by a group of interleaved ones.
    const std::int64_t dp = 512 / (8 * *settings.pipeline),
                       of_round = *settings.pipeline * *settings.micro_batch_sequences;
    settings.global_batch_sequences = dp * (64 / *settings.pipeline + i % 43) * of_round;
    calls.push_back(cost_of([&] {
      CALLGRIND_START_INSTRUMENTATION;
      const Result<Forecast> forecast = session.predict(request);
      CALLGRIND_STOP_INSTRUMENTATION;
      step_ms = forecast.ok() ? forecast->step_time_ms : 0;
    }));
  }
  fmt::print(
      "gpt3-175b on 512 dgx-a100, tp8 {}x{}{}: {:.3f} ms a call ({:.3f} mean), {:.0f} allocations, {:.1f} "
      "MB, a "
      "step of {:.6f} ms\n",
      what == Calls::layouts ? "pp4,8,16" : "pp8", virtual_stages, what == Calls::fresh ? " fresh" : "",
      median(calls, &CallCost::ms), mean_ms(calls), median(calls, &CallCost::allocations),
      median(calls, &CallCost::megabytes), step_ms);
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  const int n_calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  using stepcast::Calls;
  for (const Calls what : {Calls::batches, Calls::layouts, Calls::fresh}) {
    const int n = what == Calls::fresh ? std::min(n_calls, 40) : n_calls;
    for (const std::int64_t virtual_stages : {1, 3}) stepcast::measure(virtual_stages, what, n);
  }
  return 0;
}
