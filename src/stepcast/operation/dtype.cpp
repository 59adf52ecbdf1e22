#include "stepcast/operation/dtype.h"

#include <string>
#include <utility>

#include "stepcast/base/names.h"
#include "stepcast/base/words.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

// A type and its spellings, separated by blanks; lower case, without blanks and underscores.
struct DtypeSpellings {
  DType dtype;
  std::string_view words;
};

constexpr DtypeSpellings kDtypeSpellings[] = {
    {DType::fp32, "float float32 fp32 f32 single"},
    {DType::fp64, "double float64 fp64 f64"},
    {DType::tf32, "tf32 tfloat32"},
    {DType::fp16, "half float16 fp16 f16"},
    {DType::bf16, "bfloat16 bf16"},
    {DType::fp8, "fp8 float8 f8"},
    {DType::fp8_block, "fp8block"},
    {DType::fp4, "fp4 float4 nvfp4 mxfp4"},
    {DType::int64, "long longint longlong longlongint int64 i64 uint64 unsignedlong u64"},
    {DType::int32, "int int32 i32 uint32 unsignedint u32"},
    {DType::int16, "short shortint int16 i16 uint16 unsignedshort"},
    {DType::int8, "char signedchar unsignedchar int8 i8 uint8 u8 byte"},
    {DType::boolean, "bool boolean"},
};

// Types by the beginning of a name, such as float8_e4m3fn.
constexpr std::pair<std::string_view, DType> kPrefixes[] = {
    {"float8e"sv, DType::fp8}, {"fp8e"sv, DType::fp8}, {"f8e"sv, DType::fp8},     {"e4m3"sv, DType::fp8},
    {"e5m2"sv, DType::fp8},    {"e2m1"sv, DType::fp4}, {"float4e"sv, DType::fp4}, {"fp4e"sv, DType::fp4}};

constexpr auto kDTypeNames =
    names<DType::boolean>({"unknown", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp8_block", "fp4",
                           "int64", "int32", "int16", "int8", "boolean"});

}  // namespace

std::string_view to_string(DType dtype) { return kDTypeNames[dtype]; }

DType parse_dtype(std::string_view text) {
  // No type has such a long name; `word` stays small for damaged files.
  if (text.size() > 64) return DType::unknown;
  // Namespaces of the libraries that write types; several may follow each other.
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
    for (const DtypeSpellings& s : kDtypeSpellings)
      if (is_among(w, s.words)) return s.dtype;
    return DType::unknown;
  };
  if (const DType dtype = find(word); dtype != DType::unknown) return dtype;
  // The underscore is already dropped from `word`, so only the t is cut.
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
    // Two values per byte.
    case DType::fp4: return Bytes{0.5};
  }
  return Bytes{0};
}

}  // namespace stepcast
