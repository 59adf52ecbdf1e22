#include "stepcast/cost/kernel_model.h"

#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/step_factors.h"

namespace stepcast::test::kernel_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Device device() {
  Device d;
  d.name = "Test GPU";
  d.vendor = "NVIDIA";
  d.architecture = "ampere";
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    d.matrix_peak[static_cast<std::size_t>(dtype)] = FlopsPerSecond{312e12};
    d.vector_peak[static_cast<std::size_t>(dtype)] = FlopsPerSecond{39e12};
  }
  d.matrix_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{19.5e12};
  d.vector_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{19.5e12};
  d.memory_bandwidth = BytesPerSecond{2.0e12};
  d.memory_size = Bytes{80e9};
  d.sm_count = 108;
  d.l2_size = Bytes{40e6};
  d.kernel_floor = Microseconds{2};
  return d;
}

// A record that is the reference times `factor`, everywhere.
FittedKernel plain_kernel(const Operation& example, double factor) {
  FittedKernel kernel;
  kernel.family = family_of(example);
  kernel.dtype = example.dtype;
  kernel.direction = example.direction;
  kernel.features = kernel_feature_set_of(example);
  kernel.reference = {.peak_TFLOPs = 312, .bandwidth_GBps = 2000, .sm_count = 108};
  kernel.log_offset = std::log(factor);
  const std::size_t n = kernel_features_of(kernel.features).size();
  kernel.low.assign(n, -50);
  kernel.high.assign(n, 50);
  kernel.typical.assign(n, 0);
  kernel.band.log_time = {0};
  kernel.band.low = {-0.1};
  kernel.band.high = {0.1};
  return kernel;
}

ModelRecord record_of(const FittedKernel& kernel) {
  ModelRecord record;
  record.name = kernel_record_name(kernel.family, kernel.dtype, kernel.direction);
  record.kind = kKernelRecordKind;
  record.parameters = kernel.write();
  return record;
}

const Operation kProduct = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::bf16);

TEST(KernelModel, WithoutRecordsIsTheAnalyticModel) {
  const KernelModel model{device(), {}};
  EXPECT_DOUBLE_EQ(model.estimate(kProduct).time.value(), model.analytic().estimate(kProduct).time.value());
  EXPECT_EQ(model.explain(kProduct).record, "");
}

TEST(KernelModel, AnswersFromTheRecordOfTheOperation) {
  const FittedKernel kernel = plain_kernel(kProduct, 1.5);
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  ASSERT_THAT(model.skipped(), IsEmpty());
  const ExplainedEstimate answer = model.explain(kProduct);
  EXPECT_EQ(answer.record, "gemm/bf16/forward");
  EXPECT_EQ(answer.estimate.source, EstimateSource::fitted);
  EXPECT_FALSE(answer.extrapolated);
  const double expected = 1.5 * reference_time_us(kProduct, kernel.reference);
  EXPECT_NEAR(answer.estimate.time.value(), expected, 1e-6 * expected);
  EXPECT_NEAR(answer.estimate.p90.value(), expected * std::exp(0.1), 1e-6 * expected);
}

TEST(KernelModel, SaysWhenItLeavesTheMeasuredSizesAndIsLessSure) {
  FittedKernel kernel = plain_kernel(kProduct, 1.5);
  kernel.high.front() = 8;  // log_m: up to 2980 rows
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  const ExplainedEstimate inside = model.explain(gemm({.m = 2000, .n = 4096, .k = 4096}, DType::bf16));
  const ExplainedEstimate outside = model.explain(kProduct);
  EXPECT_FALSE(inside.extrapolated);
  EXPECT_TRUE(outside.extrapolated);
  const auto width = [](const Estimate& e) { return (e.p90 - e.p10) / e.time; };
  EXPECT_GT(width(outside.estimate), width(inside.estimate));
}

