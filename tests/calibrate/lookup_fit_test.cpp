#include "calibrate/lookup_fit.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::lookup_fit_test {
namespace {

using ::testing::HasSubstr;

Device a100() {
  Result<Platform> platform = load_platform("hpc-4xa100-40gb");
  return platform.ok() ? platform->device : Device{};
}

// Tables in all combinations, two and three to a kernel, whose backward takes 30 us and 0.9 of what the analytic model says,
// 1.6 times that where rows have 32 columns.
std::vector<LookupMeasurement> backward_kernels(const Device& device, std::size_t n, std::size_t first) {
  const LookupModel analytic{device};
  std::vector<LookupMeasurement> kernels;
  for (std::size_t k = first; k < first + n; ++k) {
    LookupMeasurement m{
        .gpu = device.name, .direction = Direction::backward, .bags = 512.0 * std::exp2(k % 4)};
    double us = 30;
    for (std::size_t t = 0; t < 2 + k % 2; ++t) {
      const AccessPattern zipf = AccessPattern::zipf(1e4 * std::exp2((k * 7 + t * 3) % 8),
                                                     0.2 + 0.1 * static_cast<double>((k + t) % 9));
      LookupMeasurement::Table table{
          zipf.rows(), 32 * std::exp2((k / 4 + t) % 3), 1.0 + static_cast<double>((k * 5 + t * 11) % 30), {}};
      table.reuse = zipf.reuse_of_rows(m.bags * table.pooling);
      const AccessPattern pattern =
          AccessPattern::from_reuse(table.reuse, m.bags * table.pooling, table.rows);
      us += (table.dim <= 32 ? 1.6 : 0.9) * analytic
                                                .cost({.rows = table.rows,
                                                       .dim = table.dim,
                                                       .bags = m.bags,
                                                       .pooling = table.pooling,
                                                       .one_to_one = table.pooling == 1,
                                                       .pattern = &pattern})
                                                .backward_us;
      m.tables.push_back(table);
    }
    m.time_us = us;
    kernels.push_back(m);
  }
  return kernels;
}

TEST(LookupFit, LearnsWhatTheAnalyticModelDoesNotKnow) {
  const Device device = a100();
  const std::vector<LookupMeasurement> seen = backward_kernels(device, 160, 0);
  const Result<LearnedLookup> model = train_lookup(seen, device);
  ASSERT_TRUE(model.ok()) << model.error().message();
  double learned = 0, analytic = 0;
  const std::vector<LookupMeasurement> unseen = backward_kernels(device, 40, 1000);
  for (const LookupMeasurement& m : unseen) {
    const LookupTimes us = lookup_times(*model, m, device);
    learned += std::abs(us.learned_us / m.time_us - 1) / 40;
    analytic += std::abs(us.analytic_us / m.time_us - 1) / 40;
  }
  EXPECT_LT(learned, 0.05);
  EXPECT_GT(analytic, 2 * learned);
}

TEST(LookupFit, IsTheSameForTheSameSeed) {
  const Device device = a100();
  const std::vector<LookupMeasurement> seen = backward_kernels(device, 40, 0);
  const Result<KernelFit> a = fit_lookup_models(seen, device);
  const Result<KernelFit> b = fit_lookup_models(seen, device);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->records.size(), 1U);
  EXPECT_EQ(a->records[0].name, "embedding_lookup_tables/fp32/backward");
  EXPECT_EQ(a->records[0].parameters, b->records[0].parameters);
  EXPECT_EQ(a->records[0].provenance.n_rows, 40U);
  EXPECT_TRUE(LearnedLookup::read(a->records[0].parameters).ok());
}

TEST(LookupFit, RefusesTooFewKernels) {
  const Device device = a100();
  const Result<KernelFit> fit = fit_lookup_models(backward_kernels(device, 5, 0), device);
  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.error().message(), HasSubstr("at least 30"));
}

}  // namespace
}  // namespace stepcast::lookup_fit_test
