#include "lab/reference_pages.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/presets.h"
#include "stepcast/operation/framework_ops.h"
#include "stepcast/report/answers.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"
#include "stepcast/sweep/option_table.h"

#include "lab/validation_report.h"

namespace stepcast {
namespace {

std::string heading(std::string_view title, std::string_view name) {
  return fmt::format("# {}\n\nWritten by `stepcast reference {}`; `./dev docs` writes it.\n\n", title, name);
}

// The name in backquotes. A bar would end the cell of a table.
std::string in_backquotes(std::string_view name) {
  std::string text = "`";
  for (const char c : name) text += c == '|' ? std::string{"\\|"} : std::string{c};
  return text + "`";
}

// One line for all operators with the same family, direction and role.
std::string operators_page() {
  std::map<std::tuple<std::string_view, Direction, OpRole>, std::vector<std::string_view>> groups;
  for (const FrameworkOp& op : framework_ops()) groups[{op.family, op.direction, op.role}].push_back(op.name);
  std::string out = heading("Operators of PyTorch", "operators");
  out +=
      "Which operation each operator of a trace performs; [operations.md](../operations.md) explains the "
      "roles.\n\n| operations | direction | role | operators |\n|---|---|---|---|\n";
  for (const auto& [key, names] : groups) {
    const auto& [family, direction, role] = key;
    out += fmt::format("| {} | {} | {} |", family.empty() ? "-" : family,
                       family.empty() ? "-" : to_string(direction), to_string(role));
    std::string_view comma = " ";
    for (const std::string_view name : names) {
      out += fmt::format("{}{}", comma, in_backquotes(name));
      comma = ", ";
    }
    out += " |\n";
  }
  return out;
}

std::string preset_row(const Preset& preset) {
  const Transformer& m = preset.model;
  std::string names = in_backquotes(m.name);
  for (const std::string& alias : preset.aliases) names += ", " + in_backquotes(alias);
  std::string experts = "-";
  if (m.moe) experts = fmt::format("{} of {}", m.moe->experts_per_token, m.moe->n_experts);
  return fmt::format("| {} | {} | {} | {} | {} / {} | {} | {} | {:.4g} B | {} |\n", names, m.n_layers,
                     m.hidden_size, m.moe ? m.moe->expert_ffn_hidden_size : m.ffn_hidden_size, m.n_heads,
                     m.kv_heads(), experts, m.vocab_size,
                     static_cast<double>(parameter_count(m).total()) / 1e9, preset.published_parameters);
}

std::string presets_page() {
  std::string out = heading("Presets", "presets");
  out +=
      "Models that are known by name (`--model NAME`); names are compared without case, blanks, hyphens and "
      "underscores. FFN is the width of\none expert where there are experts; \"experts\" is how many of them "
      "a "
      "token visits. Parameters are counted from the shape; published ones are\nof the model's card or "
      "paper: all "
      "digits, those that are printed, or, with `~`, a name that does not give the count.\n\n"
      "| name | layers | hidden | FFN | heads / kv heads | experts | vocabulary | parameters | published |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const Preset& preset : presets()) out += preset_row(preset);
  return out;
}

// The flags of a class, with a line for every reason.
std::string flags_of(MegatronFlagUse use) {
  std::vector<std::pair<std::string_view, std::vector<std::string>>> reasons;
  for (const MegatronFlag& flag : megatron_flags()) {
    if (flag.use != use) continue;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == flag.why; });
    if (known == reasons.end())
      reasons.emplace_back(flag.why, std::vector{flag.name});
    else
      known->second.push_back(flag.name);
  }
  std::string out = "| why | flags |\n|---|---|\n";
  for (auto& [why, names] : reasons) {
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& name : names)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", in_backquotes(name));
    out += fmt::format("| {} | {} |\n", why, list);
  }
  return out;
}