TEST(KernelModel, FarBelowTheMeasuredWorkTheFiguresOfTheDeviceAnswer) {
  const Operation measured = norm({.rows = 65536, .cols = 4096}, DType::bf16);
  FittedKernel kernel = plain_kernel(measured, 1.0);
  kernel.reference.floor_us = 900;                               // launches, and gaps between them
  kernel.low[3] = static_cast<float>(std::log(65536.0 * 4096));  // log_elements
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  const auto time = [&](std::int64_t rows) {
    return model.estimate(norm({.rows = rows, .cols = 4096}, DType::bf16)).time.value();
  };
  EXPECT_GT(time(65536), 900);
  EXPECT_GT(time(40000), 900);  // little less: as measured
  const Operation small = norm({.rows = 64, .cols = 4096}, DType::bf16);
  EXPECT_DOUBLE_EQ(time(64), model.analytic().time(small).value());
  double last = time(64);
  for (std::int64_t rows = 64; rows <= 65536; rows += 64) {  // without a step in between
    EXPECT_GE(time(rows), last);
    EXPECT_LT(time(rows), 1.5 * last + 5);
    last = time(rows);
  }
}

TEST(KernelModel, AGapOfTheHostIsNoTimeOfWhatWasNotMeasured) {
  const auto step = [](std::int64_t parameters, OptimizerKind kind = OptimizerKind::adam) {
    return Operation{OptimizerShape{.kind = kind, .parameters = parameters}, DType::fp32, Direction::forward};
  };
  FittedKernel kernel = plain_kernel(step(1 << 24), 1.0);
  kernel.reference.floor_us = 3500;
  kernel.low[0] = static_cast<float>(std::log(1 << 24));  // log_parameters
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  const auto time = [&](const Operation& operation) { return model.estimate(operation).time.value(); };
  const Operation smaller = step(1 << 23);
  EXPECT_GT(time(step(1 << 24)), 3500);
  EXPECT_DOUBLE_EQ(time(smaller), model.analytic().time(smaller).value());
  EXPECT_EQ(model.explain(smaller).estimate.source, EstimateSource::analytic);
  EXPECT_GT(model.estimate(smaller).p90.value(), 1.5 * time(smaller));
  // With a floor of launches half of the work is still taken as measured.
  kernel.reference.floor_us = 900;
  const KernelModel launches{device(), std::vector{record_of(kernel)}};
  EXPECT_GT(launches.estimate(smaller).time.value(), 900);
}

TEST(KernelModel, Fp16StandsInForBf16ButWider) {
  const Operation half = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::fp16);
  const KernelModel model{device(), std::vector{record_of(plain_kernel(half, 1.5))}};
  const ExplainedEstimate answer = model.explain(kProduct);
  EXPECT_EQ(answer.record, "gemm/fp16/forward");
  EXPECT_DOUBLE_EQ(answer.estimate.time.value(), model.estimate(half).time.value());
  EXPECT_LT(answer.estimate.p10, model.estimate(half).p10);
  EXPECT_GT(answer.estimate.p90, model.estimate(half).p90);
  // fp32 is another unit.
  EXPECT_EQ(model.explain(gemm({.m = 4096, .n = 4096, .k = 4096}, DType::fp32)).record, "");
}

TEST(KernelModel, GradientsOfProductsComeFromForwardKernels) {
  const KernelModel model{device(), std::vector{record_of(plain_kernel(kProduct, 1.5))}};
  const GemmShape shape{.m = 8192, .n = 1024, .k = 4096};
  const auto time = [&](Direction direction) {
    const ExplainedEstimate answer = model.explain(gemm(shape, DType::bf16, direction));
    EXPECT_EQ(answer.record, "gemm/bf16/forward");
    return answer.estimate.time.value();
  };
  const double transposed = model.estimate(gemm({.m = 8192, .n = 4096, .k = 1024}, DType::bf16)).time.value();
  EXPECT_NEAR(time(Direction::input_gradient), transposed, 1e-9 * transposed);
  EXPECT_NEAR(time(Direction::backward), time(Direction::input_gradient) + time(Direction::weight_gradient),
              1e-6 * transposed);
}

TEST(KernelModel, GradientsOfProductsShareAMeasuredBackward) {
  const Operation backward = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::bf16, Direction::backward);
  const KernelModel model{
      device(), std::vector{record_of(plain_kernel(kProduct, 1.5)), record_of(plain_kernel(backward, 2.5))}};
  const GemmShape shape{.m = 8192, .n = 1024, .k = 4096};
  const auto time = [&](Direction direction) {
    return model.estimate(gemm(shape, DType::bf16, direction)).time.value();
  };
  EXPECT_NEAR(time(Direction::backward), time(Direction::input_gradient) + time(Direction::weight_gradient),
              1e-9 * time(Direction::backward));
}

