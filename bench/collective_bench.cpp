// Speed of collective estimates and of fitting a log.
#include <array>
#include <cmath>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "stepcast/cost/collective_model.h"

#include "calibrate/collective_fit.h"

namespace stepcast {
namespace {

// A sweep of nccl-tests from 8 B to 4 GiB.
CollectiveMeasurements sweep(CollectiveOp op, std::uint32_t n) {
  CollectiveMeasurements m;
  m.collective = op;
  m.gpus_per_node = m.n_ranks = n;
  for (int i = 3; i <= 32; ++i) {
    const double bytes = std::exp2(i);
    const double GBps = 230 * (1 - 0.6 / (1 + std::exp(0.8 * (i - 20))));
    m.samples.push_back({bytes, 30 + bus_factor(op, n) * bytes / (1000 * GBps), DType::fp32, 0});
  }
  return m;
}

constexpr std::array kOps{CollectiveOp::all_reduce,  CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                          CollectiveOp::all_to_all,  CollectiveOp::broadcast,  CollectiveOp::reduce,
                          CollectiveOp::send_receive};

// One estimate of a resolved curve: at most 100 ns.
void BM_Estimate(benchmark::State& state) {
  const auto fit = fit_collective(sweep(CollectiveOp::all_reduce, 8));
  const TimeCurve& curve = fit->curve();
  double bytes = 1000;
  for (auto _ : state) {
    benchmark::DoNotOptimize(curve.at(Bytes{bytes}));
    bytes = bytes < 1e9 ? bytes * 1.37 : 1000;
  }
}
BENCHMARK(BM_Estimate);

void BM_Resolve(benchmark::State& state) {
  Platform platform;
  platform.node.gpus_per_node = 8;
  platform.node.intra.bandwidth_per_gpu = BytesPerSecond{300e9};
  for (const std::uint32_t n : {2U, 4U}) {
    const auto fit = fit_collective(sweep(CollectiveOp::all_reduce, n));
    for (CollectiveCurve& record : fit->records({})) platform.set(std::move(record));
  }
  const CollectiveModel model{platform};
  for (auto _ : state) {
    auto resolved = model.resolve({.op = CollectiveOp::all_reduce, .n_ranks = 8});
    benchmark::DoNotOptimize(resolved);
  }
}
BENCHMARK(BM_Resolve)->Unit(benchmark::kMicrosecond);

// A full log of seven collectives: at most 1 s.
void BM_FitFullLog(benchmark::State& state) {
  for (auto _ : state) {
    for (const CollectiveOp op : kOps) {
      auto fit = fit_collective(sweep(op, 8));
      benchmark::DoNotOptimize(fit);
    }
  }
}
BENCHMARK(BM_FitFullLog)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast
