#include "stepcast/cost/detail/gemm_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace stepcast::detail {
namespace {

// Rows and columns of C per tile.
struct Tile {
  double m, n;
};
constexpr std::array<Tile, 9> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}, {32, 32}}};
// cuDNN's kernels for convolutions of 3 and 4 channels, 51 of 4 to 1,024 taps in bf16, fp16 and TF32 on an
// H100: "128x128_32x5" and "256x64_32x4" in their names, for every batch size.
constexpr std::array<Tile, 2> kPaddedTiles{{{128, 128}, {256, 64}}};
constexpr std::array<double, 6> kSplits{1, 2, 4, 8, 16, 32};

// Share of the peak of an SM that a tile reaches: `rate` * area / (area + border * (tile_m + tile_n)). Small
// tiles wait for their operands. `extra_k`: filling the pipeline and writing the tile cost as much as this
// number of steps along k.
struct TileConstants {
  double rate, border, extra_k, memory_efficiency;
};
// Fitted to gemm_bf16_fwd.csv, A100 and H100 together (mean |ln(measured / model)| 0.10 and 0.11).
constexpr TileConstants kMatrixUnits{.rate = 2.876, .border = 200, .extra_k = 160, .memory_efficiency = 0.76};
// Ordinary arithmetic needs few operands per FLOP, so small tiles lose little: rate and border assumed,
// extra_k from neusight_train_matmul_fp32.csv on P100, V100 and A100.
constexpr TileConstants kOrdinaryUnits{.rate = 0.88, .border = 2, .extra_k = 120, .memory_efficiency = 0.76};

constexpr double kLeastKOfPart = 128;       // libraries do not split further; assumed
constexpr double kPartTrafficShare = 0.05;  // of the fp32 parts: most stay in L2; fitted as above
constexpr double kPartLaunchUs = 2;         // the kernel that adds the parts; assumed
constexpr double kPowerTimeUs = 300;        // clocks fall in GEMMs of about this length; assumed

// Factor for operands that are not aligned: 16-bit operands reach matrix units in pieces of 16 bytes, and
// unaligned rows use slower loads. Assumed.
double alignment_factor(const Product& p) {
  const double piece = 16 / std::max(p.element_bytes, 1.0);
  const auto aligned = [&](double per) { return std::fmod(p.k, per) == 0 && std::fmod(p.n, per) == 0; };
  if (aligned(piece)) return 1;
  return aligned(2) ? 0.8 : 0.6;
}

// FLOPs of narrow types per energy, relative to 16 bits: gemm_by_dtype.csv.gz, long runs on GB200 above 10
// TFLOP, 2,577 and 3,684 over 1,467 TFLOP/s.
constexpr double kFp8PowerGain = 1.75, kFp4PowerGain = 2.5;
// Factor on the power-limited rate of 16-bit types.
double power_gain(DType dtype) {
  switch (dtype) {
    case DType::fp8:
    case DType::fp8_block:
    case DType::int8: return kFp8PowerGain;
    case DType::fp4: return kFp4PowerGain;
    default: return 1;
  }
}

// Exhaustive search over tiles and splits. Splits stop where parts become short or exceed four waves.
Tiling shortest(const Product& p, const DeviceFigures& device, std::span<const Tile> tiles_of_library,
                std::span<const double> splits) {
  Tiling best;
  if (!(p.batch > 0 && p.m > 0 && p.n > 0)) return best;
  const bool units = device.has_matrix_units(p.dtype);
  const TileConstants& c = units ? kMatrixUnits : kOrdinaryUnits;
  const double peak = device.matrix_of(p.dtype).per_us;
  const double sm_peak = peak / device.sm_count * c.rate * (units ? alignment_factor(p) : 1);
  const double memory = device.memory.per_us * c.memory_efficiency;
  const double result = p.batch * p.m * p.n * p.result_bytes;
  const double bytes = p.batch * (p.m + p.n) * p.k * p.element_bytes + result * (p.accumulates ? 2 : 1);
  const double memory_us = bytes / memory;
  // Parts are fp32, each written and read once.
  const double part_us = p.batch * p.m * p.n * 8 * kPartTrafficShare / memory;

  double best_time = -1;
  for (const Tile& tile : tiles_of_library) {
    const double area = tile.m * tile.n;
    const double tile_rate = sm_peak * area / (area + c.border * (tile.m + tile.n));
    const double tiles = p.batch * std::ceil(p.m / tile.m) * std::ceil(p.n / tile.n);
    for (const double split : splits) {
      if (split > 1 && (p.k < kLeastKOfPart * split || tiles * split > 4 * device.sm_count)) break;
      const double waves = std::ceil(tiles * split / device.sm_count);
      const double compute_us = waves * 2 * area * (p.k / split + c.extra_k) / tile_rate;
      const double reduction_us = split > 1 ? part_us * split + kPartLaunchUs : 0;
      const double time = std::max(compute_us, memory_us) + reduction_us;
      if (best_time >= 0 && time >= best_time) continue;
      best_time = time;
      best = {tile.m, tile.n, split, tiles * split, waves, compute_us, memory_us, reduction_us};
    }
  }
  // Power limit: long runs approach the sustained rate. fp64 has a different limit that was not measured.
  if (p.dtype != DType::fp64) {
    const double sustained =
        units ? device.sustained_matrix_per_us * power_gain(p.dtype) : device.sustained_vector_per_us;
    const double limited_us = 2 * p.batch * p.m * p.n * p.k / sustained;
    const double long_run = best.compute_us / (best.compute_us + kPowerTimeUs);
    if (limited_us > best.compute_us) best.compute_us += (limited_us - best.compute_us) * long_run;
  }
  return best;
}

}  // namespace

double Tiling::time_us() const { return std::max(compute_us, memory_us) + reduction_us; }

Tiling best_tiling(const Product& product, const DeviceFigures& device) {
  return shortest(product, device, kTiles, kSplits);
}

Tiling best_padded_tiling(const Product& product, const DeviceFigures& device) {
  return shortest(product, device, kPaddedTiles, std::span{kSplits}.first(1));
}

}  // namespace stepcast::detail
