// A PyTorch execution trace (ET): the operators of one rank with their tensors, no times.
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
  std::int64_t sequence = -1;  // joins a collective and its wait; -1 where absent
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
  DType dtype = DType::unknown;
  std::int32_t group_size = -1;
  NameId process_group;  // group name; in old schemas the (per-rank) pointer as text
  std::vector<std::int64_t> in_split, out_split;
};

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
};

struct ExecutionTrace {
  std::string file;
  std::string schema;
  StringTable names;
  std::vector<EtNode> nodes;       // in the order of the file
  std::vector<TensorUse> tensors;  // also those inside (nested) tensor lists
  std::vector<EtCollective> collectives;
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
