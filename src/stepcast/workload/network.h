// Networks other than stacks of language-model layers: convolutional networks, vision and diffusion
// transformers, encoder-decoder models. They consist of blocks of parts; each part is an operation on one
// sample (an image, or a pair of texts), independent of the batch.
//
//   BlockNetwork net = *find_network("resnet-50", 224)->network;
//   net.kinds[net.blocks[0]].parts[0].shape     ConvolutionShape of one image
//
// A Transformer with a network (Transformer::network) is used in a layout like any other model: its layers
// are the blocks.
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

// One operation of a block.
struct NetworkPart {
  std::string_view name, gradient;  // static storage; `gradient`: name of its backward operation
  // For one sample. With an AmountShape, bytes count elements, and `index_bytes` are added to the written
  // bytes.
  OperationShape shape;
  std::int64_t parameters = 0;
  double kept = 0;  // elements per sample that the backward pass needs
  enum class Backward : std::uint8_t { all, weights, none };
  Backward backward = Backward::all;  // weights: the parts before it are not trained
  std::optional<OperationShape> other_gradient =
      std::nullopt;  // the backward operation, where its shape differs
  // Split of a GEMM with weights, or of attention, by tensor parallelism; results of a row split are summed
  // over the ranks.
  enum class Split : std::uint8_t { none, column, row };
  Split split = Split::none;
  double index_bytes = 0;       // written in addition to AmountShape
  bool shared_weights = false;  // a GEMM with weights that another part counts
  friend bool operator==(const NetworkPart&, const NetworkPart&) = default;
};

// A sequence of parts.
struct NetworkBlock {
  std::vector<NetworkPart> parts;
  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t n = 0;
    for (const NetworkPart& part : parts) n += part.parameters;
    return n;
  }
  [[nodiscard]] double kept() const {  // elements per sample
    double n = 0;
    for (const NetworkPart& part : parts) n += part.kept;
    return n;
  }
  friend bool operator==(const NetworkBlock&, const NetworkBlock&) = default;
};

// A network: the kinds of its blocks.
struct BlockNetwork {
  std::vector<NetworkBlock> kinds;
  std::int64_t tokens = 1;        // tokens per sample, the sequence length of a layout
  std::int64_t input_tokens = 0;  // of a text encoder; 0: none
  bool splits = false;            // its parts state their split by tensor parallelism
};

// A vision tower in front of a language model: patches, layers and a projection. Frameworks run it unsplit on
// every rank of a tensor-parallel group, on the first stage.
struct VisionTower {
  BlockNetwork network;
  std::vector<std::uint8_t> blocks;  // kinds of network, in order, for one image
  std::int64_t images = 1;           // per sequence
  std::int64_t image_size = 0, tokens_per_image = 0;
  // Parameters of all blocks.
  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t n = 0;
    for (const std::uint8_t block : blocks) n += network.kinds[block].parameters();
    return n;
  }
  [[nodiscard]] double kept() const {  // elements per image that the backward pass needs
    double n = 0;
    for (const std::uint8_t block : blocks) n += network.kinds[block].kept();
    return n;
  }
  [[nodiscard]] double inputs() const {  // elements of the inputs of all blocks
    double n = 0;
    for (const std::uint8_t block : blocks)
      if (const auto& parts = network.kinds[block].parts; !parts.empty()) n += parts.front().kept;
    return n;
  }
};

// Whether the network has attention kernels: convolutional networks have none, and T5 computes attention in
// separate operations.
[[nodiscard]] inline bool has_attention_kernels(const BlockNetwork& network) {
  return std::ranges::any_of(network.kinds, [](const NetworkBlock& block) {
    return std::ranges::any_of(block.parts, [](const NetworkPart& part) {
      return std::holds_alternative<AttentionShape>(part.shape);
    });
  });
}

// Whether the samples of Transformer::network are images (not text pairs of an encoder-decoder), and the word
// for a sample: "image" or "sequence".
[[nodiscard]] inline bool takes_images(const BlockNetwork* network) {
  return network != nullptr && !network->splits;
}
[[nodiscard]] inline std::string_view sample_name(const BlockNetwork* network) {
  return takes_images(network) ? "image" : "sequence";
}

// Forward FLOPs of one sample; a multiply-add counts as two.
[[nodiscard]] double forward_flops(const BlockNetwork& network, const std::vector<std::uint8_t>& blocks);

}  // namespace stepcast
