// Networks that are known by name and are no language models of one stack: ResNet and VGG (as torchvision has them), vision
// transformers (ViT, of 16 x 16 and 14 x 14 pixels), diffusion transformers (DiT), T5.
//
//   find_network("resnet-50", 224)     25'557'032 parameters; nothing: no such name
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// An encoder in front of a decoder that looks at what it says, by its sizes: T5, BART, Whisper.
struct EncoderDecoder {
  std::string name;
  std::int64_t encoder_layers = 12, decoder_layers = 12;
  std::int64_t hidden_size = 768, n_heads = 12, head_dim = 64, ffn_hidden_size = 3072;
  std::int64_t vocab_size = 32128;
  std::int64_t encoder_tokens = 512, decoder_tokens = 128;
  bool gated_ffn = false, tied_embeddings = true;
  std::int64_t decoder_heads = 0, decoder_ffn_hidden_size = 0;  // 0: as of the encoder
  bool biases = false;  // of products, and norms of mean and variance with biases (Megatron's T5, BART)
  enum class Positions : std::uint8_t {
    distances,           // 32 biases of distances for every head, in the first layer of either side (T5)
    distances_of_layer,  // in every layer (UMT5)
    shared,  // one table for both sides, and queries, keys and values are one product (Megatron's T5)
    own,     // a table for either side (BART)
    fixed,   // nothing is trained
  };
  Positions positions = Positions::distances;
  std::int64_t encoder_positions = 0, decoder_positions = 0;  // rows of their tables
  bool embedding_norms = false, last_norms = true, key_bias = true;
  std::int64_t mel_bins =
      0;  // the encoder hears: two convolutions of 3, of which the second halves its frames (Whisper)
  double dropout = 0.1;
};
[[nodiscard]] Result<Transformer> encoder_decoder(const EncoderDecoder& t5);

// Image classifiers by their sizes: ViT (layers, width, heads, width of the FFN, pixels of a patch) and ResNet (layers of
// the four stages, and whether a block has three convolutions).
[[nodiscard]] Transformer vision_transformer(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                                             std::int64_t image_size, std::int64_t classes);
[[nodiscard]] Transformer residual_network(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                                           std::int64_t image_size, std::int64_t classes);

// What somebody says of a sample; nothing: the usual size.
struct SampleSize {
  std::optional<std::int64_t> image;  // pixels in either direction, of networks that see images
  std::optional<std::int64_t> tokens, decoder_tokens;  // of the texts of T5
};

// By name; case, blanks, hyphens and underscores do not count. Errors: an image size of a network without images, or that
// its patches do not divide; lengths out of range. Nothing: no such name.
[[nodiscard]] Result<std::optional<Transformer>> find_network(std::string_view name,
                                                              const SampleSize& size = {});
[[nodiscard]] std::vector<std::string> network_names();

}  // namespace stepcast
