// The work of one rank as a graph: operations, what each waits for, and as much of their times and sizes as the file
// has. Chakra execution traces (.et) are such graphs.
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

struct GraphNode {
  enum class Kind : std::uint8_t { computation, memory_load, memory_store, collective, send, receive };

  std::uint64_t id = 0;
  NameId name;
  Kind kind = Kind::computation;
  bool on_cpu = false;
  // Thread or stream; nodes of one run one after the other. -1: not told, all such nodes of a kind share one.
  std::int64_t lane = -1;
  double start_us = -1;     // on the clock of the file; -1: not recorded
  double duration_us = -1;  // -1: not recorded
  double flops = -1;        // -1: not told
  double bytes = -1;        // moved by a computation; what this rank puts into a transfer; -1: not told
  CollectiveOp op = CollectiveOp::unknown;               // of a collective
  NameId group;                                          // process group; invalid: not told
  std::int32_t peer = -1;                                // of a send or receive; -1: not told
  std::int64_t tag = 0;                                  // tells transfers between two ranks apart
  std::size_t first_dependency = 0, end_dependency = 0;  // in OperationGraph::dependencies
};
[[nodiscard]] std::string_view to_string(GraphNode::Kind kind);

// Which part of a graph is the step of its rank. Without it, the step is all there is: from the first start to the last
// end.
struct StepMark {
  std::int64_t number = -1;      // N of ProfilerStep#N; -1: not known
  double start_us = 0;           // on the clock of all ranks
  std::uint32_t begin_node = 0;  // position of the node that lasts until the rank begins
  std::uint32_t end_node = 0;    // position of the node with whose end the step ends,
  bool ends_at_start = false;    // or with its start
};

struct OperationGraph {
  std::string file;
  std::string schema;                // as the file says, may be empty
  std::optional<std::int32_t> rank;  // as the file says
  std::optional<StepMark> step;
  StringTable names;
  std::vector<GraphNode> nodes;             // in the order of the file
  std::vector<std::uint32_t> dependencies;  // positions in `nodes`
  // [dependency] from the end of the node waited for, in microseconds; negative: before its end. Empty: none.
  std::vector<double> delays_us;
  std::uint64_t dangling = 0;  // dependencies on nodes that are not in the file
  // Control dependencies that name the caller of an operator instead of what it waits for: converters from
  // PyTorch write them so. Left out.
  std::uint64_t callers = 0;
  std::uint64_t metadata_nodes = 0;  // left out
  std::uint64_t bad_times = 0;       // nodes whose duration or start is none, and counts as not recorded

  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(const GraphNode& node) const {
    return {dependencies.data() + node.first_dependency, node.end_dependency - node.first_dependency};
  }
};

struct OperationGraphSummary {
  std::map<std::string_view, std::size_t> nodes_by_kind;  // "computation on the CPU", "send", ...
  std::map<CollectiveOp, std::size_t> collectives;        // by operation
  std::size_t with_duration = 0;                          // nodes with a time of their own
  std::size_t with_amounts = 0;                           // of the others, those that a platform can price
  double recorded_gpu_ms = 0;  // sum of the durations of nodes that are not on the CPU
  double transfer_bytes = 0;   // of collectives and sends, as written
};
[[nodiscard]] OperationGraphSummary summarize(const OperationGraph& graph);

}  // namespace stepcast
