#include "stepcast/cost/detail/attention_blocks.h"

#include <algorithm>
#include <cmath>

namespace stepcast::detail {
namespace {

// Fused attention: rates by kernel and generation, padding of head dimensions, and the tail of the last
// blocks.
constexpr double kQueriesOfBlock = 128;
constexpr double kMemoryEfficiency = 0.76;  // the same as for GEMMs
constexpr double kUnequalTail = 0.6;        // overhang of the last long block, in mean blocks; assumed
constexpr double kMostPartial = 16;         // the smallest blocks have 8 queries; assumed
// Matrix rate from which the kernels are those of Hopper: between A100 (312 TFLOP/s) and H100 (989).
constexpr double kHopperPerUs = 600e6;
// Share of ordinary arithmetic without matrix units. Assumed.
constexpr double kOrdinaryRate = 0.5;

// Head dimension after padding: kernels are built for these sizes and pad to the next one.
double padded_head_dim(double head_dim, AttentionKernel kernel) {
  // operators_fwd_bwd_a100_80gb.csv: 96, 160, 192 and 224 do not fall back to the next power of two.
  for (const double built : {32.0, 64.0, 96.0, 128.0, 160.0, 192.0, 224.0, 256.0})
    if (head_dim <= built) return kernel == AttentionKernel::flash3 && built == 160 ? 192 : built;
  return std::ceil(head_dim / 64) * 64;
}

// Rate relative to head dimension 128, after padding; operators_fwd_bwd_a100_80gb.csv, sequences of 2048 and
// more.
double head_dim_factor(double padded) {
  if (padded <= 32) return 0.64;
  if (padded <= 64) return 0.92;
  if (padded <= 128) return padded == 96 ? 0.94 : 1;
  return 0.86;
}

}  // namespace

AttentionRate attention_rate(AttentionKernel kernel, double matrix_per_us, double head_dim) {
  const bool hopper = matrix_per_us >= kHopperPerUs;
  AttentionRate rate;
  switch (kernel) {
    case AttentionKernel::flash1:
      // operators_fwd_bwd_a100_80gb.csv: 0.28 to 0.31 and 0.20 to 0.26 at head dimension 128.
      rate = {0.31, 0.265, 120};
      if (hopper) rate = {0.20, 0.17, 200};  // assumed: the same instructions on a larger peak
      break;
    case AttentionKernel::efficient:
      rate = hopper ? AttentionRate{0.25, 0.17, 250}  // assumed
                    : AttentionRate{0.40, 0.28, 250};
      break;
    case AttentionKernel::flash2:
      // attention_prefill_bf16_fwd.csv: A100 reaches 0.66 of its peak; simumax_a100_pcie_efficiency.csv:
      // backward 0.50 at 4096 tokens, counting causal FLOPs.
      rate = {0.68, 0.54, 350};
      if (hopper) rate = {0.38, 0.30, 400};  // assumed: no asynchronous GEMMs
      break;
    case AttentionKernel::flash3:
    case AttentionKernel::any:
      rate = {0.68, 0.54, 350};
      // attention_prefill_bf16_fwd.csv: H100 reaches 0.58 (0.60 in the best tenth). Backward: assumed as on
      // A100 relative to forward.
      if (hopper) rate = {0.60, 0.45, 450};
      break;
  }
  const double factor = head_dim_factor(padded_head_dim(head_dim, kernel));
  rate.forward *= factor;
  rate.backward *= factor;
  return rate;
}

double attention_us(const AttentionShape& s, DType dtype, Direction direction, const Work& work,
                    const DeviceFigures& device) {
  const double peak = device.matrix_of(dtype).per_us;
  const auto head_dim = static_cast<double>(std::max<std::int64_t>(s.head_dim, 1));
  const AttentionRate rate = attention_rate(s.kernel, peak, head_dim);
  double share = direction == Direction::forward ? rate.forward : rate.backward;
  if (!device.has_matrix_units(dtype)) share = kOrdinaryRate;
  const double padding = padded_head_dim(head_dim, s.kernel) / head_dim;
  const auto queries = static_cast<double>(s.query_length);
  auto keys = static_cast<double>(s.key_length);
  if (s.window > 0) keys = std::min(keys, static_cast<double>(s.window));
  // Short sequences reach a lower rate: half of the limit at half_length keys.
  const double length_factor =
      std::max(keys, kQueriesOfBlock) / (std::max(keys, kQueriesOfBlock) + rate.half_length);

  // Backward iterates over blocks of keys instead of blocks of queries.
  const double rows = direction == Direction::forward ? queries : keys;
  const double heads = static_cast<double>(s.batch) * static_cast<double>(s.heads);
  const double blocks_of_head = std::max(1.0, std::ceil(rows / kQueriesOfBlock));
  const double blocks = std::max(1.0, heads * blocks_of_head);
  // Work of the busiest SM, in mean blocks. Causal blocks have unequal lengths: the longest is two mean
  // blocks, and short ones fill gaps.
  const double blocks_per_sm = blocks / device.sm_count;
  const bool unequal = s.causal && blocks_of_head > 1;
  const double busiest = unequal ? std::max(2.0, blocks_per_sm + kUnequalTail) : std::ceil(blocks_per_sm);
  const double utilisation = blocks_per_sm / busiest;
  // A block with few queries takes as long as a full one.
  const double partial = rows > 0 ? std::min(blocks_of_head * kQueriesOfBlock / rows, kMostPartial) : 1;

  const double compute_us =
      work.flops.value() * padding * partial / (peak * share * length_factor * utilisation);
  const double memory_us = work.bytes().value() / (device.memory.per_us * kMemoryEfficiency);
  return std::max(compute_us, memory_us);
}

}  // namespace stepcast::detail
