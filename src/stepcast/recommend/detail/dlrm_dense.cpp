#include "stepcast/recommend/detail/dlrm_dense.h"

#include <algorithm>
#include <utility>

#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {
namespace {

constexpr std::int64_t kTile = 128, kSplitDepth = 1024;  // of products
constexpr double kInteractionShare = 0.5;  // of what streaming kernels reach of the memory bandwidth

class DenseWork {
 public:
  DenseWork(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits, std::int64_t n_ranks)
      : model_(model), training_(training), habits_(habits), n_ranks_(n_ranks), alone_(n_ranks == 1) {
    batch_ = std::max<std::int64_t>(1, training.global_batch / n_ranks);
    half_ = training.dtype == DType::fp16 || training.dtype == DType::bf16;
    activation_ = half_ ? training.dtype : DType::fp32;
  }

  DenseParts parts() const {
    DenseParts p;
    const std::int64_t bottom_batch = habits_.bottom_on_one_rank ? training_.global_batch : batch_;
    mlp(bottom_batch, model_.dense_features, model_.bottom_mlp, false, p.bottom, p.bottom_backward);
    // Logits go into the loss as they are where it is operators.
    mlp(batch_, model_.interaction_width(), model_.top_mlp, true, p.top, p.top_backward, habits_.eager);
    if (habits_.index_passes > 0) {
      const double lookups =
          static_cast<double>(training_.global_batch * static_cast<std::int64_t>(model_.tables.size()));
      const auto ordered = [&](double share) {
        return std::vector<DenseOp>{
            {"indices",
             {AmountShape{.bytes_read = share * habits_.index_passes * kIndexBytes * lookups,
                          .kernel_class = KernelClass::embedding},
              DType::int64}}};
      };
      if (habits_.indices_beside) {
        p.next_inputs = ordered(0.5);
      } else {
        p.inputs = ordered(1);
      }
    }
    interaction(p);
    if (habits_.eager) exchange_by_operators(p);
    loss(p);
    update(p);
    return p;
  }

 private:
  // Kernels around the exchanges of a table-batched collection, as FBGEMM and TorchRec launch them: the 8-rank DLRM trace and
  // two of production jobs (sampled_128, trace_diff_control) have the same ones.
  void exchange_by_operators(DenseParts& p) const {
    double lookups = 0;
    for (const EmbeddingTable& table : model_.tables) lookups += static_cast<double>(batch_) * table.pooling;
    const auto indices = static_cast<std::int64_t>(lookups);
    const std::int64_t bags = static_cast<std::int64_t>(model_.tables.size()) * batch_;
    // In the order of ranks, and behind the exchange in the order of tables.
    for (int k = 0; k < 2; ++k) permuted(p.inputs, bags, indices);
    p.inputs.push_back(of_indices("stack of lengths", MovementKind::concatenate, bags));
    // Of the tables of this rank, the samples of all: how much each rank sends, which the host has to know and says on.
    p.inputs.push_back({"lookups of each rank",
                        {ReductionShape{.rows = n_ranks_, .cols = std::max<std::int64_t>(1, bags / n_ranks_)},
                         DType::int64}});
    p.inputs.push_back(of_indices("lookups of each rank", MovementKind::copy, n_ranks_));
    const auto to_host = [&](std::vector<DenseOp>& ops, int n) {
      transferred(ops, MemcpyKind::device_to_host, n);
    };
    const auto to_gpu = [&](std::vector<DenseOp>& ops, int n) {
      transferred(ops, MemcpyKind::host_to_device, n);
    };
    to_host(p.inputs, 2);
    to_gpu(p.inputs, 4);
    // Before the kernel: indices and offsets as 64-bit numbers, where the bags begin, and whether all rows exist.
    p.inputs.push_back(of_indices("indices in 64 bits", MovementKind::copy, indices));
    p.inputs.push_back(of_indices("lengths in 64 bits", MovementKind::copy, bags));
    scanned(p.inputs, "offsets", bags, false);
    p.inputs.push_back(of_indices("zeros", MovementKind::fill, 1));
    p.inputs.push_back(further(of_indices("bounds of indices", MovementKind::gather, indices)));
    for (const auto& [elements, bytes] : {std::pair{batch_ * model_.dense_features, 4}, std::pair{batch_, 4},
                                          std::pair{bags, 4}, std::pair{indices, 8}}) {
      p.next_batch.push_back(
          {"next batch",
           {TransferShape{.kind = MemcpyKind::host_to_device, .bytes = elements * bytes}, DType::int8}});
    }
    const std::int64_t values = batch_ * model_.sum_of_dims();
    const auto joined = [&](std::string_view name, std::int64_t elements) {
      return moved(name, MovementKind::concatenate, elements);
    };
    p.interaction.insert(p.interaction.begin(), joined("join tables", values));
    p.interaction_backward.push_back(joined("join gradients of tables", values));
    if (alone_) return;
    p.interaction.insert(p.interaction.begin(), joined("join ranks", values));
    for (std::int64_t r = 0; r < n_ranks_; ++r)
      p.interaction_backward.push_back(moved("gradients for a rank", MovementKind::copy, values / n_ranks_));
    p.interaction_backward.push_back(joined("join gradients for ranks", values));
  }

