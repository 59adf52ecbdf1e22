#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {
namespace {

// The one class of the model that the file names; `otherwise` if it does not.
std::string architecture_of(ObjectReader& keys, std::string_view otherwise) {
  if (const JsonValue* names = keys.take("architectures"); names != nullptr && names->is_array() &&
                                                           names->items().size() == 1 &&
                                                           names->items().front().is_text()) {
    return names->items().front().text();
  }
  return std::string{otherwise};
}

// All but the heads.
Status read_bert_layers(ObjectReader& keys, Transformer& model) {
  model.architecture = Architecture::encoder;
  model.final_norm = false;
  model.embedding_norm = true;
  model.hidden_dropout = model.attention_dropout = 0.1;
  model.n_token_types = 2;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("type_vocab_size", model.n_token_types));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("hidden_dropout_prob", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_probs_dropout_prob", model.attention_dropout));
  std::string positions = "absolute";
  STEPCAST_TRY(keys.optional("position_embedding_type", positions));
  if (positions != "absolute") {
    return keys.wrong("position_embedding_type", positions, "`absolute`");
  }
  STEPCAST_TRY(refuse_if_true(keys, "is_decoder", "only encoders are supported"));
  STEPCAST_TRY(refuse_if_true(keys, "add_cross_attention", "only encoders are supported"));
  return Ok{};
}

}  // namespace

// BertModel has a pooler and no head; the models for training have a head.
Status read_bert(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_bert_layers(keys, model));
  const std::string kind = architecture_of(keys, "BertModel");
  model.mlm_head = model.head_bias = kind == "BertForMaskedLM" || kind == "BertForPreTraining";
  model.pooler = kind == "BertModel" || kind == "BertForPreTraining";
  if (!model.mlm_head && !model.pooler) {
    return keys.wrong("architectures", kind, "BertModel, BertForMaskedLM or BertForPreTraining");
  }
  return Ok{};
}

// A BERT without a pooler when it is trained; max_position_embeddings counts two unused rows.
Status read_roberta(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_bert_layers(keys, model));
  model.unused_positions = 2;
  const std::string kind = architecture_of(keys, "RobertaForMaskedLM");
  model.mlm_head = model.head_bias = kind.ends_with("ForMaskedLM");
  model.pooler = kind.ends_with("Model");
  if (model.mlm_head || model.pooler) return Ok{};
  return keys.wrong("architectures", kind, "a model ForMaskedLM, or the one without a head");
}

// Vectors of distances instead of positions, norms behind the parts, no biases on queries, keys and values. One
// stream of attention, as in fine-tuning and in public measurements; pre-training by permutations has two.
Status read_xlnet(ObjectReader& keys, Transformer& model) {
  model.architecture = Architecture::encoder;
  model.final_norm = false;
  model.position = PositionEncoding::relative;
  model.n_token_types = 2;
  model.qkv_bias = model.attention_output_bias = false;
  model.max_position = 512;
  model.hidden_dropout = 0.1;
  STEPCAST_TRY(keys.required("n_layer", model.n_layers));
  STEPCAST_TRY(keys.required("d_model", model.hidden_size));
  STEPCAST_TRY(keys.required("d_inner", model.ffn_hidden_size));
  STEPCAST_TRY(keys.required("n_head", model.n_heads));
  STEPCAST_TRY(keys.optional("d_head", model.head_dim));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.optional("max_position_embeddings", model.max_position));
  STEPCAST_TRY(read_activation(keys, "ff_activation", model.activation));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("dropout", model.hidden_dropout));
  model.attention_dropout = model.hidden_dropout;
  STEPCAST_TRY(refuse_if_false(keys, "untie_r", "biases that all layers share are not modelled"));
  std::string kind = "bi";
  STEPCAST_TRY(keys.optional("attn_type", kind));
  if (kind != "bi") return keys.wrong("attn_type", kind, "`bi`");
  for (const char* key : {"mem_len", "reuse_len"}) {
    std::int64_t tokens = 0;
    STEPCAST_TRY(keys.optional(key, tokens));
    if (tokens > 0) return keys.error(key, "tokens of the step before are not modelled");
  }
  model.head_bias = architecture_of(keys, "XLNetModel") == "XLNetLMHeadModel";
  // Tasks on top, and which distances are clamped or shared: no shape.
  keys.ignore(
      "bi_data clamp_len same_length start_n_top end_n_top summary_last_dropout use_mems_eval "
      "use_mems_train");
  return Ok{};
}

}  // namespace stepcast::detail
