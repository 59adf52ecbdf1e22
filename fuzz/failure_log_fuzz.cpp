// Bytes as a log of interruptions, and as words on how a job goes on.
#include <cstddef>
#include <cstdint>
#include <string>

#include "stepcast/run/failures.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  const stepcast::Result<stepcast::FailureRates> rates = stepcast::parse_failure_log(text, "fuzz.csv");
  if (rates) {
    stepcast::RunJob job;
    job.n_gpus = 1024;
    job.gpus_per_node = 8;
    job.checkpoint_bytes = 1e12;
    job.host_bytes_per_s = job.network_bytes_per_s = 25e9;
    (void)stepcast::forecast_run({*rates, {}}, job, {1e6, 9e5, 2e6}, 20);
  }
  (void)stepcast::read_run_assumptions("default", {text});
  return 0;
}
