// --report and --format: the same answer as a page, as Markdown and as JSON.

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/report/html/markup.h"
#include "stepcast/report/html/page.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::report_output_test {
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
        Words{"predict", "--model", "dlrm-default", "--gpus", "4,8"},
        Words{"predict", "--trace", trace, "--batch", "1024,2048"},
        Words{"predict", "--from-log", (source_dir() / "tests" / "golden" / "logs" / "train.log").string()},
        Words{"plan", "--model", "bert-large", "--gpus", "8", "--gbs", "64"}, Words{"inspect", trace},
        Words{"inspect", trace + "/et_rank0.json.gz"},
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
  const std::string trace = (source_dir() / "examples" / "dlrm_4gpu").string();
  for (const Words& verb :
       {kForecast, Words{"replay", trace}, with(kForecast, {"--details"}),
        Words{"replay", trace, "--details"}, Words{"predict", "--trace", trace, "--details"},
        Words{"predict", "--model", "dlrm-default", "--gpus", "4,8", "--details"}}) {
    const std::string page = (folder.path() / "page.html").string();
    const CommandResult plain = run(verb), beside = run(with(verb, {"--report", page}));
    EXPECT_EQ(beside.out, plain.out + "\nReport written to " + page + ": open it in a browser\n");
  }
}

TEST(ReportOutput, NeverWritesOverWhatItRead) {
  const TemporaryFolder folder;
  const std::filesystem::path trace = folder.path() / "trace";
  std::filesystem::copy(source_dir() / "examples" / "dlrm_4gpu", trace);
  const std::string input = (trace / "kineto_rank0.json.gz").string();
  const std::string before = *read_file(input);
  for (const char* verb : {"replay", "inspect"}) {
    const CommandResult result = run({verb, trace.string(), "--report", input});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("kineto_rank0.json.gz"));
    EXPECT_EQ(*read_file(input), before);
  }
}

TEST(ReportOutput, UnknownFormatsAreRefused) {
  EXPECT_EQ(run(with(kForecast, {"--format", "xml"})).exit_code, 2);
}

TEST(ReportOutput, SaysHowItIsMadeAgain) {
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "it's a page.html").string();
  ASSERT_EQ(run(with(kForecast, {"--what-if", "network=0.5x", "--report", page})).exit_code, 0);
  // In a single-quoted word a shell ends the quotes, takes an escaped one, and goes on.
  const std::string command =
      "stepcast predict --model llama-3-8b --gpus 16 --pp 2 --gbs 32 --what-if network=0.5x --report '" +
      (folder.path() / "it'\\''s a page.html").string() + "'";
  const std::string html = *read_file(page);
  const std::size_t at = html.find("To reproduce this");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(html.substr(at), HasSubstr(escape_markup(command)));
  EXPECT_THAT(html.substr(at), HasSubstr("class=\"copy\""));
  const CommandResult markdown = run(with(kForecast, {"--format", "md"}));
  EXPECT_THAT(
      markdown.out,
      HasSubstr("```\nstepcast predict --model llama-3-8b --gpus 16 --pp 2 --gbs 32 --format md\n```\n"));
}

}  // namespace
}  // namespace stepcast::test::report_output_test