// What a record saw: rows of one layout over many amounts of work.
MeasuredValues products_in(GemmLayout layout) {
  const std::span<const KernelFeature> names = kernel_features_of(KernelFeatureSet::matrix);
  std::vector<float> rows;
  const std::vector<float> weight(200, 1.0F);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    for (const KernelFeature& feature : names) {
      rows.push_back(feature.name == "layout" ? static_cast<float>(layout)
                     : feature.is_amount      ? static_cast<float>(i) * 0.15F
                                              : 0.0F);
    }
  }
  return MeasuredValues::of_rows(KernelFeatureSet::matrix, rows, weight);
}

Operation in_layout(GemmLayout layout) {
  return gemm({.m = 4096, .n = 4096, .k = 4096, .layout = layout}, DType::bf16);
}

TEST(KernelModel, ProductsInALayoutThatWasNotMeasuredTakeTheTimesOfTheUsualOne) {
  FittedKernel kernel = plain_kernel(kProduct, 1.5);
  kernel.measured_values = products_in(GemmLayout::tn);
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  const ExplainedEstimate tn = model.explain(in_layout(GemmLayout::tn));
  EXPECT_EQ(tn.record, "gemm/bf16/forward");
  EXPECT_TRUE(tn.layout_measured);
  for (const GemmLayout layout : {GemmLayout::nn, GemmLayout::nt}) {
    const ExplainedEstimate other = model.explain(in_layout(layout));
    EXPECT_EQ(other.record, "gemm/bf16/forward (in another layout)");
    EXPECT_FALSE(other.layout_measured);
    EXPECT_EQ(other.estimate.time, tn.estimate.time);
    EXPECT_LT(other.estimate.p10, tn.estimate.p10);
    EXPECT_GT(other.estimate.p90, tn.estimate.p90);
  }
}

TEST(KernelModel, GradientsInFp32TakeTheTimesOfBatchesInTheirLayout) {
  const auto in_fp32 = [](GemmLayout layout) {
    return gemm({.m = 4096, .n = 4096, .k = 4096, .layout = layout}, DType::fp32);
  };
  FittedKernel single = plain_kernel(in_fp32(GemmLayout::tn), 1.5);
  single.measured_values = products_in(GemmLayout::tn);
  FittedKernel batched = plain_kernel(gemm({.batch = 4, .m = 512, .n = 512, .k = 512}, DType::fp32), 1.2);
  batched.measured_values = products_in(GemmLayout::nn);
  for (FittedKernel* kernel : {&single, &batched}) kernel->reference.peak_TFLOPs = 19.5;
  // Sizes to 1024: 64 such products make up the one that is asked for.
  for (const std::size_t extent : {0U, 1U, 2U}) batched.high[extent] = static_cast<float>(std::log(1024.5));
  const KernelModel model{device(), std::vector{record_of(single), record_of(batched)}};
  const Microseconds tn = model.estimate(in_fp32(GemmLayout::tn)).time;
  const Microseconds parts =
      model
          .estimate(
              gemm({.batch = 64, .m = 1024, .n = 1024, .k = 1024, .layout = GemmLayout::nn}, DType::fp32))
          .time;
  EXPECT_NEAR(parts / tn, 1.2 / 1.5, 0.05);
  for (const GemmLayout layout : {GemmLayout::nn, GemmLayout::nt}) {
    const ExplainedEstimate gradient = model.explain(in_fp32(layout));
    EXPECT_EQ(gradient.estimate.time, parts);
    EXPECT_EQ(gradient.record, "batched_gemm/fp32/forward (in another layout)");
  }
  // Many at once, as each alone.
  const std::vector<Operation> all{in_fp32(GemmLayout::tn), in_fp32(GemmLayout::nn)};
  std::vector<Estimate> estimates(2);
  model.estimate(all, estimates);
  EXPECT_EQ(estimates[0].time, tn);
  EXPECT_EQ(estimates[1].time, parts);
}

