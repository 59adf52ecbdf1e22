#include "stepcast/report/document.h"

#include <gtest/gtest.h>

namespace stepcast::document_test {
namespace {

TEST(ReportTable, AlignsColumnsUnderHeadings) {
  ReportTable table{"rank< | step\nms | error %"};
  table.row({"0", "14.46", "+0.03"});
  table.row({"10", "9.10", "-1.00"});
  table.rule();
  table.row({"mean", "11.78"});  // a missing cell is empty
  EXPECT_EQ(report_text(table),
            "         step\n"
            "  rank     ms  error %\n"
            "  0     14.46    +0.03\n"
            "  10     9.10    -1.00\n"
            "  ----  -----  -------\n"
            "  mean  11.78\n");
}

TEST(ReportTable, PutsWordsOnFurtherLinesOfANarrowTerminal) {
  ReportTable table{"rank< | step ms | cause<"};
  table.row({"0", "14.46", "waits for the host of rank one"});
  table.row({"10", "9.10", "none"});
  EXPECT_EQ(report_text(table, 36),
            "  rank  step ms  cause\n"
            "  0       14.46  waits for the host\n"
            "                 of rank one\n"
            "  10       9.10  none\n");
  EXPECT_EQ(report_text(table, 200), report_text(table));
}

TEST(ReportTable, PutsColumnsBelowThatDoNotFit) {
  ReportTable table{"rank< | compute ms | transfer ms | idle ms"};
  table.row({"0", "1", "2", "3"});
  EXPECT_EQ(report_text(table, 31),
            "  rank  compute ms  transfer ms\n"
            "  0              1            2\n"
            "\n"
            "  rank  idle ms\n"
            "  0           3\n");
  EXPECT_EQ(report_text(table, 1).substr(0, 20),
            "  rank\n  0\n\n  rank  ");  // nothing fits: one beside the first
}

TEST(ReportDocument, BreaksTextAndNotFlags) {
  ReportDocument document{.title = "Texts"};
  document.add("", {ReportText{"one two three four five six"}, ReportList{{"seven eight nine ten eleven"}},
                    ReportText{"run --tensor-parallel 4 --pipeline-parallel 8"}});
  EXPECT_EQ(report_text(document, 22),
            "  one two three four\n"
            "  five six\n"
            "  - seven eight nine ten\n"
            "    eleven\n"
            "  run --tensor-parallel 4 --pipeline-parallel 8\n");
}

TEST(ReportTable, WritesMarkdown) {
  ReportTable table{"a|b< | step ms"};
  table.rule();
  table.row({"x|y", "1"});
  EXPECT_EQ(report_markdown(table), "| a\\|b | step ms |\n|:--|--:|\n| x\\|y | 1 |\n");
}

TEST(ReportTable, FactsStandUnderEachOtherWithoutHeadings) {
  ReportTable facts = ReportTable::facts();
  facts.row({"format", "training log"});
  facts.row({"", "of one run"});
  EXPECT_EQ(report_text(facts),
            "  format        training log\n"
            "                of one run\n");
}

// Of three rows a terminal shows one and a page two; what is nowhere shown leaves no title.
TEST(ReportDocument, SaysHowMuchIsLeftOut) {
  ReportTable table{"name< | share %@"};
  table.most = 2;
  table.most_in_terminal = 1;
  table.columns.front().most_width = 6;
  for (const char* name : {"aaaaaaaa", "b", "c"}) table.row({name, "5"});
  ReportDocument document{.title = "Names"};
  document.add("All", {std::move(table)});
  document.add("None", {ReportList{}});
  document.add("Page", {ReportText{"there"}}).shown = Shown::page;
  document.add("Both", {ReportText{"here", 0}}).opening = "- ";
  EXPECT_EQ(report_text(document),
            "\nAll\n"
            "  name\n"
            "  aaaa..\n"
            "  and 2 more\n"
            "- here\n");
  EXPECT_EQ(report_markdown(document),
            "## Names\n\n"
            "\n### All\n\n"
            "| name | share % |\n|:--|--:|\n| aaaaaaaa | 5 |\n| b | 5 |\n\n2 of 3 shown\n"
            "\n### Page\n\nthere\n"
            "\n### Both\n\nhere\n");
}

// Of 1,234 rows the table has two, of which a terminal shows one.
TEST(ReportDocument, CountsRowsThatTheTableDoesNotHave) {
  ReportTable table{"name<"};
  table.of = 1234;
  for (const char* name : {"a", "b"}) table.row({name});
  ReportDocument document{.title = "Names"};
  document.add("All", {table});
  EXPECT_EQ(report_text(document), "\nAll\n  name\n  a\n  b\n  and 1,232 more\n");
  table.most_in_terminal = 1;
  document.sections = {};
  document.add("All", {table});
  EXPECT_EQ(report_text(document), "\nAll\n  name\n  a\n  and 1,233 more\n");
}

TEST(ReportDocument, KeepsSectionsOfAPageOffTerminals) {
  ReportDocument document{.title = "Two"};
  document.add("First", {ReportText{"here", 0}});
  document.add("Second", {ReportText{"there", 0}});
  document.keep_on_page(1);
  EXPECT_EQ(report_text(document), "\nFirst\nhere\n");
  EXPECT_NE(report_markdown(document).find("### Second"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::document_test
