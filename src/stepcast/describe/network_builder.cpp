#include "stepcast/describe/network_builder.h"

#include <algorithm>
#include <utility>

#include "stepcast/base/number.h"

namespace stepcast {

using Backward = NetworkPart::Backward;

// How parts are described, for all functions below: sizes are per sample, `kept` is the number of elements
// that the forward pass stores for the backward pass, and `other_gradient` is the operation of the backward
// pass where it differs from that of the forward pass.
NetworkPart& NetworkBuilder::add(const NetworkPart& part) { return block_.parts.emplace_back(part); }

// Elements per sample of the current activations, or, with `width`, of one vector of that width per token.
// `tokens_` is 0 for images and 1 or more for sequences.
std::int64_t NetworkBuilder::elements(std::int64_t width) const {
  if (width > 0) return std::max<std::int64_t>(1, tokens_) * width;
  return tokens_ > 0 ? tokens_ * width_ : channels_ * side_ * side_;
}

NetworkBuilder& NetworkBuilder::at(std::int64_t channels, std::int64_t side) {
  channels_ = channels;
  side_ = side;
  return *this;
}

NetworkBuilder& NetworkBuilder::tokens(std::int64_t n) {
  tokens_ = n;
  return *this;
}

NetworkBuilder& NetworkBuilder::convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                                            bool first, std::int64_t padding) {
  const ConvolutionShape shape{.in_channels = channels_,
                               .out_channels = channels,
                               .height = side_,
                               .width = side_,
                               .kernel_height = kernel,
                               .kernel_width = kernel,
                               .stride = stride,
                               .padding = padding >= 0 ? padding : kernel / 2};
  add({.name = "convolution",
       .gradient = "convolution_gradient",
       .shape = shape,
       .parameters = channels * channels_ * kernel * kernel,
       .kept = as_double(channels_ * side_ * side_),
       .backward = first ? Backward::weights : Backward::all});
  return at(channels, shape.out_height());
}

// PyTorch adds the bias in a separate kernel. Its gradient is a sum over images and pixels.
NetworkBuilder& NetworkBuilder::bias() {
  const std::int64_t n = channels_ * side_ * side_;
  add({.name = "convolution_bias",
       .gradient = "convolution_bias_gradient",
       .shape = ElementwiseShape{.function = ElementwiseFunction::add, .elements = n},
       .parameters = channels_,
       .other_gradient = ReductionShape{.rows = channels_, .cols = side_ * side_}});
  return *this;
}

NetworkBuilder& NetworkBuilder::batch_norm() {
  add({.name = "batch_norm",
       .gradient = "batch_norm_gradient",
       .shape = NormShape{NormKind::batch_norm, channels_, side_ * side_},
       .parameters = 2 * channels_,
       .kept = as_double(channels_ * side_ * side_)});
  return *this;
}

// `max_pool` stores the position of each maximum as an 8-byte index (PyTorch), hence `index_bytes`.
NetworkBuilder& NetworkBuilder::max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const std::int64_t side = (side_ + 2 * padding - kernel) / stride + 1;
  const double in = as_double(channels_ * side_ * side_), out = as_double(channels_ * side * side);
  add({.name = "max_pool",
       .gradient = "max_pool_gradient",
       .shape = AmountShape{.bytes_read = in, .bytes_written = out, .kernel_class = KernelClass::reduction},
       .kept = in,
       .index_bytes = 8 * out});
  return at(channels_, side);
}

NetworkBuilder& NetworkBuilder::mean_over_image() {
  const std::int64_t n = channels_ * side_ * side_;
  add({.name = "mean_over_image",
       .gradient = "mean_over_image_gradient",
       .shape = ReductionShape{.rows = channels_, .cols = side_ * side_},
       .other_gradient = ElementwiseShape{.elements = n, .reads = 0}});
  side_ = 1;
  return *this;
}

// Adds an elementwise operation over `n` elements. `reads` and `backward_reads` are tensors of `n` elements
// that the forward and the backward kernel read (1.5: one tensor plus a mask at half the width); 0
// `backward_reads` means that there is no backward kernel. `kept`: stored elements per element of `n`.
NetworkBuilder& NetworkBuilder::pointwise(std::string_view name, std::string_view gradient,
                                          ElementwiseFunction function, std::int64_t n, double reads,
                                          double backward_reads, double kept) {
  NetworkPart part{
      .name = name,
      .gradient = gradient,
      .shape = ElementwiseShape{.function = function, .elements = n, .reads = static_cast<float>(reads)},
      .kept = kept * as_double(n)};
  if (backward_reads > 0) {
    part.other_gradient =
        ElementwiseShape{.function = function, .elements = n, .reads = static_cast<float>(backward_reads)};
  } else {
    part.backward = Backward::none;
  }
  add(part);
  return *this;
}

