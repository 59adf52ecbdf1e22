#include "stepcast/describe/huggingface.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/describe/detail/huggingface_families.h"

namespace stepcast {
namespace {

constexpr std::string_view kUnknownKey =
    "it may change the shape of the model, so it is not passed over; --ignore-key NAME says that it does not";

// Models that many people try and that are no decoder or BERT of attention and feed-forward layers.
constexpr std::string_view kEncoderDecoder = "encoder-decoders are not modelled";
constexpr std::string_view kVision = "vision models are not modelled";
constexpr std::string_view kStateSpace = "state-space and recurrent layers are not modelled";
constexpr std::string_view kTower =
    "vision and audio towers are not modelled; for the language model alone give its `text_config` as a file";
constexpr std::pair<std::string_view, std::string_view> kNotRead[] = {
    {"olmo", "norms without weights are not modelled"},
    {"t5", kEncoderDecoder},
    {"mt5", kEncoderDecoder},
    {"umt5", kEncoderDecoder},
    {"bart", kEncoderDecoder},
    {"mbart", kEncoderDecoder},
    {"pegasus", kEncoderDecoder},
    {"marian", kEncoderDecoder},
    {"m2m_100", kEncoderDecoder},
    {"whisper", kEncoderDecoder},
    {"vit", kVision},
    {"deit", kVision},
    {"swin", kVision},
    {"dinov2", kVision},
    {"convnext", kVision},
    {"resnet", kVision},
    {"clip", kVision},
    {"siglip", kVision},
    {"mamba", kStateSpace},
    {"mamba2", kStateSpace},
    {"falcon_mamba", kStateSpace},
    {"jamba", kStateSpace},
    {"bamba", kStateSpace},
    {"zamba2", kStateSpace},
    {"rwkv", kStateSpace},
    {"recurrent_gemma", kStateSpace},
    {"nemotron_h", kStateSpace},
    {"falcon_h1", kStateSpace},
    {"granitemoehybrid", kStateSpace},
    {"qwen3_next", kStateSpace},
    {"lfm2", kStateSpace},
    {"gemma3", kTower},
    {"gemma3n", kTower},
    {"llama4", kTower},
    {"mllama", kTower},
    {"llava", kTower},
    {"llava_next", kTower},
    {"qwen2_vl", kTower},
    {"qwen2_5_vl", kTower},
    {"qwen3_vl", kTower},
    {"internvl", kTower},
    {"idefics3", kTower},
    {"mistral3", kTower},
    {"phi4_multimodal", kTower},
    {"phi3_v", kTower}};

std::string_view why_not_read(std::string_view model_type) {
  for (const auto& [name, why] : kNotRead) {
    if (name == model_type) return why;
  }
  return {};
}

Error unknown_family(const ObjectReader& keys, const std::string& model_type) {
  const std::vector<std::string> known = huggingface_model_types();
  std::string list;
  for (const std::string& name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  if (const std::string_view why = why_not_read(model_type); !why.empty()) {
    return keys.error("model_type", std::string{why}).found(fmt::format("`{}`", model_type.substr(0, 60)));
  }
  Error error = keys.error("model_type", "unknown architecture")
                    .found(fmt::format("`{}`", model_type.substr(0, 60)))
                    .expected(fmt::format("one of {}", list));
  if (const auto meant = nearest_word(model_type, known)) {
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  }
  return error;
}

// Released weights may be stored in narrow types; how a model is trained is told by the layout.
Status read_quantization(ObjectReader& keys) {
  STEPCAST_ASSIGN(auto section, keys.section("quantization_config"));
  if (!section) return Ok{};
  std::string method;
  STEPCAST_TRY(section->optional("quant_method", method));
  // DeepSeek-V3 and Kimi K2 are released in fp8, the experts of GPT-OSS in MXFP4.
  if (method == "fp8" || method == "mxfp4") return Ok{};
  return keys.error("quantization_config", "quantized weights cannot be trained")
      .found(fmt::format("`{}`", method.substr(0, 60)))
      .expected("the config of the model that was quantized");
}

// `object` less the member at `path`, "outer.inner"; nothing if there is none.
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

}  // namespace

std::vector<std::string> huggingface_model_types() {
  std::vector<std::string> names;
  for (const auto& family : detail::huggingface_families()) names.emplace_back(family.model_type);
  return names;
}

Result<Transformer> parse_huggingface_config(std::string_view text, const std::string& name,
                                             std::span<const std::string> ignored_keys) {
  STEPCAST_ASSIGN(JsonValue root, parse_json(text, name));
  for (const std::string& key : ignored_keys) {
    std::optional<JsonValue> rest = without(root, key);
    if (!rest) {
      return Error::at(name, fmt::format("the key `{}` to ignore", key.substr(0, 80)))
          .found("no such key")
          .expected("a key of the file, `outer.inner` for one in an object");
    }
    root = std::move(*rest);
  }
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(root, "", name, NullMeans::absent, kUnknownKey));
  std::string model_type;
  STEPCAST_TRY(keys.optional("model_type", model_type));
  if (model_type.empty()) {
    return keys.error("", "`model_type` is missing").expected("the config.json of a Hugging Face model");
  }
  const auto families = detail::huggingface_families();
  const auto family = std::find_if(families.begin(), families.end(),
                                   [&](const auto& f) { return f.model_type == model_type; });
  if (family == families.end()) return unknown_family(keys, model_type);
  Transformer model;
  model.name = name;
  STEPCAST_TRY(family->read(keys, model));
  STEPCAST_TRY(read_quantization(keys));
  keys.ignore(detail::harmless_huggingface_keys());
  STEPCAST_TRY(keys.finish());
  STEPCAST_TRY(check(model));
  return model;
}

Result<Transformer> read_huggingface_config(const std::filesystem::path& path,
                                            std::span<const std::string> ignored_keys) {
  std::error_code failure;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, failure) ? path / "config.json" : path;
  STEPCAST_ASSIGN(const std::string text, read_file(file, JsonLimits{}.max_bytes));
  STEPCAST_ASSIGN(Transformer model, parse_huggingface_config(text, file.string(), ignored_keys));
  std::filesystem::path folder = std::filesystem::absolute(file, failure).parent_path();
  const std::string stem = file.stem().string();
  model.name = stem == "config" && folder.has_filename() ? folder.filename().string() : stem;
  return model;
}

}  // namespace stepcast
