#include "stepcast/workload/optimizer_work.h"

#include <algorithm>
#include <cmath>

#include "stepcast/base/number.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"

// Optimizer update of one rank: element-wise parts, and GEMMs of matrix optimizers.

namespace stepcast {
namespace {

using detail::share;

constexpr double kSquareBytes = 4;  // square matrices are kept in fp32
// Host operators per tensor and step: clipping and update, norm for the log, zero counts of gradients. And
// tensors of a layer without its experts (which have two each): weights and biases of four GEMMs and two
// norms.
constexpr double kOperatorsOfUpdate = 1, kOperatorsOfNorm = 2, kOperatorsOfZeros = 3, kTensorsOfLayer = 12;

// GEMM operands have at most 16 bits, so there may be master weights.
bool sixteen_bit(const Precision& precision) {
  return precision.compute != DType::fp32 && precision.compute != DType::tf32;
}

// Collects the matrices of layers, each `times` times.
class MatrixList final : public MatrixSink {
 public:
  MatrixList(const Transformer& model, const Layout& layout, std::vector<WeightMatrices>& out)
      : model_(model), layout_(layout), tp_(layout.degrees.tensor), out_(out) {}

  // The matrices of one kind of layer.
  void layer(bool experts, std::int64_t times) {
    attention(times);
    if (!experts) return feed_forward(model_.ffn_hidden_size, tp_, times, false);
    const MixtureOfExperts& moe = *model_.moe;
    add(moe.n_experts, model_.hidden_size, times, false);
    feed_forward(moe.expert_ffn_hidden_size, layout_.expert_tensor_degree(),
                 times * share(moe.n_experts, layout_.degrees.expert), true);
    if (moe.n_shared_experts > 0)
      feed_forward(moe.shared_ffn_hidden_size, tp_, times * moe.n_shared_experts, false);
  }
  void add_matrix(std::int64_t rows, std::int64_t columns, std::int64_t copies) override {
    add(rows, columns, copies, false);
  }
  void next_token_projections(std::int64_t times) {
    add(share(model_.hidden_size, tp_), 2 * model_.hidden_size, times, false);
  }

 private:
  // Adds to the entry of the same shape, or creates one.
  void add(std::int64_t rows, std::int64_t columns, std::int64_t count, bool of_experts) {
    if (count <= 0) return;
    for (WeightMatrices& known : out_) {
      if (known.rows != rows || known.columns != columns || known.of_experts != of_experts) continue;
      known.count += count;
      return;
    }
    out_.push_back({rows, columns, count, of_experts});
  }

  void attention(std::int64_t times) {
    const std::int64_t h = model_.hidden_size, heads = share(model_.n_heads, tp_);
    add(h, heads * model_.value_head_dim(), times, false);
    attention_of(model_).weight_matrices(model_, tp_, times, *this);
  }

  void feed_forward(std::int64_t width, std::int64_t tp, std::int64_t times, bool of_experts) {
    const std::int64_t h = model_.hidden_size, cut = share(width, tp);
    const bool as_one = rule_of(layout_).layers.joins_gated_weights;
    const std::int64_t up = model_.gated_ffn ? 2 : 1;
    add(as_one ? up * cut : cut, h, as_one ? times : up * times, of_experts);
    add(h, cut, times, of_experts);
  }

