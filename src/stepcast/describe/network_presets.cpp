// Builds the networks of find_network() from tables of their published sizes. `Sized::sizes` has another
// meaning in each table; the comment above the table names the columns.
#include "stepcast/describe/network_presets.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/number.h"
#include "stepcast/describe/network_builder.h"

namespace stepcast {
namespace {

using Split = NetworkPart::Split;

constexpr std::int64_t kClasses = 1000;          // classes of ImageNet
constexpr std::int64_t kMostTokens = 1'000'000;  // longest text of T5 that is accepted

// One row of the tables below.
struct Sized {
  std::string_view name;
  std::array<std::int64_t, 5> sizes;
  std::int64_t classes = kClasses;
};

// ResNet: blocks of the four stages, then 1 if the blocks are bottlenecks of three convolutions, 0 if they
// have two.
constexpr Sized kResnets[] = {{"resnet-18", {2, 2, 2, 2, 0}},
                              {"resnet-34", {3, 4, 6, 3, 0}},
                              {"resnet-50", {3, 4, 6, 3, 1}},
                              {"resnet-101", {3, 4, 23, 3, 1}},
                              {"resnet-152", {3, 8, 36, 3, 1}}};
// VGG: convolutions of the five stages.
constexpr Sized kVggs[] = {{"vgg-11", {1, 1, 2, 2, 2}},
                           {"vgg-13", {2, 2, 2, 2, 2}},
                           {"vgg-16", {2, 2, 3, 3, 3}},
                           {"vgg-19", {2, 2, 4, 4, 4}}};
// ViT: layers, width, heads, width of the FFN, pixels per side of a patch.
constexpr Sized kVits[] = {
    {"vit-tiny-patch16", {12, 192, 3, 768, 16}},     {"vit-small-patch16", {12, 384, 6, 1536, 16}},
    {"vit-base-patch16", {12, 768, 12, 3072, 16}},   {"vit-base-patch32", {12, 768, 12, 3072, 32}},
    {"vit-large-patch16", {24, 1024, 16, 4096, 16}}, {"vit-huge-patch14", {32, 1280, 16, 5120, 14}}};
// Other names of ViT: without the patch size, and as in torchvision.
constexpr std::pair<std::string_view, std::string_view> kVitNames[] = {
    {"vittiny", "vittinypatch16"},   {"vitsmall", "vitsmallpatch16"}, {"vitbase", "vitbasepatch16"},
    {"vitlarge", "vitlargepatch16"}, {"vithuge", "vithugepatch14"},   {"vitb16", "vitbasepatch16"},
    {"vitb32", "vitbasepatch32"},    {"vitl16", "vitlargepatch16"},   {"vith14", "vithugepatch14"}};
// DiT: layers, width, heads, 0, elements per side of a patch of the latent image.
constexpr Sized kDits[] = {{"dit-s-2", {12, 384, 6, 0, 2}},
                           {"dit-b-2", {12, 768, 12, 0, 2}},
                           {"dit-l-2", {24, 1024, 16, 0, 2}},
                           {"dit-xl-2", {28, 1152, 16, 0, 2}},
                           {"dit-xl-4", {28, 1152, 16, 0, 4}}};
// T5: layers of the encoder (and of the decoder), width, heads, width of a head, width of the FFN.
constexpr Sized kT5s[] = {{"t5-small", {6, 512, 8, 64, 2048}},
                          {"t5-base", {12, 768, 12, 64, 3072}},
                          {"t5-large", {24, 1024, 16, 64, 4096}},
                          {"t5-3b", {24, 1024, 32, 128, 16384}},
                          {"t5-11b", {24, 1024, 128, 128, 65536}}};
// Whisper: layers of the encoder, layers of the decoder, width, heads, mel bins. `classes` is the vocabulary.
constexpr Sized kWhispers[] = {{"whisper-tiny", {4, 4, 384, 6, 80}, 51865},
                               {"whisper-base", {6, 6, 512, 8, 80}, 51865},
                               {"whisper-small", {12, 12, 768, 12, 80}, 51865},
                               {"whisper-medium", {24, 24, 1024, 16, 80}, 51865},
                               {"whisper-large-v2", {32, 32, 1280, 20, 80}, 51865},
                               {"whisper-large-v3", {32, 32, 1280, 20, 128}, 51866},
                               {"whisper-large-v3-turbo", {32, 4, 1280, 20, 128}, 51866}};

// Residual block of ResNet: two 3 x 3 convolutions, or 1 x 1, 3 x 3 and 1 x 1 as a bottleneck. If the shape
// changes, a 1 x 1 convolution adapts the skip connection.
void residual_block(NetworkBuilder& b, std::int64_t channels, std::int64_t stride, bool bottleneck) {
  const std::int64_t in = b.channels(), side = b.side(), out = bottleneck ? 4 * channels : channels;
  if (bottleneck) {
    b.convolution(channels, 1, 1).batch_norm().relu();
    b.convolution(channels, 3, stride).batch_norm().relu();
    b.convolution(out, 1, 1).batch_norm();
  } else {
    b.convolution(channels, 3, stride).batch_norm().relu();
    b.convolution(channels, 3, 1).batch_norm();
  }
  if (in != out || stride != 1) {
    const std::int64_t reached = b.side();
    b.at(in, side).convolution(out, 1, stride).batch_norm().at(out, reached);
  }
  b.add_residual().relu();
}

// ResNet as in torchvision: a 7 x 7 convolution and pooling, four stages, then a linear classifier.
Transformer resnet(const Sized& of, std::int64_t image) {
  NetworkBuilder b{of.name, 3, image};
  b.convolution(64, 7, 2, true).batch_norm().relu().max_pool(3, 2, 1).end_block();
  const bool bottleneck = of.sizes[4] != 0;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (std::int64_t i = 0; i < of.sizes[stage]; ++i) {
      residual_block(b, std::int64_t{64} << stage, stage > 0 && i == 0 ? 2 : 1, bottleneck);
      b.end_block();
    }
  }
  b.mean_over_image().tokens(1).linear(b.channels(), of.classes).loss(of.classes).end_block();
  return b.finish(of.classes);
}

// VGG as in torchvision. Its classifier is three large GEMMs on 7 x 7 pixels, to which pooling adapts every
// image.
Transformer vgg(const Sized& of, std::int64_t image) {
  NetworkBuilder b{of.name, 3, image};
  for (std::size_t stage = 0; stage < 5; ++stage) {
    for (std::int64_t i = 0; i < of.sizes[stage]; ++i) {
      const bool first = stage == 0 && i == 0;
      b.convolution(std::min<std::int64_t>(512, std::int64_t{64} << stage), 3, 1, first).bias().relu();
    }
    b.max_pool(2, 2, 0).end_block();
  }
  constexpr std::int64_t kPooled = 7, kWide = 4096;
  b.tokens(1).linear(b.channels() * kPooled * kPooled, kWide).relu().dropout();
  b.linear(kWide, kWide).relu().dropout().linear(kWide, kClasses).loss(kClasses).end_block();
  return b.finish(kClasses);
}

// Self-attention with separate GEMMs for queries, keys and values, as in Hugging Face transformers.
void attention_part(NetworkBuilder& b, std::int64_t width, std::int64_t heads, std::int64_t inner,
                    bool bias) {
  for (int i = 0; i < 3; ++i) b.linear(width, inner, bias, Split::column);
  b.attention(b.n_tokens(), heads, inner / heads).linear(inner, width, bias, Split::row);
}

// ViT: patches become tokens by a convolution, and a class token is added. Only that token enters the
// classifier.
Transformer vit(const Sized& of, std::int64_t image) {
  const auto [layers, width, heads, ffn, patch] = of.sizes;
  NetworkBuilder b{of.name, 3, image};
  b.convolution(width, patch, patch, true, 0).bias();
  const std::int64_t tokens = b.side() * b.side() + 1;  // plus the class token
  b.tokens(tokens).parameters((tokens + 1) * width).join(width).add_vectors(width).end_block();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    b.layer_norm(width);
    attention_part(b, width, heads, width, true);
    b.add_residual(width).layer_norm(width);
    b.linear(width, ffn).gelu().linear(ffn, width).add_residual(width).end_block();
  }
  b.layer_norm(width).tokens(1).linear(width, of.classes).loss(of.classes).end_block();
  return b.finish(of.classes);
}

