// The kernel models that ship with the platforms of measured devices.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/kernel_measurements.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace stepcast::shipped_kernels_test {
namespace {

TEST(ShippedKernels, EveryFileIsReadByTheDeviceThatExtendsIt) {
  std::size_t n = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_dir() / "platforms" / "kernels")) {
    if (entry.path().extension() != ".json") continue;
    std::string name = entry.path().stem().string();
    if (name.ends_with("-pytorch")) name.resize(name.size() - 8);  // our own rows, for the device beside them
    if (name == "generic" || name == "experts" || name == "tpu") continue;  // of no device
    SCOPED_TRACE(name);
    // A few hundred kilobytes; twice a thousand is the measure of something gone wrong.
    EXPECT_LT(entry.file_size(), 2'000'000U);
    const auto platform = load_platform(name);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const KernelModel model{*platform};
    EXPECT_TRUE(model.skipped().empty()) << model.skipped().front();
    std::size_t n_records = 0;
    for (const ModelRecord& record : platform->models) {
      if (!record.kind.starts_with("kernel") || record.device != platform->device.name) continue;
      ++n_records;
      EXPECT_FALSE(record.provenance.document.empty()) << record.name;
      EXPECT_GT(record.provenance.n_rows, 0U) << record.name;
      EXPECT_FALSE(record.provenance.row_hashes.empty()) << record.name;
    }
    EXPECT_GT(n_records, 0U);
    ++n;
  }
  EXPECT_GE(n, 9U);
}

// Devices with models of their own have them for what those do not cover.
TEST(ShippedKernels, EveryDeviceHasTheGenericModels) {
  for (const char* name : {"l4", "l40s", "a30", "b200-sxm-180gb", "mi100", "mi300x", "h200-sxm-141gb",
                           "v100-sxm2-16gb", "p4", "a100-sxm4-80gb", "dgx-h100", "rtx-pro-6000"}) {
    SCOPED_TRACE(name);
    const auto platform = load_platform(name);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const ModelRecord* record = platform->find_model("generic/gemm/half/forward");
    ASSERT_NE(record, nullptr);
    EXPECT_FALSE(record->provenance.document.empty());
    const KernelModel model{*platform};
    EXPECT_TRUE(model.skipped().empty()) << model.skipped().front();
    const Operation large = gemm({.m = 16384, .n = 8192, .k = 8192}, DType::fp16);
    const ExplainedEstimate e = model.explain(large);
    EXPECT_FALSE(e.record.empty());
    // No product of that size runs above its peak or below a sixth of it (L4 at its power limit).
    const double reached = model.analytic().lower_bound(large) / e.estimate.time;
    EXPECT_GT(reached, 0.16);
    EXPECT_LE(reached, 1);
  }
}

// Large products run near the peak, not above it, in the layouts of forward and of both gradients: ten small
// rows in one layout are no reason to believe otherwise.
TEST(ShippedKernels, GradientsOfLargeProductsStayBelowThePeak) {
  for (const char* name : {"p4", "p100-pcie-16gb", "t4", "v100-pcie-32gb", "a100-pcie-40gb", "a100-pcie-80gb",
                           "a100-sxm4-80gb", "h100-sxm5-80gb", "gh200-96gb"}) {
    SCOPED_TRACE(name);
    const auto platform = load_platform(name);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const KernelModel model{*platform};
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
      const auto peak = platform->device.peak(dtype);
      if (!peak || platform->find_model(kernel_record_name("gemm", dtype, Direction::forward)) == nullptr)
        continue;
      for (const GemmLayout layout : {GemmLayout::tn, GemmLayout::nn, GemmLayout::nt}) {
        for (const std::int64_t m : {1024, 4096, 16384}) {
          for (const std::int64_t n : {1024, 3072, 12288}) {
            for (const std::int64_t k : {768, 4096, 16384}) {
              const Operation product = gemm(
                  {.m = m, .n = n, .k = k, .accumulates = layout == GemmLayout::nt, .layout = layout}, dtype);
              const double rate =
                  work_of(product).flops.value() / model.estimate(product).time.value() * 1e6 / peak->value();
              EXPECT_LE(rate, 0.95) << describe(product);
            }
          }
        }
      }
    }
  }
}

TEST(ShippedKernels, NodesOfAMeasuredDeviceHaveItsModels) {
  for (const char* name : {"dgx-a100", "dgx-h100", "gh200-1gpu", "hpc-4xa100"}) {
    const auto platform = load_platform(name);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const KernelModel model{*platform};
    const Operation product =
        gemm({.m = 4096, .n = 4096, .k = 4096},
             platform->find_model("gemm/bf16/forward") != nullptr ? DType::bf16 : DType::fp16);
    EXPECT_EQ(model.estimate(product).source, EstimateSource::fitted) << name;
  }
}

// They were fitted on these rows, so this is no score: it says that what ships is what the data say.
TEST(ShippedKernels, FollowTheRowsTheyWereFittedOn) {
  SKIP_WITHOUT_DATA();
  const auto measured =
      read_kernel_measurements(std::vector<std::filesystem::path>{*test::measured_data() / "kernels"});
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  struct Sum {
    double ape = 0;
    std::size_t n = 0, unknown = 0;
  };
  std::map<std::string, Sum> sums;
  std::map<std::string, Platform> platforms;
  std::map<std::string, KernelModel> models;
  for (const KernelMeasurement& m : measured->rows) {
    if (!models.contains(m.gpu)) {
      auto platform = load_device(m.gpu);
      ASSERT_TRUE(platform.ok()) << platform.error().message();
      models.emplace(m.gpu, KernelModel{*platform});
      platforms.emplace(m.gpu, std::move(platform).value());
    }
    const KernelModel& model = models.at(m.gpu);
    if (is_impossible(m, model.analytic())) continue;
    Sum& sum = sums[m.gpu];
    sum.ape += std::abs(model.estimate(m.operation).time / m.time - 1);
    ++sum.n;
    bool known = false;
    for (const ModelRecord& record : platforms.at(m.gpu).models) known |= record.provenance.used_row(m.hash);
    sum.unknown += known ? 0 : 1;
  }
  EXPECT_EQ(sums.size(), 11U);
  for (const auto& [gpu, sum] : sums) {
    EXPECT_LT(100 * sum.ape / static_cast<double>(sum.n), 20) << gpu;  // convolutions: 14
    // bf16 GEMMs of the H100 were fitted to the newer tables by type, which are not read here.
    if (gpu != "h100_sxm") {
      EXPECT_EQ(sum.unknown, 0U) << gpu;
    }
  }
}

}  // namespace
}  // namespace stepcast::shipped_kernels_test
