#include "stepcast/report/first_screen.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/report/cell_text.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"

namespace stepcast::test::first_screen_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t n_lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::size_t longest_line(const std::string& text) {
  std::size_t most = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    most = std::max(most, width_of(text.substr(at, end - at)));
    at = end + 1;
  }
  return most;
}

ReportDocument long_document() {
  ReportDocument document{.title = "A step"};
  document.figures = {{"Step time", "12.3 ms", "p10 11.9, p90 12.8", "fitted"}};
  document.verdict = "GPUs compute.";
  ReportTable table{"rank< | step ms"};
  for (int i = 0; i < 40; ++i) table.row({std::to_string(i)}).numbers({1.0 * i}, 1);
  document.add("Ranks", {table});
  document.add("Asked", {ReportText{"all of this"}}).is_asked = true;
  FirstScreen screen;
  ReportTable first = table;
  first.most = 2;
  first.on_first_screen = {"step ms"};
  screen.blocks.emplace_back(std::move(first));
  for (int i = 0; i < 30; ++i)
    screen.notes.push_back("note " + std::to_string(i) + std::string(60, 'x') + " " + std::string(60, 'y'));
  document.first_screen = std::move(screen);
  return document;
}

TEST(FirstScreen, HasAnswerFirstRowsAndNotesThatFit) {
  const std::string text = first_screen_text(long_document());
  EXPECT_TRUE(
      text.starts_with("A step\n\nStep time 12.3 ms (p10 11.9, p90 12.8); fitted\n\nGPUs compute.\n\n"))
      << text;
  EXPECT_THAT(text, HasSubstr("  step ms\n      0.0\n      1.0\n  and 38 more\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank")));
  EXPECT_THAT(text, HasSubstr("note: note 0x"));
  EXPECT_THAT(text, HasSubstr("More with --details ("));
  EXPECT_TRUE(text.ends_with("\nAsked\n  all of this\n")) << text;
  const std::string screen = text.substr(0, text.find("\n\nAsked"));
  EXPECT_LE(n_lines(screen) + 1, kScreenLines);
  EXPECT_LE(longest_line(text), kScreenColumns);
}

TEST(FirstScreen, IsAllOfAShortDocument) {
  ReportDocument document{.title = "Short"};
  document.add("", {ReportText{"one line"}});
  document.first_screen.emplace().notes = {"never seen"};
  EXPECT_EQ(first_screen_text(document), report_text(document));
  ReportDocument without = long_document();
  without.first_screen.reset();
  EXPECT_EQ(first_screen_text(without), report_text(without));
}

// Five suggestions, of which three may be shown; a table that is itself only the beginning of a list.
TEST(FirstScreen, CountsWhatItLeavesOut) {
  ReportDocument document = long_document();
  document.first_screen->blocks.emplace_back(ReportList{.items = {"a", "b", "c", "d", "e"}, .most = 3});
  std::get<ReportTable>(document.first_screen->blocks.front().content).of = 1000;
  const std::string text = first_screen_text(document);
  EXPECT_THAT(text, HasSubstr("  and 998 more\n1. a\n2. b\n3. c\n"));
  EXPECT_THAT(text, HasSubstr("More with --details (2 more suggestions, "));
  document.first_screen->notes.clear();
  EXPECT_THAT(first_screen_text(document), HasSubstr("More with --details (2 more suggestions)\n"));
}

TEST(FirstScreen, CutsTheWidestWords) {
  ReportDocument document = long_document();
  ReportTable table{"name< | why< | ms"};
  table.row({"a", std::string(200, 'w'), "1.0"});
  document.first_screen->blocks = {std::move(table)};
  const std::string text = first_screen_text(document);
  EXPECT_LE(longest_line(text), kScreenColumns);
  EXPECT_THAT(text, HasSubstr("www..  1.0\n"));
}

TEST(FirstScreen, ShellLinesKeepFlagsWithTheirValues) {
  EXPECT_EQ(shell_lines("--tp 8 --pp 4", 2, 80), "  --tp 8 --pp 4\n");
  EXPECT_EQ(shell_lines("--tp 8 --pp 4 --sequence-parallel", 2, 20),
            "  --tp 8 --pp 4 \\\n    --sequence-parallel\n");
}

// The first screen of every verb on its own: 24 lines of 80 columns.
TEST(FirstScreen, OfEveryVerbFitsOneScreen) {
  const std::string traces = (source_dir() / "examples" / "dlrm_4gpu").string();
  const std::string logs = (source_dir() / "tests" / "golden" / "logs").string(), log = logs + "/train.log";
  const std::vector<std::vector<std::string>> questions{
      {"replay", traces},
      {"predict", "--trace", traces},
      {"predict", "--trace", traces, "--batch", "1024,2048,4096"},
      {"predict", "--model", "llama-3-8b", "--gpus", "64"},
      {"predict", "--model", "llama-3-70b", "--gpus", "8", "--tp", "8", "--gbs", "8", "--layout", "as-said"},
      {"predict", "--model", "mixtral-8x7b", "--gpus", "64", "--train-tokens", "1T", "--gpu-hour-price", "2"},
      {"predict", "--model", "llama-3-8b", "--gpus", "8,16,32"},
      {"predict", "--model", "llama-3-8b", "--gpus", "64", "--tp", "2", "--pp", "2", "--gbs", "128",
       "--measured", "9s"},
      {"predict", "--model", "dlrm-default", "--gpus", "8"},
      {"predict", "--model", "resnet-50", "--gpus", "8"},
      {"predict", "--from-log", log},
      {"predict", "--model", "llama-3.1-8b", "--gpus", "32", "--rl", "grpo", "--prompts", "64",
       "--generations", "32", "--lengths", "mean=1100,max=4096"},
      {"plan", "--model", "llama-3-8b", "--gpus", "64", "--gbs", "256"},
      {"plan", "--model", "gpt3-175b", "--platform", "dgx-a100", "--gpus", "512", "--gbs", "1536",
       "--threads", "1"},
      {"plan", "--model", "llama-3-8b", "--gpus", "64,128", "--gbs", "512", "--train-tokens", "1T",
       "--within", "30d"},
      {"shard", "--generate", "2021", "--gpus", "8", "--sharders", "size,lookup"},
      {"compare", log, logs + "/no_arguments.log"},
      {"inspect", traces},
      {"inspect", traces + "/kineto_rank0.json.gz"},
      {"inspect", log},
      {"models"},
      {"models", "llama"},
      {"platforms"},
      {"platforms", "dgx-h100"}};
  for (const std::vector<std::string>& question : questions) {
    std::vector<std::string> words{stepcast_executable().string()};
    words.insert(words.end(), question.begin(), question.end());
    const CommandResult result = run_command(words);
    std::string all;
    for (const std::string& word : question) all += word + " ";
    EXPECT_EQ(result.exit_code, 0) << all << result.err;
    EXPECT_LE(n_lines(result.out), kScreenLines) << all << "\n" << result.out;
    EXPECT_LE(longest_line(result.out), kScreenColumns) << all << "\n" << result.out;
    words.emplace_back("--details");
    EXPECT_EQ(run_command(words).exit_code, 0) << all;
  }
}

}  // namespace
}  // namespace stepcast::test::first_screen_test
