#include "stepcast/cost/device_figures.h"

#include <algorithm>

#include "stepcast/base/units.h"
#include "stepcast/platform/device_generation.h"

namespace stepcast {
namespace {

// Guesses for figures that a platform file leaves out; every answer that depends on one has the source
// `assumed`.
constexpr double kAssumedSmCount = 100;
constexpr double kAssumedFlopsPerByte = 12;       // fp32 rate over memory bandwidth: A100 12.5, V100 15.6
constexpr double kAssumedL2OverMemory = 2.5;      // bandwidth: 1.6 to 3.5 on the platforms that state it
constexpr double kAssumedL2Bytes = 6 * kMiB;      // the smallest since Volta
constexpr double kAssumedHostLink = 16e9 * 1e-6;  // PCIe 3.0 x16
constexpr double kAssumedKernelFloorUs = 2.5;     // the shortest GEMM on A100 and H100, gemm_bf16_fwd.csv
// int8 multiply-adds per fp32 one with dot instructions, P4: 22 over 5.5 TFLOP/s.
constexpr double kInt8Dot = 4;
constexpr double kOverPeakIsMatrixUnits = 1.9;  // a rate this far above ordinary fp32 implies matrix units

double per_us(FlopsPerSecond rate) { return rate.value() * 1e-6; }
double per_us(BytesPerSecond rate) { return rate.value() * 1e-6; }

}  // namespace

DeviceFigures figures_of(const Device& device) {
  DeviceFigures out;
  out.memory = {per_us(device.memory_bandwidth), device.memory_bandwidth.value() <= 0};
  // Without a stated bandwidth: 1 TB/s.
  if (out.memory.assumed) out.memory.per_us = 1e6;
  out.sm_count = std::max(1.0, static_cast<double>(device.sm_count.value_or(0)));
  if (!device.sm_count) out.sm_count = kAssumedSmCount;

  const auto fp32 = device.vector(DType::fp32);
  const auto fp32_matrix = device.peak(DType::fp32);
  if (fp32)
    out.vector = {per_us(*fp32), false};
  else if (fp32_matrix)
    out.vector = {per_us(*fp32_matrix), false};
  else
    out.vector = {out.memory.per_us * kAssumedFlopsPerByte, true};

  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    Rate& rate = out.matrix[i];
    // A type without matrix units runs on ordinary arithmetic, the half types at least as fast as fp32.
    rate = out.vector;
    if (const auto vector = device.vector(dtype)) {
      const bool is_double = dtype == DType::fp64;
      rate = {is_double ? per_us(*vector) : std::max(rate.per_us, per_us(*vector)), false};
    } else if (dtype == DType::fp64) {
      // Guess: 1/32 of fp32.
      rate = {out.vector.per_us / 32, true};
    }
    if (const auto peak = device.peak(dtype)) rate = {std::max(rate.per_us, per_us(*peak)), false};
  }
  const auto at = [&](DType dtype) -> Rate& { return out.matrix[static_cast<std::size_t>(dtype)]; };
  // Types with shared units: the rate of one replaces that of the others where only one is stated.
  const auto borrow = [&](DType to, DType from, double factor) {
    if (!device.peak(to) && device.peak(from))
      at(to) = {std::max(at(to).per_us, at(from).per_us * factor), true};
  };
  const DeviceGeneration& generation = generation_of(device);
  if (generation.bf16_units) borrow(DType::bf16, DType::fp16, 1);
  borrow(DType::fp16, DType::bf16, 1);
  borrow(DType::fp8, DType::fp16, 1);  // stored as fp8, multiplied as fp16
  borrow(DType::fp8_block, DType::fp8, 1);
  borrow(DType::fp8_block, DType::fp16, 1);
  borrow(DType::fp4, DType::fp8, 1);
  borrow(DType::int8, DType::fp8, 1);
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    out.matrix_units[i] = out.matrix[i].per_us > kOverPeakIsMatrixUnits * out.vector.per_us;
  if (generation.int8_dots && !device.peak(DType::int8))
    at(DType::int8) = {std::max(at(DType::int8).per_us, kInt8Dot * out.vector.per_us), true};

  out.l2 = device.l2_bandwidth ? Rate{per_us(*device.l2_bandwidth), false}
                               : Rate{out.memory.per_us * kAssumedL2OverMemory, true};
  out.l2_bytes = device.l2_size ? device.l2_size->value() : kAssumedL2Bytes;
  out.host_link = device.host_link_bandwidth ? Rate{per_us(*device.host_link_bandwidth), false}
                                             : Rate{kAssumedHostLink, true};
  out.kernel_floor_us = device.kernel_floor ? device.kernel_floor->value() : kAssumedKernelFloorUs;
  out.element_start_us = generation.element_start_us > 0 ? generation.element_start_us : out.kernel_floor_us;
  const double watts = device.power_limit_W.value_or(0);
  out.sustained_matrix_per_us = watts > 0 ? watts * generation.sustained_TFLOPs_per_W * 1e6 : 1e300;
  out.sustained_vector_per_us = watts > 0 ? watts * generation.sustained_GFLOPs_per_W * 1e3 : 1e300;
  return out;
}

}  // namespace stepcast
