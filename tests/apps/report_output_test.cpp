// --report and --format: the same answer as a page, as Markdown and as JSON.

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/report/html/page.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

CommandResult run(Words words) {
  words.insert(words.begin(), stepcast_executable().string());
  return run_command(words);
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kForecast{"predict", "--model", "llama-3-8b", "--gpus", "16", "--pp", "2", "--gbs", "32"};

TEST(ReportOutput, PageHoldsWhatJsonPrints) {
  const TemporaryFolder folder;
  const std::string trace = (source_dir() / "examples" / "dlrm_4gpu").string();
  for (const Words& verb :
       {kForecast, Words{"replay", trace}, Words{"predict", "--trace", trace},
        Words{"predict", "--model", "dlrm-default", "--gpus", "8"},
        Words{"plan", "--model", "bert-large", "--gpus", "8", "--gbs", "64"},
        Words{"shard", "--generate", "2021", "--gpus", "8", "--sharders", "size,lookup"}}) {
    const std::string page = (folder.path() / "page.html").string();
    const CommandResult text = run(with(verb, {"--report", page}));
    ASSERT_EQ(text.exit_code, 0) << verb[0] << text.err;
    EXPECT_THAT(text.out, HasSubstr("Report written to " + page));
    const CommandResult json = run(with(verb, {"--format", "json"}));
    ASSERT_EQ(json.exit_code, 0) << json.err;
    std::string inside = embedded_json(*read_file(page)).value_or("nothing");
    for (std::size_t at = 0; (at = inside.find("\\u003c", at)) != std::string::npos;)
      inside.replace(at, 6, "<");
    EXPECT_EQ(inside, json.out) << verb[0];
  }
}

TEST(ReportOutput, MarkdownStandsInsteadOfTheText) {
  const CommandResult result = run(with(kForecast, {"--format", "md"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("## llama-3-8b on 16 x H100-SXM5-80GB\n"));
  EXPECT_THAT(result.out, HasSubstr("| computation: gemm |"));
  EXPECT_THAT(result.out, Not(HasSubstr("<svg")));
}

TEST(ReportOutput, TextStaysAsItIsWithoutAReport) {
  const TemporaryFolder folder;
  const CommandResult plain = run(kForecast);
  const CommandResult beside = run(with(kForecast, {"--report", (folder.path() / "page.html").string()}));
  EXPECT_THAT(beside.out, StartsWith(plain.out));
}

TEST(ReportOutput, NeverWritesOverWhatItRead) {
  const TemporaryFolder folder;
  const std::filesystem::path trace = folder.path() / "trace";
  std::filesystem::copy(source_dir() / "examples" / "dlrm_4gpu", trace);
  const std::string input = (trace / "kineto_rank0.json.gz").string();
  const std::string before = *read_file(input);
  const CommandResult result = run({"replay", trace.string(), "--report", input});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("kineto_rank0.json.gz"));
  EXPECT_EQ(*read_file(input), before);
}

TEST(ReportOutput, IsOfOneAnswer) {
  const CommandResult result =
      run({"predict", "--model", "dlrm-multi-gpu", "--gpus", "4,8", "--format", "md"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a report shows one forecast"));
  EXPECT_EQ(run(with(kForecast, {"--format", "xml"})).exit_code, 2);
}

}  // namespace
}  // namespace stepcast::test
