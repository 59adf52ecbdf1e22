// Writes a network down layer by layer: each call adds the operations of one and goes on with its result.
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

  // For images of so many channels and pixels in either direction.
  NetworkBuilder(std::string_view name, std::int64_t channels, std::int64_t side)
      : name_(name), channels_(channels), side_(side) {}

  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] std::int64_t side() const { return side_; }
  [[nodiscard]] std::int64_t n_tokens() const { return tokens_; }
  // Goes on from another place, and with vectors of so many tokens.
  NetworkBuilder& at(std::int64_t channels, std::int64_t side);
  NetworkBuilder& tokens(std::int64_t n);

  // `first`: of the image itself, which needs no gradient. Padding keeps the image's size at stride 1 unless said.
  NetworkBuilder& convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                              bool first = false, std::int64_t padding = -1);
  NetworkBuilder& bias();  // of the convolution in front of it
  NetworkBuilder& batch_norm();
  NetworkBuilder& max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
  NetworkBuilder& mean_over_image();
  // Element by element, of all that is there or of vectors of `width`.
  NetworkBuilder& relu();
  NetworkBuilder& gelu();
  NetworkBuilder& silu(std::int64_t width = 0);
  NetworkBuilder& activation(std::int64_t width,
                             bool gated);  // ReLU or gated GELU, cut by tensor parallelism
  NetworkBuilder& dropout(std::int64_t width = 0);
  NetworkBuilder& add_residual(std::int64_t width = 0);
  NetworkBuilder& residual_with_dropout(std::int64_t width, bool dropout);
  NetworkBuilder& add_vectors(std::int64_t width);      // that all samples share, as positions
  NetworkBuilder& scale_and_shift(std::int64_t width);  // of every sample
  NetworkBuilder& join(std::int64_t width);             // a copy of all tokens
  NetworkBuilder& linear(std::int64_t in, std::int64_t out, bool bias = true, Split split = Split::none);
  NetworkBuilder& logits(std::int64_t in, std::int64_t out, bool tied);
  NetworkBuilder& layer_norm(std::int64_t width, bool weights = true);
  NetworkBuilder& norm(std::int64_t width, bool layer);  // RMS norm, or layer norm
  NetworkBuilder& attention(std::int64_t keys, std::int64_t heads, std::int64_t head_dim);
  NetworkBuilder& written_attention(std::int64_t keys, std::int64_t heads, std::int64_t head_dim,
                                    bool dropout, bool biases);
  NetworkBuilder& lookup(std::int64_t rows, std::int64_t width, bool counts);
  NetworkBuilder& loss(std::int64_t classes);
  NetworkBuilder& squared_error();
  NetworkBuilder& parameters(std::int64_t n);  // that the part in front of it holds besides
  NetworkBuilder& end_block();
  // `input_tokens`: of an encoder that reads text.
  [[nodiscard]] Transformer finish(std::int64_t classes, bool splits = false, std::int64_t input_tokens = 0);

 private:
  NetworkPart& add(const NetworkPart& part);
  NetworkBuilder& pointwise(std::string_view name, std::string_view gradient, ElementwiseFunction function,
                            std::int64_t n, double reads, double backward_reads, double kept);
  [[nodiscard]] std::int64_t elements(std::int64_t width = 0) const;

  std::string name_;
  std::int64_t channels_, side_;
  std::int64_t tokens_ = 0, width_ = 0;  // 0 tokens: an image
  BlockNetwork network_;
  NetworkBlock block_;
  std::vector<std::uint8_t> blocks_;
};

}  // namespace stepcast
