// Models on Hugging Face other than decoder-only language models: ViT, ResNet, encoder-decoder models.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/network_presets.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_tower.h"

namespace stepcast::detail {
namespace {

// Largest image, in pixels per side.
constexpr std::int64_t kLargestImage = 4096;

// Number of labels of a classifier. Without labels in the file it is 2, the default of transformers.
Status read_classes(ObjectReader& keys, std::int64_t& classes) {
  classes = 2;
  if (const JsonValue* labels = keys.take("id2label"); labels != nullptr && labels->is_object())
    classes = std::max<std::int64_t>(1, static_cast<std::int64_t>(labels->members().size()));
  return keys.optional("num_labels", classes);
}

// The image size, from the settings or the file, which must be a multiple of `step`.
Status read_image(ObjectReader& keys, const VisionSettings& settings, std::int64_t step,
                  std::int64_t& pixels) {
  STEPCAST_TRY(keys.optional("image_size", pixels));
  if (settings.image_size) pixels = *settings.image_size;
  if (pixels >= std::max<std::int64_t>(step, 1) && pixels <= kLargestImage && pixels % step == 0) return Ok{};
  return bad_value(settings.image_size ? "--image-size" : "image_size", pixels,
                   fmt::format("pixels in either direction: a multiple of {} up to {}", step, kLargestImage));
}

// Errors: a size outside 1 to `largest`.
Status in_range(const ObjectReader& keys, std::string_view key, std::int64_t size, std::int64_t largest) {
  if (size >= 1 && size <= largest) return Ok{};
  return keys.wrong(key, size, fmt::format("1 to {}", largest));
}

// ViT. The defaults are those of ViT-Base. Ignored keys (activation, dropout) do not change the modelled
// operations.
Result<Transformer> read_vit(ObjectReader& keys, const std::string& name, const VisionSettings& settings) {
  std::array<std::int64_t, 5> sizes{12, 768, 12, 3072, 16};
  constexpr std::pair<std::string_view, std::int64_t> kKeys[] = {{"num_hidden_layers", 1000},
                                                                 {"hidden_size", 100'000},
                                                                 {"num_attention_heads", 10'000},
                                                                 {"intermediate_size", 1'000'000},
                                                                 {"patch_size", 1000}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    STEPCAST_TRY(keys.optional(kKeys[i].first, sizes[i]));
    STEPCAST_TRY(in_range(keys, kKeys[i].first, sizes[i], kKeys[i].second));
  }
  if (sizes[1] % sizes[2] != 0)
    return keys.wrong("num_attention_heads", sizes[2], "a divisor of hidden_size");
  std::int64_t classes = 0, pixels = 224, channels = 3;
  STEPCAST_TRY(read_classes(keys, classes));
  STEPCAST_TRY(read_image(keys, settings, sizes[4], pixels));
  STEPCAST_TRY(keys.optional("num_channels", channels));
  if (channels != 3) return keys.wrong("num_channels", channels, "3");
  STEPCAST_TRY(refuse_if_false(keys, "qkv_bias", "linear layers without biases are not modelled here"));
  keys.ignore(
      "hidden_act hidden_dropout_prob attention_probs_dropout_prob encoder_stride pooler_output_size "
      "pooler_act");
  return vision_transformer(name, sizes, pixels, classes);
}

// ResNet with the blocks of torchvision, where each stage doubles the channels. Other widths and strides are errors.
Result<Transformer> read_resnet(ObjectReader& keys, const std::string& name, const VisionSettings& settings) {
  std::vector<double> depths{3, 4, 6, 3}, widths{256, 512, 1024, 2048};
  const auto numbers = [&](std::string_view key, std::vector<double>& out) -> Status {
    if (const JsonValue* list = keys.take(key); list != nullptr && !list->is_null()) {
      const auto said = list->numbers();
      if (!said || said->size() != 4)
        return keys.error(key).found(describe_value(*list)).expected("four numbers");
      out.assign(said->begin(), said->end());
    }
    return Ok{};
  };
  STEPCAST_TRY(numbers("depths", depths));
  STEPCAST_TRY(numbers("hidden_sizes", widths));
  std::string block = "bottleneck";
  STEPCAST_TRY(keys.optional("layer_type", block));
  if (block != "bottleneck" && block != "basic")
    return keys.wrong("layer_type", block, "bottleneck or basic");
  std::int64_t first = 64, classes = 0, pixels = 224;
  STEPCAST_TRY(keys.optional("embedding_size", first));
  std::array<std::int64_t, 5> sizes{0, 0, 0, 0, block == "bottleneck" ? 1 : 0};
  double width = sizes[4] != 0 ? 256 : 64;
  for (std::size_t stage = 0; stage < 4; ++stage, width *= 2) {
    if (widths[stage] != width || first != 64)
      return keys.error("hidden_sizes", "only the widths of torchvision are modelled")
          .expected("64 channels, doubled");
    if (!(depths[stage] >= 1 && depths[stage] <= 200))
      return keys.error("depths").expected("1 to 200 blocks per stage");
    sizes[stage] = static_cast<std::int64_t>(depths[stage]);
  }
  STEPCAST_TRY(refuse_if_true(keys, "downsample_in_first_stage",
                              "a first stage that halves the image is not modelled"));
  STEPCAST_TRY(
      refuse_if_true(keys, "downsample_in_bottleneck", "strides in the first convolution are not modelled"));
  STEPCAST_TRY(read_classes(keys, classes));
  constexpr std::int64_t kLeast = 32;
  STEPCAST_TRY(read_image(keys, settings, 1, pixels));
  if (pixels < kLeast) return keys.error("", "images of fewer than 32 pixels are not modelled");
  keys.ignore("hidden_act num_channels out_features out_indices stage_names");
  return residual_network(name, sizes, pixels, classes);
}

// T5, mT5 and UMT5. `family` contains the defaults of the model type. Errors: a number of relative position
// buckets other than 32.
Result<Transformer> read_t5(ObjectReader& keys, const EncoderDecoder& family) {
  EncoderDecoder t5 = family;
  for (const auto& [key, size] : {std::pair{"num_layers", &t5.encoder_layers},
                                  {"d_model", &t5.hidden_size},
                                  {"d_kv", &t5.head_dim},
                                  {"d_ff", &t5.ffn_hidden_size},
                                  {"num_heads", &t5.n_heads},
                                  {"vocab_size", &t5.vocab_size}}) {
    STEPCAST_TRY(keys.optional(key, *size));
  }
  // Decoders have as many layers as encoders unless the file says otherwise.
  t5.decoder_layers = t5.encoder_layers;
  STEPCAST_TRY(keys.optional("num_decoder_layers", t5.decoder_layers));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", t5.tied_embeddings));
  STEPCAST_TRY(keys.optional("dropout_rate", t5.dropout));
  std::string feed = t5.gated_ffn ? "gated-gelu" : "relu";
  STEPCAST_TRY(keys.optional("feed_forward_proj", feed));
  t5.gated_ffn = feed.starts_with("gated-");
  std::int64_t buckets = 32;
  STEPCAST_TRY(keys.optional("relative_attention_num_buckets", buckets));
  if (buckets != 32) return keys.wrong("relative_attention_num_buckets", buckets, "32");
  keys.ignore("n_positions relative_attention_max_distance dense_act_fn is_gated_act scale_decoder_outputs");
  return encoder_decoder(t5);
}

// BART and the models with its key names: mBART, M2M-100, Pegasus, Marian and Whisper.
Result<Transformer> read_bart(ObjectReader& keys, const EncoderDecoder& family) {
  EncoderDecoder bart = family;
  for (const auto& [key, size] : {std::pair{"encoder_layers", &bart.encoder_layers},
                                  {"decoder_layers", &bart.decoder_layers},
                                  {"d_model", &bart.hidden_size},
                                  {"encoder_attention_heads", &bart.n_heads},
                                  {"decoder_attention_heads", &bart.decoder_heads},
                                  {"encoder_ffn_dim", &bart.ffn_hidden_size},
                                  {"decoder_ffn_dim", &bart.decoder_ffn_hidden_size},
                                  {"vocab_size", &bart.vocab_size},
                                  {"num_mel_bins", &bart.mel_bins}}) {
    STEPCAST_TRY(keys.optional(key, *size));
  }
  const std::int64_t heads = std::max<std::int64_t>(1, bart.n_heads);
  if (bart.hidden_size % heads != 0 || bart.decoder_heads != bart.n_heads)
    return keys.error("decoder_attention_heads", "")
        .found(fmt::format("{} and {}", bart.n_heads, bart.decoder_heads))
        .expected("the same number of heads in encoder and decoder, a divisor of d_model");
  bart.head_dim = bart.hidden_size / heads;
  // Whisper reads sound: the number of mel bins decides, and positions have separate keys.
  if (bart.mel_bins > 0) {
    STEPCAST_TRY(keys.optional("max_source_positions", bart.encoder_positions));
    STEPCAST_TRY(keys.optional("max_target_positions", bart.decoder_positions));
    bart.encoder_tokens = bart.encoder_positions;
  } else {
    std::int64_t rows = 1024;
    STEPCAST_TRY(keys.optional("max_position_embeddings", rows));
    if (bart.positions == EncoderDecoder::Positions::own)
      bart.encoder_positions = bart.decoder_positions = rows + family.encoder_positions;
    bart.encoder_tokens = std::min(bart.encoder_tokens, rows);
    bart.decoder_tokens = std::min(bart.decoder_tokens, rows);
  }
  for (const std::int64_t rows : {bart.encoder_positions, bart.decoder_positions, bart.mel_bins})
    if (rows > 1'000'000) return keys.error("max_position_embeddings").expected("at most 1000000");
  STEPCAST_TRY(keys.optional("tie_word_embeddings", bart.tied_embeddings));
  STEPCAST_TRY(keys.optional("dropout", bart.dropout));
  STEPCAST_TRY(keys.optional("normalize_embedding", bart.embedding_norms));
  STEPCAST_TRY(keys.optional("add_final_layer_norm", bart.last_norms));
  keys.ignore(huggingface_keys("bart"));
  return encoder_decoder(bart);
}

// An encoder-decoder family with the defaults of its class in transformers.
struct EncoderDecoderRow {
  std::string_view model_types;  // separated by blanks
  Result<Transformer> (*read)(ObjectReader&, const EncoderDecoder&);
  EncoderDecoder family;
};

// The row of a model type; null if it is not an encoder-decoder model.
const EncoderDecoderRow* encoder_decoder_row(std::string_view model_type) {
  using Positions = EncoderDecoder::Positions;
  const EncoderDecoder t5{.encoder_layers = 6, .hidden_size = 512, .n_heads = 8, .ffn_hidden_size = 2048};
  EncoderDecoder mt5 = t5;
  mt5.encoder_layers = 8;
  mt5.n_heads = 6;
  mt5.ffn_hidden_size = 1024;
  mt5.vocab_size = 250'112;
  mt5.gated_ffn = true;
  EncoderDecoder umt5 = mt5;
  umt5.positions = Positions::distances_of_layer;
  const EncoderDecoder bart{.hidden_size = 1024,
                            .n_heads = 16,
                            .ffn_hidden_size = 4096,
                            .vocab_size = 50'265,
                            .decoder_heads = 16,
                            .decoder_ffn_hidden_size = 4096,
                            .biases = true,
                            .positions = Positions::own,
                            .encoder_positions = 2,  // rows before the first that is used
                            .embedding_norms = true,
                            .last_norms = false};
  EncoderDecoder mbart = bart, m2m = bart, marian = bart, whisper = bart;
  mbart.last_norms = true;
  m2m.positions = Positions::fixed;
  m2m.encoder_positions = marian.encoder_positions = 0;
  m2m.embedding_norms = marian.embedding_norms = whisper.embedding_norms = false;
  m2m.last_norms = whisper.last_norms = true;
  EncoderDecoder pegasus = marian;
  pegasus.last_norms = true;
  whisper.mel_bins = 80;
  whisper.encoder_positions = 1500;
  whisper.decoder_positions = 448;
  whisper.key_bias = false;
  static const EncoderDecoderRow kRows[] = {{"t5", read_t5, t5},
                                            {"mt5", read_t5, mt5},
                                            {"umt5", read_t5, umt5},
                                            {"bart", read_bart, bart},
                                            {"mbart", read_bart, mbart},
                                            {"m2m_100", read_bart, m2m},
                                            {"pegasus", read_bart, pegasus},
                                            {"marian", read_bart, marian},
                                            {"whisper", read_bart, whisper}};
  const auto* row = std::ranges::find_if(
      kRows, [&](const EncoderDecoderRow& one) { return is_among(model_type, one.model_types); });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

Result<std::optional<Transformer>> read_network(std::string_view model_type, ObjectReader& keys,
                                                const std::string& name, const VisionSettings& settings) {
  if (const EncoderDecoderRow* row = encoder_decoder_row(model_type); row != nullptr) {
    EncoderDecoder family = row->family;
    family.name = name;
    STEPCAST_ASSIGN(Transformer model, row->read(keys, family));
    return std::optional{std::move(model)};
  }
  const bool vit = model_type == "vit";
  if (!vit && model_type != "resnet") return std::optional<Transformer>{};
  STEPCAST_ASSIGN(Transformer model,
                  vit ? read_vit(keys, name, settings) : read_resnet(keys, name, settings));
  return std::optional{std::move(model)};
}

}  // namespace stepcast::detail
