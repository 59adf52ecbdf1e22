#include "lab/retyped_steps.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "stepcast/platform/platform_file.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// "bert_base_b16_s512_fp32": "bert_base_b16_s512_bf16".
std::string in_bf16(std::string name) {
  constexpr std::string_view kSingle = "fp32";
  if (name.ends_with(kSingle)) name.replace(name.size() - kSingle.size(), kSingle.size(), "bf16");
  return name;
}

Result<Estimate> in_fp32(const fs::path& trace, const Platform& platform) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::span{&trace, 1}));
  STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
  STEPCAST_ASSIGN(const TracePrediction prediction,
                  predict_trace(set.inputs(), {.recorded_on = &platform, .change = {.dtype = DType::fp32}}));
  return prediction.step;
}

}  // namespace

Result<TestScore> score_retyped_steps(const std::vector<CollectedGpu>& gpus) {
  TestScore test{.test = "retyped_steps", .protocol = "shipped", .unit = "ms"};
  for (const CollectedGpu& gpu : gpus) {
    STEPCAST_ASSIGN(const Platform platform, load_device(gpu.steps.front().gpu));
    for (const CollectedStep& step : gpu.steps) {
      const fs::path trace = gpu.folder / "traces" / (in_bf16(step.name) + ".kineto.json.gz");
      if (step.dtype != DType::fp32 || !step.gpu_decides || !fs::exists(trace)) continue;
      STEPCAST_ASSIGN(const Estimate time, in_fp32(trace, platform));
      test.set_of(step.gpu).rows.push_back({.row = step.name,
                                            .measured = step.ms,
                                            .predicted = time.time.value() / 1e3,
                                            .p10 = time.p10.value() / 1e3,
                                            .p90 = time.p90.value() / 1e3,
                                            .shares = {}});
    }
  }
  return test;
}

}  // namespace stepcast
