#include "lab/reference_pages.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "stepcast/describe/megatron.h"
#include "stepcast/describe/presets.h"
#include "stepcast/operation/framework_ops.h"
#include "stepcast/report/answers.h"

namespace stepcast {
namespace {

std::string heading(std::string_view title, std::string_view name) {
  return fmt::format("# {}\n\nWritten by `stepcast reference {}`; `./dev docs` writes it anew.\n\n", title,
                     name);
}

// In backquotes; a bar would end the cell of a table.
std::string in_backquotes(std::string_view name) {
  std::string text = "`";
  for (const char c : name) text += c == '|' ? std::string{"\\|"} : std::string{c};
  return text + "`";
}

// One line for all operators of a family, direction and role.
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

// The flags of one use by name, wrapped.
std::string flags_of(MegatronFlagUse use) {
  constexpr std::size_t kWidth = 140;
  std::vector<std::string_view> names;
  for (const MegatronFlag& flag : megatron_flags())
    if (flag.use == use) names.push_back(flag.name);
  std::ranges::sort(names);
  std::string out, line;
  for (const std::string_view name : names) {
    const std::string word = in_backquotes(name);
    if (line.empty()) {
      line = word;
    } else if (line.size() + word.size() + 3 > kWidth) {
      out += line + ",\n";
      line = word;
    } else {
      line += ", " + word;
    }
  }
  return out + line + "\n";
}

std::string megatron_flags_page() {
  std::string out = heading("Flags of Megatron-LM", "megatron-flags");
  out +=
      "What `stepcast predict` takes as flags or in a command line; [models.md](../models.md) says how they "
      "are "
      "read.\n\n## Understood\n\n";
  out += flags_of(MegatronFlagUse::understood);
  out +=
      "\n## Listed as not modelled\n\nThey change time or memory; a forecast names them among its notes.\n\n";
  out += flags_of(MegatronFlagUse::not_modelled);
  out +=
      "\n## Passed over\n\nThey change neither time nor memory of a step; any number of values may "
      "follow.\n\n";
  out += flags_of(MegatronFlagUse::passed_over);
  return out;
}

constexpr std::array<ReferencePage, 3> kPages{
    {{"operators", "operators of PyTorch and the operations they perform", operators_page},
     {"presets", "models that are known by name", presets_page},
     {"megatron-flags", "flags of Megatron-LM that are understood, listed and passed over",
      megatron_flags_page}}};

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

}  // namespace stepcast
