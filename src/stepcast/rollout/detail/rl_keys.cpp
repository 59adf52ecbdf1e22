#include "stepcast/rollout/detail/rl_keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/megatron_writer.h"

namespace stepcast::detail {
namespace {

// Words for true and false in configs, in lower case.
constexpr std::string_view kOn = "true 1 yes on", kOff = "false 0 no off none null";

// A row of tables/rl_keys.csv. A trailing `*` of a key matches any rest.
struct KeyRow {
  std::string_view framework, section, keys;
  bool is_passed_over = false;  // false: `key=value` gives the default, which has no effect
};

// All rows of the table.
Result<std::vector<KeyRow>> read_rows() {
  const std::string file = "rl_keys.csv";
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table(file), file));
  std::vector<KeyRow> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const std::string_view use = rows.cell("use");
    if (use != "usual" && use != "passed_over") return rows.error("use").expected("usual or passed_over");
    all.push_back({rows.cell("framework"), rows.cell("section"), rows.cell("keys"), use == "passed_over"});
  }
}

// True if a key never affects time or memory, or if it has its default value.
bool is_without_effect(std::string_view framework, std::string_view path, const std::string& value) {
  static const std::vector<KeyRow> kRows = as_shipped(read_rows());
  bool is_usual = value.empty() || is_among(lower(value), kOff) || value == "[]" || value == "{}";
  for (const KeyRow& row : kRows) {
    if (row.framework != framework || !path.starts_with(row.section)) continue;
    const std::string_view key = path.substr(row.section.size());
    const bool is_passed = any_word(row.keys, [&](std::string_view name) {
      const std::size_t equals = row.is_passed_over ? std::string_view::npos : name.find('=');
      const std::string_view known = name.substr(0, equals);
      const bool is_it =
          known.ends_with('*') ? key.starts_with(known.substr(0, known.size() - 1)) : key == known;
      if (!is_it || row.is_passed_over) return is_it;
      is_usual = lower(value) == name.substr(equals + 1) || value.empty() || lower(value) == "null";
      return false;
    });
    if (is_passed) return true;
  }
  return is_usual;
}

// True for identifiers: letters, digits and underscores.
bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
  });
}

}  // namespace

std::string RlKeys::value(const std::string& path) const {
  auto found = values_.find(path);
  // References to references are followed up to this depth.
  constexpr int kMostHops = 4;
  for (int hop = 0; hop < kMostHops && found != values_.end(); ++hop) {
    const std::string& value = found->second;
    if (!value.starts_with("${") || !value.ends_with('}')) break;
    const std::string inside = value.substr(2, value.size() - 3);
    const auto other = values_.find(inside);
    if (other == values_.end()) return is_name(inside) ? value : std::string{};
    found = other;
  }
  if (found == values_.end() || found->second == "null" || found->second == "None") return {};
  return found->second;
}

std::string RlKeys::text(const std::string& path) {
  asked_.insert(path);
  return value(path);
}

bool RlKeys::is_on(const std::string& path, bool otherwise) {
  const std::string word = lower(text(path));
  if (word.empty()) return otherwise;
  if (!is_among(word, kOn) && !is_among(word, kOff)) refuse(path, word, "true or false");
  return is_among(word, kOn);
}

std::optional<double> RlKeys::number(const std::string& path) {
  const std::string word = text(path);
  if (word.empty()) return std::nullopt;
  const std::optional<double> value = scan<double>(word);
  constexpr double kMost = 1e12;
  if (value && std::abs(*value) <= kMost) return value;
  refuse(path, word, "a number");
  return std::nullopt;
}

std::optional<std::int64_t> RlKeys::whole(const std::string& path) {
  const std::optional<double> value = number(path);
  if (!value) return std::nullopt;
  if (*value >= 0 && *value == std::floor(*value)) return static_cast<std::int64_t>(*value);
  refuse(path, text(path), "a whole number");
  return std::nullopt;
}

std::optional<std::int64_t> RlKeys::degree(const std::string& path) {
  const std::optional<std::int64_t> value = whole(path);
  return value.value_or(1) > 1 ? value : std::nullopt;
}

std::optional<std::int64_t> RlKeys::gpus(const std::string& nodes, std::int64_t usual_nodes,
                                         const std::string& in_node, std::int64_t usual_in_node) {
  if (text(nodes).starts_with('$') || text(in_node).starts_with('$')) return std::nullopt;
  const std::int64_t a = whole_or(nodes, usual_nodes), b = whole_or(in_node, usual_in_node);
  constexpr std::int64_t kMost = 1 << 24;
  if (a > kMost || b > kMost) return std::nullopt;
  return a * b;
}

