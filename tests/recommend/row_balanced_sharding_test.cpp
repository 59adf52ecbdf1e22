#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"

namespace stepcast::row_balanced_sharding_test {
namespace {

TEST(RowBalancedSharding, EvensOutTablesOfVeryDifferentPooling) {
  const Dlrm model = *dlrm_preset("dlrm-dcnv2-mlperf");
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  for (const std::int64_t n : {8, 32}) {
    Result<DlrmStepModel> steps = DlrmStepModel::create(
        model, {.stack = DlrmStack::hugectr, .global_batch = 65536, .dtype = DType::fp16}, *platform, n);
    ASSERT_TRUE(steps.ok());
    const SharderChoice found = row_balanced_sharding(*steps);
    EXPECT_TRUE(found.fits);
    EXPECT_TRUE(check(model, found.plan, n).ok());
    const Result<DlrmStep> step = steps->predict(found.plan);
    ASSERT_TRUE(step.ok());
    // One table has 100 of 214 lookups: as a whole on one rank the busiest had 3.7 and 15 times the mean.
    EXPECT_LT(step->lookup_imbalance, 1.6) << n;
    EXPECT_EQ(found.plan, row_balanced_sharding(*steps).plan);
  }
}

}  // namespace
}  // namespace stepcast::row_balanced_sharding_test
