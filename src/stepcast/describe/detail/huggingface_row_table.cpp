// The families that tables/huggingface_families.json describes, a row each: what they always have, and which keys say the
// rest. A row goes by all the words of its `model_type`; `why` is for readers.
#include <initializer_list>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/detail/huggingface_rows.h"
#include "stepcast/describe/detail/transformer_features.h"

namespace stepcast::detail {
namespace {

// Views of the table, which stays.
Status read_texts(ObjectReader& keys,
                  std::initializer_list<std::pair<std::string_view, std::string_view*>> members) {
  for (const auto& [key, out] : members) {
    const JsonValue* value = keys.take(key);
    if (value == nullptr) continue;
    if (!value->is_text()) return keys.wrong_kind(key, *value, "a text");
    *out = value->text();
  }
  return Ok{};
}

// Calls read(section), if it is there, and complains of what that did not take.
template <class Read>
Status read_section(ObjectReader& keys, std::string_view key, const Read& read) {
  STEPCAST_ASSIGN(auto section, keys.section(key));
  if (!section) return Ok{};
  STEPCAST_TRY(read(*section));
  return section->finish();
}

Status read_experts(ObjectReader& keys, ExpertKeys& e) {
  STEPCAST_TRY(read_texts(keys, {{"width", &e.width},
                                 {"latent_size", &e.latent_size},
                                 {"layers", &e.layers},
                                 {"one_shared_width", &e.one_shared_width},
                                 {"switch_key", &e.switch_key}}));
  STEPCAST_TRY(keys.optional("shared_gate", e.shared_gate));
  STEPCAST_TRY(keys.optional("router_bias", e.router_bias));
  STEPCAST_TRY(keys.optional("one_shared", e.one_shared));
  return keys.optional("dense_beside", e.dense_beside);
}

Status read_state_keys(ObjectReader& keys, StateKeys& s) {
  STEPCAST_TRY(read_texts(keys, {{"n_heads", &s.n_heads},
                                 {"head_dim", &s.head_dim},
                                 {"n_key_heads", &s.n_key_heads},
                                 {"key_head_dim", &s.key_head_dim},
                                 {"conv_kernel", &s.conv_kernel},
                                 {"conv_bias", &s.conv_bias},
                                 {"chunk_tokens", &s.chunk_tokens},
                                 {"norm", &s.norm}}));
  STEPCAST_TRY(read_word<Mixer::none>(keys, "mixer", s.mixer));
  return keys.optional("low_rank", s.low_rank);
}

Result<FamilyRow> read_family(ObjectReader& keys) {
  FamilyRow row;
  STEPCAST_TRY(read_texts(keys, {{"model_type", &row.model_type},
                                 {"pattern", &row.pattern},
                                 {"attending", &row.attending},
                                 {"interval", &row.interval},
                                 {"activation", &row.activation},
                                 {"further_tokens", &row.further_tokens},
                                 {"further_pattern", &row.further_pattern},
                                 {"must_be_off", &row.must_be_off},
                                 {"no_shape", &row.no_shape},
                                 {"left_out", &row.left_out}}));
  STEPCAST_TRY(keys.optional("sliding_kv_factor", row.sliding_kv_factor));
  STEPCAST_TRY(keys.optional("latent", row.latent));
  STEPCAST_TRY(keys.optional("own_keys", row.own_keys));
  STEPCAST_TRY(keys.optional("norm_bias", row.norm_bias));
  STEPCAST_TRY(keys.optional("gated_ffn", row.gated_ffn));
  STEPCAST_TRY(keys.optional("tied_otherwise", row.tied_otherwise));
  STEPCAST_TRY(read_word<NormKind::group_norm>(keys, "norm", row.norm));
  STEPCAST_TRY(read_section(keys, "model", [&](ObjectReader& o) { return read_features(o, row.model); }));
  STEPCAST_TRY(read_section(keys, "experts", [&](ObjectReader& o) { return read_experts(o, row.experts); }));
  STEPCAST_TRY(read_section(keys, "state", [&](ObjectReader& o) { return read_state_keys(o, row.state); }));
  for (const auto& [key, names] : {std::pair{"sliding", &row.sliding}, {"full", &row.full}})
    STEPCAST_TRY(read_section(keys, key, [to = names](ObjectReader& o) {
      return read_texts(o, {{"n_heads", &to->n_heads},
                            {"n_kv_heads", &to->n_kv_heads},
                            {"head_dim", &to->head_dim},
                            {"v_head_dim", &to->v_head_dim},
                            {"sinks", &to->sinks},
                            {"values_are_keys", &to->values_are_keys}});
    }));
  for (const auto& [key, bias] :
       {std::pair{"qkv_bias", &row.qkv_bias}, {"output_bias", &row.output_bias}, {"ffn_bias", &row.ffn_bias}})
    STEPCAST_TRY(read_section(keys, key, [to = bias](ObjectReader& o) {
      *to = {};
      const Status key_read = read_texts(o, {{"key", &to->key}});
      return key_read.ok() ? o.optional("otherwise", to->otherwise) : key_read;
    }));
  keys.ignore("why");
  STEPCAST_TRY(keys.finish());
  return row;
}

Result<std::vector<FamilyRow>> read_family_rows() {
  static const std::string kFile = "huggingface_families.json";
  static const Result<JsonValue> kTable = parse_json(shipped_table(kFile), kFile);
  if (!kTable) return kTable.error();
  std::vector<FamilyRow> rows;
  for (const JsonValue& item : kTable->items()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", kFile));
    STEPCAST_ASSIGN(FamilyRow row, read_family(keys));
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

}  // namespace stepcast::detail
