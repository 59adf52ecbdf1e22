// Any bytes as a TorchTitan job config: an error, or a job that can be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/formats/torchtitan.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto job = stepcast::parse_torchtitan_config(text, "fuzz.toml", {.n_gpus = 64});
  if (!job.ok()) {
    require(!job.error().message().empty());
    return 0;
  }
  require(stepcast::check(job->layout, job->model, 64).ok());
  require(job->layout.micro_batches() > 0);
  return 0;
}
