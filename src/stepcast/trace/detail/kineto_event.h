// One event of a profiler trace, split into fields but not interpreted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/trace/detail/json_cursor.h"

namespace stepcast::detail {

// Marks a device or stream that is missing in an event.
inline constexpr std::int64_t kAbsent = INT64_MIN;

// Arguments that describe a collective, of a kernel or of record_param_comms.
struct CollectiveArgs {
  bool any = false;
  JsonText name;
  JsonText dtype;
  JsonText group_name;
  std::string_view group_id;  // a number, or the content of a text
  // A list, or the content of a text with a list; the same for the splits.
  std::string_view ranks;
  std::string_view in_split, out_split;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t group_size = -1;
  std::int64_t sequence = -1;
  std::int64_t comms_id = -1;
};

// Other arguments. -1 or kAbsent: missing.
struct EventArgs {
  std::int64_t external_id = -1;
  std::int64_t event_index = -1;         // "Ev Idx"
  std::int64_t record_function_id = -1;  // "Record function id"
  std::int64_t sequence_number = -1;
  std::int64_t correlation = -1;
  std::int64_t bytes = -1;
  std::int64_t device = kAbsent;
  std::int64_t stream = kAbsent;
  std::int64_t wait_on_stream = -1;
  std::int64_t wait_on_event_record = -1;
  std::int64_t blocks = -1;
  std::int64_t graph = -1, graph_node = -1;
  std::int64_t device_type = -1;  // of a memory event; 0: host
  std::int64_t memory_device = -1, total_allocated = -1, total_reserved = -1;
  float blocks_per_sm = -1;
  bool has_call_id = false;  // "cbid" or "cid": a runtime call
  bool has_python_id = false;
  bool has_hlo = false;                                    // of an XLA program
  std::string_view input_dims, input_types, input_values;  // raw JSON lists
  JsonText sync_kind;
  JsonText name;  // of metadata events
  CollectiveArgs collective;
};

// `pid` or `tid`: a number, a text with a number, or another text ("Spans", "stream 7").
struct RowId {
  std::int64_t number = 0;
  JsonText text;  // empty if it is a number
  // True for a text that is not a number.
  [[nodiscard]] bool is_text() const { return !text.raw.empty(); }
};

// What an event is.
enum class EventClass : std::uint8_t {
  skip,  // dropped, with KinetoEvent::reason
  kernel,
  memcpy,
  memset,
  runtime,
  op,
  annotation,
  // A Python frame, or time of the profiler: dropped, but its name shows what a step does.
  frame,
  sync,
  memory,       // totals of the caching allocator on a GPU
  thread_name,  // metadata with the name of a thread
};

// An event. Views refer to its text.
struct KinetoEvent {
  EventClass event_class = EventClass::skip;
  std::string_view reason;  // for skip; refers to the event or to a constant
  JsonText name;
  RowId pid, tid;
  std::int64_t start_ns = 0;  // `ts` as written
  std::int64_t duration_ns = 0;
  EventArgs args;
  char pair = '\0';  // 'B': starts here and is ended by an event with 'E' on the same row
};

// The reason for a begin or end event without a counterpart.
inline constexpr std::string_view kWithoutPair = "begin or end without duration";

// Describes an event that cannot be read.
struct EventProblem {
  std::string problem, found, expected, advice;
  std::size_t position = 0;  // in the text of the event
};

// Reads one element of traceEvents. False if it is damaged; `problem` describes it. Padding must follow
// `text`, see JsonCursor. The views in `event` refer to `text`.
[[nodiscard]] bool read_kineto_event(std::string_view text, KinetoEvent& event, EventProblem& problem);

}  // namespace stepcast::detail