TEST(KernelModel, AProductInTheLayoutOfAGradientIsTheGradientThatWasMeasured) {
  const GemmShape layer{.m = 4096, .n = 3072, .k = 768};
  std::vector<ModelRecord> records;
  for (const auto& [direction, factor] :
       {std::pair{Direction::forward, 1.0}, std::pair{Direction::input_gradient, 2.0},
        std::pair{Direction::weight_gradient, 3.0}}) {
    FittedKernel kernel = plain_kernel(gemm(layer, DType::fp32, direction), factor);
    kernel.measured_values = products_in(direction == Direction::forward ? GemmLayout::tn : GemmLayout::any);
    records.push_back(record_of(kernel));
  }
  const KernelModel model{device(), records};
  const auto answer = [&](std::int64_t m, std::int64_t n, std::int64_t k, GemmLayout layout) {
    return model.explain(gemm({.m = m, .n = n, .k = k, .layout = layout}, DType::fp32));
  };
  const ExplainedEstimate input = answer(4096, 768, 3072, GemmLayout::nn);
  EXPECT_EQ(input.record, "gemm/fp32/input_gradient");
  EXPECT_TRUE(input.layout_measured);
  EXPECT_DOUBLE_EQ(input.estimate.time.value(),
                   model.estimate(gemm(layer, DType::fp32, Direction::input_gradient)).time.value());
  const ExplainedEstimate weights = answer(3072, 768, 4096, GemmLayout::nt);
  EXPECT_EQ(weights.record, "gemm/fp32/weight_gradient");
  EXPECT_DOUBLE_EQ(weights.estimate.time.value(),
                   model.estimate(gemm(layer, DType::fp32, Direction::weight_gradient)).time.value());
}

TEST(KernelModel, NoProductIsFasterThanTheFastestThatWasMeasured) {
  FittedKernel kernel = plain_kernel(kProduct, 0.1);
  kernel.fastest_flops_per_us = 200e6;
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  // 2 * 4096^3 FLOPs at 200 TFLOP/s: 687 us.
  EXPECT_NEAR(model.estimate(kProduct).time.value(), 2 * 4096.0 * 4096 * 4096 / 200e6, 0.1);
}

TEST(KernelModel, AttentionBackwardTakesItsRatioFromTheOtherDType) {
  const AttentionShape shape{.batch = 4,
                             .query_length = 2048,
                             .key_length = 2048,
                             .heads = 16,
                             .key_value_heads = 16,
                             .head_dim = 128};
  const KernelModel model{
      device(), std::vector{record_of(plain_kernel(attention(shape, DType::bf16), 1)),
                            record_of(plain_kernel(attention(shape, DType::fp16), 2)),
                            record_of(plain_kernel(attention(shape, DType::fp16, Direction::backward), 3))}};
  const auto time = [&](DType dtype, Direction direction) {
    return model.estimate(attention(shape, dtype, direction)).time.value();
  };
  const double ratio = time(DType::fp16, Direction::backward) / time(DType::fp16, Direction::forward);
  EXPECT_NEAR(time(DType::bf16, Direction::backward), ratio * time(DType::bf16, Direction::forward),
              1e-6 * time(DType::bf16, Direction::backward));
}

TEST(KernelModel, AKernelOfAttentionWithARecordOfItsOwnIsAnsweredByIt) {
  const auto asked = [](AttentionKernel kernel) {
    return attention({.batch = 4,
                      .query_length = 2048,
                      .key_length = 2048,
                      .heads = 16,
                      .head_dim = 128,
                      .kernel = kernel},
                     DType::bf16);
  };
  FittedKernel all = plain_kernel(asked(AttentionKernel::flash2), 2.0);
  all.attention_kernels = {AttentionKernel::flash2};
  FittedKernel third = plain_kernel(asked(AttentionKernel::flash3), 1.0);
  third.family = narrow_family_of(asked(AttentionKernel::flash3));
  third.attention_kernels = {AttentionKernel::flash3};
  third.cold = true;
  const KernelModel model{device(), std::vector{record_of(all), record_of(third)}};
  const auto record = [&](AttentionKernel kernel) { return model.explain(asked(kernel)).record; };
  EXPECT_EQ(record(AttentionKernel::flash3), "attention_flash3/bf16/forward (cold caches)");
  EXPECT_EQ(record(AttentionKernel::flash2), "attention/bf16/forward");
  EXPECT_EQ(record(AttentionKernel::any), "attention/bf16/forward");
  EXPECT_EQ(record(AttentionKernel::efficient), "attention/bf16/forward");
  const double second_us = model.estimate(asked(AttentionKernel::flash2)).time.value();
  EXPECT_DOUBLE_EQ(model.estimate(asked(AttentionKernel::flash3)).time.value(), second_us / 2);
}