  const Transformer& model_;
  const Layout& layout_;
  std::int64_t tp_;
  std::vector<WeightMatrices>& out_;
};

// Divides matrices into the blocks of an optimizer that limits their side.
WeightMatrices cut(WeightMatrices m, const MatrixRule& rule) {
  if (rule.large_sides != LargeSides::cut) return m;
  for (std::int64_t* side : {&m.rows, &m.columns}) {
    const std::int64_t parts = share(*side, rule.largest_side);
    *side = share(*side, parts);
    m.count *= parts;
  }
  return m;
}

// Whether the optimizer keeps a square matrix for a side of this length.
bool has_square_matrix(std::int64_t side, const MatrixRule& rule) {
  return rule.square_states > 0 && (rule.largest_side == 0 || side <= rule.largest_side);
}

double shards_of(const WeightMatrices& m, const OptimizerShards& shards) {
  return m.of_experts ? shards.expert : shards.dense;
}

// Parameters per rank, by how they are updated: element-wise or as matrices.
struct Shares {
  double elements = 0, matrices = 0;
};
Shares shares_of(const Layout& layout, const TrainedParameters& trained) {
  const OptimizerShards shards = optimizer_shards(layout);
  double dense = trained.dense, expert = trained.expert;
  Shares out;
  for (const WeightMatrices& m : trained.matrices) {
    (m.of_experts ? expert : dense) -= m.parameters();
    out.matrices += m.parameters() / shards_of(m, shards);
  }
  out.elements = std::max(0.0, dense) / shards.dense + std::max(0.0, expert) / shards.expert;
  return out;
}

// Builds the update of one rank.
class UpdateList {
 public:
  UpdateList(const Layout& layout, const TrainedParameters& trained)
      : layout_(layout),
        precision_(layout.layer.precision),
        trained_(trained),
        rule_(rule_of(layout.optimizer.kind)),
        shares_(shares_of(layout, trained)),
        parameters_(shares_.elements + shares_.matrices),
        gradient_(element_size(precision_.gradients).value()),
        master_(!sixteen_bit(precision_)    ? 4
                : precision_.master_weights ? element_size(precision_.master).value()
                                            : 2) {}

  WorkList write() {
    if (parameters_ <= 0) return {};
    list_.reserve(8);
    if (precision_.loss_scaling) amount("unscale_gradients", gradient_, gradient_);
    if (layout_.optimizer.gradient_clip) {
      amount("gradient_norm", gradient_, 0);
      amount("clip_gradients", gradient_, gradient_);
    }
    if (layout_.optimizer.gradient_zeros) amount("gradient_zeros", gradient_, 0);
    if (layout_.optimizer.parameter_norm) amount("parameter_norm", master_, 0);
    if (layout_.optimizer.cpu_offload) {
      on_host();
      return std::move(list_);
    }
    step("optimizer_step", rule_.rest, shares_.elements, 0);
    if (!trained_.matrices.empty()) {
      if (!matrix_.owned_whole) gather_matrices();
      for (const WeightMatrices& m : trained_.matrices) update(m);
      step("matrix_step", rule_.kind, shares_.matrices, element_size(matrix_.products).value());
    }
    if (sixteen_bit(precision_) && precision_.master_weights) amount("weights_to_16_bit", master_, 2);
    amount("zero_gradients", 0, gradient_);
    return std::move(list_);
  }

 private:
  // An operation on all parameters, in bytes per parameter.
  void amount(std::string_view name, double read, double written) {
    list_.push_back({name, Operation{AmountShape{.flops = parameters_,
                                                 .bytes_read = read * parameters_,
                                                 .bytes_written = written * parameters_,
                                                 .kernel_class = KernelClass::elementwise},
                                     DType::fp32, Direction::forward}});
  }

  [[nodiscard]] double state_bytes(OptimizerKind kind) const {
    return rule_of(kind).moments * element_size(precision_.moments).value();
  }

  // CPU offload: gradients are copied down, updated on the host, and weights are copied up.
  void on_host() {
    const auto copy = [&](std::string_view name, MemcpyKind kind, double each) {
      list_.push_back(
          {name,
           Operation{TransferShape{kind, static_cast<std::int64_t>(each * parameters_), true}, DType::fp32}});
    };
    copy("gradients_to_host", MemcpyKind::device_to_host, gradient_);
    // Fewer GPUs than a node has share its memory bandwidth among themselves.
    constexpr std::int64_t kGpusOfHost = 8;
    const double share = as_double(std::min(layout_.world_size(), kGpusOfHost)) / as_double(kGpusOfHost);
    const double state = state_bytes(rule_.rest);
    copy("update_on_host", MemcpyKind::host_to_host, share * (gradient_ + 2 * (master_ + state) + 2));
    copy("weights_from_host", MemcpyKind::host_to_device, 2);
  }