  // A running sum: zeros, the start of the scan, the scan, which looks back from block to block.
  void scanned(std::vector<DenseOp>& ops, std::string_view name, std::int64_t n, bool inside) const {
    ops.push_back(of_indices(name, MovementKind::fill, 1));
    ops.back().further = inside;
    ops.push_back(further(of_indices(name, MovementKind::fill, 1)));
    ops.push_back(further(of_indices(name, MovementKind::gather, n)));
  }
  // Lengths and indices of a batch in another order of its features: one operator.
  void permuted(std::vector<DenseOp>& ops, std::int64_t bags, std::int64_t indices) const {
    ops.push_back(of_indices("order of lengths", MovementKind::gather, bags));
    ops.push_back(further(of_indices("offsets before", MovementKind::fill, 1)));
    ops.push_back(further(of_indices("offsets before", MovementKind::gather, bags)));
    scanned(ops, "offsets behind", bags, true);
    ops.push_back(further(of_indices("order of indices", MovementKind::gather, indices)));
  }
  // A few numbers that go to the host or come from it.
  void transferred(std::vector<DenseOp>& ops, MemcpyKind kind, int times) const {
    const TransferShape few{.kind = kind, .bytes = 8 * n_ranks_, .pinned = false};
    for (int k = 0; k < times; ++k) ops.push_back({"few numbers", {few, DType::int8}});
  }
  static DenseOp further(DenseOp op) {
    op.further = true;
    return op;
  }
  static DenseOp of_indices(std::string_view name, MovementKind kind, std::int64_t n) {
    return {name, {MovementShape{.kind = kind, .elements = std::max<std::int64_t>(1, n)}, DType::int64}};
  }

  void loss(DenseParts& p) const {
    if (habits_.eager) {
      // binary_cross_entropy_with_logits of PyTorch 1 and 2.0 (aten/src/ATen/native/Loss.cpp), on labels that became
      // floats: m = max(-x, 0); (1 - y) x + m + log(exp(-m) + exp(-x - m)), its mean. TorchRec's pipeline adds losses up
      // before the backward: a gradient of ones, sigmoid, difference, product, division.
      p.loss.push_back(moved("labels", MovementKind::copy, batch_));
      for (const std::string_view name :
           {"negate", "clamp", "subtract", "multiply", "add", "negate", "exponential", "negate", "subtract",
            "exponential", "add", "logarithm", "add"}) {
        p.loss.push_back(element(name, batch_, 2, 1));
      }
      p.loss.push_back(moved("ones", MovementKind::fill, batch_));
      p.loss.push_back({"mean", {ReductionShape{.rows = 1, .cols = batch_}, activation_}});
      p.loss.push_back({"sum of losses", {ReductionShape{.rows = 1, .cols = 1}, activation_}});
      p.loss.push_back(moved("ones", MovementKind::fill, 1));
      for (const std::string_view name : {"sigmoid", "subtract", "multiply", "divide"})
        p.loss.push_back(element(name, batch_, 2, 1));
      return;
    }
    p.loss = {element("loss", batch_, 2, 1)};
    // Loss forward and backward, a few kernels over one number per sample.
    if (!habits_.fused_forward) p.loss.push_back(element("loss backward", batch_, 2, 1));
  }

