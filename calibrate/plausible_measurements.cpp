#include "calibrate/plausible_measurements.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/families/record_numbers.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast {
namespace {

// Limits of the total time of a family over that of the analytic model. Every family of the measured data lies within.
constexpr double kMostOfAnalytic = 6, kLeastOfAnalytic = 0.25;
// Largest time of a launch from the host: linear layers of neusight_train_matmul_fp32.csv take 50 to 90 us.
constexpr double kMostLaunchUs = 100;
// Range from p10 to p90 of held-out rows, in ln. The widest shipped record has 0.56 (convolutions of P100).
constexpr double kWidestScatter = 0.9;
// With fewer rows the scatter has causes outside the model. Rows of the collector, medians of 100 repetitions, scatter by a
// factor of up to 4 with 60 shapes and of 26 with 12. The smallest public file with less scatter has 150 rows.
constexpr std::size_t kLeastRowsOfScatter = 150;
// Least size and time of messages with negligible start-up time.
constexpr double kLargeBytes = 1 << 24, kLongUs = 200;
constexpr double kMostTimesTheLink = 2;  // counters and clocks differ; unit mistakes are a factor of 1000
constexpr double kLeastOfTheLink = 1.0 / 200;

double gigabytes_per_second(const CollectiveMeasurements& m, const CollectiveSample& s) {
  const bool is_split =
      m.collective == CollectiveOp::all_gather || m.collective == CollectiveOp::all_reduce ||
      m.collective == CollectiveOp::reduce_scatter || m.collective == CollectiveOp::all_to_all;
  return s.message_bytes * (is_split ? 1 - 1.0 / m.n_ranks : 1) / s.time_us * 1e-3;
}

bool is_cpu(const Device& device) { return device.architecture == "cpu"; }  // set by stepcast.collect

}  // namespace

Status check_plausible(std::span<const KernelMeasurement> rows, const Device& device) {
  if (is_cpu(device)) return Ok{};
  struct Sum {
    double measured_us = 0, analytic_us = 0;
    std::size_t n = 0;
  };
  const AnalyticModel model{device};
  std::map<std::string, Sum> sums;
  for (const KernelMeasurement& m : rows) {
    Sum& sum = sums[kernel_record_key(m.operation)];
    sum.measured_us += m.time.value();
    sum.analytic_us += model.time(m.operation).value();
    ++sum.n;
  }
  for (const auto& [key, sum] : sums) {
    const double most = kMostOfAnalytic * (sum.analytic_us + kMostLaunchUs * static_cast<double>(sum.n));
    if (sum.measured_us <= most && sum.measured_us >= kLeastOfAnalytic * sum.analytic_us) continue;
    return Error{fmt::format("the {} rows of {} cannot be of {}", sum.n, key, device.name)}
        .found(fmt::format("{:.3g} times what its figures say", sum.measured_us / sum.analytic_us))
        .expected(fmt::format("{:g} to {:g} times", kLeastOfAnalytic, kMostOfAnalytic))
        .advice("check the unit of the times, the shapes and --platform; --force takes them unchanged");
  }
  return Ok{};
}

Status check_plausible(const KernelFit& fit, const Device& device) {
  if (is_cpu(device)) return Ok{};
  for (const ModelRecord& record : fit.records) {
    const JsonValue* interval = record.parameters.find("interval");
    if (interval == nullptr || record.provenance.n_rows < kLeastRowsOfScatter) continue;
    STEPCAST_ASSIGN(const std::vector<double> low, finite_numbers(*interval, "log_p10"));
    STEPCAST_ASSIGN(const std::vector<double> high, finite_numbers(*interval, "log_p90", low.size()));
    std::vector<double> widths;
    for (std::size_t i = 0; i < low.size(); ++i) widths.push_back(high[i] - low[i]);
    if (widths.empty()) continue;
    const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
    std::ranges::nth_element(widths, middle);
    if (*middle <= kWidestScatter) continue;
    return Error{fmt::format("the times of {} follow no law", record.name)}
        .found(fmt::format("a factor of {:.1f} between the 10 and 90 % of held-out rows", std::exp(*middle)))
        .expected(fmt::format("at most {:.1f}", std::exp(kWidestScatter)))
        .advice("measure again, medians of many repetitions; --force takes them unchanged");
  }
  return Ok{};
}

Status check_plausible(const CollectiveMeasurements& m, const Platform& platform) {
  const double inside = platform.node.intra.bandwidth_per_gpu.value() * 1e-9;
  double crossed = inside;
  if (m.n_nodes > 1) {
    crossed = platform.node.network
                  ? platform.node.network->bandwidth_per_node().value() * 1e-9 / std::max(m.gpus_per_node, 1U)
                  : 0;
  }
  if (m.n_ranks < 2 || m.samples.empty()) return Ok{};
  const auto refused = [&](const CollectiveSample& s, std::string_view how, std::string expected) {
    return Error::at("", m.name(), fmt::format("{} than the links of the platform", how))
        .found(fmt::format("{:.4g} bytes in {:.4g} us, {:.3g} GB/s into every GPU", s.message_bytes,
                           s.time_us, gigabytes_per_second(m, s)))
        .expected(std::move(expected))
        .advice(
            "check the units of sizes (bytes) and times (us), and the platform; nothing was written; --force "
            "takes "
            "them unchanged");
  };
  const auto rate = [&](const CollectiveSample& s) {
    return s.message_bytes < kLargeBytes ? 0 : gigabytes_per_second(m, s);
  };
  const CollectiveSample& fastest = *std::ranges::max_element(m.samples, {}, rate);
  if (inside > 0 && rate(fastest) > kMostTimesTheLink * inside) {
    return refused(
        fastest, "faster",
        fmt::format("at most {:g} times the {:.0f} GB/s of {}", kMostTimesTheLink, inside, platform.name));
  }
  const CollectiveSample& best =
      *std::ranges::max_element(m.samples, {}, [&](const auto& s) { return gigabytes_per_second(m, s); });
  if (crossed > 0 && best.time_us > kLongUs && gigabytes_per_second(m, best) < kLeastOfTheLink * crossed) {
    return refused(best, "far slower",
                   fmt::format("at least a {:g}th of the {:.0f} GB/s of {}", 1 / kLeastOfTheLink, crossed,
                               platform.name));
  }
  return Ok{};
}

Status check_measured_on(std::string_view gpu, const Device& device) {
  if (gpu.empty() || could_be_named(gpu, device)) return Ok{};
  const Result<Platform> known = load_device(gpu);
  if (!known.ok() || known->device.name == device.name) return Ok{};
  return Error{"the measurements are of another GPU"}
      .found(fmt::format("`{}`", gpu.substr(0, 60)))
      .expected(fmt::format("the GPU of the platform, {}", device.name))
      .advice("name the platform that was measured with --platform; --force takes them unchanged");
}

}  // namespace stepcast
