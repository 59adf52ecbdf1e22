#include "stepcast/cost/learned_lookup.h"

#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::learned_lookup_test {
namespace {

using ::testing::HasSubstr;

Device a100() {
  Result<Platform> platform = load_platform("hpc-4xa100-40gb");
  return platform.ok() ? platform->device : Device{};
}

// `value` near the tables of one sample, and next to nothing of it for those of many.
GaussianProcess near_one_sample(float value) {
  GaussianProcess::Parameters p{
      .scale = std::vector<float>(kLookupFeatures, 0.F), .points = {0}, .weights = {value}};
  p.scale.front() = 1;
  return *GaussianProcess::make(p, kLookupFeatures);
}

LearnedLookup::Parameters forward_of(GaussianProcess missed, GaussianProcess gather, double sharpness) {
  LearnedLookup::Parameters p{.start_us = 7, .sharpness = sharpness};
  p.least.fill(-100);
  p.most.fill(100);
  p.corrections = {std::move(missed), std::move(gather)};
  return p;
}

TEST(LearnedLookup, AddsUpWorksOfTablesAndTakesTheLargerSum) {
  // Twice the misses, and gathers as they are: ln 2.
  const LearnedLookup model =
      *LearnedLookup::make(forward_of(near_one_sample(std::log(2.0F)), near_one_sample(0), 2));
  LookupCost a{.forward_us = 1, .missed_us = 3, .gather_us = 8},
      b{.forward_us = 1, .missed_us = 0, .gather_us = 0};
  model.correct({}, a);
  EXPECT_NEAR(a.missed_us, 6, 1e-5);
  EXPECT_NEAR(a.forward_us, 10, 1e-5);  // sqrt(6^2 + 8^2)
  b.missed_us = 3;
  model.correct({}, b);
  a += b;
  // sqrt(12^2 + 8^2) = 14.4222
  EXPECT_NEAR(model.kernel_us(a), 7 + 14.4222, 1e-3);
  EXPECT_EQ(model.kernel_us({}), 0);
}

TEST(LearnedLookup, HoldsFeaturesAtTheEdgeOfWhatWasSeen) {
  LearnedLookup::Parameters p = forward_of(near_one_sample(1), near_one_sample(0), 1);
  p.most.fill(2);  // ln of the samples
  const LearnedLookup model = *LearnedLookup::make(p);
  LookupCost cost{.missed_us = 10};
  model.correct(lookup_features(4096, 1000, 1, 64, {}), cost);  // ln 4096 = 8.3
  EXPECT_NEAR(cost.missed_us, 10 * std::exp(1 / 25.0), 1e-4);   // of a distance of 2
}

TEST(LearnedLookup, ReadsWhatItWrote) {
  const LearnedLookup model =
      *LearnedLookup::make(forward_of(near_one_sample(0.5F), near_one_sample(-0.25F), 3));
  const Result<LearnedLookup> again = LearnedLookup::read(model.write());
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), model.write());
}

TEST(LearnedLookup, RefusesRecordsThatItCannotRead) {
  const JsonValue good = LearnedLookup::make(forward_of(near_one_sample(0), near_one_sample(0), 3))->write();
  const auto with = [&](std::string_view key, const JsonValue& value) {
    JsonValue out = JsonValue::object();
    for (const JsonValue::Member& member : good.members())
      out.add(member.key, member.key == key ? value : member.value);
    const Result<LearnedLookup> read = LearnedLookup::read(out);
    return read.ok() ? std::string{} : read.error().message();
  };
  EXPECT_THAT(with("revision", JsonValue{99.0}), HasSubstr("calibrate kernels` again"));
  EXPECT_THAT(with("dtype", JsonValue{"fp99"}), HasSubstr("dtype"));
  EXPECT_THAT(with("direction", JsonValue{"sideways"}), HasSubstr("direction"));
  EXPECT_THAT(with("direction", JsonValue{"backward"}), HasSubstr("2 corrections"));
  EXPECT_THAT(with("sharpness", JsonValue{0.5}), HasSubstr("sharpness"));
  EXPECT_THAT(with("start_us", JsonValue{-1.0}), HasSubstr("start_us"));
  EXPECT_THAT(with("least", JsonValue::array()), HasSubstr("least"));
  EXPECT_THAT(with("corrections", JsonValue{1.0}), HasSubstr("corrections"));
}

// The model of lookups asks it for what it was learned for, and nothing else.
TEST(LearnedLookup, AnswersForItsTypeInTheMemoryOfTheGpu) {
  const Device device = a100();
  auto learned = std::make_shared<LearnedLookups>();
  LearnedLookup::Parameters twice =
      forward_of(near_one_sample(std::log(2.0F)), near_one_sample(std::log(2.0F)), 1);
  twice.most.fill(0);  // so that all tables are taken for those of one sample
  learned->forward = *LearnedLookup::make(twice);
  const LookupModel plain{device}, model{device, {}, learned};
  TableLookup table{.rows = 1e6, .dim = 64, .bags = 4096, .pooling = 10};
  const LookupCost before = plain.cost(table), after = model.cost(table);
  EXPECT_NEAR(after.forward_us, 2 * (before.missed_us + before.gather_us), 1e-3 * after.forward_us);
  EXPECT_DOUBLE_EQ(after.backward_us, before.backward_us);
  EXPECT_DOUBLE_EQ(model.forward_us(after), 7 + after.forward_us);
  EXPECT_DOUBLE_EQ(model.backward_us(after), plain.backward_us(before));
  table.placement = TablePlacement::uvm;
  EXPECT_DOUBLE_EQ(model.cost(table).forward_us, plain.cost(table).forward_us);
  table.placement = TablePlacement::hbm;
  table.weight_bytes = 2;
  EXPECT_DOUBLE_EQ(model.cost(table).forward_us, plain.cost(table).forward_us);
}

TEST(LearnedLookups, AreThoseOfTheDeviceAndType) {
  const Device device = a100();
  const LearnedLookup model = *LearnedLookup::make(forward_of(near_one_sample(0), near_one_sample(0), 3));
  ModelRecord record{.name = LearnedLookup::record_name(DType::fp32, Direction::forward),
                     .kind = std::string{LearnedLookup::kRecordKind},
                     .device = device.name,
                     .parameters = model.write()};
  EXPECT_TRUE(learned_lookups({&record, 1}, device, DType::fp32)->forward.has_value());
  EXPECT_TRUE(learned_lookups({&record, 1}, device, DType::fp16)->empty());
  record.device = "another";
  EXPECT_TRUE(learned_lookups({&record, 1}, device, DType::fp32)->empty());
  record.device.clear();
  record.parameters = JsonValue::object();
  const Result<LearnedLookups> broken = learned_lookups({&record, 1}, device, DType::fp32);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message(), HasSubstr("embedding_lookup_tables/fp32/forward"));
}

}  // namespace
}  // namespace stepcast::learned_lookup_test