  void update(DenseParts& p) const {
    if (!habits_.eager || training_.dense_optimizer_implementation != OptimizerImplementation::for_loop) {
      p.update = dense_update(training_, model_.dense_parameters());
      return;
    }
    // Each step of the rule an operator, tensor by tensor.
    for (const auto* ops : {&p.top_backward, &p.interaction_backward, &p.bottom_backward}) {
      for (const DenseOp& op : *ops) {
        if (op.gradient_elements <= 0) continue;
        const std::vector<DenseOp> of_tensor = dense_update(training_, op.gradient_elements);
        p.update.insert(p.update.end(), of_tensor.begin(), of_tensor.end());
      }
    }
  }

  // A gradient that is there after `op`; DistributedDataParallel divides it on the way into its bucket.
  void push_gradient(std::vector<DenseOp>& ops, DenseOp op, std::int64_t elements) const {
    if (!habits_.eager || alone_) {
      op.gradient_elements += static_cast<double>(elements);
      ops.push_back(op);
      return;
    }
    ops.push_back(op);
    DenseOp copy{"copy into bucket",
                 elementwise({.elements = elements, .reads = 1, .writes = 1}, DType::fp32)};
    copy.gradient_elements = static_cast<double>(elements);
    ops.push_back(copy);
  }

  DenseOp element(std::string_view name, std::int64_t elements, float reads, float writes) const {
    return {name,
            elementwise({.elements = std::max<std::int64_t>(1, elements), .reads = reads, .writes = writes},
                        activation_)};
  }
  DenseOp moved(std::string_view name, MovementKind kind, std::int64_t elements) const {
    return {name,
            {MovementShape{.kind = kind, .elements = std::max<std::int64_t>(1, elements)}, activation_}};
  }
  // Of the GPU, by tiles of the output; long sums are split.
  [[nodiscard]] double filled(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const auto parts = [](std::int64_t of, std::int64_t by) {
      const std::int64_t whole = (of + by - 1) / by;
      return static_cast<double>(whole);
    };
    const double splits = static_cast<double>(std::max<std::int64_t>(1, k / kSplitDepth));
    return std::min(1.0, parts(m, kTile) * parts(n, kTile) * splits / habits_.processors);
  }
  DenseOp product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                  GemmLayout layout) const {
    return {name, gemm({.m = m, .n = n, .k = k, .layout = layout}, training_.dtype)};
  }

  void mlp(std::int64_t batch, std::int64_t input, const std::vector<std::int64_t>& widths,
           bool input_gradient, std::vector<DenseOp>& forward, std::vector<DenseOp>& backward,
           bool ends_in_logits = false) const {
    std::vector<std::vector<DenseOp>> reversed;
    for (std::size_t l = 0; l < widths.size(); ++l) {
      const std::int64_t n = widths[l], k = l == 0 ? input : widths[l - 1];
      const bool activated = !ends_in_logits || l + 1 < widths.size();
      // addmm copies the bias into the output where cuBLASLt cannot add it: not for one column (aten/src/ATen/native/cuda/
      // Blas.cpp).
      if (habits_.eager && n == 1) forward.push_back(moved("copy of the bias", MovementKind::copy, batch));
      forward.push_back(product("linear", batch, n, k, GemmLayout::tn));
      std::vector<DenseOp> back;
      if (activated) back.push_back(element("activation backward", batch * n, 2, 1));
      if (!habits_.fused_forward) {
        if (half_) forward.push_back(element("cast of weights", n * k, 2, 1));
        if (activated) forward.push_back(element("activation", batch * n, 1, 1));
        const DenseOp bias{"bias gradient", {ReductionShape{.rows = n, .cols = batch}, activation_}};
        if (habits_.eager) {
          push_gradient(back, bias, n);
        } else {
          back.push_back(bias);
        }
      }
      const DenseOp of_weights = product("weight gradient", n, k, batch, GemmLayout::nt);
      const std::int64_t gradients = n * k + (habits_.eager ? 0 : n);
      const bool of_inputs = l > 0 || input_gradient;
      // Both need the gradient of the output alone: side by side, as far as one leaves processors to the other.
      double left = 0;
      if (of_inputs && habits_.weights_beside)
        left = std::clamp(2 - filled(batch, k, n) - filled(n, k, batch), 0.0, 1.0);
      if (left > 0) {
        DenseOp beside = of_weights;
        beside.beside = true;
        beside.share = left;
        back.push_back(beside);
      }
      if (of_inputs) back.push_back(product("input gradient", batch, k, n, GemmLayout::nn));
      if (left < 1) {
        push_gradient(back, of_weights, gradients);
        back.back().share = 1 - left;
      } else {
        back.back().gradient_elements += static_cast<double>(gradients);
      }
      reversed.push_back(std::move(back));
    }
    for (auto layer = reversed.rbegin(); layer != reversed.rend(); ++layer) {
      backward.insert(backward.end(), layer->begin(), layer->end());
    }
  }

