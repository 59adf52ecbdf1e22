// Work before the first layer and after the last one: embedding; final norm, logits and loss.
#include "stepcast/workload/detail/end_writer.h"

#include <cstdint>
#include <utility>

#include "stepcast/workload/detail/feed_forward_writer.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/detail/network_writer.h"

namespace stepcast::detail {

// A row-split lookup, summed over the tensor-parallel ranks.
WorkList EndWriter::embedding(Direction direction) const {
  WorkList list;
  list.reserve(4);
  const double elements = static_cast<double>(tokens_ * model_.hidden_size);
  const bool forward = direction == Direction::forward;
  if (!forward && layout_.layer.frozen_base) return list;
  if (!forward && model_.hidden_dropout > 0) {
    add_elementwise(list, "embedding_dropout_gradient", ElementwiseFunction::dropout, elements, 1, 1,
                    Direction::backward);
  }
  list.push_back(
      {forward ? "embedding" : "embedding_gradient",
       Operation{LookupShape{.rows = share(padded_vocab_, tp_), .dim = model_.hidden_size, .bags = tokens_},
                 dtype_, direction}});
  if (!forward) {
    if (model_.vector_of_layer > 0) vectors_of_layers(list, direction);
    return list;
  }
  reduce_tokens(list, "reduce_embedding", false);
  if (model_.vector_of_layer > 0) vectors_of_layers(list, direction);
  if (model_.position == PositionEncoding::learned)
    add_elementwise(list, "add_positions", ElementwiseFunction::add, elements, 2, 1);
  if (model_.embedding_norm) add_norm(list, "embedding_norm", direction, static_cast<double>(tokens_));
  if (model_.hidden_dropout > 0)
    add_elementwise(list, "embedding_dropout", ElementwiseFunction::dropout, elements, 1, 1);
  return list;
}

// The per-layer vectors of all layers at once: a lookup, and a projection from the embedding.
void EndWriter::vectors_of_layers(WorkList& list, Direction direction) const {
  const std::int64_t width = model_.n_layers * model_.vector_of_layer, h = model_.hidden_size;
  const Linear projection{.name = "layer_vectors",
                          .input_gradient = "layer_vectors_input_gradient",
                          .weight_gradient = "layer_vectors_weight_gradient",
                          .tokens = tokens_,
                          .n = width,
                          .k = h};
  const bool forward = direction == Direction::forward;
  list.push_back({forward ? "layer_vectors_lookup" : "layer_vectors_lookup_gradient",
                  Operation{LookupShape{.rows = model_.vocab_of_layers, .dim = width, .bags = tokens_},
                            dtype_, direction}});
  forward ? add_linear(list, projection) : add_linear_gradients(list, projection, Edge::none);
  add_elementwise(list, forward ? "add_layer_vectors" : "add_layer_vectors_gradient",
                  ElementwiseFunction::add, static_cast<double>(tokens_ * width), 2, 1, direction);
}

void EndWriter::add_own_vector(WorkList& list, Direction direction) const {
  const std::int64_t h = model_.hidden_size, width = model_.vector_of_layer, t = tokens_;
  const bool forward = direction == Direction::forward;
  const Linear gate{.name = "layer_vector_gate",
                    .input_gradient = "layer_vector_input_gradient",
                    .weight_gradient = "layer_vector_weight_gradient",
                    .tokens = t,
                    .n = width,
                    .k = h};
  Linear back = gate;
  back.name = "layer_vector_back";
  std::swap(back.n, back.k);
  const auto between = [&] {
    add_elementwise(list, "layer_vector", ElementwiseFunction::gelu, static_cast<double>(t * width), 2, 1,
                    direction);
  };
  if (forward) {
    add_linear(list, gate);
    between();
    add_linear(list, back);
    add_norm(list, "layer_vector_norm", direction, static_cast<double>(t));
    return residual(list, direction);
  }
  add_norm(list, "layer_vector_norm_gradient", direction, static_cast<double>(t));
  add_linear_gradients(list, back, Edge::none);
  between();
  add_linear_gradients(list, gate, Edge::none);
  residual(list, direction);
}

// With fewer predicted tokens than tokens, the tokens are gathered after the final norm.
WorkList EndWriter::head(Direction direction) const {
  WorkList list;
  list.reserve(8);
  const std::int64_t h = model_.hidden_size, vocab = share(padded_vocab_, tp_), t = predicted_tokens_;
  const bool fp8 = is_narrow(layout_.layer.precision.compute) && layout_.layer.precision.fp8.logits;
  const Operation loss{CrossEntropyShape{predicted_tokens_, vocab,
                                         layout_.layer.fused.cross_entropy || layout_.layer.fused.compiled},
                       dtype_, direction};
  if (direction == Direction::forward) {
    if (model_.final_norm) add_norm(list, "final_norm", direction, norm_tokens_);
    if (t < tokens_)
      list.push_back({"choose_tokens", Operation{MovementShape{MovementKind::gather, t * h, h}, dtype_}});
    if (model_.mlm_head) {
      add_linear(list, {"mlm_dense", {}, {}, {}, t, h, h, true, false});
      FeedForwardWriter{*this}.activation(list, static_cast<double>(t * h), direction);
      add_norm(list, "mlm_norm", direction, static_cast<double>(t));
    }
    gather_tokens(list, "gather_head_input", false);
    add_linear(list, {"logits", {}, {}, {}, t, vocab, h, model_.head_bias, fp8});
    list.push_back({"cross_entropy", loss});
    if (tp_ > 1) {
      // Per token: maximum, predicted logit and sum of exponentials, in fp32.
      list.push_back(
          {"reduce_loss",
           Transfer{CollectiveOp::all_reduce, GroupKind::tensor, Bytes{static_cast<double>(t) * 4}}, 3});
      list.back().role = ItemRole::training;
    }
    predict_further_tokens(list, direction);
    return list;
  }
  list.push_back({"cross_entropy_gradient", loss});
  add_linear_gradients(list,
                       {{},
                        "logits_input_gradient",
                        "logits_weight_gradient",
                        "logits_bias_gradient",
                        t,
                        vocab,
                        h,
                        model_.head_bias,
                        fp8},
                       Edge::column);
  if (model_.mlm_head) {
    add_norm(list, "mlm_norm_gradient", direction, static_cast<double>(t));
    FeedForwardWriter{*this}.activation(list, static_cast<double>(t * h), direction);
    add_linear_gradients(
        list, {{}, "mlm_dense_input_gradient", "mlm_dense_weight_gradient", {}, t, h, h, true, false},
        Edge::none);
  }
  if (t < tokens_) {
    list.push_back(
        {"choose_tokens_gradient", Operation{MovementShape{MovementKind::scatter, t * h, h}, dtype_}});
  }
  if (model_.final_norm) add_norm(list, "final_norm_gradient", direction, norm_tokens_);
  predict_further_tokens(list, direction);
  return list;
}

// Every layer that predicts a further token has a final norm, logits and a loss like the last layer, with the
// same output matrix. Before it are norms of the hidden state and of the embedding of the next token, and a
// projection of both (DeepSeek-V3 2024, section 2.2; Megatron Core, MultiTokenPredictionLayer and
// GPTModel._postprocess).
void EndWriter::predict_further_tokens(WorkList& list, Direction direction) const {
  const std::int64_t n = model_.n_multi_token_prediction_layers, h = model_.hidden_size;
  if (n == 0) return;
  for (WorkItem& item : list) item.count *= 1 + n;
  const std::size_t first = list.size();
  const bool forward = direction == Direction::forward;
  const Linear projection{
      .name = "next_token_projection",
      .input_gradient = "next_token_input_gradient",
      .weight_gradient = "next_token_weight_gradient",
      .tokens = tokens_,
      .n = share(h, tp_),
      .k = 2 * h,
      .fp8 = is_narrow(layout_.layer.precision.compute) && layout_.layer.precision.fp8.ffn_linears,
      .input_of_kernel = true};
  const double inputs = 2 * norm_tokens_ * static_cast<double>(h);
  const auto across = [&](std::string_view name, CollectiveOp op, double elements) {
    if (tp_ == 1) return;
    list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{elements * element_bytes_}}});
  };
  const auto outputs = static_cast<double>(tokens_ * h);
  const Operation lookup{LookupShape{.rows = share(padded_vocab_, tp_), .dim = h, .bags = tokens_}, dtype_,
                         direction};
  if (forward) {
    list.push_back({"next_token_embedding", lookup});
    reduce_tokens(list, "reduce_embedding", false);
    add_norm(list, "next_token_norms", direction, 2 * norm_tokens_);
    add_elementwise(list, "join_next_token", ElementwiseFunction::other, inputs, 1, 1);
    if (layout_.layer.sequence_parallel) across("gather_next_token", CollectiveOp::all_gather, 2 * outputs);
    add_linear(list, projection);
    across("gather_next_token_projection", CollectiveOp::all_gather, outputs);
  } else {
    add_linear_gradients(list, projection, Edge::none);
    across("reduce_next_token_gradient",
           layout_.layer.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
           2 * outputs);
    add_elementwise(list, "split_next_token_gradient", ElementwiseFunction::other, inputs, 1, 1, direction);
    add_norm(list, "next_token_norm_gradients", direction, 2 * norm_tokens_);
    if (!layout_.layer.frozen_base) list.push_back({"next_token_embedding_gradient", lookup});
  }
  for (std::size_t i = first; i < list.size(); ++i) list[i].count *= n;
}

