#include "stepcast/report/forecast_document.h"

#include <cstdint>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::forecast_document_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainedText, IsATableForPeople) {
  Forecast f;
  ForecastItem gather;
  gather.name = "gather";
  gather.what = "all_gather over tensor";
  gather.overlapped = true;
  gather.time_us = 10;
  gather.hidden_us = 7.5;
  gather.bytes = 8e6;
  f.explained = {{.name = "layer, forward", .gpu_us = 30, .host_us = 12, .items = {gather}}};
  const std::string text = report_text(forecast_document(f, {.made_for = Shown::terminal, .explains = true}));
  EXPECT_THAT(text, HasSubstr("| gather"));
  EXPECT_THAT(text, HasSubstr("7.5"));
  EXPECT_THAT(text, HasSubstr("waiting for launches"));
  EXPECT_THAT(text, HasSubstr("12.0"));
}

TEST(ForecastText, SaysWhatToChangeBeforeWhereTheTimeGoes) {
  Forecast f;
  f.step_time_ms = 200;
  f.classes = {{.window_ms = 200, .computation_by_class_ms = {{"gemm", 150}}}};
  f.what_to_change = ForecastAdvice{.sentence = "`--pp 1` saves 50.0 of 200.0 ms (25.0 %).",
                                    .actions = {{.change = "--pp 1",
                                                 .step_time_ms = 150,
                                                 .saved_ms = 50,
                                                 .saved_percent = 25,
                                                 .saved_p10_ms = 30,
                                                 .saved_p90_ms = 70,
                                                 .certainty = "clear",
                                                 .n_gpus = 8,
                                                 .command = "stepcast predict --model tiny --pp 1"}}};
  const std::string text = forecast_text(f);
  const std::size_t sentence = text.find("What to change\n  `--pp 1` saves 50.0 of 200.0 ms (25.0 %).");
  ASSERT_NE(sentence, std::string::npos) << text;
  EXPECT_LT(text.find("Step time 200.0 ms"), sentence);
  EXPECT_GT(text.find("where the time goes"), sentence);
  EXPECT_THAT(text, HasSubstr("stepcast predict --model tiny --pp 1\n"));
  f.what_to_change->actions.clear();
  f.what_to_change->sentence = "Nothing to gain: the layout is the best.";
  EXPECT_THAT(forecast_text(f), HasSubstr("  Nothing to gain: the layout is the best.\n"));
}

TEST(TrainingText, SaysTheCurrencyOfThePrice) {
  Forecast f;
  f.training = ForecastTraining{.iterations = 10, .time_s = 3600, .gpu_hours = 1000, .price = 2000};
  EXPECT_THAT(training_text(f), HasSubstr("price 2,000 in your currency"));
  f.training->currency = "EUR";
  EXPECT_THAT(training_text(f), HasSubstr("price 2,000 EUR"));
}

TEST(ForecastText, SaysWhereTheTimeGoesInTheWordsOfTheReports) {
  Forecast f;
  f.model = "tiny";
  f.n_gpus = 8;
  f.step_time_ms = 20;
  ForecastClass c;
  c.window_ms = 20;
  c.computation_by_class_ms = {{"gemm", 12}};
  c.exposed_comm_by_group_ms = {{"data", 2}};
  c.idle_ms = {{"pipeline", 5}, {"cpu", 1}};
  f.classes = {c};
  const std::string text = forecast_text(f);
  EXPECT_THAT(text, HasSubstr("tiny on 8 x GPU"));
  EXPECT_THAT(text, HasSubstr("computation: gemm            12.0  60.0"));
  EXPECT_THAT(text, HasSubstr("exposed communication: data   2.0  10.0"));
  EXPECT_THAT(text, HasSubstr("idle: pipeline bubble         5.0  25.0"));
  EXPECT_THAT(text, HasSubstr("idle: waits for the CPU       1.0   5.0"));
  EXPECT_THAT(text, Not(HasSubstr("Training")));
}

// 20 = 12 computation + 2 communication + 3 for the CPU + 2 for other ranks + 1 else.
TEST(ForecastText, PutsRecordedRanksSideBySide) {
  Forecast f;
  f.n_gpus = 2;
  for (const std::int64_t rank : {0, 1}) {
    ForecastClass c;
    c.name = rank == 0 ? "rank 0" : "rank 1";
    c.rank = rank;
    c.window_ms = 20;
    c.start_offset_ms = 1.5 * static_cast<double>(rank);
    c.computation_ms = 12;
    c.exposed_comm_ms = 2;
    c.idle_ms = {{"cpu", 3}, {"other_rank", 2}, {"rest", 1}};
    f.classes.push_back(c);
  }
  const std::string text = forecast_text(f);
  EXPECT_THAT(
      text,
      HasSubstr("rank 0    20.00    0.00        12.00           2.00           3.00       2.00        1.00"));
  EXPECT_THAT(text, HasSubstr("rank 1    20.00    1.50"));
  f.classes.pop_back();
  EXPECT_THAT(forecast_text(f), Not(HasSubstr("waits for CPU"))) << "one rank is told already";
}

TEST(ForecastText, SaysWhichRanksOfADryRunRunOutOfMemory) {
  Forecast f;
  f.kind = "trace";
  f.memory.emplace();
  f.memory->available_GiB = 80;
  f.memory->worst_stage = 1;
  for (const auto& [name, ranks, allocated] :
       {std::tuple{"ranks 0-3", 4U, 40.0}, std::tuple{"ranks 4-7", 4U, 83.0}}) {
    ForecastClass c;
    c.name = name;
    c.n_ranks = ranks;
    f.classes.push_back(c);
    ForecastStageMemory memory;
    memory.allocated_GiB = allocated;
    memory.total_GiB = allocated + 1;
    memory.verdict = allocated < 80 ? "fits" : "does not fit";
    f.memory->stages.push_back(memory);
  }
  const std::string text = forecast_text(f);
  EXPECT_THAT(text, HasSubstr("GiB on ranks 4-7"));
  EXPECT_THAT(text, HasSubstr("ranks 0-3      4           40.0       41.0            51  fits"));
  EXPECT_THAT(text, HasSubstr("ranks 4-7      4           83.0       84.0           105  OOM"));
  f.kind = "model";
  EXPECT_THAT(forecast_text(f), Not(HasSubstr("OOM"))) << "of pipeline stages the report has a table";
}

}  // namespace
}  // namespace stepcast::forecast_document_test