  void interaction(DenseParts& p) const {
    const auto vectors = static_cast<std::int64_t>(model_.tables.size()) + 1;
    const std::int64_t bottom = model_.bottom_mlp.empty() ? model_.dense_features : model_.bottom_mlp.back();
    const std::int64_t width = model_.sum_of_dims() + bottom;
    if (model_.interaction == Interaction::cross) {
      cross(width, p);
      return;
    }
    const DenseOp concatenate{
        "concatenate",
        {MovementShape{.kind = MovementKind::concatenate, .elements = batch_ * width}, activation_}};
    if (model_.interaction == Interaction::concatenate) {
      p.interaction = {concatenate};
      p.interaction_backward = {concatenate};
      return;
    }
    const std::int64_t dim = model_.tables.front().dim, outputs = model_.interaction_width();
    const double element_bytes = element_size(activation_).value();
    const auto bytes = [&](std::int64_t elements) { return static_cast<double>(elements) * element_bytes; };
    if (habits_.fused_interaction) {
      // Vectors are read once; the products run on matrix units below the time of the memory, which kernels that
      // keep a sample in shared memory use half as well as streaming ones.
      const double halved = 1 / kInteractionShare;
      p.interaction = {{"interaction",
                        {AmountShape{.bytes_read = halved * bytes(batch_ * width),
                                     .bytes_written = halved * bytes(batch_ * outputs),
                                     .kernel_class = KernelClass::gemm},
                         activation_}}};
      p.interaction_backward = {{"interaction backward",
                                 {AmountShape{.bytes_read = halved * bytes(batch_ * (width + outputs)),
                                              .bytes_written = halved * bytes(batch_ * width),
                                              .kernel_class = KernelClass::gemm},
                                  activation_}}};
      if (half_ && habits_.casts_vectors) {
        const DenseOp cast{"cast of vectors",
                           {AmountShape{.bytes_read = 2 * bytes(batch_ * width),
                                        .bytes_written = bytes(batch_ * width),
                                        .kernel_class = KernelClass::elementwise},
                            DType::fp32}};
        p.interaction.insert(p.interaction.begin(), cast);
        p.interaction_backward.push_back(cast);
      }
      return;
    }
    const auto dots = [&](std::string_view name, std::int64_t n, std::int64_t k, GemmLayout layout) {
      return DenseOp{
          name, gemm({.batch = batch_, .m = vectors, .n = n, .k = k, .layout = layout}, training_.dtype)};
    };
    p.interaction = {concatenate, dots("dot products", vectors, dim, GemmLayout::tn),
                     moved("lower triangle", MovementKind::gather, batch_ * outputs),
                     moved("concatenate", MovementKind::concatenate, batch_ * outputs)};
    const DenseOp back = dots("dot products backward", dim, vectors, GemmLayout::nn);
    p.interaction_backward = {
        moved("lower triangle backward", MovementKind::scatter, batch_ * vectors * vectors), back, back,
        element("add gradients", batch_ * width, 2, 1), concatenate};
    if (habits_.eager) {
      // Backward of a slice: zeros with the gradient copied in; the bottom MLP's vector gets another one.
      p.interaction_backward.push_back(element("add gradients of the dense vector", batch_ * dim, 2, 1));
      p.interaction_backward.insert(p.interaction_backward.begin() + 1,
                                    {moved("zeros", MovementKind::fill, batch_ * vectors * vectors),
                                     moved("copy", MovementKind::copy, batch_ * vectors * vectors)});
      // A gradient by index: fill, positions, two copies, their sort, and the sum of what has one place.
      for (const std::string_view name : {"add positions", "divide", "positions"})
        p.interaction_backward.insert(p.interaction_backward.begin(), element(name, outputs, 1, 1));
      p.interaction_backward.insert(p.interaction_backward.begin(),
                                    {moved("zeros", MovementKind::fill, batch_ * vectors * vectors),
                                     moved("copy", MovementKind::copy, outputs)});
      p.interaction_backward.insert(p.interaction_backward.begin(),
                                    {"sort positions",
                                     {AmountShape{.bytes_read = 128.0 * static_cast<double>(outputs),
                                                  .kernel_class = KernelClass::other},
                                      DType::int64}});
    }
  }