TEST(KernelModel, ABatchGivesWhatSingleQuestionsGive) {
  const KernelModel model{device(), std::vector{record_of(plain_kernel(kProduct, 1.5))}};
  std::vector<Operation> operations;
  for (int i = 1; i < 200; ++i) {
    operations.push_back(gemm({.m = 64 * i, .n = 4096, .k = 128 + i}, DType::bf16));
    operations.push_back(norm({.rows = 128 * i, .cols = 4096}, DType::bf16));
    operations.push_back(gemm({.m = 64 * i, .n = 4096, .k = 128 + i}, DType::fp32));
  }
  std::vector<Estimate> all(operations.size());
  model.estimate(operations, all);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Estimate one = model.estimate(operations[i]);
    EXPECT_EQ(one.time, all[i].time) << describe(operations[i]);
    EXPECT_EQ(one.p90, all[i].p90) << describe(operations[i]);
    EXPECT_EQ(model.estimate(operations[i]).time, one.time);  // from the memo
  }
}

TEST(KernelModel, NeverBreaksTheBoundOfTheDevice) {
  // Records that claim a hundredth of the time.
  FittedKernel product = plain_kernel(kProduct, 0.01);
  FittedKernel rows = plain_kernel(norm({.rows = 64, .cols = 64}, DType::bf16), 0.01);
  const KernelModel model{device(), std::vector{record_of(product), record_of(rows)}};
  std::mt19937_64 random{7};
  const auto extent = [&random] {
    return static_cast<std::int64_t>(std::exp2(static_cast<double>(random() % 1700) / 100));
  };
  std::vector<Operation> operations;
  for (int i = 0; i < 100'000; ++i) {
    operations.push_back(i % 2 == 0 ? gemm({.m = extent(), .n = extent(), .k = extent()}, DType::bf16)
                                    : norm({.rows = extent(), .cols = extent()}, DType::bf16));
  }
  std::vector<Estimate> estimates(operations.size());
  model.estimate(operations, estimates);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Microseconds bound = model.analytic().lower_bound(operations[i]);
    ASSERT_GE(estimates[i].time, bound) << describe(operations[i]);
    ASSERT_GE(estimates[i].p10, bound) << describe(operations[i]);
    ASSERT_LE(estimates[i].p10, estimates[i].time);
    ASSERT_LE(estimates[i].time, estimates[i].p90);
  }
}

