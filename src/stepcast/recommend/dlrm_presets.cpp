// Reads the table of published models, tables/dlrm_presets.json.
#include "stepcast/recommend/dlrm_presets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/shipped_table.h"

namespace stepcast {
namespace {

STEPCAST_MEMBERS(kDlrm, &Dlrm::name, &Dlrm::dense_features, &Dlrm::interaction);
STEPCAST_MEMBERS(kDlrmTable, &EmbeddingTable::dim, &EmbeddingTable::skew);

// The list of whole numbers under `key`; empty if it is missing.
std::vector<std::int64_t> whole_numbers(ObjectReader& keys, std::string_view key) {
  const JsonValue* list = keys.take(key);
  std::vector<std::int64_t> out;
  if (list == nullptr) return out;
  for (const double number : list->numbers().value_or(std::vector<double>{}))
    out.push_back(static_cast<std::int64_t>(number));
  return out;
}

// Reads a row of tables/dlrm_presets.json. All embedding tables of a preset have the same width and the same
// popularity of values (Zipf's law, which is assumed). `lookups` is per table and sample, default 1. `why` is
// a note for readers of the file.
Result<Dlrm> read_dlrm_preset(ObjectReader& keys) {
  Dlrm model;
  EmbeddingTable table;
  STEPCAST_TRY(read_members(keys, kDlrm, model));
  STEPCAST_TRY(read_members(keys, kDlrmTable, table));
  STEPCAST_TRY(keys.optional("tables", table.name));
  model.bottom_mlp = whole_numbers(keys, "bottom_mlp");
  model.top_mlp = whole_numbers(keys, "top_mlp");
  const std::vector<std::int64_t> rows = whole_numbers(keys, "rows"),
                                  lookups = whole_numbers(keys, "lookups");
  if (!lookups.empty() && lookups.size() != rows.size())
    return keys.error("lookups").expected("a number for each of `rows`");
  keys.ignore("why");
  STEPCAST_TRY(keys.finish());
  for (std::size_t t = 0; t < rows.size(); ++t) {
    EmbeddingTable& one = model.tables.emplace_back(table);
    one.name = fmt::format("{}_{}", table.name, t);
    one.rows = rows[t];
    if (!lookups.empty()) one.pooling = static_cast<double>(lookups[t]);
  }
  return model;
}

Result<std::vector<Dlrm>> read_dlrm_presets() {
  const std::string file = "dlrm_presets.json";
  STEPCAST_ASSIGN(const JsonValue rows, parse_json(shipped_table(file), file));
  std::vector<Dlrm> presets;
  for (const JsonValue& row : rows.items()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(row, "", file));
    STEPCAST_ASSIGN(Dlrm preset, read_dlrm_preset(keys));
    presets.push_back(std::move(preset));
  }
  return presets;
}

const std::vector<Dlrm>& dlrm_presets() {
  static const std::vector<Dlrm> kPresets = as_shipped(read_dlrm_presets());
  return kPresets;
}

}  // namespace

std::vector<std::string> dlrm_names() {
  std::vector<std::string> names;
  for (const Dlrm& preset : dlrm_presets()) names.push_back(preset.name);
  return names;
}

std::optional<Dlrm> dlrm_preset(std::string_view name) {
  const auto found = std::ranges::find(dlrm_presets(), name, &Dlrm::name);
  return found == dlrm_presets().end() ? std::nullopt : std::optional{*found};
}

}  // namespace stepcast