// After a convolution ReLU works in place and stores nothing, because the next convolution stores its result.
NetworkBuilder& NetworkBuilder::relu() {
  return pointwise("relu", "relu_gradient", ElementwiseFunction::relu, elements(), 1, 2, tokens_ > 0 ? 1 : 0);
}
NetworkBuilder& NetworkBuilder::gelu() {
  return pointwise("gelu", "gelu_gradient", ElementwiseFunction::gelu, elements(), 1, 2, 1);
}
NetworkBuilder& NetworkBuilder::silu(std::int64_t width) {
  return pointwise("silu", "silu_gradient", ElementwiseFunction::silu, elements(width), 1, 2, 1);
}
NetworkBuilder& NetworkBuilder::activation(std::int64_t width, bool gated) {
  const std::int64_t n = elements(width);
  pointwise("activation", "activation_gradient",
            gated ? ElementwiseFunction::gelu : ElementwiseFunction::relu, n, 1, 2, 1);
  block_.parts.back().split = Split::column;
  if (!gated) return *this;
  pointwise("gate", "gate_gradient", ElementwiseFunction::multiply, n, 2, 3, 2);
  block_.parts.back().split = Split::column;
  return *this;
}
// Dropout stores a mask of one byte per element, half an element of 16 bits.
NetworkBuilder& NetworkBuilder::dropout(std::int64_t width) {
  return pointwise("dropout", "dropout_gradient", ElementwiseFunction::dropout, elements(width), 1, 1.5, 0.5);
}
// The backward kernel adds the gradients of the two branches.
NetworkBuilder& NetworkBuilder::add_residual(std::int64_t width) {
  return pointwise("residual_add", "residual_gradient_add", ElementwiseFunction::add, elements(width), 2, 2,
                   0);
}
NetworkBuilder& NetworkBuilder::residual_with_dropout(std::int64_t width, bool with_dropout) {
  if (with_dropout) dropout(width);
  return add_residual(width);
}
// The backward pass sums the gradient over the samples, because they share the vectors.
NetworkBuilder& NetworkBuilder::add_vectors(std::int64_t width) {
  const std::int64_t n = elements(width);
  add({.name = "add_vectors",
       .gradient = "vectors_gradient",
       .shape = ElementwiseShape{.function = ElementwiseFunction::add, .elements = n},
       .other_gradient = ReductionShape{.rows = n, .cols = 1}});
  return *this;
}
NetworkBuilder& NetworkBuilder::scale_and_shift(std::int64_t width) {
  return pointwise("scale_and_shift", "scale_and_shift_gradient", ElementwiseFunction::multiply,
                   elements(width), 2, 3, 1);
}
NetworkBuilder& NetworkBuilder::join(std::int64_t width) {
  add({.name = "join_tokens",
       .gradient = "split_tokens",
       .shape = MovementShape{MovementKind::concatenate, elements(width), width}});
  return *this;
}

NetworkBuilder& NetworkBuilder::linear(std::int64_t in, std::int64_t out, bool bias, Split split) {
  add({.name = "product",
       .gradient = "product_gradient",
       .shape = GemmShape{.m = tokens_, .n = out, .k = in, .bias = bias},
       .parameters = in * out + (bias ? out : 0),
       .kept = as_double(tokens_ * in),
       .split = split});
  width_ = out;
  return *this;
}

// Output layer to the vocabulary. With tied embeddings the weights belong to the embedding and are not
// counted here.
NetworkBuilder& NetworkBuilder::logits(std::int64_t in, std::int64_t out, bool tied) {
  linear(in, out, false, Split::column);
  block_.parts.back().name = "logits";
  NetworkPart& part = block_.parts.back();
  part.shared_weights = tied;
  if (tied) part.parameters = 0;
  return *this;
}

NetworkBuilder& NetworkBuilder::layer_norm(std::int64_t width, bool weights) {
  add({.name = "layer_norm",
       .gradient = "layer_norm_gradient",
       .shape = NormShape{NormKind::layer_norm, tokens_, width},
       .parameters = weights ? 2 * width : 0,
       .kept = as_double(tokens_ * width)});
  width_ = width;
  return *this;
}

NetworkBuilder& NetworkBuilder::norm(std::int64_t width, bool layer) {
  if (layer) return layer_norm(width);
  add({.name = "rms_norm",
       .gradient = "rms_norm_gradient",
       .shape = NormShape{NormKind::rms_norm, tokens_, width},
       .parameters = width,
       .kept = as_double(tokens_ * width)});
  width_ = width;
  return *this;
}

