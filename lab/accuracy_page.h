// docs/accuracy.md and its tables: what `stepcast validate all` found, short enough to be read and compared.
#pragma once

#include <span>
#include <string>

#include "lab/suite.h"

namespace stepcast {

// A page in Markdown: per suite one row for each test, the targets that are missed, and why rows were not scored.
// `data` names where the measurements lay, for the heading; `folder` where the tables below lie from the page.
[[nodiscard]] std::string accuracy_page(std::span<const SuiteResult> results, const std::string& data,
                                        const std::string& folder);

// Every test of a suite with its groups and sets:
//   test,protocol,unit,of,n,n_fit,mape,median_ape,gmae,p80_ape,p90_ape,max_ape,bias,interval_coverage,
//   interval_width_median,extras
// `of` as in data/targets.csv: "overall", "rows", "group NAME", "set NAME"; extras are "NAME VALUE; NAME VALUE".
[[nodiscard]] std::string accuracy_csv(const SuiteResult& result);

// Every target: suite,what,value,must,aim,met,aim_met.
[[nodiscard]] std::string accuracy_targets_csv(std::span<const SuiteResult> results);

}  // namespace stepcast
