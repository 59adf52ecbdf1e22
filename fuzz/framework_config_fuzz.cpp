// Any bytes as a config of a training framework: an error, or a job that can be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepcast::Job job;
  job.n_gpus = 64;
  job.config = stepcast::ConfigText{std::string{reinterpret_cast<const char*>(data), size}, "fuzz.yaml"};
  const auto resolved = stepcast::resolve(job);
  if (!resolved.ok()) {
    require(!resolved.error().message().empty());
    return 0;
  }
  require(stepcast::check(resolved->layout, resolved->model, 64).ok());
  return 0;
}