  // The element-wise part; `direction`: bytes per parameter of the precomputed update direction.
  void step(std::string_view name, OptimizerKind kind, double parameters, double direction) {
    if (parameters <= 0) return;
    const double state = state_bytes(kind);
    OptimizerShape shape;
    shape.kind = kind;
    shape.implementation = layout_.optimizer.implementation;
    shape.parameters = static_cast<std::int64_t>(parameters);
    // Megatron and FSDP flatten the parameters of one or more layers into one tensor.
    shape.tensors = 1;
    shape.bytes_read_per_parameter = static_cast<float>(gradient_ + master_ + state + direction);
    shape.bytes_written_per_parameter = static_cast<float>(master_ + state + direction);
    list_.push_back({name, Operation{shape, DType::fp32}});
  }

  // Ranks with parts of matrices gather them, at most all ranks that share the optimizer. With ZeRO-1 and 2 a
  // rank has few matrices in part and the others completely or not at all, so this is an upper bound of the
  // traffic.
  void gather_matrices() {
    const bool hybrid = layout_.shard_group() < layout_.degrees.data * layout_.degrees.context;
    const OptimizerShards shards = optimizer_shards(layout_);
    double dense = 0, expert = 0;
    for (const WeightMatrices& m : trained_.matrices) (m.of_experts ? expert : dense) += m.parameters();
    const double each = element_size(matrix_.products).value();
    const auto gather = [&](GroupKind group, double parameters, double ranks) {
      if (parameters <= 0 || ranks <= 1) return;
      list_.push_back(
          {"gather_matrices", Transfer{CollectiveOp::all_gather, group, Bytes{each * parameters}}});
    };
    gather(hybrid ? GroupKind::shard : GroupKind::data, dense, shards.dense);
    gather(layout_.experts_have_own_groups() ? GroupKind::expert_data : GroupKind::data, expert,
           shards.expert);
  }

  // Number of matrices that this rank computes: under zero3 it has rows of all of them and computes each one
  // to update its rows; else its share, rounded up since the last one may be shared.
  [[nodiscard]] std::int64_t held(const WeightMatrices& m) const {
    if (layout_.sharding.kind == Sharding::zero3) return m.count;
    return static_cast<std::int64_t>(std::ceil(as_double(m.count) / shards_of(m, optimizer_shards(layout_))));
  }

  void product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count) {
    list_.push_back({name, gemm({.m = m, .n = n, .k = k}, matrix_.products), count});
  }

  // GEMMs of one shape: Newton-Schulz iterations, and preconditioners of both sides.
  void update(const WeightMatrices& whole) {
    const WeightMatrices m = cut(whole, matrix_);
    const std::int64_t count = held(m), shorter = std::min(m.rows, m.columns),
                       longer = std::max(m.rows, m.columns);
    const std::int64_t iterations = layout_.optimizer.newton_schulz_iterations > 0
                                        ? layout_.optimizer.newton_schulz_iterations
                                        : *matrix_.iterations;
    if (matrix_.iterations > 0) {
      product("orthogonalize_gram", shorter, shorter, longer, iterations * count);
      product("orthogonalize_square", shorter, shorter, shorter, iterations * count);
      product("orthogonalize_product", shorter, longer, shorter, iterations * count);
    }
    for (const auto& [side, other] : {std::pair{m.rows, m.columns}, std::pair{m.columns, m.rows}}) {
      if (!has_square_matrix(side, matrix_)) continue;
      product("preconditioner_statistics", side, side, other, count);
      product("precondition", side, other, side, matrix_.products_per_side * count);
      renew(side, count);
    }
  }

