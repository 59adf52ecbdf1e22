// How the step of one model grows from 64 to 1,024 GPUs, predicted by several threads on one Session.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stepcast/api/stepcast.h"

int main() {
  const std::vector<std::int64_t> counts = {64, 128, 256, 512, 1024};
  std::vector<std::optional<stepcast::Result<stepcast::Forecast>>> forecasts(counts.size());
  const stepcast::Session session;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      threads.emplace_back([&, i] {
        stepcast::PredictRequest request;
        request.job.model = "llama-3-70b";
        request.job.n_gpus = counts[i];
        request.job.settings.tensor = 4;
        request.job.settings.pipeline = 4;
        request.job.settings.global_batch_sequences = 1024;
        request.platform = "dgx-h100";
        forecasts[i] = session.predict(request);
      });
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const stepcast::Result<stepcast::Forecast>& forecast = *forecasts[i];
    if (!forecast.ok()) {
      std::fprintf(stderr, "%s\n", forecast.error().message().c_str());
      return 1;
    }
    std::printf("%5lld GPUs %9.0f ms, memory: %s\n", static_cast<long long>(counts[i]),
                forecast->step_time_ms, forecast->memory ? forecast->memory->verdict.c_str() : "not known");
  }
  return 0;
}
