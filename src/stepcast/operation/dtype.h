// Element types and their spellings in traces and files.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/quantity.h"

namespace stepcast {

// Type of an element of a tensor.
enum class DType : std::uint8_t {
  // Not stated, or a spelling that parse_dtype() does not know. In a collective curve: any type.
  unknown,
  fp64,
  fp32,
  tf32,  // fp32 data, rounded to 10 bits of mantissa inside matrix units
  fp16,
  bf16,
  fp8,        // one scale per tensor or row
  fp8_block,  // fp8 with one scale per block, which has separate kernels
  fp4,        // one scale per 16 or 32 elements
  int64,
  int32,
  int16,
  int8,
  boolean
};

// "fp32", "bf16", ...: the spelling in records and reports, which parse_dtype() also accepts.
[[nodiscard]] std::string_view to_string(DType dtype);
// Accepts torch, c10, NCCL and numpy spellings: "float", "Float", "c10::BFloat16", "long int", "bf16",
// "ncclFloat16", ... `unknown` for anything else.
[[nodiscard]] DType parse_dtype(std::string_view text);
// Bytes of one element; 0 for `unknown`, 0.5 for fp4.
[[nodiscard]] Bytes element_size(DType dtype);

}  // namespace stepcast
