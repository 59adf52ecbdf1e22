// Collects the operations of an execution trace. Two passes over the tree of operators ensure that each piece
// of work is counted once: from the outside in, kernel operators claim everything below them; from the inside
// out, composite operators claim work that nothing below them counted.
#include "stepcast/rebuild/traced_operations.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "stepcast/rebuild/detail/call_parser.h"
#include "stepcast/rebuild/detail/et_join.h"
#include "stepcast/rebuild/detail/gpu_operations.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast {
namespace {

using detail::ParsedArguments;
using Index = std::int32_t;

// Table-batched embedding lookups of FBGEMM, by the names of their operators; forward and backward.
bool is_table_lookup(std::string_view name) {
  return name.find("embedding_codegen_lookup_") != std::string_view::npos || name == "LookupFunction";
}
bool is_table_lookup_backward(std::string_view name) {
  return name.find("LookupFunction_") != std::string_view::npos || name == "LookupFunctionBackward";
}
// Lookups with a dense gradient, which are paired separately.
bool has_dense_gradient(std::string_view name) {
  return name.find("dense_embedding") != std::string_view::npos ||
         name.find("Function_Dense") != std::string_view::npos;
}

// Collects the operations of one trace.
class Collector {
 public:
  Collector(const ExecutionTrace& trace, const TracedOperationsOptions& options)
      : trace_(trace), options_(options) {
    const std::size_t n = trace.nodes.size();
    out_.stands_for.assign(n, -1);
    contributes_.assign(n, false);
    communicates_.assign(n, false);
  }

