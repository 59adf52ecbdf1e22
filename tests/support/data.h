// The measured data: recorded traces and measured times that do not ship with the project.
//
//   TEST(Replay, StaysCloseToTheMeasuredSteps) {
//     SKIP_WITHOUT_DATA();
//     const auto traces = *measured_data() / "traces";
//     ...
//   }
#pragma once

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

namespace stepcast::test {

// Where the data should be: $STEPCAST_DATA, or else `shared/data` beside the checkout.
[[nodiscard]] std::filesystem::path measured_data_location();

// The folder of the measured data if it is there.
[[nodiscard]] std::optional<std::filesystem::path> measured_data();

}  // namespace stepcast::test

// Leaves the test as skipped where the measured data is not there.
#define SKIP_WITHOUT_DATA()                                                                            \
  if (!::stepcast::test::measured_data())                                                              \
  GTEST_SKIP() << "measured data not found at " << ::stepcast::test::measured_data_location().string() \
               << "; set STEPCAST_DATA"
