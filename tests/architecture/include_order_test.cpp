// Includes run one way:
//   base <- operation <- program, platform <- trace, workload, cost, simulate <- rebuild, describe
//        <- predict, formats <- logs, sources, retrace, rollout <- analyze, plan <- sweep, recommend <- report <- api <- apps
// Rooms of one tier do not include each other. Two libraries are apart: calibrate/ may include up to predict, lab/ may
// include everything; the product's library includes neither, and nothing but tests includes lab/.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/architecture/include_rules.h"
#include "tests/support/paths.h"

namespace stepcast::test::include_order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> messages(std::string_view file, std::string_view text) {
  std::vector<std::string> all;
  for (const Violation& violation : check_includes(file, text)) all.push_back(violation.message());
  return all;
}

std::string include(const std::string& header) { return "#include \"stepcast/" + header + "\"\n"; }

TEST(IncludeOrder, EverySourceOfTheProjectKeepsIt) {
  namespace fs = std::filesystem;
  std::vector<fs::path> sources;
  for (const char* folder :
       {"src", "calibrate", "lab", "apps", "python", "examples", "tests", "bench", "fuzz"}) {
    if (!fs::exists(source_dir() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const auto extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp") sources.push_back(entry.path());
    }
  }
  std::sort(sources.begin(), sources.end());
  ASSERT_FALSE(sources.empty());

  for (const fs::path& source : sources) {
    std::ifstream in{source, std::ios::binary};
    ASSERT_TRUE(in) << source;
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    const std::string name = source.lexically_relative(source_dir()).generic_string();
    for (const std::string& message : messages(name, text)) ADD_FAILURE() << message;
  }
}

TEST(IncludeOrder, NamesFileLineAndRuleOfAViolation) {
  EXPECT_THAT(messages("src/stepcast/program/block.h",
                       "#pragma once\n\n#include <vector>\n" + include("trace/kineto.h")),
              ElementsAre("src/stepcast/program/block.h:4: program must not include trace: "
                          "program may include itself and base, operation"));
}

TEST(IncludeOrder, LowerTiersAndTheSameRoomAreAllowed) {
  EXPECT_THAT(messages("src/stepcast/report/table.cpp",
                       include("report/table.h") + include("plan/layout_plan.h") +
                           include("analyze/breakdown.h") + include("base/result.h")),
              IsEmpty());
  EXPECT_THAT(messages("src/stepcast/trace/kineto.cpp", include("trace/detail/scan.h")), IsEmpty());
}

TEST(IncludeOrder, HigherTiersAreNot) {
  EXPECT_THAT(messages("src/stepcast/base/id.h", include("operation/dtype.h")),
              ElementsAre(HasSubstr("base may include nothing but itself")));
  EXPECT_THAT(messages("src/stepcast/sweep/row.cpp", include("report/table.h")),
              ElementsAre(HasSubstr("sweep must not include report")));
}

struct Pair {
  const char* from;
  const char* to;
};

TEST(IncludeOrder, RoomsOfOneTierDoNotIncludeEachOther) {
  for (const Pair& pair :
       {Pair{"program", "platform"}, Pair{"platform", "program"}, Pair{"trace", "simulate"},
        Pair{"cost", "workload"}, Pair{"analyze", "plan"}, Pair{"predict", "formats"}}) {
    EXPECT_THAT(
        messages(std::string{"src/stepcast/"} + pair.from + "/x.cpp", include(std::string{pair.to} + "/y.h")),
        ElementsAre(HasSubstr(std::string{pair.from} + " must not include " + pair.to)));
  }
}

TEST(IncludeOrder, LibrariesApartAreNotOfTheProduct) {
  const std::string calibrate = "#include \"calibrate/kernel_fit.h\"\n", lab = "#include \"lab/suite.h\"\n";
  EXPECT_THAT(messages("calibrate/kernel_fit.cpp", calibrate + include("predict/replay.h")), IsEmpty());
  EXPECT_THAT(messages("lab/suite.cpp", lab + calibrate + include("api/stepcast.h")), IsEmpty());
  EXPECT_THAT(messages("lab/program/predict.cpp", "#include \"progress.h\"\n"), IsEmpty());
  EXPECT_THAT(messages("tests/lab/suite_test.cpp", lab), IsEmpty());
  EXPECT_THAT(messages("apps/stepcast/calibrate.cpp", calibrate), IsEmpty());

  EXPECT_THAT(messages("src/stepcast/api/session.cpp", calibrate),
              ElementsAre(HasSubstr("api must not include calibrate")));
  EXPECT_THAT(messages("src/stepcast/api/session.cpp", lab),
              ElementsAre(HasSubstr("api must not include lab")));
  EXPECT_THAT(messages("calibrate/kernel_fit.cpp", lab),
              ElementsAre(HasSubstr("calibrate must not include lab")));
  EXPECT_THAT(messages("calibrate/kernel_fit.cpp", include("report/cell_text.h")),
              ElementsAre(HasSubstr("calibrate must not include report")));
  EXPECT_THAT(messages("apps/stepcast/validate.cpp", lab), ElementsAre(HasSubstr("of the laboratory")));
  EXPECT_THAT(messages("lab/suite.cpp", include("trace/detail/scan.h")),
              ElementsAre(HasSubstr("internal to trace")));
}

TEST(IncludeOrder, ToolAndTestsMayIncludeEveryRoom) {
  EXPECT_THAT(messages("apps/stepcast/replay.cpp", include("report/table.h") + include("base/result.h")),
              IsEmpty());
  EXPECT_THAT(
      messages("tests/trace/kineto_test.cpp", include("report/table.h") + include("trace/detail/scan.h")),
      IsEmpty());
}

TEST(IncludeOrder, UnknownRoomsAreNamed) {
  EXPECT_THAT(messages("src/stepcast/base/id.h", include("kitchen/sink.h")),
              ElementsAre(HasSubstr("no known room")));
  EXPECT_THAT(messages("src/stepcast/kitchen/sink.h", include("base/id.h")),
              ElementsAre(HasSubstr("no known room")));
}

TEST(IncludeOrder, InternalsStayInTheirRoomAndOutOfPublicHeaders) {
  EXPECT_THAT(messages("src/stepcast/predict/predict.cpp", include("trace/detail/scan.h")),
              ElementsAre(HasSubstr("internal to trace")));
  EXPECT_THAT(messages("src/stepcast/trace/kineto.h", include("trace/detail/scan.h")),
              ElementsAre(HasSubstr("detail/ is not installed")));
}

TEST(IncludeOrder, PublicHeadersNeedNoOtherLibrary) {
  EXPECT_THAT(messages("src/stepcast/trace/kineto.h", "#include <zlib.h>\n"),
              ElementsAre(HasSubstr("must not need zlib.h")));
  EXPECT_THAT(messages("src/stepcast/trace/kineto.cpp", "#include <zlib.h>\n"), IsEmpty());
  EXPECT_THAT(messages("src/stepcast/trace/detail/scan.h", "#include <zlib.h>\n"), IsEmpty());
}

TEST(IncludeOrder, ProjectIncludesAreSpelledOneWay) {
  EXPECT_THAT(messages("src/stepcast/trace/kineto.cpp", "#include <stepcast/base/id.h>\n"),
              ElementsAre(HasSubstr("write it in quotes")));
  EXPECT_THAT(messages("src/stepcast/trace/kineto.cpp", "  #  include \"kineto.h\"\n"),
              ElementsAre(HasSubstr("not spelled from the include root")));
}

TEST(IncludeOrder, TextThatOnlyLooksLikeAnIncludeIsLeftAlone) {
  EXPECT_THAT(messages("src/stepcast/base/id.h",
                       "// #include \"stepcast/trace/kineto.h\"\n"
                       "int includes = 1;\n"),
              IsEmpty());
}

}  // namespace
}  // namespace stepcast::test::include_order_test
