// Models for GPUs that nobody measured, on made-up GPUs whose kernels obey a known law.
#include "calibrate/generic_fit.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/cost/generic_kernel.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::generic_fit_test {
namespace {

Device shipped(const std::string& name) {
  auto platform = load_platform(name);
  EXPECT_TRUE(platform) << name;
  return platform ? platform->device : Device{};
}

// Streaming kernels that take floor_us and `factor` times the analytic time.
std::vector<KernelMeasurement> made_rows(const Device& device, double factor, double floor_us, int n) {
  std::mt19937_64 random{11};
  std::uniform_real_distribution<double> log_elements{std::log(1e4), std::log(1e8)};
  std::normal_distribution<double> noise{0, 0.01};
  const AnalyticModel model{device};
  std::vector<KernelMeasurement> rows;
  for (int i = 0; i < n; ++i) {
    KernelMeasurement m;
    m.operation = elementwise({.function = i % 2 == 0 ? ElementwiseFunction::add : ElementwiseFunction::relu,
                               .elements = static_cast<std::int64_t>(std::exp(log_elements(random))),
                               .reads = i % 2 == 0 ? 2.F : 1.F},
                              DType::fp32);
    m.gpu = device.name;
    const double running = model.time(m.operation).value() - model.figures().kernel_floor_us;
    m.time = Microseconds{(floor_us + factor * running) * std::exp(noise(random))};
    rows.push_back(m);
  }
  return rows;
}

MeasuredDevice measured(const Device& device, const std::vector<KernelMeasurement>& rows) {
  MeasuredDevice out{device, {}};
  for (const KernelMeasurement& m : rows) out.rows.push_back(&m);
  return out;
}

double mean_error(const KernelModel& model, const std::vector<KernelMeasurement>& rows, double* covered) {
  double sum = 0, inside = 0;
  for (const KernelMeasurement& m : rows) {
    const Estimate e = model.estimate(m.operation);
    sum += std::abs(e.time / m.time - 1);
    inside += e.p10 <= m.time && m.time <= e.p90 ? 1 : 0;
    EXPECT_GE(e.time, model.analytic().lower_bound(m.operation));
  }
  if (covered != nullptr) *covered = inside / static_cast<double>(rows.size());
  return sum / static_cast<double>(rows.size());
}

class GenericFitTest : public ::testing::Test {
 protected:
  // HBM devices take 1.10 times as long, the others 1.40 times.
  const Device v100 = shipped("v100-pcie-32gb"), a100 = shipped("a100-pcie-40gb"), t4 = shipped("t4"),
               p4 = shipped("p4"), h100 = shipped("h100-pcie-80gb"), l4 = shipped("l4");
  const std::vector<KernelMeasurement> on_v100 = made_rows(v100, 1.10, 15, 400),
                                       on_a100 = made_rows(a100, 1.10, 15, 400),
                                       on_t4 = made_rows(t4, 1.40, 15, 400),
                                       on_p4 = made_rows(p4, 1.40, 15, 400);
  const std::vector<MeasuredDevice> all{measured(v100, on_v100), measured(a100, on_a100), measured(t4, on_t4),
                                        measured(p4, on_p4)};
};

TEST_F(GenericFitTest, UnseenDevicesBehaveLikeTheirKind) {
  const auto fit = fit_generic_models(all);
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->records.size(), 1U);
  EXPECT_EQ(fit->records[0].name, "generic/streaming/fp32/forward");
  EXPECT_EQ(fit->notes[0].n_rows, 1600U);
  EXPECT_TRUE(has_generic_model(fit->records, on_t4[0].operation));
  const double on_h100 = mean_error(KernelModel{h100, fit->records}, made_rows(h100, 1.10, 15, 200), nullptr);
  const double on_l4 = mean_error(KernelModel{l4, fit->records}, made_rows(l4, 1.40, 15, 200), nullptr);
  EXPECT_LT(on_h100, 0.08);
  EXPECT_LT(on_l4, 0.12);
  // The analytic model alone misses the floor and the factor.
  EXPECT_GT(mean_error(KernelModel{l4, {}}, made_rows(l4, 1.40, 15, 200), nullptr), 0.25);
}

TEST_F(GenericFitTest, FewPointsFindTheDevice) {
  const auto fit = fit_generic_models(all);
  ASSERT_TRUE(fit);
  // A device unlike its kind, behind a slower host.
  const std::vector<KernelMeasurement> rows = made_rows(h100, 1.6, 22, 300);
  std::vector<const KernelMeasurement*> few;
  for (std::size_t i = 0; i < 20; ++i) few.push_back(&rows[i]);
  const auto adapted = adapt_generic_models(fit->records, few, h100);
  ASSERT_TRUE(adapted);
  ASSERT_EQ(adapted->size(), 1U);
  EXPECT_EQ((*adapted)[0].device, h100.name);
  const double before = mean_error(KernelModel{h100, fit->records}, rows, nullptr);
  double covered = 0;
  const double after = mean_error(KernelModel{h100, *adapted}, rows, &covered);
  EXPECT_GT(before, 0.25);
  EXPECT_LT(after, 0.05);
  EXPECT_GT(covered, 0.5);
  EXPECT_EQ((KernelModel{h100, *adapted}.estimate(rows[0].operation).source), EstimateSource::fitted);
  EXPECT_EQ((KernelModel{h100, fit->records}.estimate(rows[0].operation).source), EstimateSource::analytic);
}