TEST(KernelModel, MayBeAskedByManyThreads) {
  const KernelModel model{device(), std::vector{record_of(plain_kernel(kProduct, 1.5))}};
  std::vector<std::vector<double>> answers(4);
  std::vector<std::thread> threads;
  for (std::vector<double>& mine : answers) {
    threads.emplace_back([&mine, &model] {
      for (int i = 1; i < 2000; ++i)
        mine.push_back(model.estimate(gemm({.m = i % 500, .n = 512, .k = 512}, DType::bf16)).time.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& mine : answers) EXPECT_EQ(mine, answers.front());
}

// ---------------------------------------------------------------------------------------------- records

TEST(FittedKernel, ComesBackFromItsRecordAsItWas) {
  FittedKernel kernel = plain_kernel(
      attention({.batch = 1, .query_length = 8, .key_length = 8, .heads = 1, .head_dim = 64}, DType::fp16),
      1.1);
  kernel.attention_kernels = {AttentionKernel::flash1, AttentionKernel::any};
  kernel.low[2] = 0.1F;
  const auto again = FittedKernel::read(kernel.write());
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), kernel.write());
}

JsonValue* member(JsonValue& object, std::string_view key) {
  for (const JsonValue::Member& m : object.members()) {
    if (m.key == key) return const_cast<JsonValue*>(&m.value);
  }
  return nullptr;
}

struct BadRecord {
  const char* name;
  void (*change)(JsonValue&);
  const char* problem;
};

class BadRecords : public ::testing::TestWithParam<BadRecord> {};

TEST_P(BadRecords, AreNamedAndLeftOut) {
  ModelRecord record = record_of(plain_kernel(kProduct, 1.5));
  GetParam().change(record.parameters);
  const KernelModel model{device(), std::vector{record}};
  ASSERT_EQ(model.skipped().size(), 1U);
  EXPECT_THAT(model.skipped().front(), HasSubstr("gemm/bf16/forward"));
  EXPECT_THAT(model.skipped().front(), HasSubstr(GetParam().problem));
  EXPECT_EQ(model.explain(kProduct).record, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRecords,
    ::testing::Values(
        BadRecord{"future_version", [](JsonValue& p) { *member(p, "version") = JsonValue{2.0}; },
                  "version 2 (this program reads 1)"},
        BadRecord{"no_parameters", [](JsonValue& p) { p = JsonValue{}; }, "not an object"},
        BadRecord{"number_missing", [](JsonValue& p) { *member(p, "reference") = JsonValue::object(); },
                  "`peak_TFLOPs` is missing"},
        BadRecord{
            "not_a_number",
            [](JsonValue& p) { *member(*member(p, "reference"), "floor_us") = JsonValue{std::nan("")}; },
            "`floor_us`"},
        BadRecord{"range_too_short",
                  [](JsonValue& p) { member(*member(p, "range"), "min")->items().pop_back(); }, "`min` has"},
        BadRecord{"unknown_features", [](JsonValue& p) { *member(p, "features") = JsonValue{"matrix_9"}; },
                  "features `matrix_9` are not known"},
        BadRecord{"unknown_correction",
                  [](JsonValue& p) {
                    JsonValue c = JsonValue::object();
                    c.add("kind", JsonValue{"oracle"});
                    c.add("weight", JsonValue{1.0});
                    member(p, "corrections")->add(std::move(c));
                  },
                  "kind `oracle`"},
        BadRecord{"band_out_of_order",
                  [](JsonValue& p) {
                    JsonValue* knots = member(*member(p, "interval"), "log_time");
                    knots->add(JsonValue{-1.0});
                  },
                  "must increase"}),
    [](const auto& test) { return std::string{test.param.name}; });

TEST(KernelModel, LeavesOutRecordsOfOtherDevicesAndNamesUnknownKinds) {
  ModelRecord other = record_of(plain_kernel(kProduct, 1.5));
  other.device = "Another GPU";
  ModelRecord factors, slowdown;
  factors.name = "factors";
  factors.kind = kStepFactorsKind;  // has a reader of its own
  slowdown.name = "overlap";
  slowdown.kind = "overlap_slowdown";
  const KernelModel model{device(), std::vector{other, factors, slowdown}};
  EXPECT_THAT(model.skipped(),
              ElementsAre(HasSubstr("fitted on Another GPU"), HasSubstr("`overlap_slowdown`")));
}

TEST(KernelModel, ARecordOfASiblingIsGivenTheFiguresOfThisDevice) {
  const Operation rows = norm({.rows = 65536, .cols = 4096}, DType::bf16);
  ModelRecord record = record_of(plain_kernel(rows, 1.0));
  record.device = "Sibling GPU";
  record.parameters.add("architecture", JsonValue{"ampere"});
  Device slower = device();
  slower.memory_bandwidth = BytesPerSecond{1.0e12};
  const KernelModel model{device(), std::vector{record}}, slower_model{slower, std::vector{record}};
  ASSERT_THAT(model.skipped(), IsEmpty());
  EXPECT_NEAR(slower_model.estimate(rows).time / model.estimate(rows).time, 2, 0.02);
}

TEST(KernelModel, ARecordWhoseFeaturesDoNotFitItsFamilyIsNotUsed) {
  FittedKernel kernel = plain_kernel(norm({.rows = 64, .cols = 64}, DType::bf16), 1.5);
  kernel.family = "gemm";
  const KernelModel model{device(), std::vector{record_of(kernel)}};
  EXPECT_EQ(model.explain(kProduct).record, "");
  std::vector<Estimate> out(1);
  model.estimate(std::vector{kProduct}, out);
  EXPECT_GT(out[0].time.value(), 0);
}

}  // namespace
}  // namespace stepcast::test::kernel_model_test