// DiT (Peebles and Xie 2023). A small network turns time and class into six vectors per layer, which scale
// and shift the inputs and outputs of attention and FFN.
Transformer dit(const Sized& of, std::int64_t image) {
  const auto [layers, width, heads, unused, patch] = of.sizes;
  constexpr std::int64_t kLatentChannels = 4, kPixelsOfLatent = 8, kFrequencies = 256;
  NetworkBuilder b{of.name, kLatentChannels, image / kPixelsOfLatent};
  b.convolution(width, patch, patch, true, 0).bias();
  const std::int64_t tokens = b.side() * b.side();
  b.tokens(1).linear(kFrequencies, width).silu().linear(width, width).parameters((kClasses + 1) * width);
  b.tokens(tokens).add_vectors(width).end_block();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    b.tokens(1).silu(width).linear(width, 6 * width).tokens(tokens);
    b.layer_norm(width, false).scale_and_shift(width).linear(width, 3 * width);
    b.attention(tokens, heads, width / heads).linear(width, width).scale_and_shift(width).add_residual(width);
    b.layer_norm(width, false)
        .scale_and_shift(width)
        .linear(width, 4 * width)
        .gelu()
        .linear(4 * width, width);
    b.scale_and_shift(width).add_residual(width).end_block();
  }
  // The output predicts the noise and its variance for each channel.
  b.tokens(1).linear(width, 2 * width).tokens(tokens).layer_norm(width, false).scale_and_shift(width);
  b.linear(width, patch * patch * 2 * kLatentChannels).squared_error().end_block();
  return b.finish(kClasses + 1);
}