std::string megatron_flags_page() {
  constexpr std::tuple<MegatronFlagUse, std::string_view, std::string_view> kClasses[] = {
      {MegatronFlagUse::understood, "Understood", "They act; `why` says on what."},
      {MegatronFlagUse::not_modelled, "Listed as not modelled",
       "They change time or memory and have no price here; a forecast names them among its notes, and its "
       "band is wider."},
      {MegatronFlagUse::passed_over, "Passed over",
       "They change neither time nor memory of a step; any number of values may follow."},
      {MegatronFlagUse::out_of_scope, "Refused", "They belong to other work."}};
  std::string out = heading("Flags of Megatron-LM", "megatron-flags");
  out +=
      "What `stepcast predict` takes as flags or in a command line; [models.md](../models.md) says how they "
      "are read. "
      "`*` represents any\nrest of a name. `--no-X` says the contrary of a switch `--X`.\n";
  for (const auto& [use, title, text] : kClasses)
    out += fmt::format("\n## {}\n\n{}\n\n{}", title, text, flags_of(use));
  return out;
}

// Text of the allowed values, for example "whole number (GPUs) above 0; several with commas".
std::string values_of(const Option& option) {
  const OptionValues& values = option.values;
  constexpr std::string_view kKinds[] = {"text", "a switch", "whole number", "number", "file"};
  std::string text{values.is_output ? "file to write" : kKinds[static_cast<std::size_t>(option.kind)]};
  if (!values.one_of.empty()) text.clear();
  any_word(values.one_of, [&](std::string_view word) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", in_backquotes(word));
    return false;
  });
  if (!option.unit.empty()) text += fmt::format(" ({})", option.unit);
  if (values.above_zero) text += " above 0";
  if (values.range) text += fmt::format(" from {} to {}", values.range->first, values.range->second);
  if (values.takes_max) text += ", `max`";
  if (values.with_commas) text += "; several with commas";
  if (!values.needs.empty()) text += fmt::format("; with {}", in_backquotes(values.needs));
  return text;
}

// The questions of a verb for which the option has a meaning; "all" if it has one for all of them.
std::string questions_of(const Option& option, QuestionSet verb) {
  if ((option.of & verb) == verb) return "all";
  std::string text;
  for (const Question question : kQuestions)
    if ((option.of & verb & bit(question)) != 0)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(question));
  return text;
}

std::string options_of(QuestionSet verb, QuestionSet of_sweeps) {
  std::string out = "| option | of | value | key of sweeps | meaning |\n|---|---|---|---|---|\n";
  for (const Option& option : option_table()) {
    if ((option.of & verb) == 0) continue;
    std::string names, meaning;
    any_word(
        option.flags,
        [&](std::string_view name) {
          names += fmt::format("{}{}", names.empty() ? "" : ", ", in_backquotes(name));
          return false;
        },
        ',');
    for (const char c : option.meaning) meaning += c == '|' ? std::string{"\\|"} : std::string{c};
    const bool is_key = option.sweep != SweepValue::none && (option.of & of_sweeps) != 0;
    out += fmt::format("| {} | {} | {} | {} | {} |\n", names, questions_of(option, verb), values_of(option),
                       is_key ? in_backquotes(option.sweep_key()) : "-", meaning);
  }
  return out;
}

std::string options_page() {
  std::string out = heading("Options of predict and plan", "options");
  out +=
      "As flags of the command line. In Python an option is a keyword: `--gpu-hour-price` is "
      "`gpu_hour_price`. Sweeps have keys for those that\nname one ([sweeps.md](../sweeps.md)). An option is "
      "refused for what it means nothing for. Flags of Megatron-LM are taken, too\n"
      "([megatron-flags.md](megatron-flags.md)).\n";
  out +=
      "\n## predict\n\nOf a step in words: a *description*, a *series* of several numbers of GPUs or "
      "batches, a *log* "
      "(`--from-log`), *post-training* (`--rl`).\nOf recorded *traces* (`--trace`), and of *recommendation* "
      "models.\n\n";
  out += options_of(kPredictQuestions, kPredictQuestions);
  out +=
      "\n## plan\n\nOf a *training*, over *pools* of GPUs (`--gpus 64xh100+64xa100`), of several *jobs* that "
      "share GPUs "
      "(`--jobs`), of *post-training* "
      "(`--rl`).\n\n";
  return out + options_of(kPlanQuestions, bit(Question::plan));
}

