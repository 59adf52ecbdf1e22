// One event of a profiler trace, taken apart but not yet interpreted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/trace/detail/json_cursor.h"

namespace stepcast::detail {

inline constexpr std::int64_t kAbsent = INT64_MIN;

// What describes a collective in the args of a kernel or of record_param_comms.
struct CollectiveArgs {
  bool any = false;
  JsonText name;
  JsonText dtype;
  JsonText group_name;
  std::string_view group_id;  // a number or the inside of a text
  std::string_view ranks;     // a list, or the inside of a text that spells one; the same for the splits
  std::string_view in_split, out_split;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t group_size = -1;
  std::int64_t sequence = -1;
  std::int64_t comms_id = -1;
};

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
  std::int64_t device_type = -1;  // of a memory event: 0 is the host
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

// `pid` or `tid`: a number, a text that spells one, or another text ("Spans", "stream 7").
struct RowId {
  std::int64_t number = 0;
  JsonText text;  // empty if it is a number
  [[nodiscard]] bool is_text() const { return !text.raw.empty(); }
};

enum class EventClass : std::uint8_t {
  skip,  // not kept; KinetoEvent::reason says why
  kernel,
  memcpy,
  memset,
  runtime,
  op,
  annotation,
  frame,  // of Python, or the profiler's own time: not kept (`reason`), but its name tells what a step does
  sync,
  memory,       // totals of the caching allocator on a GPU
  thread_name,  // metadata: the name of a thread
};

struct KinetoEvent {
  EventClass event_class = EventClass::skip;
  std::string_view reason;  // of a skip; points into the event or to a constant
  JsonText name;
  RowId pid, tid;
  std::int64_t start_ns = 0;  // `ts` as written
  std::int64_t duration_ns = 0;
  EventArgs args;
  char pair = '\0';  // 'B': it begins here, and an event of its row with 'E' ends it
};

// The reason of a begin or an end that has no other.
inline constexpr std::string_view kWithoutPair = "begin or end without duration";

// What is wrong with an event that cannot be taken as it is.
struct EventProblem {
  std::string problem, found, expected, advice;
  std::size_t position = 0;  // in the event's text
};

// Reads one element of traceEvents. False if it is damaged; `problem` says how. Behind `text` must be
// padding, see JsonCursor. The views in `event` point into `text`.
[[nodiscard]] bool read_kineto_event(std::string_view text, KinetoEvent& event, EventProblem& problem);

}  // namespace stepcast::detail
