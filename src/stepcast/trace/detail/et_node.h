// One node of a PyTorch execution trace, split into fields but not interpreted. The flat layout of schema
// 1.0.1 and the later one with "attrs" and "ctrl_deps" give the same fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/trace/detail/json_cursor.h"

namespace stepcast::detail {

// Fields of a node. Numbers have the defaults shown if they are missing.
struct EtNodeText {
  bool has_id = false;
  std::int64_t id = 0;
  std::int64_t parent = 0;
  std::int64_t rf_id = -1;
  std::int64_t forward_parent = 0;
  std::int64_t sequence_number = -1;
  std::int64_t thread = 0;
  std::int64_t forward_thread = 0;
  JsonText name;
  std::string_view inputs, input_shapes, input_types;  // raw JSON lists, empty if missing
  std::string_view outputs, output_shapes, output_types;
  bool is_merged_event = false;  // a profiler event that a trace linker added
  JsonText category;             // only for a merged event

  // Attributes of record_param_comms, from schema 1.1.0 on.
  JsonText collective_name, dtype, group_name;
  JsonText in_split, out_split;
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
  std::int64_t group_size = -1;

  // Attributes of dry runs (docs/dry-run-record.md).
  std::int64_t stream = -1;
  JsonText runtime_before, copy, sync;
  bool waits_later = true;  // "async" of a collective
};

// Describes a damaged node.
struct EtProblem {
  std::string found, expected;
  std::size_t position = 0;  // in the node's text
};                           // in the text of the node

// Reads a node. False if it is damaged. Padding must follow `text`, see JsonCursor. The fields refer to
// `text`.
[[nodiscard]] bool read_et_node(std::string_view text, EtNodeText& node, EtProblem& problem);

}  // namespace stepcast::detail