  // Renewal of a preconditioner, averaged over the steps of the renewal interval: reads the statistics and
  // the previous result, writes the new one.
  void renew(std::int64_t side, std::int64_t count) {
    const double square = as_double(side) * as_double(side),
                 per_step = as_double(count) / *matrix_.renewal_interval_steps;
    list_.push_back(
        {"renew_preconditioner",
         Operation{AmountShape{.flops = matrix_.renewal_flops_per_cube * square * as_double(side) * per_step,
                               .bytes_read = 2 * kSquareBytes * square * per_step,
                               .bytes_written = kSquareBytes * square * per_step,
                               .kernel_class = KernelClass::other},
                   DType::fp32}});
  }

  const Layout& layout_;
  const Precision& precision_;
  const TrainedParameters& trained_;
  const OptimizerRule& rule_;
  const MatrixRule& matrix_ = rule_.matrix;
  Shares shares_;
  double parameters_, gradient_, master_;
  WorkList list_;
};

}  // namespace

OptimizerShards optimizer_shards(const Layout& layout) {
  if (layout.sharding.kind == Sharding::none) return {};
  const double shards = as_double(std::max<std::int64_t>(1, layout.shard_group()));
  const double copies = as_double(layout.degrees.data * layout.degrees.context) / shards;
  return {shards, std::max(1.0, as_double(layout.expert_data_parallel()) / copies)};
}

void add_weight_matrices(const Transformer& model, const Layout& layout, const StepWork& work,
                         const ChunkWork& chunk, TrainedParameters& trained) {
  if (!rule_of(layout.optimizer.kind).matrix->takes_matrices() || layout.layer.frozen_base) return;
  MatrixList list{model, layout, trained.matrices};
  for (const ChunkWork::Run& run : chunk.runs)
    list.layer(work.layer_kinds[run.kind]->expert_parameters > 0, run.count);
  if (chunk.has_head) list.next_token_projections(model.n_multi_token_prediction_layers);
}

double optimizer_state_bytes(const Layout& layout, const TrainedParameters& trained) {
  const OptimizerRule& rule = rule_of(layout.optimizer.kind);
  const MatrixRule& of_matrices = rule.matrix;
  const OptimizerShards shards = optimizer_shards(layout);
  const Shares shares = shares_of(layout, trained);
  double bytes = element_size(layout.layer.precision.moments).value() *
                 (rule_of(rule.rest).moments * shares.elements + rule.moments * shares.matrices);
  for (const WeightMatrices& whole : trained.matrices) {
    const WeightMatrices m = cut(whole, of_matrices);
    for (const std::int64_t side : {m.rows, m.columns}) {
      if (!has_square_matrix(side, of_matrices)) continue;
      bytes += kSquareBytes * of_matrices.square_states * as_double(side) * as_double(side) *
               as_double(m.count) / shards_of(m, shards);
    }
  }
  return bytes;
}

double update_operators(const Transformer& model, const Layout& layout, const StepWork& work) {
  const OptimizerSetup& optimizer = layout.optimizer;
  const double of_tensor = kOperatorsOfUpdate + (optimizer.parameter_norm ? kOperatorsOfNorm : 0) +
                           (optimizer.gradient_zeros ? kOperatorsOfZeros : 0);
  const double experts = model.moe ? as_double(share(model.moe->n_experts, layout.degrees.expert)) : 0;
  std::vector<double> tensors(work.stages);
  for (std::size_t c = 0; c < work.chunks.size(); ++c) {
    for (const ChunkWork::Run& run : work.chunks[c].runs) {
      const bool has_experts = work.layer_kinds[run.kind]->expert_parameters > 0;
      tensors[c % work.stages] += run.count * (kTensorsOfLayer + (has_experts ? 2 * experts : 0));
    }
  }
  return of_tensor * *std::ranges::max_element(tensors);
}

WorkList optimizer_work(const Layout& layout, const TrainedParameters& trained) {
  return UpdateList{layout, trained}.write();
}

}  // namespace stepcast
