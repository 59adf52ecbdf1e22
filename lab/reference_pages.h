// The pages of docs/reference/, generated from the tables in the code.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/suite.h"

namespace stepcast {

struct ReferencePage {
  std::string_view name;     // "presets": the page is docs/reference/presets.md
  std::string_view summary;  // one line
  std::string (*text)();     // the whole page in Markdown
};

[[nodiscard]] std::span<const ReferencePage> reference_pages();
// A page of reference_pages() or answer_schemas() by name; nullptr if there is none.
[[nodiscard]] const ReferencePage* find_reference_page(std::string_view name);

// docs/accuracy.md and its tables: the results of `stepcast validate all` in a short, comparable form.

// A Markdown page with, for each suite, one row for each test, the missed targets, and the reasons for unscored rows. `data`
// is the location of the measurements in the heading; `folder` is the path from the page to the tables below.
[[nodiscard]] std::string accuracy_page(std::span<const SuiteResult> results, const std::string& data,
                                        const std::string& folder);

// Every test of a suite with its groups and sets:
//   test,protocol,unit,of,n,n_fit,mape,median_ape,gmae,p80_ape,p90_ape,max_ape,bias,interval_coverage,
//   interval_width_median,interval_score,interval_score_of_best,min_ape,sd_ape,extras
// `of` as in data/targets.csv: "overall", "rows", "group NAME", "set NAME"; extras are "NAME VALUE; NAME VALUE".
[[nodiscard]] std::string accuracy_csv(const SuiteResult& result);

// Every target: suite,what,value,must,aim,met,aim_met.
[[nodiscard]] std::string accuracy_targets_csv(std::span<const SuiteResult> results);

}  // namespace stepcast
