// Reads config.json files of Hugging Face. The family is found by `model_type`; rows of
// huggingface_families.json describe most families. A config with `text_config` is a language model with
// towers for images or sound.
#include "stepcast/formats/huggingface.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/foreign_words.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/huggingface/huggingface_tower.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// Advice for unknown keys.
constexpr std::string_view kUnknownKey =
    "it may change the shape of the model, so it is not ignored; use --ignore-key NAME if it does not";

// Common models that are neither decoders nor BERT-like encoders: their types, and what to do instead.
constexpr std::string_view kEncoderDecoder =
    "this encoder-decoder is not modelled; nearest: bart and t5, or Megatron-LM's flags of T5";
constexpr std::string_view kVision =
    "vision models are not modelled from a config.json; nearest: --model vit-base-patch16, resnet-50 and "
    "their sizes";
constexpr std::string_view kStateSpace =
    "state-space and recurrent layers are not modelled in this form; nearest with Mamba-2, attention and "
    "experts: nemotron_h";
constexpr std::string_view kTower =
    "vision and audio towers are not modelled; for only the language model give its `text_config` as a file";
constexpr std::pair<std::string_view, std::string_view> kNotRead[] = {
    {"led longt5 blenderbot prophetnet switch_transformers", kEncoderDecoder},
    {"deit swin dinov2 convnext clip siglip", kVision},
    {"zamba2 rwkv recurrent_gemma", kStateSpace},
    {"gemma3n phi4_multimodal phi3_v", kTower}};

// The reason why a model type is not read; empty if there is none in the table.
std::string_view why_not_read(std::string_view model_type) {
  for (const auto& [names, why] : kNotRead)
    if (is_among(model_type, names)) return why;
  return {};
}

// The error text about a part that no family supports; empty if there is none.
std::string missing_parts(const ObjectReader& keys) {
  std::string missing;
  for (const auto& [key, part] : detail::foreign_words("parts_not_modelled"))
    if (keys.has(key)) missing = fmt::format("its `{}` is {}, which is not modelled; ", key, part);
  return missing;
}

// Advice for an unknown type: names the part that a key indicates, and a family with that part.
std::string nearest_by_parts(const ObjectReader& keys) {
  // A key, the part of a model that it indicates, and a family with that part.
  struct Sign {
    std::string_view key, part, family;
  };
  constexpr Sign kSigns[] = {
      {"hc_mult", "several residual streams", "deepseek_v4"},
      {"index_topk", "sparse attention with an indexer", "deepseek_v32"},
      {"linear_num_value_heads", "linear attention by the gated delta rule", "qwen3_next"},
      {"mamba_num_heads", "Mamba-2 layers", "nemotron_h"},
      {"ssm_state_size", "state-space layers", "nemotron_h"},
      {"kv_lora_rank", "latent attention", "deepseek_v3"},
      {"decoder_layers", "an encoder before a decoder", "t5-base (a preset)"},
      {"patch_size", "patches of images", "vit-base-patch16 (a preset)"},
      {"n_routed_experts", "routed experts", "glm4_moe"},
      {"num_local_experts", "experts", "mixtral"},
      {"num_experts", "experts", "qwen3_moe"},
      {"sliding_window", "windows of attention", "gemma3_text"},
      {"num_key_value_heads", "grouped queries", "llama"}};
  const std::string missing = missing_parts(keys);
  for (const Sign& sign : kSigns) {
    if (keys.has(sign.key))
      return fmt::format("{}its `{}` is {}: the nearest supported family is {}", missing, sign.key, sign.part,
                         sign.family);
  }
  if (!missing.empty()) return missing + "flags of Megatron-LM describe the rest";
  return "flags of Megatron-LM describe a model of any size";
}

