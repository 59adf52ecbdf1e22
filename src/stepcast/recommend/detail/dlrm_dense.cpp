// The dense part of a recommendation model (MLPs, interaction, loss, optimizer) as a list of operations for
// one rank. It follows what the software stack launches: an eager stack launches one kernel per operator and
// also prepares the indices, a fused stack launches few kernels. Sources for the eager lists are recorded
// traces (see exchange_by_operators) and the code of PyTorch; names of operations are for reports only.
#include "stepcast/recommend/detail/dlrm_dense.h"

#include <algorithm>
#include <utility>

#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {
namespace {

// GEMM tiles: width of an output tile, depth from which the sum is split
constexpr std::int64_t kTile = 128, kSplitDepth = 1024;
// Share of the memory bandwidth of streaming kernels that a fused interaction kernel reaches.
constexpr double kInteractionShare = 0.5;

// Collects the operations. `habits` is the behaviour of the stack, `n_ranks` the number of GPUs of the job.
class DenseWork {
 public:
  DenseWork(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits, std::int64_t n_ranks)
      : model_(model), training_(training), habits_(habits), n_ranks_(n_ranks), alone_(n_ranks == 1) {
    batch_ = std::max<std::int64_t>(1, training.global_batch / n_ranks);
    half_ = training.dtype == DType::fp16 || training.dtype == DType::bf16;
    activation_ = half_ ? training.dtype : DType::fp32;
  }

