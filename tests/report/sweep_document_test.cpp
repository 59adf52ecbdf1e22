// The rows of a sweep as one answer.

#include "stepcast/report/sweep_document.h"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/report/html/page.h"

#include "tests/report/html_check.h"

namespace stepcast::test::sweep_document_test {
namespace {

using ::testing::ElementsAre;

SweepSpec spec_of(const std::string& text) { return parse_sweep(text, "sweep.json").value(); }

constexpr const char* kSpec = R"({"model": "llama-3-8b", "gpus": [8, 16, 32, 64], "tp": 4})";

// 8 GPUs are slow and 16 too small, 32 cannot be run, 64 has no row yet.
SweepRows rows_of(const SweepSpec& spec) {
  SweepRows rows;
  rows[spec.points[0].id] =
      R"({"error":null,"step_time_ms":1234.5,"mfu":0.5,"memory_verdict":"fits","layout":"tensor 4"})";
  rows[spec.points[1].id] =
      R"({"error":null,"step_time_ms":600,"mfu":0.5,"memory_verdict":"does not fit","layout":"tensor 4"})";
  rows[spec.points[2].id] = R"({"error":"<b>no such \"thing\"</b>","step_time_ms":null})";
  return rows;
}

TEST(SweepOutcome, CountsWhatFitsAndNamesTheFastest) {
  const SweepSpec spec = spec_of(kSpec);
  const SweepOutcome outcome = sweep_outcome(spec, rows_of(spec)).value();
  EXPECT_EQ(outcome.n, 3U);
  EXPECT_EQ(outcome.n_failed, 1U);
  EXPECT_EQ(outcome.n_too_large, 1U);
  EXPECT_EQ(outcome.fastest, "gpus 8, model llama-3-8b, tp 4");
  EXPECT_EQ(outcome.fastest_ms, 1234.5);
  const auto last = [&](const SweepPoint& point) { return point.id == spec.points[2].id; };
  EXPECT_EQ(sweep_outcome(spec, rows_of(spec), last).value().n, 1U);
  EXPECT_EQ(sweep_outcome(spec, rows_of(spec), last).value().fastest, "");
  EXPECT_FALSE(sweep_outcome(spec, {{spec.points[0].id, "{"}}).ok());
}

TEST(SweepDocument, HasARowOfEachPointAndAColumnOfEachSettingThatVaries) {
  const SweepSpec spec = spec_of(kSpec);
  const ReportDocument document = sweep_document(spec, rows_of(spec)).value();
  EXPECT_EQ(document.verdict, "Fastest point that fits: 1.23 s: gpus 8, model llama-3-8b, tp 4.");
  ASSERT_EQ(document.sections.size(), 1U);
  const auto& table = std::get<ReportTable>(document.sections[0].blocks.at(0).content);
  std::vector<std::string> headings, gpus;
  for (const ReportColumn& column : table.columns) headings.push_back(column.heading);
  EXPECT_THAT(headings, ElementsAre("gpus", "step ms", "MFU %", "memory", "layout", "why not"));
  for (const ReportRow& row : table.rows) gpus.push_back(row.cells.front().text);
  EXPECT_THAT(gpus, ElementsAre("8", "16", "32"));  // fits, too large, cannot be run
  EXPECT_EQ(table.rows[0].cells[1].text, "1,234.5");
  EXPECT_EQ(table.rows[0].cells[2].text, "50.0");
  EXPECT_EQ(html_problem(report_html(document)), "");
}

}  // namespace
}  // namespace stepcast::test::sweep_document_test