// T5 with the usual lengths of 512 and 128 tokens unless `size` has others.
Transformer t5(const Sized& of, const SampleSize& size) {
  const auto [layers, width, heads, head_dim, ffn] = of.sizes;
  constexpr std::int64_t kInputTokens = 512, kOutputTokens = 128;
  return *encoder_decoder({.name = std::string{of.name},
                           .encoder_layers = layers,
                           .decoder_layers = layers,
                           .hidden_size = width,
                           .n_heads = heads,
                           .head_dim = head_dim,
                           .ffn_hidden_size = ffn,
                           .encoder_tokens = size.tokens.value_or(kInputTokens),
                           .decoder_tokens = size.decoder_tokens.value_or(kOutputTokens)});
}

using Positions = EncoderDecoder::Positions;

// Whisper. The encoder reads 30 seconds of sound as 1500 frames; the decoder has at most 448 tokens.
Transformer whisper(const Sized& of) {
  const auto [encoder_layers, decoder_layers, width, heads, bands] = of.sizes;
  constexpr std::int64_t kFrames = 1500, kWords = 448;  // 30 seconds of sound
  return *encoder_decoder({.name = std::string{of.name},
                           .encoder_layers = encoder_layers,
                           .decoder_layers = decoder_layers,
                           .hidden_size = width,
                           .n_heads = heads,
                           .ffn_hidden_size = 4 * width,
                           .vocab_size = of.classes,
                           .encoder_tokens = kFrames,
                           .biases = true,
                           .positions = Positions::own,
                           .encoder_positions = kFrames,
                           .decoder_positions = kWords,
                           .key_bias = false,
                           .mel_bins = bands,
                           .dropout = 0});
}

// The encoder or the decoder of an EncoderDecoder: adds its parts to a builder.
struct Side {
  const EncoderDecoder& of;
  std::int64_t heads, ffn;
  // Width of all heads together.
  [[nodiscard]] std::int64_t inner() const { return heads * of.head_dim; }
  // Whether scores have trained biases that depend on the distance of two tokens.
  [[nodiscard]] bool distances() const {
    return of.positions == Positions::distances || of.positions == Positions::distances_of_layer;
  }

  // The GEMMs for queries and for keys and values of one input: separate GEMMs as in Hugging Face
  // transformers, or a fused one as in Megatron-LM (Positions::shared).
  void project(NetworkBuilder& b, bool queries, bool keys_values) const {
    const std::int64_t n = (queries ? 1 : 0) + (keys_values ? 2 : 0);
    if (of.positions == Positions::shared) {
      b.linear(of.hidden_size, n * inner(), of.biases, Split::column);
      return;
    }
    if (queries) b.linear(of.hidden_size, inner(), of.biases, Split::column);
    if (!keys_values) return;
    b.linear(of.hidden_size, inner(), of.biases && of.key_bias, Split::column);
    b.linear(of.hidden_size, inner(), of.biases, Split::column);
  }

  // Attention and its output projection. Biases of distances rule out fused kernels. Megatron-LM's T5 does
  // not use them either.
  void attend(NetworkBuilder& b, std::int64_t keys) const {
    if (distances() || of.positions == Positions::shared)
      b.written_attention(keys, heads, of.head_dim, of.dropout > 0, distances());
    else
      b.attention(keys, heads, of.head_dim);
    b.linear(inner(), of.hidden_size, of.biases, Split::row)
        .residual_with_dropout(of.hidden_size, of.dropout > 0);
  }