  // The operations of one step, by part. All sizes are those of one rank's samples, except where one rank
  // computes the bottom MLP for all ranks.
  DenseParts parts() const {
    DenseParts p;
    const std::int64_t bottom_batch = habits_.bottom_on_one_rank ? training_.global_batch : batch_;
    mlp(bottom_batch, model_.dense_features, model_.bottom_mlp, false, p.bottom, p.bottom_backward);
    // In an eager stack the loss takes logits, so the last layer has no activation.
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
  // The kernels around the all-to-alls of a table-batched collection, as FBGEMM and TorchRec launch them.
  // Source: the 8-rank DLRM trace and two traces of production jobs (sampled_128, trace_diff_control) have
  // the same kernels.
  void exchange_by_operators(DenseParts& p) const {
    double lookups = 0;
    for (const EmbeddingTable& table : model_.tables) lookups += static_cast<double>(batch_) * table.pooling;
    const auto indices = static_cast<std::int64_t>(lookups);
    const std::int64_t bags = static_cast<std::int64_t>(model_.tables.size()) * batch_;
    // Indices are permuted twice: to the order of ranks before the all-to-all, and to the order of tables
    // after it.
    for (int k = 0; k < 2; ++k) permuted(p.inputs, bags, indices);
    p.inputs.push_back(of_indices("stack of lengths", MovementKind::concatenate, bags));
    // This rank's tables, samples of all ranks: the number of lookups for each rank. The host needs these
    // numbers before the all-to-all and passes them on.
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
    // Before the lookup kernel: indices and offsets become 64-bit numbers, the start of each bag is computed,
    // and indices are checked against the number of rows.
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

  // A running sum over n numbers: two fills for zeros and the start state, and the scan. `inside`: the first
  // kernel belongs to the operator before it.
  void scanned(std::vector<DenseOp>& ops, std::string_view name, std::int64_t n, bool inside) const {
    ops.push_back(of_indices(name, MovementKind::fill, 1));
    ops.back().further = inside;
    ops.push_back(further(of_indices(name, MovementKind::fill, 1)));
    ops.push_back(further(of_indices(name, MovementKind::gather, n)));
  }
  // Reorders the lengths and indices of a batch by feature: one operator with several kernels.
  void permuted(std::vector<DenseOp>& ops, std::int64_t bags, std::int64_t indices) const {
    ops.push_back(of_indices("order of lengths", MovementKind::gather, bags));
    ops.push_back(further(of_indices("offsets before", MovementKind::fill, 1)));
    ops.push_back(further(of_indices("offsets before", MovementKind::gather, bags)));
    scanned(ops, "offsets behind", bags, true);
    ops.push_back(further(of_indices("order of indices", MovementKind::gather, indices)));
  }
  // A transfer of a few numbers (8 bytes per rank) to or from the host.
  void transferred(std::vector<DenseOp>& ops, MemcpyKind kind, int times) const {
    const TransferShape few{.kind = kind, .bytes = 8 * n_ranks_, .pinned = false};
    for (int k = 0; k < times; ++k) ops.push_back({"few numbers", {few, DType::int8}});
  }
  // Marks an operation as a further kernel of the preceding operator: the host pays for one operator only.
  static DenseOp further(DenseOp op) {
    op.further = true;
    return op;
  }
  // A movement of n 64-bit numbers.
  static DenseOp of_indices(std::string_view name, MovementKind kind, std::int64_t n) {
    return {name, {MovementShape{.kind = kind, .elements = std::max<std::int64_t>(1, n)}, DType::int64}};
  }

  // The loss, forward and backward.
  void loss(DenseParts& p) const {
    if (habits_.eager) {
      // binary_cross_entropy_with_logits of PyTorch 1 and 2.0 (aten/src/ATen/native/Loss.cpp) on labels
      // converted to floats: m = max(-x, 0); (1 - y) x + m + log(exp(-m) + exp(-x - m)), and its mean.
      // TorchRec's pipeline sums the losses before the backward pass, which begins with a gradient of ones, a
      // sigmoid, a difference, a multiplication and a division.
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
    // Loss forward and backward: a few kernels with one number per sample.
    if (!habits_.fused_forward) p.loss.push_back(element("loss backward", batch_, 2, 1));
  }

  // The optimizer of the dense part: one fused update, or for an eager for-loop optimizer one update per
  // parameter tensor.
  void update(DenseParts& p) const {
    if (!habits_.eager || training_.dense_optimizer_implementation != OptimizerImplementation::for_loop) {
      p.update = dense_update(training_, model_.dense_parameters());
      return;
    }
    // Each step of the update rule is an operator, tensor by tensor.
    for (const auto* ops : {&p.top_backward, &p.interaction_backward, &p.bottom_backward}) {
      for (const DenseOp& op : *ops) {
        if (op.gradient_elements <= 0) continue;
        const std::vector<DenseOp> of_tensor = dense_update(training_, op.gradient_elements);
        p.update.insert(p.update.end(), of_tensor.begin(), of_tensor.end());
      }
    }
  }

  // Adds `op` after which a gradient of `elements` parameters is ready. In an eager stack,
  // DistributedDataParallel divides it while it copies it into a bucket; that copy is an operation, too.
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

  // An element-wise operation, with the tensors read and written per element.
  DenseOp element(std::string_view name, std::int64_t elements, float reads, float writes) const {
    return {name,
            elementwise({.elements = std::max<std::int64_t>(1, elements), .reads = reads, .writes = writes},
                        activation_)};
  }
  DenseOp moved(std::string_view name, MovementKind kind, std::int64_t elements) const {
    return {name,
            {MovementShape{.kind = kind, .elements = std::max<std::int64_t>(1, elements)}, activation_}};
  }
  // The share of the GPU that a GEMM fills (0 to 1), by output tiles of 128 x 128 and splits of long sums.
  [[nodiscard]] double filled(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const auto parts = [](std::int64_t of, std::int64_t by) {
      const std::int64_t whole = (of + by - 1) / by;
      return static_cast<double>(whole);
    };
    const double splits = static_cast<double>(std::max<std::int64_t>(1, k / kSplitDepth));
    return std::min(1.0, parts(m, kTile) * parts(n, kTile) * splits / habits_.processors);
  }
  // A GEMM in the dtype of the dense part.
  DenseOp product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                  GemmLayout layout) const {
    return {name, gemm({.m = m, .n = n, .k = k, .layout = layout}, training_.dtype)};
  }

  // A multi-layer perceptron, forward and backward. `widths` are the layer widths, `input` the width of its
  // input. `input_gradient`: the gradient of the input is needed, too. `ends_in_logits`: the last layer has
  // no activation.
  void mlp(std::int64_t batch, std::int64_t input, const std::vector<std::int64_t>& widths,
           bool input_gradient, std::vector<DenseOp>& forward, std::vector<DenseOp>& backward,
           bool ends_in_logits = false) const {
    std::vector<std::vector<DenseOp>> reversed;
    for (std::size_t l = 0; l < widths.size(); ++l) {
      const std::int64_t n = widths[l], k = l == 0 ? input : widths[l - 1];
      const bool activated = !ends_in_logits || l + 1 < widths.size();
      // addmm copies the bias into the output where cuBLASLt cannot add it, such as for one column
      // (aten/src/ATen/native/cuda/Blas.cpp).
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
      // The gradients of weights and of inputs both depend on the gradient of the output only. They overlap
      // as far as one leaves processors for the other; `left` is that share of the weight gradient.
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
    // The backward pass visits the layers in reverse order.
    for (auto layer = reversed.rbegin(); layer != reversed.rend(); ++layer) {
      backward.insert(backward.end(), layer->begin(), layer->end());
    }
  }

  // The interaction of the embedding vectors with the output of the bottom MLP, forward and backward.
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
      // A fused kernel reads each vector once. Its GEMMs take less time than the memory traffic, and kernels
      // that keep a sample in shared memory reach half of the bandwidth of streaming kernels.
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
      // Backward of a slice: zeros into which the gradient is copied. The vector of the bottom MLP receives a
      // second gradient, which is added.
      p.interaction_backward.push_back(element("add gradients of the dense vector", batch_ * dim, 2, 1));
      p.interaction_backward.insert(p.interaction_backward.begin() + 1,
                                    {moved("zeros", MovementKind::fill, batch_ * vectors * vectors),
                                     moved("copy", MovementKind::copy, batch_ * vectors * vectors)});
      // Backward of an index operation: fill, compute positions, two copies, sort positions, and sum the
      // elements with the same position.
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

  // The cross network of low rank (DCNv2): two GEMMs and a multiply-add per layer.
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
  // Samples of this rank.
  std::int64_t batch_ = 1;
  std::int64_t n_ranks_ = 1;
  bool half_ = false, alone_ = false;
  DType activation_ = DType::fp32;
};

}  // namespace

// A for-loop optimizer launches one kernel per step of its rule.
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
  // Bytes per parameter: weights and gradients are read, weights are written, and optimizer states are read
  // and written, all in fp32.
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
