#include "stepcast/cost/analytic_model.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "stepcast/cost/detail/shape_cost.h"

// Roofline times and lower bounds of single operations. The constants of the bound are generous on purpose: a
// bound that is too high would reject correct measurements.

namespace stepcast {

namespace {

// Multiple of the last-level cache that may not move: cached inputs and outputs that are not yet written
// back.
constexpr double kCacheShare = 2;
constexpr double kOnChipOverMemory = 10;  // bandwidth of data that stays on chip, for the bound
constexpr double kForEver = 1e300;        // us; result for sizes that overflow the arithmetic
constexpr double kShortestKernelUs = 1;   // assumed; the shortest measured row is 2.0 us

using detail::as_double;
using detail::host_memory_per_us;

// Upper limit of the factor that fast convolution algorithms save in multiplications: F(4, k) in each
// dimension, since larger tiles lose precision. 1 for strides or dilations, which have no such transform.
double most_saved_by_transforms(const ConvolutionShape& s) {
  if (s.stride != 1 || s.dilation != 1) return 1;
  const auto saved = [](std::int64_t k) { return 4 * as_double(k) / (as_double(k) + 3); };
  return std::max(1.0, saved(s.kernel_height)) * std::max(1.0, saved(s.kernel_width));
}

// Whether the estimate of an operation depends on a figure that the platform file does not state.
bool rests_on_guess(const Operation& operation, const Work& work, const DeviceFigures& device,
                    bool states_sm_count) {
  if (const auto* transfer = std::get_if<TransferShape>(&operation.shape)) {
    if (transfer->kind == MemcpyKind::host_to_host) return true;
    const bool on_device =
        transfer->kind == MemcpyKind::none || transfer->kind == MemcpyKind::device_to_device;
    return on_device ? device.memory.assumed : device.host_link.assumed;
  }
  if (device.memory.assumed) return true;
  if (work.matrix) return device.matrix_of(operation.dtype).assumed || !states_sm_count;
  return device.vector.assumed;
}

// Lower bound of the time in microseconds. Fusion, minimum-FLOP algorithms, caches and the fastest unit of
// the device all count as available.
double bound_us(const Operation& operation, const Work& work, const DeviceFigures& device) {
  double flops = work.flops.value();
  double bytes = work.bytes().value();
  if (const auto* s = std::get_if<ConvolutionShape>(&operation.shape)) flops /= most_saved_by_transforms(*s);
  if (const auto* s = std::get_if<CrossEntropyShape>(&operation.shape); s != nullptr && !s->fused) {
    // An unfused cross entropy could be fused, so the bound takes the bytes of the fused kernel.
    CrossEntropyShape fused = *s;
    fused.fused = true;
    bytes = work_of({fused, operation.dtype, operation.direction}).bytes().value();
  }
  double rate = device.matrix_of(operation.dtype).per_us;
  // Ordinary units may compute half types in pairs: the fastest unit gives the bound.
  if (!work.matrix) rate = std::max({rate, device.vector.per_us, device.matrix_of(DType::fp16).per_us});
  const double arithmetic_us = flops / rate;
  double memory_us = std::max(bytes - kCacheShare * device.l2_bytes, 0.0) / device.memory.per_us;
  memory_us = std::max(memory_us, bytes / (device.memory.per_us * kOnChipOverMemory));
  if (const auto* transfer = std::get_if<TransferShape>(&operation.shape)) {
    const bool on_device =
        transfer->kind == MemcpyKind::none || transfer->kind == MemcpyKind::device_to_device;
    if (transfer->kind == MemcpyKind::host_to_host)
      memory_us = as_double(transfer->bytes) / (detail::kMostHostMemory * host_memory_per_us(device));
    else if (!on_device)
      memory_us = as_double(transfer->bytes) / device.host_link.per_us;
  }
  const double bound = std::max({arithmetic_us, memory_us, kShortestKernelUs});
  return std::isfinite(bound) ? bound : kForEver;
}

// Half-width of the interval of unfitted answers, in ln: three quarters of the GEMMs and most streaming
// kernels of the measured GPUs lie within it.
constexpr double kAnalyticBand = 0.35, kAssumedBand = 0.7;

constexpr double kRowCacheShare = 0.9;  // share of the last-level cache that contains rows
// Bytes of an index; the same value as in operation/detail/shape_facts.h.
constexpr double kSparseIndexBytes = 8;

}  // namespace

AnalyticModel::AnalyticModel(const Device& device) : device_(device), figures_(figures_of(device)) {}

AnalyticTime AnalyticModel::answer(const Operation& operation) const {
  const Work work = work_of(operation);
  const double bound = bound_us(operation, work, figures_);
  const auto* sparse = std::get_if<SparseShape>(&operation.shape);
  const Work moved = sparse != nullptr ? sparse_work(operation, *sparse, figures_.l2_bytes) : work;
  const detail::PlainKernel kernel{figures_, operation.dtype, operation.direction, moved};
  const double running = std::visit(
      [&](const auto& s) { return detail::CostOf<decltype(s)>::closed_form_us(s, kernel); }, operation.shape);
  // closed_form_us() of a GEMM or convolution in both gradient directions already includes the second launch.
  const bool product = std::holds_alternative<GemmShape>(operation.shape) ||
                       std::holds_alternative<ConvolutionShape>(operation.shape);
  const double launches = product ? 1 : std::max(1.0, static_cast<double>(work.kernels));
  const double time = running + figures_.kernel_floor_us * launches;
  return {Microseconds{std::isfinite(time) ? std::max(time, bound) : kForEver}, Microseconds{bound}, work};
}

Microseconds AnalyticModel::time(const Operation& operation) const { return answer(operation).time; }

Microseconds AnalyticModel::lower_bound(const Operation& operation) const {
  return Microseconds{bound_us(operation, work_of(operation), figures_)};
}

Estimate AnalyticModel::estimate(const Operation& operation) const {
  const AnalyticTime a = answer(operation);
  const bool guess = rests_on_guess(operation, a.work, figures_, device_.sm_count.has_value());
  const double band = std::exp(guess ? kAssumedBand : kAnalyticBand);
  return {a.time, std::max(a.lower_bound, a.time / band), a.time * band,
          guess ? EstimateSource::assumed : EstimateSource::analytic};
}

double fetched_rows(const AccessPattern& pattern, double lookups, double row_bytes, double cache_bytes) {
  if (lookups <= 0) return 0;
  const double cached = row_bytes > 0 ? kRowCacheShare * cache_bytes / row_bytes : 0;
  return lookups - pattern.hits(lookups, cached);
}

Work sparse_work(const Operation& operation, const SparseShape& s, double cache_bytes) {
  Work work = work_of(operation);
  if (s.reuse > 0 || s.nonzeros <= 0 || s.rows < 1 || s.inner < 1) return work;
  const double element = element_size(operation.dtype).value();
  const auto rows = static_cast<double>(s.rows), inner = static_cast<double>(s.inner);
  const double row_of_d =
      static_cast<double>(s.cols) * (s.sparse_result ? element + kSparseIndexBytes : element);
  // Bytes in excess of work_of(), which assumes that a used row is fetched once.
  const auto more = [&](double n) {
    const double fetched = fetched_rows(AccessPattern::uniform(n), s.nonzeros, row_of_d, cache_bytes);
    return (fetched - std::min(s.nonzeros, n)) * row_of_d;
  };
  double bytes = 0;
  const Direction d = operation.direction;
  if (d == Direction::forward || d == Direction::backward || d == Direction::weight_gradient)
    bytes += more(inner);
  // The input gradient reads rows of dC in the order of the columns of S.
  if (d == Direction::backward || d == Direction::input_gradient) bytes += more(rows);
  work.bytes_read = Bytes{std::max(0.0, work.bytes_read.value() + bytes)};
  return work;
}

}  // namespace stepcast
