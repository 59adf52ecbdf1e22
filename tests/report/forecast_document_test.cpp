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