  // Self-attention. Relative positions have 32 biases per head.
  void attend_to_itself(NetworkBuilder& b) const {
    b.norm(of.hidden_size, of.biases);
    project(b, true, true);
    if (of.positions == Positions::distances_of_layer) b.parameters(32 * heads);
    attend(b, b.n_tokens());
  }

  // The FFN, which ends the block of a layer.
  void feed(NetworkBuilder& b) const {
    const std::int64_t h = of.hidden_size;
    b.norm(h, of.biases).linear(h, ffn, of.biases, Split::column);
    if (of.gated_ffn) b.linear(h, ffn, of.biases, Split::column);
    b.activation(ffn, of.gated_ffn)
        .linear(ffn, h, of.biases, Split::row)
        .residual_with_dropout(h, of.dropout > 0);
    b.end_block();
  }

  // Embeddings of the encoder or the decoder. `rows`: rows of its position table. `counts_words`: whether the
  // word table is counted here; the decoder shares that of the encoder.
  void begin(NetworkBuilder& b, std::int64_t tokens, std::int64_t rows, bool counts_words) const {
    const std::int64_t h = of.hidden_size;
    if (of.mel_bins > 0 && counts_words) {  // two convolutions of 3 frames, as GEMMs; the second has stride 2
      b.tokens(2 * tokens).linear(3 * of.mel_bins, h).gelu().tokens(tokens).linear(3 * h, h).gelu();
    } else {
      b.tokens(tokens).lookup(of.vocab_size, h, counts_words || of.mel_bins > 0);
    }
    if (of.positions == Positions::distances) b.parameters(32 * heads);
    if (!distances()) b.parameters(rows * h).add_vectors(h);
    if (of.embedding_norms) b.norm(h, of.biases);
    if (of.dropout > 0) b.dropout(h);
    b.end_block();
  }
};

}  // namespace

Result<Transformer> encoder_decoder(const EncoderDecoder& t5) {
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"encoder layers", t5.encoder_layers},
                                                             {"decoder layers", t5.decoder_layers},
                                                             {"hidden size", t5.hidden_size},
                                                             {"attention heads", t5.n_heads},
                                                             {"width of a head", t5.head_dim},
                                                             {"width of the FFN", t5.ffn_hidden_size},
                                                             {"vocabulary", t5.vocab_size},
                                                             {"tokens of the encoder", t5.encoder_tokens},
                                                             {"tokens of the decoder", t5.decoder_tokens}};
  constexpr std::int64_t kLargest = 1'000'000;
  for (const auto& [what, size] : sizes) {
    if (size < 1 || size > kLargest)
      return Error::at(t5.name, std::string{what}).found(fmt::format("{}", size)).expected("1 to 1000000");
  }
  if (t5.encoder_layers + t5.decoder_layers > 1000)
    return Error{"more than 1000 layers of encoder and decoder"};
  const std::int64_t h = t5.hidden_size;
  NetworkBuilder b{t5.name, 1, 1};
  const Side encoder{t5, t5.n_heads, t5.ffn_hidden_size};
  const Side decoder{t5, t5.decoder_heads > 0 ? t5.decoder_heads : t5.n_heads,
                     t5.decoder_ffn_hidden_size > 0 ? t5.decoder_ffn_hidden_size : t5.ffn_hidden_size};
  encoder.begin(b, t5.encoder_tokens, t5.encoder_positions, true);
  for (std::int64_t layer = 0; layer < t5.encoder_layers; ++layer) {
    encoder.attend_to_itself(b);
    encoder.feed(b);
  }
  if (t5.last_norms) b.norm(h, t5.biases).end_block();
  decoder.begin(b, t5.decoder_tokens, t5.decoder_positions, false);
  for (std::int64_t layer = 0; layer < t5.decoder_layers; ++layer) {
    decoder.attend_to_itself(b);
    // Cross-attention: queries of the decoder, keys and values of the encoder.
    b.norm(h, t5.biases);
    decoder.project(b, true, false);
    b.tokens(t5.encoder_tokens);
    decoder.project(b, false, true);
    b.tokens(t5.decoder_tokens);
    decoder.attend(b, t5.encoder_tokens);
    decoder.feed(b);
  }
  if (t5.last_norms) b.norm(h, t5.biases);
  b.logits(h, t5.vocab_size, t5.tied_embeddings).loss(t5.vocab_size).end_block();
  Transformer model = b.finish(t5.vocab_size, true, t5.mel_bins > 0 ? 0 : t5.encoder_tokens);
  model.hidden_size = h;
  model.ffn_hidden_size = t5.ffn_hidden_size;
  model.n_heads = t5.n_heads;
  model.head_dim = t5.head_dim;
  model.max_position = t5.decoder_tokens;
  return model;
}

