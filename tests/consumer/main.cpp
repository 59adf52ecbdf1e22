// What a user of the installed package can rely on: the version, a preset, a platform that ships, and a forecast.

#include <cstdio>

#include "stepcast/base/version.h"
#include "stepcast/describe/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

namespace {

int fail(const char* what, const std::string& why) {
  std::printf("%s: %s\n", what, why.c_str());
  return 1;
}

}  // namespace

int main() {
  using namespace stepcast;
  if (version() != STEPCAST_EXPECTED_VERSION) return fail("version", std::string{version()});
  const Result<Transformer> model = find_preset("gpt3-175b");
  if (!model) return fail("preset", model.error().message());
  const Result<Platform> platform = load_platform("dgx-a100");
  if (!platform) return fail("platform", platform.error().message());
  StepModel steps{*platform};
  const Layout layout{
      .degrees = {.tensor = 8, .pipeline = 16, .data = 4},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1536, .seq_len_tokens = 2048}};
  const Result<StepPrediction> p = steps.predict(*model, layout);
  if (!p) return fail("forecast", p.error().message());
  // 6 x 175e9 FLOPs for each of 1536 x 2048 tokens on 512 GPUs of at most 312e12 FLOP/s take at least 20.7 s.
  const double step_s = p->step.time.value() / 1e6;
  std::printf("stepcast %s: a step of gpt3-175b on 512 A100 takes %.1f s\n", version().data(), step_s);
  return step_s > 20.7 && step_s < 60 ? 0 : 1;
}