double EndWriter::word_embedding_parameters() const {
  return static_cast<double>(share(padded_vocab_, tp_)) * static_cast<double>(model_.hidden_size);
}

LayerWork EndWriter::embedding() const {
  if (model_.network) return {};
  const ParameterCount count = embedding_parameter_count(model_);
  LayerWork work;
  work.forward = embedding(Direction::forward);
  work.backward = embedding(Direction::backward);
  capture(work.forward, 0, layout_.layer.cuda_graphs.full_iteration);
  capture(work.backward, 0, layout_.layer.cuda_graphs.full_iteration);
  work.dense_parameters =
      word_embedding_parameters() + static_cast<double>(count.position_embedding + count.norms);
  if (model_.tower) NetworkWriter{*this}.add_tower(work);
  work.trained_dense_parameters = layout_.layer.frozen_base ? 0 : work.dense_parameters;
  return work;
}

// A tied output matrix belongs to the embedding; step_work() counts the copy on another stage.
LayerWork EndWriter::head() const {
  if (model_.network) return {};
  const ParameterCount count = head_parameter_count(model_);
  LayerWork work;
  work.forward = head(Direction::forward);
  work.backward = head(Direction::backward);
  capture(work.forward, 0, layout_.layer.cuda_graphs.full_iteration);
  capture(work.backward, 0, layout_.layer.cuda_graphs.full_iteration);
  // Parameters other than the output matrix.
  const std::int64_t matrix = model_.tied_embeddings ? 0 : model_.vocab_size * model_.hidden_size;
  work.dense_parameters = static_cast<double>(count.norms + count.head - matrix);
  if (!model_.tied_embeddings) work.dense_parameters += word_embedding_parameters();
  const auto further = static_cast<double>(model_.n_multi_token_prediction_layers),
             h = static_cast<double>(model_.hidden_size);
  work.dense_parameters += further * (2 * h * h / static_cast<double>(tp_) + 3 * h);
  work.trained_dense_parameters = layout_.layer.frozen_base ? 0 : work.dense_parameters;
  return work;
}

}  // namespace stepcast::detail