// Fused attention (one kernel, no stored scores), bidirectional: `keys` tokens for each of the tokens_
// queries.
NetworkBuilder& NetworkBuilder::attention(std::int64_t keys, std::int64_t heads, std::int64_t head_dim) {
  add({.name = "attention",
       .gradient = "attention_gradient",
       .shape = AttentionShape{.query_length = tokens_,
                               .key_length = keys,
                               .heads = heads,
                               .key_value_heads = heads,
                               .head_dim = head_dim,
                               .causal = false},
       .kept = as_double((2 * tokens_ + 2 * keys) * heads * head_dim)});
  width_ = heads * head_dim;
  return *this;
}

// Attention that is written out as GEMMs, softmax and dropout, so that scores of heads x tokens x keys are
// stored. Tensor parallelism divides all its parts by heads.
NetworkBuilder& NetworkBuilder::written_attention(std::int64_t keys, std::int64_t heads,
                                                  std::int64_t head_dim, bool with_dropout, bool biases) {
  const std::int64_t scores = heads * tokens_ * keys;
  const double both = as_double((tokens_ + keys) * heads * head_dim);
  const auto cut = [this] { block_.parts.back().split = Split::column; };
  add({.name = "scores",
       .gradient = "scores_gradient",
       .shape = GemmShape{.batch = heads, .m = tokens_, .n = keys, .k = head_dim, .layout = GemmLayout::tn},
       .kept = both});
  cut();
  if (biases) {
    pointwise("score_biases", "score_biases_gradient", ElementwiseFunction::add, scores, 2, 0, 0);
    cut();
  }
  add({.name = "softmax",
       .gradient = "softmax_gradient",
       .shape = SoftmaxShape{SoftmaxKind::plain, heads * tokens_, keys},
       .kept = as_double(scores)});
  cut();
  if (with_dropout) {
    pointwise("attention_dropout", "attention_dropout_gradient", ElementwiseFunction::dropout, scores, 1, 1.5,
              1.5);
    cut();
  }
  add({.name = "weighted_values",
       .gradient = "weighted_values_gradient",
       .shape = GemmShape{.batch = heads, .m = tokens_, .n = head_dim, .k = keys, .layout = GemmLayout::nn},
       .kept = both});
  cut();
  width_ = heads * head_dim;
  return *this;
}

// `counts`: whether the table's parameters belong to this block; false where another block has the same
// table.
NetworkBuilder& NetworkBuilder::lookup(std::int64_t rows, std::int64_t width, bool counts) {
  add({.name = "embedding",
       .gradient = "embedding_gradient",
       .shape = LookupShape{.rows = rows, .dim = width, .bags = tokens_},
       .parameters = counts ? rows * width : 0,
       .split = Split::column});
  width_ = width;
  return *this;
}

NetworkBuilder& NetworkBuilder::loss(std::int64_t classes) {
  add({.name = "cross_entropy",
       .gradient = "cross_entropy_gradient",
       .shape = CrossEntropyShape{.rows = tokens_, .classes = classes},
       .kept = as_double(tokens_ * classes)});
  return *this;
}

NetworkBuilder& NetworkBuilder::squared_error() {
  return pointwise("squared_error", "squared_error_gradient", ElementwiseFunction::other, elements(), 2, 2,
                   1);
}

NetworkBuilder& NetworkBuilder::parameters(std::int64_t n) {
  block_.parts.back().parameters += n;
  return *this;
}

// Ends the block. Equal blocks share one entry of `network_.kinds`, and layers refer to it by index.
NetworkBuilder& NetworkBuilder::end_block() {
  std::size_t kind = 0;
  while (kind < network_.kinds.size() && !(network_.kinds[kind] == block_)) ++kind;
  if (kind == network_.kinds.size()) network_.kinds.push_back(block_);
  blocks_.push_back(static_cast<std::uint8_t>(kind));
  block_ = {};
  return *this;
}

// Puts the network into a Transformer with one layer per block. The sizes of a language model that the
// network does not have get neutral values.
Transformer NetworkBuilder::finish(std::int64_t classes, bool splits, std::int64_t input_tokens) {
  Transformer model;
  model.name = name_;
  model.architecture = Architecture::encoder;
  model.n_layers = static_cast<std::int64_t>(blocks_.size());
  model.kind_of_layer = blocks_;
  model.hidden_size = model.ffn_hidden_size = std::max<std::int64_t>(1, width_);
  model.n_heads = 1;
  model.vocab_size = classes;
  model.position = PositionEncoding::none;
  model.tied_embeddings = false;
  network_.tokens = splits ? tokens_ : 1;
  network_.splits = splits;
  network_.input_tokens = input_tokens;
  model.max_position = network_.tokens;
  model.network = std::make_shared<const BlockNetwork>(std::move(network_));
  return model;
}

}  // namespace stepcast