TEST_F(GenericFitTest, NoPointsChangeNothing) {
  const auto fit = fit_generic_models(all);
  ASSERT_TRUE(fit);
  const auto adapted = adapt_generic_models(fit->records, {}, h100);
  ASSERT_TRUE(adapted);
  EXPECT_EQ(*adapted, fit->records);
}

TEST_F(GenericFitTest, IsTheSameEveryTime) {
  const auto a = fit_generic_models(all), b = fit_generic_models(all);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->records, b->records);
}

// Rows that no device can have measured teach nothing.
TEST_F(GenericFitTest, LeavesImpossibleRowsOut) {
  std::vector<KernelMeasurement> broken = on_v100;
  for (std::size_t i = 0; i < 200; ++i) broken[i].time = Microseconds{1e-3};
  std::vector<MeasuredDevice> devices = all;
  devices[0] = measured(v100, broken);
  const auto fit = fit_generic_models(devices);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->notes[0].n_rows, 1400U);
}

TEST(GenericKernel, LikenessKnowsGenerationAndMemory) {
  const DevicePlace v100 = place_of(shipped("v100-pcie-32gb")), a100 = place_of(shipped("a100-sxm4-80gb")),
                    h100 = place_of(shipped("h100-sxm5-80gb")), t4 = place_of(shipped("t4")),
                    l4 = place_of(shipped("l4"));
  EXPECT_EQ(likeness(a100, a100), 1);
  EXPECT_GT(likeness(h100, a100), likeness(h100, v100));
  EXPECT_GT(likeness(h100, a100), likeness(h100, t4));
  EXPECT_GT(likeness(l4, t4), likeness(l4, v100));
}

TEST(GenericKernel, AveragesByKriging) {
  GenericKernel kernel;
  kernel.family = "softmax";
  kernel.dtype = "fp32";
  const DevicePlace here{1, 1, 0}, there{-9, 1, 0};
  kernel.devices = {{"here", here, {1.0, 0.4}, 10}, {"there", there, {3.0, 0.0}, 10}};
  // Both far apart: K = diag(1.4, 1.4). Mean of b_0, with the analytic model (0) counting as one device:
  // (0.4 + 0.0) / 1.4 / (2 / 1.4 + 1) = 0.11765; at `here` (0.4 - 0.11765) / 1.4 is added.
  EXPECT_NEAR(kernel.parameters_at(here)[1], 0.11765 + 0.28235 / 1.4, 1e-4);
  // Without the device itself only the mean of the other one and the analytic model is left.
  EXPECT_NEAR(kernel.parameters_at(here, 0)[1], 0, 1e-9);
}

TEST(GenericKernel, ReadsWhatItWrites) {
  GenericKernel kernel;
  kernel.family = "softmax";
  kernel.dtype = "fp32";
  kernel.direction = Direction::backward;
  kernel.devices = {{"T4", place_of(shipped("t4")), {1.0, 0.4}, 10}};
  kernel.unseen = {-0.3, 0.4};
  const auto again = GenericKernel::read(kernel.write());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->write(), kernel.write());
}

TEST(GenericKernel, RefusesWhatItCannotRead) {
  GenericKernel kernel;
  kernel.family = "softmax";
  kernel.dtype = "fp32";
  kernel.devices = {{"T4", {}, {1.0, 0.4}, 10}};
  const auto message_with = [&](std::string_view key, JsonValue value) {
    JsonValue changed = JsonValue::object();
    const JsonValue written = kernel.write();
    for (const auto& member : written.members())
      changed.add(member.key, member.key == key ? value : member.value);
    const auto read = GenericKernel::read(changed);
    return read ? std::string{} : read.error().message();
  };
  EXPECT_NE(message_with("version", JsonValue{9.0}).find("version 9 (this program reads 1)"),
            std::string::npos);
  EXPECT_NE(message_with("analytic_revision", JsonValue{0.0}).find("revision"), std::string::npos);
  EXPECT_NE(message_with("direction", JsonValue{"sideways"}).find("`sideways`"), std::string::npos);
  EXPECT_NE(message_with("devices", JsonValue::array()).find("`devices`"), std::string::npos);
  EXPECT_NE(message_with("unseen", JsonValue{1.0}).find("log_p10"), std::string::npos);
  // And a model says which record it left out.
  ModelRecord record;
  record.name = "generic/x";
  record.kind = kGenericRecordKind;
  const KernelModel model{Device{}, std::vector<ModelRecord>{record}};
  ASSERT_EQ(model.skipped().size(), 1U);
  EXPECT_NE(model.skipped()[0].find("generic/x"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::generic_fit_test