constexpr std::array<ReferencePage, 4> kPages{
    {{"operators", "operators of PyTorch and the operations they perform", operators_page},
     {"presets", "models that are known by name", presets_page},
     {"options", "options of predict and plan", options_page},
     {"megatron-flags", "flags of Megatron-LM: what is understood, listed, passed over and refused",
      megatron_flags_page}}};

// Most reasons for unscored rows that the page lists.
constexpr std::size_t kReasonsOnPage = 3;

// Counts as whole numbers, other values with three decimals.
std::string extras_text(const std::vector<ExtraMetric>& extras) {
  std::string text;
  for (const ExtraMetric& extra : extras) {
    text += fmt::format("{}{} {:.{}f}", text.empty() ? "" : "; ", extra.name, extra.value,
                        extra.over == ExtraMetric::Over::sum ? 0 : 3);
  }
  return text;
}

// Met targets of a test that have a `must`, for example "3 of 4".
std::string targets_text(const SuiteResult& result, const TestScore& test) {
  std::size_t n = 0, met = 0;
  for (const Target& target : result.targets) {
    if (!target.what.starts_with(test.test + ":") && !target.what.starts_with(test.test + ",")) continue;
    if (const auto is_met = target.met()) {
      ++n;
      met += *is_met ? 1U : 0U;
    }
  }
  return n > 0 ? fmt::format("{} of {}", met, n) : "-";
}

ReportTable tests_table(const SuiteResult& result) {
  ReportTable table{
      "test< | protocol< | sets | rows | mean |error| % | median % | p90 % | bias % | in p10-p90 % | "
      "median width % | score over best | targets met | also<"};
  for (const TestScore& test : result.tests) {
    const Metrics& m = test.overall;
    const bool relative = test.relative && m.n > 0;
    const auto number = [&](double value) { return relative ? table_number(value, 2) : std::string{"-"}; };
    const auto optional = [](const std::optional<double>& value) {
      return value ? table_number(*value, 1) : std::string{"-"};
    };
    table.row({test.test, test.protocol, table_count(test.sets.size()), table_count(m.n), number(m.mape),
               number(m.median_ape), number(m.p90_ape), relative ? table_signed(m.bias, 2) : "-",
               optional(m.interval_coverage), optional(m.interval_width_median),
               m.interval_score_of_best ? table_number(*m.interval_score_of_best, 2) : "-",
               targets_text(result, test), extras_text(test.extras)});
  }
  return table;
}

// The number of met targets, and a list of those that are not met. Targets that only miss their aim are counted; the CSV
// lists them.
std::string targets_section(const std::vector<Target>& targets, const std::string& folder) {
  std::size_t musts = 0, met = 0, aims = 0, reached = 0;
  std::vector<Target> missed;
  for (const Target& target : targets) {
    const std::optional<bool> is_met = target.met(), aim_met = target.aim_met();
    musts += is_met ? 1U : 0U;
    met += is_met.value_or(false) ? 1U : 0U;
    aims += aim_met ? 1U : 0U;
    reached += aim_met.value_or(false) ? 1U : 0U;
    if (!is_met.value_or(aim_met.value_or(true))) missed.push_back(target);
  }
  std::string text =
      fmt::format("\n{} of {} targets are met and {} of {} aims reached ([{}/targets.csv]({}/targets.csv)).",
                  met, musts, reached, aims, folder, folder);
  if (missed.empty()) return text + "\n";
  return text + " Missed:\n\n" + report_markdown(detail::targets_table(missed));
}

std::string optional_cell(bool known, double value) { return known ? fmt::format("{:.4f}", value) : ""; }

std::string csv_row(const TestScore& test, const std::string& of, std::optional<std::uint64_t> n_fit,
                    const Metrics& m, const std::vector<ExtraMetric>& extras) {
  const bool known = test.relative && m.n > 0;
  std::string row = fmt::format("{},{},{},{},{},{}", detail::csv_field(test.test), test.protocol, test.unit,
                                detail::csv_field(of), m.n, n_fit ? fmt::format("{}", *n_fit) : "");
  for (const double value : {m.mape, m.median_ape, m.gmae, m.p80_ape, m.p90_ape, m.max_ape, m.bias})
    row += "," + optional_cell(known, value);
  for (const auto& value :
       {m.interval_coverage, m.interval_width_median, m.interval_score, m.interval_score_of_best})
    row += "," + optional_cell(value.has_value(), value.value_or(0));
  for (const double value : {m.min_ape, m.sd_ape}) row += "," + optional_cell(known, value);
  return row + "," + detail::csv_field(extras_text(extras)) + "\n";
}

}  // namespace

