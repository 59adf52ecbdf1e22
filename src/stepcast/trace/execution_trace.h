// A PyTorch execution trace (ET): the operators of one rank with their tensors, no times. Records of `stepcast dryrun` also say
// on which streams operators ran, what waited for what, who is in a process group and how much memory was allocated
// (docs/dry-run-record.md).
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

// [tensor, storage, offset, numel, itemsize, device] of the file.
struct TensorUse {
  std::int64_t tensor = 0;
  std::int64_t storage = 0;
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  std::int32_t element_bytes = 0;
  bool on_gpu = false;
};

// record_param_comms of an ET node, in whichever of its layouts.
struct EtCollective {
  CollectiveOp op = CollectiveOp::unknown;
  bool is_wait = false;        // the "wait" twin of an earlier collective
  bool has_stream = true;      // a stream of its process group; false: it runs on that of its operator
  std::int64_t peer = -1;      // of a send or a receive: rank in the group; -1: not recorded
  std::int64_t sequence = -1;  // joins a collective and its wait; -1 where absent
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
  DType dtype = DType::unknown;
  std::int32_t group_size = -1;
  NameId process_group;  // group name; in old schemas the (per-rank) pointer as text
  std::vector<std::int64_t> in_split, out_split;
};

// A call of the CUDA runtime that orders work.
struct EtRuntimeCall {
  enum class Kind : std::uint8_t {
    record_event,  // `event` happens when all that was put on `stream` before is done
    wait_event,    // what is put on `stream` from here on waits for `event`
    sync_stream,   // the host waits for `stream`
    sync_event,    // the host waits for `event`
    sync_device,   // the host waits for all streams
  };
  Kind kind = Kind::sync_device;
  std::int32_t stream = 0;
  std::uint64_t event = 0;
  std::uint32_t before = 0;  // index of the node that it stands in front of; nodes.size(): behind the last
};

// A process group, by world ranks; of all ranks where there are none.
struct EtGroup {
  NameId name;
  std::string label;  // for people: "default_pg", "mesh_dp"
  std::vector<std::uint32_t> ranks;
};

enum class EtCopy : std::uint8_t { none, to_device, to_host };

struct EtNode {
  std::int64_t id = 0;
  std::int64_t parent = 0;
  std::int64_t order = -1;            // rf_id, else id
  std::int64_t sequence_number = -1;  // seq_id (autograd)
  std::int64_t forward_parent = 0;    // fw_parent
  std::int32_t thread = 0;            // tid: 1, 2, ... in order of appearance
  std::int32_t forward_thread = 0;
  NameId name;
  NameId input_shapes;  // compact JSON text, interned
  NameId input_types;
  NameId output_shapes;
  NameId output_types;
  NameId values;                   // the inputs as a JSON list, null for tensors and for what is very long
  std::uint32_t first_input = 0;   // tensors[first_input, first_output) are inputs
  std::uint32_t first_output = 0;  // tensors[first_output, end_output) are outputs
  std::uint32_t end_output = 0;
  std::int32_t collective = -1;  // index into ExecutionTrace::collectives; -1: none
  std::int32_t stream = -1;      // -1: not recorded
  EtCopy copy = EtCopy::none;    // between host and device; `none` where streams are not recorded, too
  bool host_waits = false;       // until its stream has done it
};

// What a dry run says of its whole record.
struct EtDryRun {
  std::int64_t world_size = 1;
  // By the caching allocator: before the step, and the most during it.
  std::int64_t start_allocated_bytes = 0, peak_allocated_bytes = 0, peak_reserved_bytes = 0;
  bool tf32_products = false, tf32_convolutions = false;  // that fp32 operators may use TF32 units
  bool channels_last = false;                             // most convolutions read and write this layout
  std::vector<std::uint32_t> ranks;                       // that do the same as this one
  std::vector<std::string> notes;                         // what was guessed
};

struct ExecutionTrace {
  std::string file;
  std::string schema;
  StringTable names;
  std::vector<EtNode> nodes;       // in the order of the file
  std::vector<TensorUse> tensors;  // also those inside (nested) tensor lists
  std::vector<EtCollective> collectives;
  std::vector<EtRuntimeCall> runtime_calls;  // in order; empty where streams are not recorded
  std::vector<EtGroup> groups;
  std::optional<EtDryRun> dry_run;
  std::optional<std::int32_t> rank;  // from process-group metadata where the file has it
  // Nodes left out, by reason: GPU events that trace linkers merge into the file stand under their category.
  std::map<std::string, std::uint64_t> skipped;

  [[nodiscard]] std::span<const TensorUse> inputs(const EtNode& n) const {
    return {tensors.data() + n.first_input, n.first_output - n.first_input};
  }
  [[nodiscard]] std::span<const TensorUse> outputs(const EtNode& n) const {
    return {tensors.data() + n.first_output, n.end_output - n.first_output};
  }
};

}  // namespace stepcast
