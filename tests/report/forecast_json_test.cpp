#include "stepcast/report/forecast_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json_schema.h"

namespace stepcast::forecast_json_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Something under every key.
Forecast full_forecast() {
  Forecast f;
  f.kind = "transformer";
  f.model = "llama \"tiny\"";
  f.parameters = 174'604'259'328ULL;
  f.platform = "dgx-h100";
  f.gpu = "H100";
  f.n_gpus = 512;
  f.layout = {{"tensor_parallel", 8.0}, {"sequence_parallel", true}, {"recompute", std::string{"full"}}};
  f.step_time_ms = 1000.0 / 3.0;
  f.step_time_p10_ms = 300.25;
  f.step_time_p90_ms = 400;
  f.source = EstimateSource::fitted;
  ForecastClass c;
  f.what_to_change =
      ForecastAdvice{.sentence = "`--pp 1` saves 50 ms.",
                     .actions = {{.change = "--pp 1", .saved_ms = 50, .certainty = "clear", .n_gpus = 8}}};
  c.name = "pipeline stage 0";
  c.n_ranks = 64;
  c.window_ms = 20;
  c.computation_ms = 12;
  c.computation_by_class_ms = {{"gemm", 12}};
  c.exposed_comm_ms = 2;
  c.exposed_comm_by_group_ms = {{"pipeline", 2}};
  c.idle_ms = {{"pipeline", 6}};
  c.streams = {{.name = "computation", .tasks = 3, .parts_ms = {{"gemm", 12}}, .kernels_ms = {{"gemm", 12}}}};
  c.threads = {{.name = "main", .busy_ms = 1, .idle_ms = {{"gpu", 2}}, .busy_by_op_ms = {{"", 0.5}}}};
  f.classes = {c, c};
  f.critical_class = 1;
  f.n_collectives = 9;
  f.collectives = {
      {.name = "all_reduce",
       .ordinal = 3,
       .operation = "all_reduce",
       .group = "data",
       .message_bytes = 4096,
       .came_last = 1,
       .transfer_us = 8,
       .total_wait_us = 7,
       .longest_wait_us = 7,
       .members = {{.rank_class = 1, .arrival_us = 3, .wait_us = 7, .transfer_us = 8, .exposed_us = 1}}}};
  f.critical_path = {.length_ms = 20,
                     .ends_on = 1,
                     .n_steps = 2,
                     .by_class = {{"cpu", 20, 2}},
                     .by_rank = {{"rank 0", 20, 2}},
                     .by_name = {{"aten::mm", 10, 1}},
                     .steps = {{.rank_class = 0, .what = "aten::mm", .start_ms = 0, .time_ms = 20}}};
  f.coverage = {.fitted = 0.75, .assumed = 0.25, .unmodelled = {{"aten::sort", 3, 0.125}}};
  f.memory = ForecastMemory{.verdict = "fits", .peak_memory_GiB = 54.5, .stages = {{.weights_GiB = 8.25}}};
  f.memory->stages[0].worst_imbalance_GiB = 60.5;
  f.memory->worst_imbalance = 8;
  f.memory->fits_to_imbalance = 2.5;
  f.expert_load = ForecastExpertLoad{.load = "power-law:1.2", .busiest_over_mean = 1.9, .cost_ms = 30};
  f.anchor = ForecastAnchor{.step_time_ms = 90, .factor = 1.1, .measured = {{"64 GPUs", 99, 90, 1.01}}};
  f.throughput.tokens_per_s = 81418.059;
  f.throughput.mfu = 0.541;
  f.training = ForecastTraining{.tokens = 1e12, .iterations = 238419, .price = 564374};
  f.explained = {{.name = "layer, forward",
                  .gpu_us = 10,
                  .items = {{.name = "qkv", .what = "gemm", .overlapped = true, .record = "h100/gemm"}}}};
  f.published = ForecastPublished{.step_time_ms = 900};
  const ForecastQuantiles quantiles{
      .n = 6, .mean_ms = 10, .p50_ms = 9.5, .p90_ms = 12, .p99_ms = 13, .max_ms = 13};
  f.series =
      ForecastSeries{.steps = {{.step = 5, .step_time_ms = 30, .measured_ms = 30.5, .left_out = "warm-up"}},
                     .step = quantiles,
                     .ranks = {{.rank = 3, .step = quantiles, .host_ms = 8, .data_skew_ms = -0.5}},
                     .deviation_over_steps_ms = 2,
                     .spread = {{.what = "host", .over_steps = 0.75, .over_ranks = 0.25}}};
  f.scenarios = ForecastScenarios{
      .seed = 7,
      .drawn_from = "6 steps",
      .step = quantiles,
      .ranks = {quantiles},
      .tail_from_ms = 12,
      .n_tail = 100,
      .tail = {{.rank = 3, .what = "host", .scenarios = 90, .share = 0.9, .mean_excess_ms = 1.5}}};
  f.notes = {"micro-batch size not given: 1"};
  return f;
}