  TracedOperations run() {
    link();
    // From outer to inner operators: the operator that counts a node is known before its children are
    // visited.
    for (const Index node : outermost_first_) enter(node);
    // From inner to outer operators: whether anything below a node counted is known when the node is visited.
    for (auto it = outermost_first_.rbegin(); it != outermost_first_.rend(); ++it) leave(*it);
    std::ranges::stable_sort(out_.operations, {}, &TracedOperation::node);
    // Work below an operator that counts it belongs to that operator.
    for (const Index node : outermost_first_) {
      const Index parent = parent_[static_cast<std::size_t>(node)];
      Index& own = out_.stands_for[static_cast<std::size_t>(node)];
      if (own < 0 && parent >= 0) own = out_.stands_for[static_cast<std::size_t>(parent)];
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const EtNode& node_at(Index i) const { return trace_.nodes[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::string_view name_of(Index i) const { return trace_.names.text(node_at(i).name); }

  // Sets parents and the order of visits. Nodes in a cycle of parents, as in damaged files, are never
  // visited.
  void link() {
    const std::size_t n = trace_.nodes.size();
    std::unordered_map<std::int64_t, Index> by_id;
    by_id.reserve(n);
    for (std::size_t i = 0; i < n; ++i) by_id.try_emplace(trace_.nodes[i].id, static_cast<Index>(i));
    parent_.assign(n, -1);
    calls_itself_.assign(n, false);
    std::vector<std::vector<Index>> children(n);
    std::vector<Index> stack;
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = by_id.find(trace_.nodes[i].parent);
      if (at == by_id.end() || at->second == static_cast<Index>(i)) continue;
      parent_[i] = at->second;
      if (trace_.nodes[i].name == node_at(at->second).name)
        calls_itself_[static_cast<std::size_t>(at->second)] = true;
      children[static_cast<std::size_t>(at->second)].push_back(static_cast<Index>(i));
    }
    for (std::size_t i = n; i-- > 0;)
      if (parent_[i] < 0) stack.push_back(static_cast<Index>(i));
    outermost_first_.reserve(n);
    while (!stack.empty()) {
      const Index node = stack.back();
      stack.pop_back();
      outermost_first_.push_back(node);
      // In program order, so that the backward pass of a lookup comes after its forward pass.
      auto& below = children[static_cast<std::size_t>(node)];
      std::ranges::stable_sort(below, [&](Index a, Index b) { return node_at(a).order < node_at(b).order; });
      stack.insert(stack.end(), below.rbegin(), below.rend());
    }
  }

  // The node that autograd's engine puts around a gradient function does no work.
  [[nodiscard]] OpRole role_at(Index i) const {
    const std::string_view name = name_of(i);
    return name.starts_with("autograd::engine::evaluate_function: ") ? OpRole::annotation : role_of(name);
  }

  // The parsed inputs of a node.
  ParsedArguments inputs_of(Index i) const {
    const EtNode& node = node_at(i);
    return detail::parse_arguments(trace_.names.text(node.values), trace_.names.text(node.input_shapes),
                                   trace_.names.text(node.input_types), trace_.inputs(node));
  }

  // The operations of a node. Error: the operator is not modelled, or its types are missing.
  Result<OperationList> operations_at(Index i) {
    const EtNode& node = node_at(i);
    const std::string_view name = name_of(i);
    Index arguments_of = i;
    if (is_table_lookup(name)) lookups_.push_back(i);
    if (is_table_lookup_backward(name)) arguments_of = lookup_of(i);
    const ParsedArguments in = inputs_of(arguments_of);
    const ParsedArguments out =
        detail::parse_arguments({}, trace_.names.text(node.output_shapes),
                                trace_.names.text(node.output_types), trace_.outputs(node));
    Result<OperationList> operations = operations_of({.name = name,
                                                      .inputs = in.tensors,
                                                      .outputs = out.tensors,
                                                      .arguments = in.arguments,
                                                      .tf32_allowed = tf32_allowed(name)});
    if (!operations.ok() && !has_types(node_at(arguments_of)))
      return Error("the trace has no types of the operator's inputs");
    return operations;
  }

  [[nodiscard]] bool tf32_allowed(std::string_view name) const {
    return options_.tf32_allowed ||
           (options_.tf32_convolutions && name.find("conv") != std::string_view::npos);
  }

  // True if the node has types: the list is neither missing nor made of empty texts.
  [[nodiscard]] bool has_types(const EtNode& node) const {
    return trace_.names.text(node.input_types).find_first_not_of("[]\", ") != std::string_view::npos;
  }

  // The forward node of a table lookup, found by sequence number, else the most recent lookup of the same
  // kind. The backward node does not contain the arguments of the lookup.
  Index lookup_of(Index backward) {
    const std::string_view name = name_of(backward);
    for (std::size_t k = lookups_.size(); k-- > 0;) {
      const EtNode& forward = node_at(lookups_[k]);
      const bool same_sequence =
          forward.sequence_number >= 0 && forward.sequence_number == node_at(backward).sequence_number;
      if (!same_sequence && has_dense_gradient(name) != has_dense_gradient(name_of(lookups_[k]))) continue;
      const Index found = lookups_[k];
      lookups_.erase(lookups_.begin() + static_cast<std::ptrdiff_t>(k));
      return found;
    }
    return backward;
  }

  // Adds the operations of a node.
  void count(Index i, OperationList&& operations) {
    if (operations.empty()) return;
    for (Operation& operation : operations)
      out_.operations.push_back({static_cast<std::uint32_t>(i), std::move(operation)});
    contributes_[static_cast<std::size_t>(i)] = true;
    ++out_.modelled_operators;
    ++out_.launching_operators;
  }

  // Records an operator without operations; the first reason is kept.
  void unmodelled(Index i, std::string why) {
    UnmodelledOperator& entry = out_.unmodelled[std::string(name_of(i))];
    if (entry.count++ == 0) entry.why = std::move(why);
    ++out_.launching_operators;
  }

  // First pass, see run().
  void enter(Index i) {
    const auto at = static_cast<std::size_t>(i);
    const Index parent = parent_[at];
    if (parent >= 0 && out_.stands_for[static_cast<std::size_t>(parent)] >= 0) {
      out_.stands_for[at] = out_.stands_for[static_cast<std::size_t>(parent)];
      return;
    }
    const OpRole role = role_at(i);
    if (role == OpRole::communication) communicates_[at] = true;
    if (role != OpRole::kernel || calls_itself_[at]) return;
    Result<OperationList> operations = operations_at(i);
    if (!operations.ok()) {
      // The operators that it calls still count.
      unmodelled(i, operations.error().message());
      contributes_[at] = true;
      return;
    }
    // An empty list is a valid result: neither this operator nor the operators below it launch GPU work.
    out_.stands_for[at] = i;
    count(i, *std::move(operations));
  }

  // Second pass, see run().
  void leave(Index i) {
    const auto at = static_cast<std::size_t>(i);
    if (out_.stands_for[at] < 0 && !contributes_[at] && !communicates_[at]) stand_in(i);
    const Index parent = parent_[at];
    if (parent < 0) return;
    if (contributes_[at]) contributes_[static_cast<std::size_t>(parent)] = true;
    if (communicates_[at]) communicates_[static_cast<std::size_t>(parent)] = true;
  }

  // Called if nothing below this operator counted: a composite operator counts itself.
  void stand_in(Index i) {
    const OpRole role = role_at(i);
    if (role == OpRole::composite) {
      Result<OperationList> operations = operations_at(i);
      if (operations.ok() && !operations->empty()) {
        out_.stands_for[static_cast<std::size_t>(i)] = i;
        count(i, *std::move(operations));
      } else if (!operations.ok()) {
        unmodelled(i, operations.error().message());
      }
    } else if (role == OpRole::unknown && uses_gpu(i)) {
      unmodelled(i, "not known");
    }
    // Its caller must not count it again, whatever the result is.
    if (role == OpRole::composite || (role == OpRole::unknown && uses_gpu(i)))
      contributes_[static_cast<std::size_t>(i)] = true;
  }

  [[nodiscard]] bool uses_gpu(Index i) const {
    const auto any = [](std::span<const TensorUse> uses) {
      return std::ranges::any_of(uses, &TensorUse::on_gpu);
    };
    return any(trace_.inputs(node_at(i))) || any(trace_.outputs(node_at(i)));
  }

  const ExecutionTrace& trace_;
  const TracedOperationsOptions& options_;
  TracedOperations out_;
  std::vector<Index> parent_;
  // [node] The operator casts its inputs and calls itself with them, as under autocast. The casts and the
  // inner call count.
  std::vector<bool> calls_itself_;
  std::vector<Index> outermost_first_;
  std::vector<bool> contributes_;   // [node] something at or below it counted
  std::vector<bool> communicates_;  // [node] it or something below it is a collective
  std::vector<Index> lookups_;      // forward lookups without their backward so far
};

}  // namespace

TracedOperations traced_operations(const ExecutionTrace& trace, const TracedOperationsOptions& options) {
  return Collector(trace, options).run();
}

Result<KernelTimeCoverage> kernel_time_coverage(const ExecutionTrace& trace, const TracedOperations& traced,
                                                const RecordedRank& recorded) {
  STEPCAST_ASSIGN(detail::EtJoin join, detail::join_execution_trace(recorded, trace));
  // Of several identical iterations only the first, since `traced` contains the operations of one.
  for (std::size_t i = 0; i < join.node_of_op.size(); ++i)
    if (join.repetition_of_op[i] > 0) join.node_of_op[i] = -1;
  return kernel_time_coverage(trace, traced, recorded, join.node_of_op);
}

KernelTimeCoverage kernel_time_coverage(const ExecutionTrace& trace, const TracedOperations& traced,
                                        const RecordedRank& recorded,
                                        std::span<const std::int32_t> node_of_op) {
  const detail::RecordedStep whole = detail::whole_file(recorded);
  const detail::RankGraph graph = detail::link_rank(recorded, whole, whole.start);
  return detail::kernel_time(graph, detail::operations_of_gpu_work(graph, trace, traced, node_of_op));
}

}  // namespace stepcast