// The error for an unknown model type, with the best available advice.
Error unknown_family(const ObjectReader& keys, const std::string& model_type) {
  const std::vector<std::string> known = huggingface_model_types();
  if (const std::string_view why = why_not_read(model_type); !why.empty()) {
    return keys.error("model_type", std::string{why}).found(fmt::format("`{}`", model_type.substr(0, 60)));
  }
  Error error = keys.error("model_type", "unknown architecture")
                    .found(fmt::format("`{}`", model_type.substr(0, 60)))
                    .expected(fmt::format("one of the {} that docs/models.md lists", known.size()));
  const auto digits = [](std::string_view name) {
    std::string out;
    std::ranges::copy_if(name, std::back_inserter(out), [](char c) { return c >= '0' && c <= '9'; });
    return out;
  };
  // One edit at most: names of families are short.
  const auto meant = nearest_word(model_type, known, 1);
  if (meant && digits(*meant) == digits(model_type) && missing_parts(keys).empty())
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  // A name with other digits is another generation, not a typing error.
  const std::string by_name = meant && digits(*meant) != digits(model_type)
                                  ? fmt::format("; by its name, of another generation, `{}`", *meant)
                                  : std::string{};
  return std::move(error).advice(nearest_by_parts(keys) + by_name);
}

// Released checkpoints may be quantised. The training types come from the layout, so this is only a note.
Status read_quantization(ObjectReader& keys, std::vector<std::string>& notes) {
  STEPCAST_ASSIGN(auto section, keys.section("quantization_config"));
  if (!section) return Ok{};
  std::string method;
  STEPCAST_TRY(section->optional("quant_method", method));
  // DeepSeek-V3 and Kimi K2 are released in fp8, the experts of GPT-OSS in MXFP4; these need no note.
  if (method == "fp8" || method == "mxfp4") return Ok{};
  notes.push_back(fmt::format(
      "the checkpoint is quantized{}: training uses the types of the layout, as before quantization",
      method.empty() ? std::string{} : fmt::format(" ({})", method.substr(0, 60))));
  return Ok{};
}

// A copy of `object` without the member at `path` ("outer.inner"). Nothing if there is no such member.
std::optional<JsonValue> without(const JsonValue& object, std::string_view path) {
  if (!object.is_object()) return std::nullopt;
  JsonValue::Object rest;
  bool found = false;
  for (const JsonValue::Member& member : object.members()) {
    if (member.key == path) {
      found = true;
      continue;
    }
    rest.push_back(member);
    // Keys may contain dots themselves, so each member is tried as a prefix.
    const bool is_outer = path.starts_with(member.key) && path.substr(member.key.size()).starts_with('.');
    if (!is_outer) continue;
    if (auto inner = without(member.value, path.substr(member.key.size() + 1))) {
      found = true;
      rest.back().value = std::move(*inner);
    }
  }
  if (!found) return std::nullopt;
  JsonValue result{std::move(rest)};
  result.set_line(object.line());
  return result;
}

// Replaces Infinity and NaN, which Python writes but JSON does not have, by null. None of them is a size.
std::string without_infinities(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' && (at == 0 || text[at - 1] != '\\')) quoted = !quoted;
    const std::string_view rest = text.substr(at);
    constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](std::string_view w) { return !quoted && rest.starts_with(w); });
    if (word == std::end(kWords)) {
      out += c;
    } else {
      out += "null";
      at += word->size() - 1;
    }
  }
  return out;
}

// Context of reading: output for notes, and options.
struct Reading {
  std::vector<std::string>& notes;
  const VisionSettings& vision;
  const std::string& name;
  std::shared_ptr<const VisionTower> tower = nullptr;  // set after the tower was read
};

Status read_family(ObjectReader& keys, Transformer& model, Reading& reading, bool in_text);

// Reads the tower of a multimodal model, or adds a note that it is left out.
Status read_tower_of(std::string_view model_type, ObjectReader& keys, Transformer& model, Reading& reading) {
  STEPCAST_ASSIGN(auto vision, keys.section("vision_config"));
  const bool hears =
      keys.has("audio_config") || keys.has("encoder_config") || keys.has("visual_tokenizer_config");
  keys.ignore(detail::huggingface_keys("around_text"));
  if ((!vision && !hears) || reading.vision.text_only) {
    if (vision || hears) reading.notes.emplace_back("only the language model (text_config): --text-only");
    return Ok{};
  }
  std::string missing = "vision and audio towers are not counted";
  if (vision) {
    STEPCAST_ASSIGN(model.tower,
                    detail::read_tower(model_type, *vision, keys, model, reading.vision, missing));
  }
  if (!model.tower) {
    reading.notes.push_back(fmt::format("only the language model (text_config): {}", missing));
    return Ok{};
  }
  const VisionTower& tower = *model.tower;
  const bool beside =
      std::ranges::any_of(model.layer_kinds, [](const LayerKind& k) { return k.cross_tokens > 0; });
  reading.tower = model.tower;
  const std::int64_t vectors = tower.images * tower.tokens_per_image;
  const std::string where =
      beside ? fmt::format("next to every sequence, with cross-attention to {} vectors", vectors)
             : fmt::format("in every sequence, as {} of its tokens", vectors);
  reading.notes.push_back(
      fmt::format("{} image{} of {} x {} pixels {}. To change it: --images and --image-size, or --text-only "
                  "without the tower{}",
                  tower.images, tower.images == 1 ? "" : "s", tower.image_size, tower.image_size, where,
                  hears ? "; the audio tower is not counted" : ""));
  return Ok{};
}