bool RlKeys::has(std::string_view beginning) const {
  const auto at = values_.lower_bound(beginning);
  return at != values_.end() && at->first.starts_with(beginning);
}

void RlKeys::pass(std::string_view beginning) {
  for (auto at = values_.lower_bound(beginning); at != values_.end() && at->first.starts_with(beginning);
       ++at)
    asked_.insert(at->first);
}

void RlKeys::same(const std::string& section, const std::string& other, std::string_view renamed,
                  std::string_view as) {
  for (auto at = values_.lower_bound(section); at != values_.end() && at->first.starts_with(section); ++at) {
    if (asked_.contains(at->first)) continue;
    std::string name = at->first.substr(section.size());
    if (!renamed.empty() && name.starts_with(renamed)) name.replace(0, renamed.size(), as);
    if (values_.contains(other + name) && lower(value(other + name)) == lower(value(at->first)))
      asked_.insert(at->first);
  }
}

void RlKeys::use_megatron(const std::string& section, Job& job) {
  // Arguments with a meaning only in combination, which command_line_of_arguments() interprets. Arguments of experts need a
  // number of experts; the model gives the real one.
  constexpr std::string_view kTogether[] = {"recompute_",
                                            "fp8",
                                            "cuda_graph_",
                                            "cpu_offloading",
                                            "moe_flex_",
                                            "moe_enable_deepep",
                                            "moe_token_dispatcher_type",
                                            "use_custom_fsdp",
                                            "use_megatron_fsdp",
                                            "data_parallel_sharding_strategy"};
  std::vector<std::pair<std::string, std::string>> arguments{{"num_experts", "1"}};
  std::vector<std::string> alone;
  for (auto at = values_.lower_bound(section); at != values_.end() && at->first.starts_with(section); ++at) {
    const std::string name = at->first.substr(section.size());
    if (asked_.contains(at->first) || !is_name(name)) continue;
    std::string flag = "--" + name;
    std::ranges::replace(flag, '_', '-');
    const std::optional<MegatronFlagUse> use = use_of_megatron_flag(flag);
    if (use == MegatronFlagUse::passed_over) asked_.insert(at->first);
    if (use != MegatronFlagUse::understood) continue;
    const std::string said = text(at->first), word = lower(said);
    if (said.empty()) continue;
    const bool is_switch = word == "true" || word == "false";
    const std::string other = word == "false" ? "--no-" + flag.substr(2) : flag;
    const bool needs_others =
        said.find_first_of("[ ") != std::string::npos ||
        std::ranges::any_of(kTogether, [&](std::string_view begins) { return name.starts_with(begins); });
    if (needs_others || use_of_megatron_flag(other) != MegatronFlagUse::understood) {
      arguments.emplace_back(name, word == "true" ? "True" : word == "false" ? "False" : said);
    } else {
      alone.push_back(other);
      if (!is_switch) alone.push_back(said);
    }
  }
  auto words = words_of_launch_script(command_line_of_arguments(arguments, false));
  if (words) {
    words->erase(words->begin());
    words->insert(words->end(), alone.begin(), alone.end());
  }
  auto read = words ? parse_megatron_flags(*words) : words.error();
  if (!read) {
    if (!wrong_) wrong_ = Error::at(file_, section.substr(0, section.size() - 1), read.error().message());
    return;
  }
  // The dummy number of experts is removed again.
  read->settings.n_experts.reset();
  if (read->settings.fully_sharded.value_or(false) || read->settings.sharding)
    job.settings.distributed_optimizer.reset();
  job.settings = over(read->settings, job.settings);
}

void RlKeys::refuse(const std::string& path, const std::string& found, std::string expected) {
  if (!wrong_)
    wrong_ = Error::at(file_, path).found("`" + found.substr(0, 80) + "`").expected(std::move(expected));
}

void RlKeys::list_rest(std::string_view framework, std::vector<std::string>& not_modelled,
                       std::vector<std::string>& notes) const {
  const std::vector<std::string> known{asked_.begin(), asked_.end()};
  for (const auto& [path, written] : values_) {
    if (asked_.contains(path) || path.ends_with("_target_") ||
        is_without_effect(framework, path, value(path)))
      continue;
    constexpr std::size_t kLongest = 160;
    const std::string key = path.substr(0, kLongest);
    not_modelled.push_back(fmt::format("{}={}", key, value(path).substr(0, 40)));
    if (const auto meant = nearest_word(path, known, 2))
      notes.push_back(fmt::format("left out: unknown key `{}`; did you mean `{}`?", key, *meant));
  }
}

}  // namespace stepcast::detail
