// The work of one rank as a graph: operations, their dependencies, and times and sizes as far as the file
// contains them. Chakra execution traces (.et) are read into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/operation/collective_kind.h"

namespace stepcast {

// An operation.
struct GraphNode {
  // memory_load and memory_store are copies to and from the GPU.
  enum class Kind : std::uint8_t { computation, memory_load, memory_store, collective, send, receive };

  std::uint64_t id = 0;
  NameId name;
  Kind kind = Kind::computation;
  bool on_cpu = false;
  // Thread or stream. Nodes with the same one run one after another. -1: not recorded; such nodes of one kind
  // share a lane.
  std::int64_t lane = -1;
  double start_us = -1;     // microseconds on the clock of the file; -1: not recorded
  double duration_us = -1;  // microseconds; -1: not recorded
  double flops = -1;        // -1: not recorded
  // Bytes moved by a computation, or input of this rank to a transfer; -1: not recorded.
  double bytes = -1;
  CollectiveOp op = CollectiveOp::unknown;               // only for a collective
  NameId group;                                          // process group; invalid: not recorded
  std::int32_t peer = -1;                                // of a send or receive; -1: not recorded
  std::int64_t tag = 0;                                  // distinguishes transfers between two ranks
  std::size_t first_dependency = 0, end_dependency = 0;  // range in OperationGraph::dependencies
};
// A text for users: "memory load".
[[nodiscard]] std::string_view to_string(GraphNode::Kind kind);

// The part of a graph that is the step of its rank. Without a mark, the step is the whole graph, from the
// first start to the last end.
struct StepMark {
  std::int64_t number = -1;      // N of ProfilerStep#N; -1: not known
  double start_us = 0;           // microseconds on the clock of all ranks
  std::uint32_t begin_node = 0;  // node that represents the time before the rank starts
  std::uint32_t end_node = 0;    // the step ends with the end of this node,
  bool ends_at_start = false;    // or with its start
};

// The graph of one rank.
struct OperationGraph {
  std::string file;
  std::string schema;                // version of the schema in the file; may be empty
  std::optional<std::int32_t> rank;  // rank in the file
  std::optional<StepMark> step;
  StringTable names;
  std::vector<GraphNode> nodes;             // in the order of the file
  std::vector<std::uint32_t> dependencies;  // positions in `nodes`
  // [dependency] microseconds from the end of the awaited node; negative: before its end. Empty: all 0.
  std::vector<double> delays_us;
  std::uint64_t dangling = 0;  // dependencies on missing nodes, left out
  // Control dependencies that name the caller of an operator instead of something it waits for, left out.
  // Converters from PyTorch write them.
  std::uint64_t callers = 0;
  std::uint64_t metadata_nodes = 0;  // left out
  std::uint64_t bad_times = 0;       // nodes with an invalid time, which counts as not recorded

  // Positions of the nodes that a node waits for.
  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(const GraphNode& node) const {
    return {dependencies.data() + node.first_dependency, node.end_dependency - node.first_dependency};
  }
};

// Counts for `stepcast inspect`.
struct OperationGraphSummary {
  std::map<std::string_view, std::size_t> nodes_by_kind;  // "computation on the CPU", "send", ...
  std::map<CollectiveOp, std::size_t> collectives;        // by operation
  std::size_t with_duration = 0;                          // nodes with a recorded duration
  std::size_t with_amounts = 0;                           // nodes without duration that a platform can price
  double recorded_gpu_ms = 0;                             // sum over nodes that are not on the CPU
  double transfer_bytes = 0;                              // bytes of collectives and sends in the file
};
// Counts the nodes of a graph by kind and by known amounts.
[[nodiscard]] OperationGraphSummary summarize(const OperationGraph& graph);

}  // namespace stepcast