// Sets the number of image vectors for cross-attention layers. Without images these layers do not run and are removed.
void set_cross_tokens(Transformer& model, std::vector<std::string>& notes) {
  const auto looks = [&](std::uint8_t kind) { return model.layer_kinds[kind].cross_tokens > 0; };
  if (std::ranges::none_of(model.kind_of_layer, looks)) return;
  const std::int64_t tokens = model.tower ? model.tower->images * model.tower->tokens_per_image : 0;
  if (tokens == 0) {
    const auto left_out = static_cast<std::int64_t>(std::erase_if(model.kind_of_layer, looks));
    model.n_layers -= left_out;
    notes.push_back(fmt::format("no images: {} cross-attention layers are left out", left_out));
    return;
  }
  for (LayerKind& kind : model.layer_kinds)
    if (kind.cross_tokens > 0) kind.cross_tokens = tokens;
}

// Reads the language model in `text_config`, and its tower. Older files of Qwen2-VL have the keys of both in one object.
Status read_text_config(std::string_view model_type, ObjectReader& keys, Transformer& model,
                        Reading& reading) {
  STEPCAST_ASSIGN(auto text, keys.section("text_config"));
  const bool is_flat = !text && model_type.starts_with("qwen2") && keys.has("hidden_size");
  if (!text && !is_flat)
    return keys.error("", "`text_config` is missing").expected("the language model as an object");
  if (is_flat) {
    STEPCAST_TRY(detail::read_row(*detail::huggingface_row("qwen2"), keys, model));
  } else {
    STEPCAST_TRY(read_family(*text, model, reading, true));
    // The key of the whole model has precedence.
    STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  }
  STEPCAST_TRY(read_tower_of(model_type, keys, model, reading));
  set_cross_tokens(model, reading.notes);
  std::string around;
  keys.ignore(detail::huggingface_keys("harmless"));
  for (const std::string& key : keys.left()) {
    if (key == "quantization_config") continue;
    // Many files repeat sizes of the language model outside of `text_config`. Unknown keys are mentioned for
    // known towers only; for other models a note says that the rest is left out.
    if (text && !text->has(key) && is_among(model_type, detail::huggingface_keys("with_tower")))
      around += fmt::format("{}`{}`", around.empty() ? "" : ", ", key.substr(0, 60));
    if (text) keys.ignore(key);
  }
  if (!around.empty()) reading.notes.push_back(fmt::format("unknown keys next to `text_config`: {}", around));
  return Ok{};
}

// Reads an object except for harmless keys. `in_text`: it is the text_config of another model.
Status read_family(ObjectReader& keys, Transformer& model, Reading& reading, bool in_text) {
  std::string model_type;
  STEPCAST_TRY(keys.optional("model_type", model_type));
  if (model_type.empty()) {
    return keys.error("", "`model_type` is missing").expected("the config.json of a Hugging Face model");
  }
  // Order: other networks, models with towers, families of the table, unknown types.
  const detail::FamilyRow* row = detail::huggingface_row(model_type);
  const bool has_tower = is_among(model_type, detail::huggingface_keys("with_tower"));
  if (!in_text) {
    STEPCAST_ASSIGN(auto network, detail::read_network(model_type, keys, reading.name, reading.vision));
    if (network) {
      model = std::move(*network);
      keys.ignore(detail::huggingface_keys("harmless"));
      return keys.finish();
    }
  }
  // Unknown models around a known language model, which is in a section.
  const bool around = keys.has("text_config") && row == nullptr && why_not_read(model_type).empty() &&
                      (keys.has("vision_config") || keys.has("audio_config") || keys.has("encoder_config") ||
                       keys.has("visual_tokenizer_config"));
  if (!in_text && ((has_tower && (keys.has("text_config") || row == nullptr)) || around)) {
    STEPCAST_TRY(read_text_config(model_type, keys, model, reading));
  } else if (row != nullptr) {
    STEPCAST_TRY(detail::read_row(*row, keys, model));
    if (!in_text) set_cross_tokens(model, reading.notes);
    if (!row->left_out.empty()) reading.notes.push_back(fmt::format("left out: {}", row->left_out));
  } else {
    return unknown_family(keys, model_type);
  }
  STEPCAST_TRY(read_quantization(keys, reading.notes));
  for (const char* key : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"}) {
    double unused = 0;  // without effect on time, but it must be a number
    STEPCAST_TRY(keys.optional(key, unused));
  }
  STEPCAST_TRY(
      detail::refuse_if_true(keys, "add_cross_attention", "decoders with an encoder are not supported"));
  keys.ignore(detail::huggingface_keys("harmless"));
  return detail::finish_with_unknown_keys(keys, reading.notes);
}

