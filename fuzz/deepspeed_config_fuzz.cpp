// Any bytes as a DeepSpeed config: an error, or a job that can be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/formats/deepspeed.h"
#include "stepcast/formats/presets.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

stepcast::ResolvedJob base() {
  stepcast::ResolvedJob job;
  job.model = stepcast::find_preset("llama-2-7b").value();
  job.layout.batch.seq_len_tokens = 4096;
  job.n_gpus = 64;
  return job;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stepcast::ResolvedJob kBase = base();
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto job = stepcast::parse_deepspeed_config(text, "fuzz.json", kBase);
  if (!job.ok()) {
    require(!job.error().message().empty());
    return 0;
  }
  if (stepcast::check(job->layout, job->model, 64).ok()) require(job->layout.micro_batches() > 0);
  return 0;
}
