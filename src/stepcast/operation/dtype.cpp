#include "stepcast/operation/dtype.h"

#include <string>
#include <utility>

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

struct DtypeSpelling {
  std::string_view text;
  DType dtype;
};

constexpr DtypeSpelling kDtypeSpellings[] = {
    {"float", DType::fp32},
    {"float32", DType::fp32},
    {"fp32", DType::fp32},
    {"f32", DType::fp32},
    {"single", DType::fp32},
    {"double", DType::fp64},
    {"float64", DType::fp64},
    {"fp64", DType::fp64},
    {"f64", DType::fp64},
    {"tf32", DType::tf32},
    {"tfloat32", DType::tf32},
    {"half", DType::fp16},
    {"float16", DType::fp16},
    {"fp16", DType::fp16},
    {"f16", DType::fp16},
    {"bfloat16", DType::bf16},
    {"bf16", DType::bf16},
    {"fp8", DType::fp8},
    {"float8", DType::fp8},
    {"f8", DType::fp8},
    {"fp8block", DType::fp8_block},
    {"fp4", DType::fp4},
    {"float4", DType::fp4},
    {"nvfp4", DType::fp4},
    {"mxfp4", DType::fp4},
    {"long", DType::int64},
    {"longint", DType::int64},
    {"longlong", DType::int64},
    {"longlongint", DType::int64},
    {"int64", DType::int64},
    {"i64", DType::int64},
    {"uint64", DType::int64},
    {"unsignedlong", DType::int64},
    {"u64", DType::int64},
    {"int", DType::int32},
    {"int32", DType::int32},
    {"i32", DType::int32},
    {"uint32", DType::int32},
    {"unsignedint", DType::int32},
    {"u32", DType::int32},
    {"short", DType::int16},
    {"shortint", DType::int16},
    {"int16", DType::int16},
    {"i16", DType::int16},
    {"uint16", DType::int16},
    {"unsignedshort", DType::int16},
    {"char", DType::int8},
    {"signedchar", DType::int8},
    {"unsignedchar", DType::int8},
    {"int8", DType::int8},
    {"i8", DType::int8},
    {"uint8", DType::int8},
    {"u8", DType::int8},
    {"byte", DType::int8},
    {"bool", DType::boolean},
    {"boolean", DType::boolean},
};

constexpr std::pair<std::string_view, DType> kPrefixes[] = {
    {"float8e"sv, DType::fp8}, {"fp8e"sv, DType::fp8}, {"f8e"sv, DType::fp8},     {"e4m3"sv, DType::fp8},
    {"e5m2"sv, DType::fp8},    {"e2m1"sv, DType::fp4}, {"float4e"sv, DType::fp4}, {"fp4e"sv, DType::fp4}};

constexpr auto kDTypeNames = names<DType>({{DType::unknown, "unknown"},
                                           {DType::fp64, "fp64"},
                                           {DType::fp32, "fp32"},
                                           {DType::tf32, "tf32"},
                                           {DType::fp16, "fp16"},
                                           {DType::bf16, "bf16"},
                                           {DType::fp8, "fp8"},
                                           {DType::fp8_block, "fp8_block"},
                                           {DType::fp4, "fp4"},
                                           {DType::int64, "int64"},
                                           {DType::int32, "int32"},
                                           {DType::int16, "int16"},
                                           {DType::int8, "int8"},
                                           {DType::boolean, "boolean"}});

}  // namespace

std::string_view to_string(DType dtype) { return kDTypeNames[dtype]; }

DType parse_dtype(std::string_view text) {
  if (text.size() > 64) return DType::unknown;
  for (const std::string_view prefix :
       {"c10::"sv, "at::"sv, "torch."sv, "numpy."sv, "np."sv, "nccl"sv, "std::"sv}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  std::string word;
  for (const char c : text)
    if (c >= 'A' && c <= 'Z')
      word += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      word += c;
    else if (c != ' ' && c != '_')
      return DType::unknown;
  const auto find = [](std::string_view w) {
    for (const DtypeSpelling& s : kDtypeSpellings)
      if (s.text == w) return s.dtype;
    return DType::unknown;
  };
  if (const DType dtype = find(word); dtype != DType::unknown) return dtype;
  if (text.ends_with("_t"sv))
    return find(std::string_view{word}.substr(0, word.size() - 1));  // int64_t, int8_t
  for (const auto& [prefix, dtype] : kPrefixes)
    if (word.starts_with(prefix)) return dtype;
  return DType::unknown;
}

Bytes element_size(DType dtype) {
  switch (dtype) {
    case DType::unknown: return Bytes{0};
    case DType::fp64:
    case DType::int64: return Bytes{8};
    case DType::fp32:
    case DType::tf32:
    case DType::int32: return Bytes{4};
    case DType::fp16:
    case DType::bf16:
    case DType::int16: return Bytes{2};
    case DType::fp8:
    case DType::fp8_block:
    case DType::int8:
    case DType::boolean: return Bytes{1};
    case DType::fp4: return Bytes{0.5};
  }
  return Bytes{0};
}

}  // namespace stepcast
