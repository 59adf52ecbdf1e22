#include "stepcast/trace/operation_graph.h"

#include <algorithm>

#include "stepcast/base/names.h"

namespace stepcast {

std::string_view to_string(GraphNode::Kind kind) {
  return name_of<GraphNode::Kind::receive>(
      kind, {"computation", "memory load", "memory store", "collective", "send", "receive"});
}

// Operators on the CPU are one kind in the summary, whatever their kind is in the graph.
OperationGraphSummary summarize(const OperationGraph& graph) {
  OperationGraphSummary summary;
  for (const GraphNode& node : graph.nodes) {
    summary.nodes_by_kind[node.on_cpu ? "operator on the CPU" : to_string(node.kind)] += 1;
    if (node.duration_us >= 0) {
      summary.with_duration += 1;
      if (!node.on_cpu) summary.recorded_gpu_ms += node.duration_us * 1e-3;
    } else if (node.bytes > 0 || node.flops > 0) {
      summary.with_amounts += 1;
    }
    if (node.kind == GraphNode::Kind::collective) summary.collectives[node.op] += 1;
    if (node.kind == GraphNode::Kind::collective || node.kind == GraphNode::Kind::send)
      summary.transfer_bytes += std::max(0.0, node.bytes);
  }
  return summary;
}

}  // namespace stepcast
