// Assigns operations to kernels. An operator may have several operations and launch several kernels; both are
// ordered, and a dynamic program finds the assignment of neighbours with the best match of kernel classes,
// weighted by time.
#include "stepcast/rebuild/detail/gpu_operations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "stepcast/rebuild/detail/collective_matching.h"
#include "stepcast/rebuild/profiled_operators.h"

namespace stepcast::detail {
namespace {

// The operation of a copy or fill with a recorded size; empty for other work.
std::optional<Operation> transfer_of(const RankGraph& g, const GpuWork& w) {
  const GpuOp& op = g.recorded->gpu_ops[w.recorded];
  if (w.kind == GpuOp::Kind::kernel || op.bytes < 0) return std::nullopt;
  return Operation{TransferShape{.kind = w.copy, .bytes = op.bytes, .pinned = !w.pageable}, DType::int8,
                   Direction::forward};
}

// One operation for several that a single kernel performs: the sum of their work, with dtype and class of the
// largest.
Operation sum_of(std::span<const Operation> operations) {
  if (operations.size() == 1) return operations.front();
  Work sum;
  const Operation* longest = &operations.front();
  for (const Operation& operation : operations) {
    const Work work = work_of(operation);
    if (work.bytes() > work_of(*longest).bytes()) longest = &operation;
    sum += work;
  }
  return Operation{AmountShape{.flops = sum.flops.value(),
                               .bytes_read = sum.bytes_read.value(),
                               .bytes_written = sum.bytes_written.value(),
                               .matrix = sum.matrix,
                               .kernel_class = kernel_class_of(*longest)},
                   longest->dtype, longest->direction};
}

// Cuts `fine` items into `coarse` non-empty runs of neighbours, such that the sum of gain(fine, coarse) is
// maximal. Among equal cuts, the first runs are longest. Returns [fine] -> run. Requires coarse <= fine.
// O(fine x coarse).
template <class Gain>
std::vector<std::size_t> best_runs(std::size_t fine, std::size_t coarse, Gain gain) {
  // best[c][f]: the best gain of the first f + 1 items in c + 1 runs; item f starts run c or continues it.
  const double impossible = -1;
  std::vector<std::vector<double>> best(coarse, std::vector<double>(fine, impossible));
  std::vector<std::vector<bool>> begins(coarse, std::vector<bool>(fine, false));
  for (std::size_t c = 0; c < coarse; ++c) {
    for (std::size_t f = c; f < fine; ++f) {
      const double goes_on = f > c ? best[c][f - 1] : impossible;
      const double begin = c == 0 ? (f == 0 ? 0 : impossible) : best[c - 1][f - 1];
      begins[c][f] = begin > goes_on;
      best[c][f] = std::max(begin, goes_on) + gain(f, c);
    }
  }
  std::vector<std::size_t> run(fine);
  std::size_t c = coarse - 1;
  for (std::size_t f = fine; f-- > 0;) {
    run[f] = c;
    if (begins[c][f] && c > 0) --c;
  }
  return run;
}

// Assigns the operations of one trace to the GPU work of one rank.
class Assigner {
 public:
  Assigner(const RankGraph& g, const ExecutionTrace& trace, const TracedOperations& traced,
           std::span<const std::int32_t> node_of_op, std::span<const std::int32_t> repetition_of_op)
      : g_(g), trace_(trace), traced_(traced), node_of_op_(node_of_op), repetition_of_op_(repetition_of_op) {
    for (std::size_t i = 0; i < traced.operations.size(); ++i) {
      auto& range = operations_of_[static_cast<std::int32_t>(traced.operations[i].node)];
      if (range.second == 0) range.first = i;
      range.second = i + 1;
    }
  }

  // Copies and fills keep their recorded size. Kernels are collected per executed operator and then share its
  // operations.
  GpuOperations run() {
    out_.of_work.resize(g_.gpu.size());
    std::map<Executed, std::vector<std::size_t>> kernels_of;  // GPU work with the same operations
    for (std::size_t i = 0; i < g_.gpu.size(); ++i) {
      const auto [node, repetition] = executed(g_.gpu[i]);
      GpuOperations::Share& share = out_.of_work[i];
      if (node != kNone) {
        share.linked = true;
        share.op = name_of(node);
      }
      if (g_.gpu[i].communication) continue;
      const std::int32_t owner = node == kNone ? kNone : traced_.stands_for[static_cast<std::size_t>(node)];
      const bool counted = owner != kNone && operations_of_.contains(owner);
      if (counted) share.op = name_of(owner);
      if (const std::optional<Operation> transfer = transfer_of(g_, g_.gpu[i])) {
        share.operation = add(*transfer);
        if (counted) copies_.insert({owner, repetition});
      } else if (counted) {
        kernels_of[{owner, repetition}].push_back(i);
      } else if (node != kNone) {
        const auto why = traced_.unmodelled.find(std::string(trace_.names.text(node_at(node).name)));
        share.why = out_.names.intern(why != traced_.unmodelled.end() ? std::string_view(why->second.why)
                                      : owner != kNone ? "the trace shows none of its tensors on a GPU"
                                                       : "no operations of this operator");
      }
    }
    for (auto& [executed, kernels] : kernels_of) share_out(executed, kernels);
    return std::move(out_);
  }

