// Reads tables/huggingface_families.json, with one row per family: fixed properties and the keys for the
// others. A row applies to each word in its `model_type`. A row with `like` inherits from that row above it,
// and overrides what it sets itself. `why` is documentation.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/transformer_features.h"

namespace stepcast::detail {
namespace {

using E = ExpertKeys;
using K = StateKeys;
using A = AttentionKeys;
using R = FamilyRow;

// Members that the table may set, in each part of a row.
STEPCAST_MEMBERS(kExpertKeys, &E::width, &E::latent_size, &E::layers, &E::one_shared_width, &E::switch_key,
                 &E::shared_gate, &E::router_bias, &E::one_shared, &E::dense_beside, &E::complete);
STEPCAST_MEMBERS(kStateKeys, &K::n_heads, &K::head_dim, &K::n_key_heads, &K::key_head_dim, &K::conv_kernel,
                 &K::conv_bias, &K::chunk_tokens, &K::norm, &K::has_norm, &K::mixer, &K::low_rank);
STEPCAST_MEMBERS(kAttentionKeys, &A::n_heads, &A::n_kv_heads, &A::head_dim, &A::v_head_dim, &A::sinks,
                 &A::values_are_keys);
STEPCAST_MEMBERS(kBiasKeys, &BiasKey::key, &BiasKey::otherwise);
STEPCAST_MEMBERS(kRow, &R::model_type, &R::pattern, &R::attending, &R::interval, &R::activation,
                 &R::further_tokens, &R::further_pattern, &R::must_be_off, &R::no_shape, &R::left_out,
                 &R::sliding_kv_factor, &R::latent, &R::own_keys, &R::norm_bias, &R::gated_ffn,
                 &R::tied_otherwise, &R::norm, &R::sections, &R::must_say, &R::window, &R::hook,
                 &R::ffn_times, &R::rotary_width, &R::adds_unused, &R::state_alone);

// Calls read(section) if the section is present. Errors: keys that `read` did not read.
template <class Read>
Status read_section(ObjectReader& keys, std::string_view key, const Read& read) {
  STEPCAST_ASSIGN(auto section, keys.section(key));
  if (!section) return Ok{};
  STEPCAST_TRY(read(*section));
  return section->finish();
}

// Reads the members of a part under its key, if it is present.
template <class List, class Part>
Status read_part(ObjectReader& keys, std::string_view key, const List& members, Part& out) {
  return read_section(keys, key, [&](ObjectReader& section) { return read_members(section, members, out); });
}

// One row. `above`: the rows before it, for `like`.
Result<FamilyRow> read_family(ObjectReader& keys, const std::vector<FamilyRow>& above) {
  FamilyRow row;
  std::string like;
  STEPCAST_TRY(keys.optional("like", like));
  if (!like.empty()) {
    const auto base = std::ranges::find(above, like, &FamilyRow::model_type);
    if (base == above.end()) return keys.wrong("like", like, "a family above");
    row = *base;
  }
  STEPCAST_TRY(read_members(keys, kRow, row));
  for (const auto& [key, object] :
       {std::pair{"spelled", &row.spelled}, {"says", &row.says}, {"must_be", &row.must_be}})
    if (const JsonValue* said = keys.take(key)) *object = said;
  STEPCAST_TRY(read_section(keys, "model", [&](ObjectReader& o) { return read_features(o, row.model); }));
  STEPCAST_TRY(read_part(keys, "experts", kExpertKeys, row.experts));
  STEPCAST_TRY(read_part(keys, "state", kStateKeys, row.state));
  STEPCAST_TRY(read_part(keys, "sliding", kAttentionKeys, row.sliding));
  STEPCAST_TRY(read_part(keys, "full", kAttentionKeys, row.full));
  for (const auto& [key, bias] : {std::pair{"qkv_bias", &row.qkv_bias},
                                  {"output_bias", &row.output_bias},
                                  {"ffn_bias", &row.ffn_bias}}) {
    if (keys.has(key)) *bias = {};
    STEPCAST_TRY(read_part(keys, key, kBiasKeys, *bias));
  }
  keys.ignore("why");
  STEPCAST_TRY(keys.finish());
  return row;
}

// The JSON document stays in memory, because rows have views of its texts.
Result<std::vector<FamilyRow>> read_family_rows() {
  static const std::string kFile = "huggingface_families.json";
  static const Result<JsonValue> kTable = parse_json(shipped_table(kFile), kFile);
  if (!kTable) return kTable.error();
  std::vector<FamilyRow> rows;
  for (const JsonValue& item : kTable->items()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", kFile));
    STEPCAST_ASSIGN(FamilyRow row, read_family(keys, rows));
    (void)any_word(row.model_type, [&](std::string_view type) {
      rows.push_back(row);
      rows.back().model_type = type;
      return false;
    });
  }
  return rows;
}

}  // namespace

std::span<const FamilyRow> huggingface_rows() {
  static const std::vector<FamilyRow> rows = as_shipped(read_family_rows());
  return rows;
}

const FamilyRow* huggingface_row(std::string_view model_type) {
  const auto rows = huggingface_rows();
  const auto row = std::ranges::find(rows, model_type, &FamilyRow::model_type);
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace stepcast::detail
