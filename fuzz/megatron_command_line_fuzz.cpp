// Any bytes as a Megatron command line: an error, or a job that can be and that can be placed on nodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/placement.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepcast::Job asked;
  asked.command_line.emplace(reinterpret_cast<const char*>(data), size);
  const auto job = stepcast::resolve(asked);
  if (!job.ok()) {
    require(!job.error().message().empty());
    return 0;
  }
  asked.strict = true;
  if (const auto strict = stepcast::resolve(asked); !strict.ok()) {
    const std::string message = strict.error().message();
    require(message.find("unknown flag") != std::string::npos ||
            message.find("does not say what it holds") != std::string::npos);
  }
  require(stepcast::check(job->layout, job->model, job->n_gpus).ok());
  require(job->layout.micro_batches() > 0);
  if (job->layout.world_size() > 4096) return 0;
  const auto placement = stepcast::place(job->layout, 8);
  require(placement.ok() || !placement.error().message().empty());
  if (placement.ok()) require(placement->world.n_ranks == job->layout.world_size());
  return 0;
}
