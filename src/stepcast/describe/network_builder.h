// Builds a BlockNetwork layer by layer: each call appends the operations of one layer and updates the shape
// of the activations that the next call reads. Sizes are per sample.
//
//   NetworkBuilder b{"net", 3, 224};
//   b.convolution(64, 7, 2, true).batch_norm().relu().end_block();
//   Transformer model = b.finish(1000);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "stepcast/workload/network.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

class NetworkBuilder {
 public:
  using Split = NetworkPart::Split;

  // For images of `channels` channels and `side` x `side` pixels.
  NetworkBuilder(std::string_view name, std::int64_t channels, std::int64_t side)
      : name_(name), channels_(channels), side_(side) {}

  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] std::int64_t side() const { return side_; }
  [[nodiscard]] std::int64_t n_tokens() const { return tokens_; }
  // Continue with activations of another shape: images of `channels` x `side` x `side`, or sequences of `n`
  // tokens. Neither adds an operation.
  NetworkBuilder& at(std::int64_t channels, std::int64_t side);
  NetworkBuilder& tokens(std::int64_t n);

  // `first`: the input is the image, which needs no gradient. `padding` < 0: kernel / 2, which keeps the size
  // of the image at stride 1.
  NetworkBuilder& convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                              bool first = false, std::int64_t padding = -1);
  NetworkBuilder& bias();  // of the preceding convolution
  NetworkBuilder& batch_norm();
  NetworkBuilder& max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
  NetworkBuilder& mean_over_image();
  // Elementwise operations over all activations, or over vectors of `width` per token if it is not 0.
  NetworkBuilder& relu();
  NetworkBuilder& gelu();
  NetworkBuilder& silu(std::int64_t width = 0);
  NetworkBuilder& activation(std::int64_t width,
                             bool gated);  // ReLU or gated GELU, divided by tensor parallelism
  NetworkBuilder& dropout(std::int64_t width = 0);
  NetworkBuilder& add_residual(std::int64_t width = 0);
  NetworkBuilder& residual_with_dropout(std::int64_t width, bool dropout);
  NetworkBuilder& add_vectors(std::int64_t width);      // the same for all samples, such as positions
  NetworkBuilder& scale_and_shift(std::int64_t width);  // with factors that differ between samples
  NetworkBuilder& join(std::int64_t width);             // copies all tokens into one tensor (torch.cat)
  // GEMM of all tokens with a weight matrix of `in` x `out`. `split`: how tensor parallelism divides the
  // weights.
  NetworkBuilder& linear(std::int64_t in, std::int64_t out, bool bias = true, Split split = Split::none);
  NetworkBuilder& logits(std::int64_t in, std::int64_t out, bool tied);
  NetworkBuilder& layer_norm(std::int64_t width, bool weights = true);
  NetworkBuilder& norm(std::int64_t width, bool layer);  // layer norm if `layer`, else RMS norm
  // Fused attention of the tokens with `keys` tokens, or the same as separate kernels.
  NetworkBuilder& attention(std::int64_t keys, std::int64_t heads, std::int64_t head_dim);
  NetworkBuilder& written_attention(std::int64_t keys, std::int64_t heads, std::int64_t head_dim,
                                    bool dropout, bool biases);
  NetworkBuilder& lookup(std::int64_t rows, std::int64_t width, bool counts);
  // Cross-entropy over `classes`, or mean squared error.
  NetworkBuilder& loss(std::int64_t classes);
  NetworkBuilder& squared_error();
  NetworkBuilder& parameters(std::int64_t n);  // further ones of the preceding part
  NetworkBuilder& end_block();
  // Ends the network; the builder must not be used afterwards. `splits`: the parts define how tensor
  // parallelism divides them, and samples are sequences; false: samples are images. `input_tokens`: tokens of
  // the encoder, if it reads text.
  [[nodiscard]] Transformer finish(std::int64_t classes, bool splits = false, std::int64_t input_tokens = 0);

 private:
  NetworkPart& add(const NetworkPart& part);
  NetworkBuilder& pointwise(std::string_view name, std::string_view gradient, ElementwiseFunction function,
                            std::int64_t n, double reads, double backward_reads, double kept);
  [[nodiscard]] std::int64_t elements(std::int64_t width = 0) const;

  std::string name_;
  std::int64_t channels_, side_;
  std::int64_t tokens_ = 0, width_ = 0;  // tokens_ is 0 while the activations are images
  BlockNetwork network_;
  NetworkBlock block_;
  // Index into network_.kinds for each block.
  std::vector<std::uint8_t> blocks_;
};

}  // namespace stepcast
