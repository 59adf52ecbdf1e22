#include "stepcast/operation/dtype.h"

#include <gtest/gtest.h>

namespace stepcast::dtype_test {
namespace {

TEST(DType, TakesTheSpellingsOfFrameworksAndLibraries) {
  struct Case {
    const char* text;
    DType dtype;
  };
  constexpr Case kCases[] = {
      {"float", DType::fp32},
      {"Float", DType::fp32},
      {"torch.float32", DType::fp32},
      {"ncclFloat32", DType::fp32},
      {"c10::BFloat16", DType::bf16},
      {"BFloat16", DType::bf16},
      {"bf16", DType::bf16},
      {"c10::Half", DType::fp16},
      {"Half", DType::fp16},
      {"ncclFloat16", DType::fp16},
      {"double", DType::fp64},
      {"long", DType::int64},
      {"long int", DType::int64},
      {"Long", DType::int64},
      {"int64_t", DType::int64},
      {"int", DType::int32},
      {"Int", DType::int32},
      {"uint32_t", DType::int32},
      {"short", DType::int16},
      {"int8_t", DType::int8},
      {"Byte", DType::int8},
      {"unsigned char", DType::int8},
      {"Char", DType::int8},
      {"bool", DType::boolean},
      {"Bool", DType::boolean},
      {"tf32", DType::tf32},
      {"Float8_e4m3fn", DType::fp8},
      {"torch.float8_e5m2", DType::fp8},
      {"fp8", DType::fp8},
      {"fp8_block", DType::fp8_block},
      {"nvfp4", DType::fp4},
      {"fp4", DType::fp4},
      {"torch.float4_e2m1fn_x2", DType::fp4},
      {"", DType::unknown},
      {"Tensor(float)", DType::unknown},
      {"complex64", DType::unknown},
      {"nullptr (uninitialized)", DType::unknown},
  };
  for (const Case& c : kCases) EXPECT_EQ(to_string(parse_dtype(c.text)), to_string(c.dtype)) << c.text;
}

TEST(DType, ReadsItsOwnNamesAndHasSizes) {
  for (int i = 1; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype) << to_string(dtype);
    EXPECT_GT(element_size(dtype), Bytes{0});
  }
  EXPECT_EQ(element_size(DType::bf16), Bytes{2});
  EXPECT_EQ(element_size(DType::int64), Bytes{8});
  EXPECT_EQ(element_size(DType::unknown), Bytes{0});
}

}  // namespace
}  // namespace stepcast::dtype_test
