#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/plan/job_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto jobs = stepcast::parse_pool_jobs({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (!jobs.ok()) return 0;
  for (const stepcast::PoolJob& job : *jobs)
    if (job.name.empty() || job.model.empty() || !(job.tokens > 0) || job.weight < 1) __builtin_trap();
  return 0;
}
