#include "stepcast/report/forecast_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast {
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
  const std::string text = explained_text(f);
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

}  // namespace
}  // namespace stepcast
