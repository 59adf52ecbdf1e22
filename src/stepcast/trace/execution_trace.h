// A PyTorch execution trace (ET): the operators of one rank with their tensors, without times. Records of
// `stepcast dryrun` also contain the streams of operators, their dependencies, the members of process groups
// and the allocated memory (docs/dry-run-record.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/dtype.h"

namespace stepcast {

// A tensor as [tensor, storage, offset, numel, itemsize, device] in the file.
struct TensorUse {
  // Numbers of the tensor and of its storage.
  std::int64_t tensor = 0;
  std::int64_t storage = 0;
  // In elements, from the start of the storage.
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  std::int32_t element_bytes = 0;
  bool on_gpu = false;
};

// The record_param_comms of a node, in any of its layouts.
struct EtCollective {
  CollectiveOp op = CollectiveOp::unknown;
  bool is_wait = false;  // the "wait" that belongs to an earlier collective
  // It runs on a stream of its process group; false: on the stream of its operator.
  bool has_stream = true;
  std::int64_t peer = -1;      // of a send or receive: rank in the group; -1: not recorded
  std::int64_t sequence = -1;  // links a collective and its wait; -1 if missing
  // Elements of the inputs and outputs of this rank; -1: not recorded.
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
  DType dtype = DType::unknown;
  std::int32_t group_size = -1;
  // Name of the group; in old schemas a pointer as text, which differs between ranks.
  NameId process_group;
  // Elements per peer; empty: equal shares.
  std::vector<std::int64_t> in_split, out_split;
};

// A call of the CUDA runtime that orders work.
struct EtRuntimeCall {
  // What the call does.
  enum class Kind : std::uint8_t {
    record_event,  // `event` completes after all work already on `stream`
    wait_event,    // later work on `stream` waits for `event`
    sync_stream,   // the host waits for `stream`
    sync_event,    // the host waits for `event`
    sync_device,   // the host waits for all streams
  };
  Kind kind = Kind::sync_device;
  std::int32_t stream = 0;
  std::uint64_t event = 0;
  std::uint32_t before = 0;  // index of the node it precedes; nodes.size(): after the last node
};

// A process group with its world ranks; empty ranks: all ranks.
struct EtGroup {
  NameId name;
  std::string label;  // for messages: "default_pg", "mesh_dp"
  std::vector<std::uint32_t> ranks;
};

// Direction of a copy between host and device.
enum class EtCopy : std::uint8_t { none, to_device, to_host };

// An operator. Names and texts are in ExecutionTrace::names.
struct EtNode {
  // Number in the file, and that of the calling operator.
  std::int64_t id = 0;
  std::int64_t parent = 0;
  std::int64_t order = -1;            // rf_id, else id: the order in which operators began
  std::int64_t sequence_number = -1;  // seq_id of autograd, links forward and backward
  std::int64_t forward_parent = 0;    // fw_parent
  std::int32_t thread = 0;            // tid: 1, 2, ... in order of first appearance
  std::int32_t forward_thread = 0;
  NameId name;
  NameId input_shapes;  // compact JSON text, interned
  NameId input_types;
  NameId output_shapes;
  NameId output_types;
  NameId values;                   // inputs as a JSON list, with null for tensors and very long values
  std::uint32_t first_input = 0;   // tensors[first_input, first_output) are inputs
  std::uint32_t first_output = 0;  // tensors[first_output, end_output) are outputs
  std::uint32_t end_output = 0;
  std::int32_t collective = -1;  // index into ExecutionTrace::collectives; -1: none
  std::int32_t stream = -1;      // -1: not recorded
  EtCopy copy = EtCopy::none;    // only if streams are recorded
  bool host_waits = false;       // until the work on its stream is done
};

// Facts about the whole record of a dry run.
struct EtDryRun {
  std::int64_t world_size = 1;
  // From the caching allocator: bytes before the step, and maxima during it.
  std::int64_t start_allocated_bytes = 0, peak_allocated_bytes = 0, peak_reserved_bytes = 0;
  bool tf32_products = false, tf32_convolutions = false;  // fp32 operators may use TF32 units
  bool channels_last = false;                             // most convolutions use this memory layout
  std::vector<std::uint32_t> ranks;                       // other ranks that do the same work
  std::vector<std::string> notes;                         // assumptions that were made
};

// An execution trace in memory.
struct ExecutionTrace {
  std::string file;
  std::string schema;
  StringTable names;
  std::vector<EtNode> nodes;       // in the order of the file
  std::vector<TensorUse> tensors;  // including those in nested lists
  std::vector<EtCollective> collectives;
  std::vector<EtRuntimeCall> runtime_calls;  // in order; empty if streams are not recorded
  std::vector<EtGroup> groups;
  std::optional<EtDryRun> dry_run;
  std::optional<std::int32_t> rank;  // from metadata of process groups, if the file has them
  // Number of nodes left out, by reason. GPU events that trace linkers merge into the file are counted under
  // their category.
  std::map<std::string, std::uint64_t> skipped;

  // The tensors of a node.
  [[nodiscard]] std::span<const TensorUse> inputs(const EtNode& n) const {
    return {tensors.data() + n.first_input, n.first_output - n.first_input};
  }
  [[nodiscard]] std::span<const TensorUse> outputs(const EtNode& n) const {
    return {tensors.data() + n.first_output, n.end_output - n.first_output};
  }
};

}  // namespace stepcast
