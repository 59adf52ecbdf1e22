// Networks that are no stack of language-model layers: convolutional ones, vision and diffusion transformers, encoders in
// front of decoders. Blocks of parts, each an operation of one sample (an image, or a pair of texts), whatever the batch.
//
//   BlockNetwork net = *find_network("resnet-50", 224)->network;
//   net.kinds[net.blocks[0]].parts[0].shape     ConvolutionShape of one image
//
// A Transformer that has one (Transformer::network) is a layout's model like any other: its layers are the blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/operation/operation.h"

namespace stepcast {

struct NetworkPart {
  std::string_view name, gradient;  // of static storage; `gradient`: its backward operation
  // Of one sample. AmountShape: bytes are elements, and `index_bytes` come on top of what is written.
  OperationShape shape;
  std::int64_t parameters = 0;
  double kept = 0;  // elements of a sample that the backward pass needs
  enum class Backward : std::uint8_t { all, weights, none };
  Backward backward = Backward::all;  // weights: nothing in front of it is trained
  std::optional<OperationShape> other_gradient =
      std::nullopt;  // what runs backward, where it is not of the same shape
  // How tensor parallelism cuts a product with weights or an attention; a row's result is summed over the ranks.
  enum class Split : std::uint8_t { none, column, row };
  Split split = Split::none;
  double index_bytes = 0;
  bool shared_weights = false;  // a product with weights that another part counts
  friend bool operator==(const NetworkPart&, const NetworkPart&) = default;
};

struct NetworkBlock {
  std::vector<NetworkPart> parts;
  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t n = 0;
    for (const NetworkPart& part : parts) n += part.parameters;
    return n;
  }
  [[nodiscard]] double kept() const {  // elements of a sample
    double n = 0;
    for (const NetworkPart& part : parts) n += part.kept;
    return n;
  }
  friend bool operator==(const NetworkBlock&, const NetworkBlock&) = default;
};

struct BlockNetwork {
  std::vector<NetworkBlock> kinds;
  std::int64_t tokens = 1;        // a sample counts as so many: the sequence length of a layout
  std::int64_t input_tokens = 0;  // of an encoder that reads text; 0: none does
  bool splits = false;            // its parts say how tensor parallelism cuts them
};

// Patches of images, layers and a projection in front of a language model. Frameworks run it whole on every rank of a
// tensor-parallel group, on the first stage.
struct VisionTower {
  BlockNetwork network;
  std::vector<std::uint8_t> blocks;  // kinds of network, in order; of one image
  std::int64_t images = 1;           // of a sequence
  std::int64_t image_size = 0, tokens_per_image = 0;
  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t n = 0;
    for (const std::uint8_t block : blocks) n += network.kinds[block].parameters();
    return n;
  }
  [[nodiscard]] double kept() const {  // elements that the backward pass of one image needs
    double n = 0;
    for (const std::uint8_t block : blocks) n += network.kinds[block].kept();
    return n;
  }
  [[nodiscard]] double inputs() const {  // elements of what goes into all blocks
    double n = 0;
    for (const std::uint8_t block : blocks)
      if (const auto& parts = network.kinds[block].parts; !parts.empty()) n += parts.front().kept;
    return n;
  }
};

// Whether an attention is one kernel in it: convolutions have none, and T5 writes its own out.
[[nodiscard]] inline bool has_attention_kernels(const BlockNetwork& network) {
  return std::ranges::any_of(network.kinds, [](const NetworkBlock& block) {
    return std::ranges::any_of(block.parts, [](const NetworkPart& part) {
      return std::holds_alternative<AttentionShape>(part.shape);
    });
  });
}

// Of Transformer::network: whether samples are images (and no encoder stands in front of a decoder), and what a sample is
// called: "image", "sequence".
[[nodiscard]] inline bool takes_images(const BlockNetwork* network) {
  return network != nullptr && !network->splits;
}
[[nodiscard]] inline std::string_view sample_name(const BlockNetwork* network) {
  return takes_images(network) ? "image" : "sequence";
}

// Forward FLOPs of one sample; multiply and add count two.
[[nodiscard]] double forward_flops(const BlockNetwork& network, const std::vector<std::uint8_t>& blocks);

}  // namespace stepcast
