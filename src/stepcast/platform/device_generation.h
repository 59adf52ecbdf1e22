// Properties shared by the devices of one architecture, one row each. Models that compare architectures use
// this table.
//
//   generation_of(device).first_sold_year      2022.6 of a Hopper
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/platform/platform.h"

namespace stepcast {

// The generation that gives latencies and caps in NCCL's tuning (cost/nccl_choice.h).
enum class NcclGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

// One row.
struct DeviceGeneration {
  std::string_view architecture;  // as in platform files; empty: any other
  double first_sold_year;         // with a fraction for the month
  // In long runs, when clocks fall to the power limit: on matrix units, and in fp32 GEMM by ordinary
  // arithmetic.
  double sustained_TFLOPs_per_W;
  double sustained_GFLOPs_per_W;
  NcclGeneration nccl;
  bool bf16_units;             // matrix units accept bf16, where the platform states only fp16
  bool int8_dots;              // ordinary arithmetic adds four int8 multiplications at once (dp4a)
  bool asynchronous_products;  // asynchronous GEMM instructions, which FlashAttention-3 needs
  bool memory_chips;        // memory chips on the board, not stacked: their error correction uses bandwidth
  double host_time;         // of an operator on the usual hosts, relative to hosts of 2022
  double element_start_us;  // us, of the shortest element-wise kernels in sequence; 0: as of other kernels
};

// The row of the architecture of a device, or a default row for unknown ones.
[[nodiscard]] const DeviceGeneration& generation_of(const Device& device);

}  // namespace stepcast