Transformer vision_transformer(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                               std::int64_t image_size, std::int64_t classes) {
  return vit({name, sizes, classes}, image_size);
}

Transformer residual_network(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                             std::int64_t image_size, std::int64_t classes) {
  return resnet({name, sizes, classes}, image_size);
}

Result<std::optional<Transformer>> find_network(std::string_view name, const SampleSize& size) {
  const std::optional<std::int64_t>& image_size = size.image;
  // Names on the Hugging Face Hub end with the image size: google/vit-base-patch16-224.
  std::string wanted = spelling_core(name);
  constexpr std::string_view kUsual = "224";
  if (wanted.starts_with("vit") && wanted.ends_with(kUsual)) wanted.resize(wanted.size() - kUsual.size());
  for (const auto& [name_here, full] : kVitNames)
    if (wanted == name_here) wanted = full;
  // The row with the wanted name. Null: not in this table.
  const auto of = [&](std::span<const Sized> table) {
    const auto found =
        std::ranges::find_if(table, [&](const Sized& s) { return spelling_core(s.name) == wanted; });
    return found == table.end() ? nullptr : &*found;
  };
  const Sized* hears = of(kWhispers);
  if (const Sized* found = hears != nullptr ? hears : of(kT5s)) {
    if (image_size)
      return Error::at("", "--image-size", fmt::format("{} sees no images", found->name))
          .advice("leave it out");
    if (hears != nullptr) return std::optional{whisper(*found)};
    for (const auto& [flag, tokens] :
         {std::pair{"--seq", size.tokens}, std::pair{"--decoder-seq-length", size.decoder_tokens}}) {
      if (tokens && (*tokens < 1 || *tokens > kMostTokens))
        return Error::at("", flag)
            .found(fmt::format("{}", *tokens))
            .expected(fmt::format("1 to {}", kMostTokens));
    }
    return std::optional{t5(*found, size)};
  }
  // Families of image networks. `usual`: default image size. Allowed sizes are multiples of `step`, or of the
  // patch if `step` is 0, and at least `least`.
  struct Family {
    std::span<const Sized> table;
    Transformer (*build)(const Sized&, std::int64_t);
    std::int64_t usual, step, least;  // pixels per side; a `step` of 0 is the patch size
  };
  const Family families[] = {{kResnets, resnet, 224, 1, 32},
                             {kVggs, vgg, 224, 32, 224},
                             {kVits, vit, 224, 0, 14},
                             {kDits, dit, 256, 8, 16}};
  for (const Family& family : families) {
    const Sized* found = of(family.table);
    if (found == nullptr) continue;
    const std::int64_t image = image_size.value_or(family.usual);
    const std::int64_t patch = found->sizes[4] * std::max<std::int64_t>(1, family.step);
    // A DiT divides its image by 8 (latents) before it cuts patches, so that its step is 8 patches.
    const bool patches = family.step == 0 || family.table.data() == kDits;
    const std::int64_t step = patches ? patch : family.step;
    constexpr std::int64_t kLargest = 4096;
    if (image < std::max(step, family.least) || image > kLargest || image % step != 0) {
      return Error::at("", "--image-size")
          .found(fmt::format("{} for {}", image, found->name))
          .expected(fmt::format("pixels in either direction: a multiple of {} from {} to {}", step,
                                std::max(step, family.least), kLargest));
    }
    return std::optional{family.build(*found, image)};
  }
  return std::optional<Transformer>{};
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const std::span<const Sized> table :
       {std::span<const Sized>{kResnets}, std::span<const Sized>{kVggs}, std::span<const Sized>{kVits},
        std::span<const Sized>{kDits}, std::span<const Sized>{kT5s}, std::span<const Sized>{kWhispers}})
    for (const Sized& s : table) names.emplace_back(s.name);
  return names;
}

}  // namespace stepcast
