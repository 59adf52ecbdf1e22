// Networks with built-in names other than decoder-only language models: ResNet and VGG as in torchvision,
// vision transformers (ViT), diffusion transformers (DiT), T5 and Whisper.
//
//   find_network("resnet-50", {.image = 224})     // 25'557'032 parameters; nothing: unknown name
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

// Sizes of an encoder followed by a decoder that attends to the encoder's output: T5, BART, Whisper.
struct EncoderDecoder {
  std::string name;
  std::int64_t encoder_layers = 12, decoder_layers = 12;
  std::int64_t hidden_size = 768, n_heads = 12, head_dim = 64, ffn_hidden_size = 3072;
  std::int64_t vocab_size = 32128;
  std::int64_t encoder_tokens = 512, decoder_tokens = 128;
  bool gated_ffn = false, tied_embeddings = true;
  std::int64_t decoder_heads = 0, decoder_ffn_hidden_size = 0;  // 0: the same as in the encoder
  bool biases = false;  // linear layers have biases, and norms are layer norms (Megatron-LM's T5, BART)
  // How positions enter the network.
  enum class Positions : std::uint8_t {
    distances,           // T5: 32 relative biases per head, in the first layer of encoder and decoder
    distances_of_layer,  // UMT5: relative biases in every layer
    shared,              // Megatron-LM's T5: one table for both sides; queries, keys and values are one GEMM
    own,                 // BART: one table for each side
    fixed,               // not trained
  };
  Positions positions = Positions::distances;
  std::int64_t encoder_positions = 0, decoder_positions = 0;  // rows of the position tables
  // Norms after the embeddings and after the last layer; whether the GEMM of the keys has a bias.
  bool embedding_norms = false, last_norms = true, key_bias = true;
  // Mel bins of sound input; 0: the encoder reads text. Sound enters through two convolutions of 3 frames,
  // the second with stride 2 (Whisper).
  std::int64_t mel_bins = 0;
  double dropout = 0.1;
};
// Errors: a size below 1 or above 1,000,000, more than 1000 layers.
[[nodiscard]] Result<Transformer> encoder_decoder(const EncoderDecoder& t5);

// Image classifiers by their sizes. ViT: layers, width, heads, width of the FFN, pixels per side of a patch.
// ResNet: blocks of the four stages, then 1 for bottleneck blocks. `image_size` is in pixels per side.
[[nodiscard]] Transformer vision_transformer(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                                             std::int64_t image_size, std::int64_t classes);
[[nodiscard]] Transformer residual_network(std::string_view name, const std::array<std::int64_t, 5>& sizes,
                                           std::int64_t image_size, std::int64_t classes);

// The size of a training sample. Nothing: the default of the network.
struct SampleSize {
  std::optional<std::int64_t> image;                   // pixels per side, of networks that read images
  std::optional<std::int64_t> tokens, decoder_tokens;  // of T5, at most 1,000,000
};

// The network with this name; nothing if there is none. Case, blanks, hyphens and underscores are ignored.
// Errors: an image size for a network without images, a size that the patches do not divide, a length out of
// range.
[[nodiscard]] Result<std::optional<Transformer>> find_network(std::string_view name,
                                                              const SampleSize& size = {});
// All names that find_network() accepts, in their usual spelling.
[[nodiscard]] std::vector<std::string> network_names();

}  // namespace stepcast
