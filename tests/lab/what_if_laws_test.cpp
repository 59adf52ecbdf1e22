#include "lab/what_if_laws.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace stepcast::what_if_laws_test {
namespace {

void expect_kept(const std::filesystem::path& data) {
  const Result<WhatIfLaws> laws = check_what_if_laws(data);
  ASSERT_TRUE(laws.ok()) << laws.error().message();
  EXPECT_GT(laws->answers, 30 * laws->steps);
  for (const char* law : {"physical", "monotonic", "verdict"})
    EXPECT_TRUE(laws->checked.contains(law)) << law;
  for (const char* law : {"physical", "monotonic", "overlap", "verdict"})
    EXPECT_EQ(laws->count(law), 0) << what_if_laws_text(*laws);
}

TEST(WhatIfLaws, HoldForTheExample) { expect_kept(test::source_dir() / "examples" / "dlrm_4gpu"); }

TEST(WhatIfLaws, HoldForAllPublicTraces) {
  SKIP_WITHOUT_DATA();
  expect_kept(*test::measured_data() / "traces");
  expect_kept(*test::measured_data() / "modern" / "traces");
}

// A step without work is shorter than what it is held against.
TEST(WhatIfLaws, SayWhatIsBroken) {
  WhatIfLaws laws{.steps = 1,
                  .answers = 2,
                  .checked = {{"physical", 2}},
                  .broken = {{"physical", "dlrm step 3", "host=2x", 83, 97.1}},
                  .refused = {}};
  EXPECT_EQ(laws.count("physical"), 1);
  EXPECT_EQ(laws.count("monotonic"), 0);
  EXPECT_NE(what_if_laws_text(laws).find("physical: dlrm step 3, host=2x: 83.0000 ms against 97.1000"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::what_if_laws_test