 private:
  // A node of the execution trace in one of its iterations.
  struct Executed {
    std::int32_t node = kNone, repetition = 0;
    auto operator<=>(const Executed&) const = default;
  };
  [[nodiscard]] const EtNode& node_at(std::int32_t node) const {
    return trace_.nodes[static_cast<std::size_t>(node)];
  }
  NameId name_of(std::int32_t node) { return out_.names.intern(trace_.names.text(node_at(node).name)); }

  std::int32_t add(Operation operation) {
    out_.operations.push_back(std::move(operation));
    return static_cast<std::int32_t>(out_.operations.size()) - 1;
  }

  // The innermost operator around the launch that the execution trace contains. The profiler may have
  // recorded operators inside it.
  [[nodiscard]] Executed executed(const GpuWork& w) const {
    std::int32_t op = w.op;
    while (op != kNone && node_of_op_[static_cast<std::size_t>(op)] < 0)
      op = g_.parent_of_op[static_cast<std::size_t>(op)];
    if (op == kNone) return {};
    const auto i = static_cast<std::size_t>(op);
    return {node_of_op_[i], repetition_of_op_.empty() ? 0 : repetition_of_op_[i]};
  }

  // The operation with the dtype that the kernel used. For fp32 tensors, the name of the kernel shows TF32:
  // "..._tf32f32_...", or matrix instructions with 8 values ("s1688"), which fp32 data use since Ampere.
  Operation as_run(Operation operation, std::size_t kernel) const {
    if (operation.dtype != DType::fp32) return operation;
    if (!std::holds_alternative<GemmShape>(operation.shape) &&
        !std::holds_alternative<ConvolutionShape>(operation.shape))
      return operation;
    const std::string_view name = g_.recorded->names.text(g_.recorded->gpu_ops[g_.gpu[kernel].recorded].name);
    if (name.find("tf32") != std::string_view::npos || name.find("s1688") != std::string_view::npos)
      operation.dtype = DType::tf32;
    return operation;
  }

