// docs/reference/ shows what the code knows.
#include "lab/reference_pages.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/sweep/option_table.h"

#include "tests/support/paths.h"

namespace stepcast::reference_pages_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::filesystem::path folder() { return test::source_dir() / "docs" / "reference"; }

TEST(ReferencePages, InTheDocumentationAreCurrent) {
  for (const ReferencePage& page : reference_pages()) {
    const auto text = read_file(folder() / (std::string{page.name} + ".md"));
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_EQ(*text, page.text()) << "`./dev docs` writes docs/reference/" << page.name << ".md anew";
  }
}

TEST(ReferencePages, AreAllThatTheFolderHolds) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_NE(find_reference_page(entry.path().stem().string()), nullptr)
        << entry.path() << " is written by nobody";
    ++n;
  }
  EXPECT_EQ(n, reference_pages().size());
  EXPECT_EQ(find_reference_page("no such page"), nullptr);
}

TEST(ReferencePages, HoldTheSchemasOfAnswers) {
  ASSERT_NE(find_reference_page("forecast.json"), nullptr);
  EXPECT_THAT(find_reference_page("forecast.json")->text(), HasSubstr("/schemas/forecast.json\""));
}

TEST(ReferencePages, ShowWhatIsKnown) {
  EXPECT_THAT(find_reference_page("presets")->text(),
              HasSubstr("\n| `gpt3-175b` | 96 | 12288 | 49152 | 96 / 96 | - | 50257 | 174.6 B | 175B |\n"));
  const std::string flags = find_reference_page("megatron-flags")->text();
  const std::size_t passed_over = flags.find("## Passed over");
  ASSERT_NE(passed_over, std::string::npos);
  EXPECT_THAT(flags.substr(0, passed_over), HasSubstr("`--tensor-model-parallel-size`"));
  EXPECT_THAT(flags.substr(passed_over), HasSubstr("`--weight-decay`"));
  EXPECT_THAT(flags.substr(passed_over), Not(HasSubstr("`--tensor-model-parallel-size`")));
  // A bar in a name does not end the cell.
  const std::string operators = find_reference_page("operators")->text();
  EXPECT_THAT(operators, HasSubstr("| attention | forward | kernel | `aten::_cudnn_attention_forward`, "));
}

TEST(ReferencePages, ShowEveryOption) {
  const std::string page = find_reference_page("options")->text();
  for (const Option& option : option_table()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("\n| `{}`", option.name())));
    EXPECT_THAT(page, HasSubstr(std::string{option.meaning.substr(0, option.meaning.find('|'))}));
  }
  EXPECT_THAT(
      page, HasSubstr("\n| `--nodes` | description, log, post-training | whole number (nodes) | `nodes` | "));
}

}  // namespace
}  // namespace stepcast::reference_pages_test
