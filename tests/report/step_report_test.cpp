#include "stepcast/report/step_report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast {
namespace {

using ::testing::HasSubstr;

TEST(ExplainText, IsATableForPeople) {
  ExplainedList list{"layer, forward", {}, 30, 12};
  ExplainedItem gather;
  gather.name = "gather";
  gather.what = "all_gather over tensor";
  gather.beside = true;
  gather.duration_us = 10;
  gather.hidden_us = 7.5;
  gather.bytes = 8e6;
  list.items.push_back(gather);
  const std::string text = explain_text(std::vector{list});
  EXPECT_THAT(text, HasSubstr("| gather"));
  EXPECT_THAT(text, HasSubstr("7.5"));
  EXPECT_THAT(text, HasSubstr("waiting for launches"));
  EXPECT_THAT(text, HasSubstr("12.0"));
}

}  // namespace
}  // namespace stepcast