  // Distributes the operations of one executed operator over its kernels, in the order of the launches.
  void share_out(const Executed& executed, std::vector<std::size_t>& kernels) {
    std::ranges::stable_sort(kernels,
                             [&](std::size_t a, std::size_t b) { return g_.gpu[a].call < g_.gpu[b].call; });
    const auto [first, last] = operations_of_.at(executed.node);
    std::vector<Operation> operations;
    for (std::size_t i = first; i < last; ++i) {
      const Operation& operation = traced_.operations[i].operation;
      // Performed by copies, which have their recorded sizes.
      if (copies_.contains(executed) && std::holds_alternative<TransferShape>(operation.shape)) continue;
      operations.push_back(operation);
    }
    if (operations.empty()) {
      for (const std::size_t kernel : kernels)
        out_.of_work[kernel].why = out_.names.intern("its copies are its operations");
      return;
    }
    const auto fits = [&](std::size_t kernel, std::size_t operation) {
      const GpuWork& w = g_.gpu[kernels[kernel]];
      return w.kernel_class == kernel_class_of(operations[operation]) ? w.length_us() : 0.0;
    };
    if (kernels.size() < operations.size()) {
      const std::vector<std::size_t> run =
          best_runs(operations.size(), kernels.size(),
                    [&](std::size_t operation, std::size_t kernel) { return fits(kernel, operation); });
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        const auto begin = std::lower_bound(run.begin(), run.end(), k) - run.begin();
        const auto end = std::upper_bound(run.begin(), run.end(), k) - run.begin();
        out_.of_work[kernels[k]].operation =
            add(sum_of(std::span(operations)
                           .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
      }
      return;
    }
    const std::vector<std::size_t> run = best_runs(kernels.size(), operations.size(), fits);
    for (std::size_t begin = 0; begin < kernels.size();) {
      std::size_t end = begin;
      double time = 0;
      std::size_t longest = kernels[begin];
      for (; end < kernels.size() && run[end] == run[begin]; ++end) {
        time += g_.gpu[kernels[end]].length_us();
        if (g_.gpu[kernels[end]].length_us() > g_.gpu[longest].length_us()) longest = kernels[end];
      }
      const std::int32_t operation = add(as_run(operations[run[begin]], longest));
      for (std::size_t k = begin; k < end; ++k) {
        GpuOperations::Share& share = out_.of_work[kernels[k]];
        share.operation = operation;
        share.times =
            time > 0 ? g_.gpu[kernels[k]].length_us() / time : 1.0 / static_cast<double>(end - begin);
      }
      begin = end;
    }
  }

  const RankGraph& g_;
  const ExecutionTrace& trace_;
  const TracedOperations& traced_;
  std::span<const std::int32_t> node_of_op_, repetition_of_op_;
  // Node -> range of its operations in `traced`.
  std::map<std::int32_t, std::pair<std::size_t, std::size_t>> operations_of_;
  std::set<Executed> copies_;  // with copies of recorded size
  GpuOperations out_;
};

// Adds what `more` knows about work without an operator in `operations`.
void fill_in(GpuOperations& operations, const GpuOperations& more) {
  for (std::size_t i = 0; i < operations.of_work.size(); ++i) {
    GpuOperations::Share& share = operations.of_work[i];
    if (share.linked || !more.of_work[i].linked) continue;
    share = more.of_work[i];
    share.op = operations.names.intern(more.names.text(share.op));
    if (share.why.valid()) share.why = operations.names.intern(more.names.text(share.why));
    if (share.operation == kNone) continue;
    operations.operations.push_back(more.operations[static_cast<std::size_t>(share.operation)]);
    share.operation = static_cast<std::int32_t>(operations.operations.size()) - 1;
  }
}

}  // namespace

GpuOperations operations_of_gpu_work(const RankGraph& g, const ExecutionTrace& trace,
                                     const TracedOperations& traced, std::span<const std::int32_t> node_of_op,
                                     std::span<const std::int32_t> repetition_of_op) {
  return Assigner(g, trace, traced, node_of_op, repetition_of_op).run();
}

// From the execution trace if there is one; work it does not cover is looked up in the shapes of the profiler
// trace.
GpuOperations operations_of_gpu_work(const RankGraph& g, const TracedOperationsOptions& options) {
  GpuOperations out;
  if (g.execution_trace != nullptr) {
    TracedOperations read;
    if (g.traced == nullptr) read = traced_operations(*g.execution_trace, options);
    const TracedOperations& traced = g.traced != nullptr ? *g.traced : read;
    out = operations_of_gpu_work(g, *g.execution_trace, traced, g.et_node_of_op, g.et_repetition_of_op);
    const bool all_linked = std::ranges::all_of(g.gpu, [&](const GpuWork& w) {
      return w.call == kNone || out.of_work[static_cast<std::size_t>(&w - g.gpu.data())].linked;
    });
    if (all_linked) return out;
  }
  const ProfiledOperators profiled = profiled_operators(g);
  const TracedOperations traced = traced_operations(profiled.trace, options);
  GpuOperations of_profile = operations_of_gpu_work(g, profiled.trace, traced, profiled.node_of_op);
  if (g.execution_trace == nullptr) return of_profile;
  fill_in(out, of_profile);
  return out;
}

KernelTimeCoverage kernel_time(const RankGraph& g, const GpuOperations& operations) {
  KernelTimeCoverage coverage;
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuOperations::Share& share = operations.of_work[i];
    const Microseconds time{g.gpu[i].length_us()};
    if (!share.linked) {
      coverage.unlinked += time;
    } else if (g.gpu[i].communication) {
      coverage.communication += time;
      if (is_known(collective_facts(g, g.gpu[i]))) coverage.communication_modelled += time;
    } else {
      coverage.computation += time;
      const std::string op(operations.names.text(share.op));
      if (share.operation != kNone) {
        coverage.modelled += time;
        coverage.time_of_operator[op] += time;
      } else {
        UnmodelledWork& unmodelled = coverage.unmodelled[op];
        if (unmodelled.count++ == 0) unmodelled.why = std::string(operations.names.text(share.why));
        unmodelled.time += time;
      }
    }
  }
  return coverage;
}

}  // namespace stepcast::detail

namespace stepcast {

KernelTimeCoverage& operator+=(KernelTimeCoverage& sum, const KernelTimeCoverage& more) {
  sum.computation += more.computation;
  sum.modelled += more.modelled;
  sum.communication += more.communication;
  sum.communication_modelled += more.communication_modelled;
  sum.unlinked += more.unlinked;
  for (const auto& [name, time] : more.time_of_operator) sum.time_of_operator[name] += time;
  for (const auto& [name, work] : more.unmodelled) {
    UnmodelledWork& of_name = sum.unmodelled[name];
    if (of_name.count == 0) of_name.why = work.why;
    of_name.count += work.count;
    of_name.time += work.time;
  }
  return sum;
}

}  // namespace stepcast