// Notes about parts that are priced without measured kernels.
void note_parts_without_records(const Transformer& model, std::vector<std::string>& notes) {
  if (model.state_mixer) {
    notes.emplace_back(
        "recurrent layers (linear attention, Mamba, short convolutions) are modelled by FLOPs and bytes: no "
        "kernel was measured");
  }
  if (!attention_of(model).traits().is_measured) {
    notes.emplace_back(
        "compressed attention, its indexer and residual mixing are modelled by FLOPs and bytes, attention as "
        "a window of as many keys: no kernel was measured");
  } else if (model.sparse_indexer) {
    notes.emplace_back(
        "sparse attention: the indexer is modelled by FLOPs and bytes, attention as a window of as many "
        "keys");
  }
}

}  // namespace

std::vector<std::string> huggingface_model_types() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view type) {
    names.emplace_back(type);
    return false;
  };
  for (const auto& row : detail::huggingface_rows()) add(row.model_type);
  (void)any_word(detail::huggingface_keys("with_tower"), add);
  return names;
}

// Order: remove ignored keys, normalise the names, read the family, check the model.
Result<Transformer> parse_huggingface_config(std::string_view text, const std::string& name,
                                             std::span<const std::string> ignored_keys,
                                             std::vector<std::string>* notes, const VisionSettings& vision) {
  STEPCAST_ASSIGN(JsonValue root, parse_json(without_infinities(text), name));
  for (const std::string& key : ignored_keys) {
    std::optional<JsonValue> rest = without(root, key);
    if (!rest) {
      return Error::at(name, fmt::format("the key `{}` to ignore", key.substr(0, 80)))
          .found("no such key")
          .expected("a key of the file, `outer.inner` for one in an object");
    }
    root = std::move(*rest);
  }
  std::vector<std::string> said;
  root = detail::with_usual_keys(root, said);
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(root, "", name, NullMeans::absent, kUnknownKey));
  Transformer model;
  model.name = name;
  Reading reading{.notes = said, .vision = vision, .name = name};
  STEPCAST_TRY(read_family(keys, model, reading, false));
  // Image options without effect are errors.
  if ((vision.images && !reading.tower) || (vision.image_size && !reading.tower && !model.network)) {
    return Error::at(name, vision.images ? "--images" : "--image-size",
                     "this model has no supported vision tower")
        .advice("leave it out");
  }
  STEPCAST_TRY(check(model));
  note_parts_without_records(model, said);
  if (notes != nullptr) notes->insert(notes->end(), said.begin(), said.end());
  return model;
}

Result<Transformer> read_huggingface_config(const std::filesystem::path& path,
                                            std::span<const std::string> ignored_keys,
                                            std::vector<std::string>* notes, const VisionSettings& vision) {
  std::error_code failure;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, failure) ? path / "config.json" : path;
  STEPCAST_ASSIGN(const std::string text, read_file(file, JsonLimits{}.max_bytes));
  STEPCAST_ASSIGN(Transformer model,
                  parse_huggingface_config(text, file.string(), ignored_keys, notes, vision));
  const std::filesystem::path folder =
      std::filesystem::absolute(file, failure).lexically_normal().parent_path();
  // A config under another name gives the model that name.
  const std::string stem = file.stem().string();
  model.name = stem == "config" && folder.has_filename() ? folder.filename().string() : stem;
  return model;
}

}  // namespace stepcast