TEST(ForecastJson, ReadsBackWhatItWrites) {
  const std::string text = forecast_json(full_forecast());
  const Result<Forecast> read = forecast_from_json(text);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(forecast_json(*read), text);
  EXPECT_EQ(read->step_time_ms, 333.333333);  // nine digits
  Forecast expected = full_forecast();
  expected.step_time_ms = 333.333333;
  EXPECT_TRUE(*read == expected);
}

TEST(ForecastJson, FollowsItsSchema) {
  EXPECT_THAT(fixtures::violations(forecast_schema(), forecast_json(full_forecast())), IsEmpty());
  EXPECT_THAT(fixtures::violations(forecast_schema(), forecast_json(Forecast{})), IsEmpty());
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = forecast_json(full_forecast());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const Result<Forecast> read = forecast_from_json(text, "a.json");
  return read.ok() ? "no error" : read.error().message();
}

TEST(ForecastJson, ErrorsNameLineAndKey) {
  EXPECT_THAT(error_of("{"), HasSubstr("a.json"));
  EXPECT_EQ(
      error_of("{}"),
      "a.json: line 1: found no key `schema`, expected `stepcast.forecast/1`: what stepcast predict --json "
      "prints");
  EXPECT_EQ(
      error_of(replaced("stepcast.forecast/1", "stepcast.forecast/2")),
      "a.json: line 2: schema: found `stepcast.forecast/2`, expected `stepcast.forecast/1`: what stepcast "
      "predict --json prints");
  EXPECT_THAT(error_of(replaced("\"step_time_ms\": 333.333333", "\"step_time_ms\": \"fast\"")),
              HasSubstr("step_time_ms: found `fast`, expected a number"));
  EXPECT_THAT(error_of(replaced("\"step_time_ms\": 333.333333,", "")), HasSubstr("step_time_ms: is missing"));
  EXPECT_THAT(error_of(replaced("\"n_ranks\": 64", "\"n_ranks\": -1")),
              HasSubstr("rank_classes[0].n_ranks: found -1, expected a whole number from 0 on"));
  EXPECT_THAT(error_of(replaced("\"source\": \"fitted\"", "\"source\": \"sure\"")),
              HasSubstr("source: found `sure`, expected measured, fitted, analytic or assumed"));
  EXPECT_THAT(error_of(replaced("\"critical_class\": 1", "\"critical_class\": 2")),
              HasSubstr("critical_class: found 2, expected an index into rank_classes, which has 2 entries"));
}

TEST(ForecastJson, PassesOverKeysOfALaterVersion) {
  const Result<Forecast> read =
      forecast_from_json(replaced("\"kind\":", "\"colour\": [1, {\"a\": 2}], \"kind\":"));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->kind, "transformer");
}

}  // namespace
}  // namespace stepcast::forecast_json_test