std::span<const ReferencePage> reference_pages() { return kPages; }

const ReferencePage* find_reference_page(std::string_view name) {
  static const std::vector<ReferencePage> all = [] {
    std::vector<ReferencePage> pages(kPages.begin(), kPages.end());
    for (const AnswerSchema& schema : answer_schemas())
      pages.push_back({schema.name, schema.summary, schema.text});
    return pages;
  }();
  for (const ReferencePage& page : all)
    if (page.name == name) return &page;
  return nullptr;
}

std::string accuracy_page(std::span<const SuiteResult> results, const std::string& data,
                          const std::string& folder) {
  std::string text = fmt::format(
      "# Accuracy\n\n"
      "Written by `stepcast validate all --data {}` (stepcast {}). |error| is |predicted - measured| / "
      "measured; "
      "bias is the mean\nof (predicted - measured) / measured. Figures are means over the sets of a test; "
      "rows "
      "count its measurements. `refit` fits in every\nfold without what is scored, `shipped` scores the "
      "platforms as they ship, `recorded` fits nothing. *Score over best*: the interval score (width, and "
      "ten times what "
      "lies outside) over\nthat of the best single width of a set. Targets come from `data/targets.csv`;\n"
      "[constants.md](constants.md) lists what was chosen with these measurements in view.\n",
      data, version());
  for (const SuiteResult& result : results) {
    text += fmt::format("\n## {}\n\nEvery set: [{}/{}.csv]({}/{}.csv).\n\n", result.suite, folder,
                        result.suite, folder, result.suite);
    text += report_markdown(tests_table(result));
    if (!result.targets.empty()) text += targets_section(result.targets, folder);
    const std::vector<std::string> skipped = detail::skipped_lines(result);
    if (skipped.empty()) continue;
    text += "\nNot scored:\n\n";
    for (std::size_t i = 0; i < std::min(skipped.size(), kReasonsOnPage); ++i)
      text += fmt::format("- {}\n", skipped[i]);
    if (skipped.size() > kReasonsOnPage) {
      text += fmt::format("- {} further reasons, which `stepcast validate {}` prints\n",
                          skipped.size() - kReasonsOnPage, result.suite);
    }
  }
  return text;
}

std::string accuracy_csv(const SuiteResult& result) {
  std::string text =
      "test,protocol,unit,of,n,n_fit,mape,median_ape,gmae,p80_ape,p90_ape,max_ape,bias,interval_coverage,"
      "interval_width_median,interval_score,interval_score_of_best,min_ape,sd_ape,extras\n";
  for (const TestScore& test : result.tests) {
    text += csv_row(test, "overall", std::nullopt, test.overall, test.extras);
    text += csv_row(test, "rows", std::nullopt, test.pooled, {});
    for (const GroupScore& group : test.groups)
      text += csv_row(test, "group " + group.group, std::nullopt, group.overall, group.extras);
    for (const SetScore& set : test.sets)
      text += csv_row(test, "set " + set.set, set.n_fit, set.metrics, set.extras);
  }
  return text;
}

std::string accuracy_targets_csv(std::span<const SuiteResult> results) {
  std::string text = "suite,what,value,must,aim,met,aim_met\n";
  const auto truth = [](std::optional<bool> value) { return !value ? "" : *value ? "yes" : "no"; };
  for (const SuiteResult& result : results) {
    for (const Target& target : result.targets) {
      const auto [must, aim] = detail::bounds_text(target);
      text += fmt::format("{},{},{:.4f},{},{},{},{}\n", result.suite, detail::csv_field(target.what),
                          target.value, must, aim, truth(target.met()), truth(target.aim_met()));
    }
  }
  return text;
}

}  // namespace stepcast
