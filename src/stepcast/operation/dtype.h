// Element types and their spellings in traces and files.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/quantity.h"

namespace stepcast {

enum class DType : std::uint8_t {
  unknown,
  fp64,
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,        // one scale per tensor or row
  fp8_block,  // fp8 with a scale per block: kernels of their own
  fp4,        // with a scale per 16 or 32 elements
  int64,
  int32,
  int16,
  int8,
  boolean
};

[[nodiscard]] std::string_view to_string(DType dtype);
// Accepts torch, c10, NCCL and numpy spellings: "float", "Float", "c10::BFloat16", "long int", "bf16",
// "ncclFloat16", ...
[[nodiscard]] DType parse_dtype(std::string_view text);
// Size of one element; unknown has no size and gives 0 bytes.
[[nodiscard]] Bytes element_size(DType dtype);

}  // namespace stepcast
