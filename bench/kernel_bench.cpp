// Speed of kernel estimates and of fitting kernel models, on made-up measurements.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "stepcast/cost/kernel_model.h"

#include "calibrate/kernel_fit.h"

namespace stepcast {
namespace {

Device device() {
  Device d;
  d.name = "Test GPU";
  d.matrix_peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{312e12};
  d.vector_peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{39e12};
  d.memory_bandwidth = BytesPerSecond{2.0e12};
  d.memory_size = Bytes{80e9};
  d.sm_count = 108;
  d.l2_size = Bytes{40e6};
  d.kernel_floor = Microseconds{2};
  return d;
}

// No two alike: products, norms and attention in turn, as a layout search asks for them.
std::vector<Operation> operations(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto extent = [&random](double low, double high) {
    const double share = static_cast<double>(random() >> 11U) * 0x1p-53;
    return static_cast<std::int64_t>(std::exp2(low + (high - low) * share));
  };
  std::vector<Operation> out;
  for (std::size_t i = 0; i < n; ++i) {
    switch (i % 4) {
      case 0:
      case 1:
        out.push_back(gemm({.m = extent(6, 14), .n = extent(6, 14), .k = extent(6, 14)}, DType::bf16));
        break;
      case 2: out.push_back(norm({.rows = extent(8, 16), .cols = extent(8, 14)}, DType::bf16)); break;
      default: {
        const std::int64_t length = extent(7, 13), heads = extent(2, 6);
        out.push_back(attention({.batch = extent(0, 5),
                                 .query_length = length,
                                 .key_length = length,
                                 .heads = heads,
                                 .key_value_heads = heads,
                                 .head_dim = 128},
                                DType::bf16));
      }
    }
  }
  return out;
}

std::vector<KernelMeasurement> measurements(std::size_t n) {
  const AnalyticModel analytic{device()};
  std::mt19937_64 random{5};
  std::vector<KernelMeasurement> rows;
  for (const Operation& operation : operations(n, 1)) {
    KernelMeasurement row;
    row.operation = operation;
    // Noise and a step that trees have to learn.
    const double noise = 1 + 0.1 * (static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5);
    const auto* product = std::get_if<GemmShape>(&operation.shape);
    const double step = product != nullptr && product->n % 8 != 0 ? 1.3 : 1.0;
    row.time = analytic.time(operation) * (1.2 * noise * step);
    row.gpu = "Test GPU";
    rows.push_back(row);
  }
  return rows;
}

const KernelModel& model() {
  static const KernelModel fitted = [] {
    auto fit = fit_kernel_models(measurements(12'000), device());
    return KernelModel{device(), fit->records};
  }();
  return fitted;
}

// All shapes are new: at least 1 million a second.
void BM_EstimateBatch(benchmark::State& state) {
  const std::vector<Operation> asked = operations(100'000, 99);
  benchmark::DoNotOptimize(&model());  // fitted before the clock starts
  std::vector<Estimate> out(asked.size());
  for (auto _ : state) {
    model().estimate(asked, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(asked.size()) * state.iterations());
}
BENCHMARK(BM_EstimateBatch)->Unit(benchmark::kMillisecond);

// The same shapes again and again, one by one: from the memo.
void BM_EstimateRemembered(benchmark::State& state) {
  const std::vector<Operation> asked = operations(1000, 98);
  benchmark::DoNotOptimize(&model());
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(model().estimate(asked[i]));
    i = i + 1 == asked.size() ? 0 : i + 1;
  }
}
BENCHMARK(BM_EstimateRemembered);

void BM_FitKernels(benchmark::State& state) {
  const std::vector<KernelMeasurement> rows = measurements(6000);
  for (auto _ : state) {
    auto fit = fit_kernel_models(rows, device(), {.threads = 1});
    benchmark::DoNotOptimize(fit);
  }
}
BENCHMARK(BM_FitKernels)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace stepcast
