// What is alike among the devices of one architecture, a row for each: models that compare architectures ask here.
//
//   generation_of(device).first_sold_year      2022.6 of a Hopper
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/platform/platform.h"

namespace stepcast {

// Whose latencies and limits NCCL's tuning takes.
enum class NcclGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

struct DeviceGeneration {
  std::string_view architecture;  // as platform files have it; empty: any other
  double first_sold_year;
  // Of long runs, when clocks fall to the power limit: matrix units, and fp32 products by ordinary arithmetic.
  double sustained_TFLOPs_per_W;
  double sustained_GFLOPs_per_W;
  NcclGeneration nccl;
  bool bf16_units;             // matrix units that take bf16, where the platform states only fp16
  bool int8_dots;              // ordinary arithmetic adds up four products of int8 at once (dp4a)
  bool asynchronous_products;  // what FlashAttention-3 needs
  bool memory_chips;           // beside the GPU, not stacked: their error correction uses bandwidth
  double host_time;            // of an operator on its usual hosts, over that on hosts of 2022
  double element_start_us;  // of the shortest element-wise kernels behind each other; 0: as of other kernels
};

// The row of the device's architecture, or that of unknown ones.
[[nodiscard]] const DeviceGeneration& generation_of(const Device& device);

}  // namespace stepcast
