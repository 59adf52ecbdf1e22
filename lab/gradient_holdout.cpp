#include "lab/gradient_holdout.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/kernel_model.h"

#include "calibrate/kernel_fit.h"
#include "calibrate/kernel_measurements.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kSeed = 42;
// So few and so large products of a batch fill a GPU as one product of all their rows does.
constexpr std::int64_t kMostProducts = 64;
constexpr std::int64_t kLeastExtent = 192;

// The single product that a row stands for.
std::optional<Operation> as_gradient(const KernelMeasurement& row) {
  const auto* s = std::get_if<GemmShape>(&row.operation.shape);
  if (s == nullptr || s->layout != GemmLayout::nn || s->batch < 2 || s->batch > kMostProducts)
    return std::nullopt;
  if (row.operation.direction != Direction::forward || std::min({s->m, s->n, s->k}) < kLeastExtent)
    return std::nullopt;
  Operation gradient = row.operation;
  auto& shape = std::get<GemmShape>(gradient.shape);
  shape.m *= shape.batch;
  shape.batch = 1;
  return gradient;
}

struct Holdout {
  std::vector<Tested> tested;
  std::map<std::string, double> n_fit;
  double most_of_peak = 0;
};

Result<Holdout> score_device(const DeviceRows& device) {
  Holdout out;
  std::vector<std::size_t> rows;
  std::vector<Operation> gradients;
  std::vector<KernelMeasurement> fit_rows;
  for (std::size_t i = 0; i < device.rows.size(); ++i) {
    const KernelMeasurement& row = device.rows[i];
    const auto* product = std::get_if<GemmShape>(&row.operation.shape);
    if (product == nullptr) continue;
    if (auto gradient = as_gradient(row)) {
      rows.push_back(i);
      gradients.push_back(*std::move(gradient));
    } else {
      fit_rows.push_back(row);
    }
  }
  if (rows.empty()) return out;
  STEPCAST_ASSIGN(const KernelFit fit,
                  fit_kernel_models(fit_rows, device.platform.device, {.seed = kSeed, .threads = 1}));
  const KernelModel model{device.platform.device, fit.records};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Estimate estimate = model.estimate(gradients[i]);
    out.tested.push_back({rows[i], estimate});
    out.n_fit[kernel_set_name(device.rows[rows[i]])] = static_cast<double>(fit_rows.size());
    const auto peak = device.platform.device.peak(gradients[i].dtype);
    if (peak && estimate.time.value() > 0) {
      const double flops_per_second = work_of(gradients[i]).flops.value() / estimate.time.value() * 1e6;
      out.most_of_peak = std::max(out.most_of_peak, 100 * flops_per_second / peak->value());
    }
  }
  return out;
}

}  // namespace

Result<std::optional<TestScore>> score_held_out_gradients(const std::vector<DeviceRows>& devices,
                                                          const std::vector<std::filesystem::path>& files,
                                                          const PublishedErrors& published,
                                                          unsigned threads) {
  std::vector<Holdout> results(devices.size());
  STEPCAST_TRY(parallel_for(devices.size(), threads, [&](std::size_t d) -> Status {
    STEPCAST_ASSIGN(results[d], score_device(devices[d]));
    return Ok{};
  }));
  KernelSets sets{files, published};
  double most_of_peak = 0;
  bool any = false;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    any = any || !results[d].tested.empty();
    most_of_peak = std::max(most_of_peak, results[d].most_of_peak);
    sets.add(devices[d], results[d].tested, results[d].n_fit);
  }
  if (!any) return std::optional<TestScore>{};
  TestScore test = std::move(sets).test("held_out_gradients", "refit");
  test.extras.push_back({kMostOfPeak, most_of_peak, ExtraMetric::Over::max});
  return std::optional{std::move(test)};
}

}  // namespace stepcast
