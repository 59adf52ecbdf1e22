// The kernel records that ship: readable, sane between and beyond the sizes that were measured.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::test::shipped_records_test {
namespace {

using ::testing::IsEmpty;

class ShippedRecords : public ::testing::TestWithParam<const char*> {
 protected:
  static KernelModel model() {
    const auto platform = load_platform(GetParam());
    EXPECT_TRUE(platform.ok()) << platform.error().message();
    return KernelModel{*platform};
  }

  std::int64_t extent(double low, double high) {
    const double share = static_cast<double>(random_() >> 11U) * 0x1p-53;
    return static_cast<std::int64_t>(std::exp2(low + (high - low) * share));
  }
  std::mt19937_64 random_{11};
};

TEST_P(ShippedRecords, CanAllBeRead) {
  const auto platform = load_platform(GetParam());
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  EXPECT_THAT(KernelModel{*platform}.skipped(), IsEmpty());
  const auto fitted = std::count_if(platform->models.begin(), platform->models.end(),
                                    [](const ModelRecord& r) { return r.kind == "kernel_time"; });
  EXPECT_GT(fitted, 0);
}

// Twice the work takes longer, but for what the noise of the measurements does to neighbours. (Extents are
// multiples of 8: half of an odd one can be slower, for its loads are not aligned.)
TEST_P(ShippedRecords, MoreWorkIsNotFaster) {
  const KernelModel kernels = model();
  std::vector<Operation> small, large;
  for (int i = 0; i < 6000; ++i) {
    const DType dtype = i % 2 == 0 ? DType::fp16 : DType::bf16;
    GemmShape product{.m = 8 * extent(2, 12), .n = 8 * extent(4, 11), .k = 8 * extent(4, 11)};
    small.push_back(gemm(product, dtype));
    (i % 3 == 0 ? product.m : i % 3 == 1 ? product.n : product.k) *= 2;
    large.push_back(gemm(product, dtype));

    const std::int64_t length = extent(7, 13), heads = extent(2, 6);
    AttentionShape shape{.batch = extent(0, 5),
                         .query_length = length,
                         .key_length = length,
                         .heads = heads,
                         .key_value_heads = heads,
                         .head_dim = i % 2 == 0 ? 64 : 128};
    small.push_back(attention(shape, dtype));
    shape.batch *= 2;
    large.push_back(attention(shape, dtype));

    NormShape rows{.rows = extent(6, 16), .cols = 8 * extent(5, 11)};
    small.push_back(norm(rows, dtype));
    rows.rows *= 2;
    large.push_back(norm(rows, dtype));
  }
  std::vector<Estimate> before(small.size()), after(large.size());
  kernels.estimate(small, before);
  kernels.estimate(large, after);
  std::vector<double> ratio;
  for (std::size_t i = 0; i < small.size(); ++i) {
    ratio.push_back(after[i].time / before[i].time);
    ASSERT_GT(ratio.back(), 0.7) << describe(small[i]);
  }
  std::sort(ratio.begin(), ratio.end());
  EXPECT_GT(ratio[ratio.size() / 100], 0.95);
}

TEST_P(ShippedRecords, StayAboveTheBoundFarOutside) {
  const KernelModel kernels = model();
  for (int i = 0; i < 20'000; ++i) {
    const Direction direction = i % 2 == 0 ? Direction::forward : Direction::backward;
    const Operation product =
        gemm({.m = extent(0, 20), .n = extent(0, 20), .k = extent(0, 20)}, DType::bf16, direction);
    const Operation rows = norm({.rows = extent(0, 24), .cols = extent(0, 20)}, DType::fp16, direction);
    for (const Operation& operation : {product, rows}) {
      const Estimate e = kernels.estimate(operation);
      ASSERT_TRUE(std::isfinite(e.time.value()) && std::isfinite(e.p90.value())) << describe(operation);
      ASSERT_GE(e.time, kernels.analytic().lower_bound(operation)) << describe(operation);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, ShippedRecords,
                         ::testing::Values("a100-sxm4-80gb", "h100-sxm5-80gb", "gh200-96gb", "a100-pcie-40gb",
                                           "a100-pcie-80gb", "v100-pcie-32gb", "p100-pcie-16gb", "p4", "t4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stepcast::test::shipped_records_test