  void cross(std::int64_t width, DenseParts& p) const {
    const std::int64_t rank = model_.cross_rank;
    p.interaction = {
        {"concatenate",
         {MovementShape{.kind = MovementKind::concatenate, .elements = batch_ * width}, activation_}}};
    for (std::int64_t l = 0; l < model_.cross_layers; ++l) {
      p.interaction.push_back(product("cross down", batch_, rank, width, GemmLayout::tn));
      p.interaction.push_back(product("cross up", batch_, width, rank, GemmLayout::tn));
      p.interaction.push_back(element("cross multiply-add", batch_ * width, 3, 1));
      p.interaction_backward.push_back(element("cross multiply backward", batch_ * width, 4, 2));
      p.interaction_backward.push_back(
          product("cross up input gradient", batch_, rank, width, GemmLayout::nn));
      push_gradient(p.interaction_backward,
                    product("cross up weight gradient", width, rank, batch_, GemmLayout::nt), width * rank);
      p.interaction_backward.push_back(
          product("cross down input gradient", batch_, width, rank, GemmLayout::nn));
      push_gradient(p.interaction_backward,
                    product("cross down weight gradient", rank, width, batch_, GemmLayout::nt), width * rank);
      p.interaction_backward.push_back(element("add gradients", batch_ * width, 2, 1));
    }
  }

  const Dlrm& model_;
  const DlrmTraining& training_;
  const DlrmBehavior& habits_;
  std::int64_t batch_ = 1;
  std::int64_t n_ranks_ = 1;
  bool half_ = false, alone_ = false;
  DType activation_ = DType::fp32;
};

}  // namespace

std::vector<DenseOp> dense_update(const DlrmTraining& training, double parameters) {
  const auto n = static_cast<std::int64_t>(parameters);
  if (training.dense_optimizer_implementation == OptimizerImplementation::for_loop) {
    const OptimizerShape rule{.kind = training.dense_optimizer,
                              .implementation = OptimizerImplementation::for_loop,
                              .parameters = n};
    const DenseOp step{"optimizer", elementwise({.elements = n, .reads = 2, .writes = 1}, DType::fp32)};
    return std::vector<DenseOp>(static_cast<std::size_t>(work_of(Operation{rule, DType::fp32}).kernels),
                                step);
  }
  // Weights and gradients are read, weights written, and states both.
  const double states = rule_of(training.dense_optimizer).moments;
  return {{"optimizer",
           {AmountShape{.bytes_read = parameters * (8 + 4 * states),
                        .bytes_written = parameters * (4 + 4 * states),
                        .kernel_class = KernelClass::elementwise},
            DType::fp32}}};
}

DenseParts dense_parts(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits,
                       std::int64_t n_ranks) {
  return DenseWork{model, training, habits, n_ranks}.parts();
}

}  // namespace stepcast::detail
