// Reads one event of a profiler trace. Keys are compared by length first, for speed. Reading stops early for
// events that are skipped by phase or category. Files of many profilers and versions are accepted, so values
// of unexpected type are ignored instead of being errors.
#include "stepcast/trace/detail/kineto_event.h"

#include <limits>

#include "stepcast/base/scan.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/step_signs.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

// Limit for times and durations in nanoseconds, so that no sum or difference of two can overflow.
constexpr std::int64_t kLongestNs = 4'000'000'000'000'000'000;

bool spells_number(char first) { return (first >= '0' && first <= '9') || first == '-'; }

// The content of a text, or the text of any other value.
bool loose_text(JsonCursor& c, std::string_view& out) {
  if (c.peek() != '"') return c.raw_value(out);
  JsonText text;
  if (!c.string(text)) return false;
  out = text.raw;
  return true;
}

// Reads an identifier or count: an integer or a text with an integer. Other values leave `out` unchanged.
void loose_integer(JsonCursor& c, std::int64_t& out) {
  std::string_view text;
  if (loose_text(c, text)) static_cast<void>(parse_integer(text, out));
}

// Reads a text. Other values leave `out` unchanged.
void loose_string(JsonCursor& c, JsonText& out) {
  if (c.peek() == '"')
    c.string(out);
  else
    c.skip_value();
}

// Reads a non-negative number in the range of a float.
void read_blocks_per_sm(JsonCursor& c, float& out) {
  std::string_view text;
  if (!loose_text(c, text)) return;
  const float value = scan<float>(text).value_or(-1);
  if (value >= 0 && value < 1e9F) out = value;
}

// The number of blocks: x * y * z of the list [x, y, z], at most 2^31 - 1.
void read_grid(JsonCursor& c, std::int64_t& out) {
  std::string_view text;
  if (!loose_text(c, text)) return;
  struct Product {
    std::int64_t value = 1;
    unsigned count = 0;
    void clear() { *this = {}; }
    void push_back(std::int64_t n) {
      ++count;
      n = n < 0 ? 0 : n;
      constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
      value = n != 0 && value > kMost / n ? kMost : value * n;
    }
  } product;
  if (parse_integer_list<std::int64_t>(text, product) && product.count > 0) out = product.value;
}

// Reads an argument that describes a collective. False if the key is none of them.
bool read_collective_arg(JsonCursor& c, std::string_view key, CollectiveArgs& a) {
  switch (key.size()) {
    case 3:
      if (key == "Seq"sv) return a.any = true, loose_integer(c, a.sequence), true;
      break;
    case 5:
      if (key == "dtype"sv) return a.any = true, loose_string(c, a.dtype), true;
      break;
    case 8:
      if (key == "Comms Id"sv) return a.any = true, loose_integer(c, a.comms_id), true;
      break;
    case 10:
      if (key == "Group size"sv) return a.any = true, loose_integer(c, a.group_size), true;
      break;
    case 13:
      if (key == "In msg nelems"sv) return a.any = true, loose_integer(c, a.in_elements), true;
      if (key == "In split size"sv) return a.any = true, loose_text(c, a.in_split), true;
      break;
    case 14:
      if (key == "Out msg nelems"sv) return a.any = true, loose_integer(c, a.out_elements), true;
      if (key == "Out split size"sv) return a.any = true, loose_text(c, a.out_split), true;
      break;
    case 15:
      if (key == "Collective name"sv) return a.any = true, loose_string(c, a.name), true;
      break;
    case 16:
      if (key == "Process Group ID"sv) return a.any = true, loose_text(c, a.group_id), true;
      break;
    case 18:
      if (key == "Process Group Name"sv) return a.any = true, loose_string(c, a.group_name), true;
      break;
    case 19:
      if (key == "Process Group Ranks"sv) return a.any = true, loose_text(c, a.ranks), true;
      break;
    default: break;
  }
  return false;
}

// Takes the raw text of a list; skips other values.
void read_list(JsonCursor& c, std::string_view& out) {
  if (c.peek() == '[')
    c.raw_value(out);
  else
    c.skip_value();
}

// Reads one member of "args". Unknown ones are skipped.
void read_arg(JsonCursor& c, std::string_view key, EventArgs& a) {
  switch (key.size()) {
    case 3:
      if (key == "cid"sv) a.has_call_id = true;
      break;
    case 4:
      if (key == "grid"sv) return read_grid(c, a.blocks);
      if (key == "name"sv) return loose_string(c, a.name);
      if (key == "cbid"sv) a.has_call_id = true;
      break;
    case 5:
      if (key == "bytes"sv) return loose_integer(c, a.bytes);
      break;
    case 6:
      if (key == "hlo_op"sv) a.has_hlo = true;
      if (key == "Ev Idx"sv) return loose_integer(c, a.event_index);
      if (key == "stream"sv) return loose_integer(c, a.stream);
      if (key == "device"sv) return loose_integer(c, a.device);
      break;
    case 8:
      if (key == "graph id"sv) return loose_integer(c, a.graph);
      break;
    case 9:
      if (key == "Python id"sv) a.has_python_id = true;
      if (key == "Device Id"sv) return loose_integer(c, a.memory_device);
      break;
    case 10:
      if (key == "Input Dims"sv || key == "Input dims"sv) return read_list(c, a.input_dims);
      if (key == "Input type"sv) return read_list(c, a.input_types);
      break;
    case 11:
      if (key == "External id"sv || key == "external id"sv) return loose_integer(c, a.external_id);
      if (key == "correlation"sv) return loose_integer(c, a.correlation);
      if (key == "Device Type"sv) return loose_integer(c, a.device_type);
      break;
    case 13:
      if (key == "blocks per SM"sv) return read_blocks_per_sm(c, a.blocks_per_sm);
      if (key == "graph node id"sv) return loose_integer(c, a.graph_node);
      break;
    case 14:
      if (key == "wait_on_stream"sv) return loose_integer(c, a.wait_on_stream);
      if (key == "cuda_sync_kind"sv) return loose_string(c, a.sync_kind);
      if (key == "Total Reserved"sv) return loose_integer(c, a.total_reserved);
      break;
    case 15:
      if (key == "Concrete Inputs"sv) return read_list(c, a.input_values);
      if (key == "Sequence number"sv) return loose_integer(c, a.sequence_number);
      if (key == "Total Allocated"sv) return loose_integer(c, a.total_allocated);
      break;
    case 18:
      if (key == "Record function id"sv) return loose_integer(c, a.record_function_id);
      break;
    case 20:
      if (key == "Profiler Event Index"sv) return loose_integer(c, a.event_index);
      break;
    case 33:
      if (key == "wait_on_cuda_event_record_corr_id"sv) return loose_integer(c, a.wait_on_event_record);
      break;
    default: break;
  }
  if (!read_collective_arg(c, key, a.collective)) c.skip_value();
}

// Reads "args", which can be null.
void read_args(JsonCursor& c, EventArgs& args) {
  if (c.peek() != '{') {  // null, for example
    c.skip_value();
    return;
  }
  std::string_view key;
  for (c.enter('{'); c.next_member(key);) read_arg(c, key, args);
}

// Reads `pid` or `tid`, which can be a number or any text.
void read_row(JsonCursor& c, RowId& row) {
  if (c.peek() == '"') {
    JsonText text;
    if (c.string(text) && !parse_integer(text.raw, row.number)) row.text = text;
    return;
  }
  std::string_view raw;
  if (c.raw_value(raw) && !parse_integer(raw, row.number)) row.text = {raw, false};
}

// Maps the category names of all profiler versions. Events of unknown categories are skipped, with the
// category as reason.
EventClass class_of_category(std::string_view category, std::string_view& reason) {
  if (category == "cpu_op"sv || category == "Operator"sv) return EventClass::op;
  if (category == "kernel"sv || category == "Kernel"sv) return EventClass::kernel;
  if (category == "cuda_runtime"sv || category == "cuda_driver"sv || category == "Runtime"sv)
    return EventClass::runtime;
  if (category == "user_annotation"sv) return EventClass::annotation;
  if (category == "gpu_memcpy"sv || category == "Memcpy"sv) return EventClass::memcpy;
  if (category == "gpu_memset"sv || category == "Memset"sv) return EventClass::memset;
  if (category == "cuda_sync"sv) return EventClass::sync;
  if (category.ends_with("_runtime"sv) || category.ends_with("_driver"sv)) {
    reason = category;  // names the vendor of the runtime
    return EventClass::runtime;
  }
  reason = category == "gpu_user_annotation"sv ? "gpu annotation"sv : category;
  return EventClass::skip;
}

// The reason for skipping phases other than complete events ('X') and metadata ('M').
std::string_view skipped_phase(char phase) {
  switch (phase) {
    case 's':
    case 't':
    case 'f': return "flow"sv;
    case 'i':
    case 'I':
    case 'R': return "instant"sv;
    case 'C': return "counter"sv;
    default: return "other phase"sv;
  }
}

// Some exporters write no category. The kind of event then follows from its arguments.
EventClass class_without_category(const KinetoEvent& e) {
  const EventArgs& a = e.args;
  const std::string_view name = e.name.raw;
  if (a.has_call_id) return EventClass::runtime;
  const bool on_stream = (a.stream != kAbsent && a.correlation != -1) ||
                         e.tid.text.raw.starts_with("stream "sv) ||
                         e.pid.text.raw.starts_with("CUDA functions"sv);
  if (on_stream) {
    if (name.starts_with("Memcpy"sv)) return EventClass::memcpy;
    return name.starts_with("Memset"sv) ? EventClass::memset : EventClass::kernel;
  }
  if (a.has_python_id) return EventClass::skip;
  if (a.correlation != -1 &&
      (name.starts_with("cuda"sv) || name.starts_with("hip"sv) || name.starts_with("cu"sv))) {
    return EventClass::runtime;
  }
  if (name.starts_with("ProfilerStep#"sv)) return EventClass::annotation;
  if (a.external_id != -1 || a.event_index != -1 || e.pid.text.raw.starts_with("CPU functions"sv))
    return EventClass::op;
  return EventClass::skip;
}

// Marks an event as skipped and returns true: the event is complete.
bool skip(KinetoEvent& event, std::string_view reason) {
  event.event_class = EventClass::skip;
  event.reason = reason;
  return true;
}

// The state while one event is read. Members can be in any order.
class EventReader {
 public:
  EventReader(std::string_view text, KinetoEvent& event, EventProblem& problem)
      : text_(text), cursor_(text), event_(event), problem_(problem) {}

  bool read() {
    std::string_view key;
    for (cursor_.enter('{'); cursor_.next_member(key);)
      if (read_member(key)) return true;  // known to be skipped
    if (cursor_.failed()) {
      return bad("",
                 cursor_.position() < text_.size() ? quote_for_message(text_.substr(cursor_.position(), 20))
                                                   : "its end",
                 cursor_.problem(), "the event is damaged", cursor_.position());
    }
    return conclude();
  }

 private:
  // Reads one member. True if the rest of the event is not needed.
  bool read_member(std::string_view key) {
    switch (key.size()) {
      case 2:
        if (key == "ph"sv) return read_phase();
        if (key == "ts"sv) return cursor_.raw_value(ts_), false;
        break;
      case 3:
        if (key == "cat"sv) return read_category();
        if (key == "pid"sv) return read_row(cursor_, event_.pid), false;
        if (key == "tid"sv) return read_row(cursor_, event_.tid), false;
        if (key == "dur"sv) return cursor_.raw_value(duration_), false;
        break;
      case 4:
        if (key == "name"sv) {
          loose_string(cursor_, event_.name);
          return phase_ == 'X' && is_frame_ && !tells_of_its_step();
        }
        if (key == "args"sv) {
          // The arguments are read only after the kind of event is known; until then their text is kept.
          if (phase_ == 'M' || (phase_ == 'X' && has_category_))
            read_args(cursor_, event_.args);
          else
            cursor_.raw_value(late_args_);
          return false;
        }
        break;
      default: break;
    }
    cursor_.skip_value();
    return false;
  }

  // Reads the phase. True if the event can be skipped now.
  bool read_phase() {
    JsonText text;
    if (!cursor_.string(text) || text.raw.size() != 1) return false;
    phase_ = text.raw.front();
    if (phase_ == 'M' || phase_ == 'i') return false;
    if (phase_ == 'B' || phase_ == 'E') {
      event_.pair = phase_;
      return false;
    }
    if (phase_ != 'X') return skip(event_, skipped_phase(phase_));
    return has_category_ && event_.event_class == EventClass::skip && !is_frame_;
  }

  // True for a Python frame that shows what its step does; it is read completely.
  bool tells_of_its_step() {
    if (!sign_in(event_.name.raw)) return false;
    event_.event_class = EventClass::frame;
    return true;
  }

  // Reads the category. True if the event can be skipped now.
  bool read_category() {
    JsonText text;
    if (cursor_.peek() != '"') {
      cursor_.skip_value();
      return false;
    }
    if (!cursor_.string(text) || text.raw.empty()) return false;
    has_category_ = true;
    event_.event_class = class_of_category(text.raw, event_.reason);
    is_frame_ = text.raw == "python_function"sv || text.raw == "overhead"sv;
    if (is_frame_) return phase_ == 'X' && !event_.name.raw.empty() && !tells_of_its_step();
    return phase_ == 'X' && event_.event_class == EventClass::skip;
  }

  // Decides what the event is after all members are known. False only for damaged arguments.
  bool conclude() {
    if (phase_ == '\0') return skip(event_, "no phase"sv);
    if (phase_ == 'E') {
      const bool has_time = !ts_.empty() && read_time(ts_, event_.start_ns);
      return skip(event_, has_time ? kWithoutPair : kBadTime);
    }
    const bool is_memory = phase_ == 'i' && event_.name.raw == "[memory]"sv;
    if (phase_ == 'i' && !is_memory) return skip(event_, skipped_phase(phase_));
    if (!late_args_.empty()) {
      JsonCursor late(late_args_);
      read_args(late, event_.args);
      if (late.failed()) return bad("", "args that are not JSON", late.problem(), "the event is damaged", 0);
    }
    if (phase_ == 'M') {
      if (event_.name.raw != "thread_name"sv) return skip(event_, "metadata"sv);
      event_.event_class = EventClass::thread_name;
      return true;
    }
    if (is_memory) return conclude_memory();
    if (!has_category_) {
      event_.event_class = class_without_category(event_);
      if (event_.event_class == EventClass::skip)
        return skip(event_, event_.args.has_python_id ? "python_function"sv
                            : event_.args.has_hlo     ? kXlaOperation
                                                      : "no category"sv);
    }
    if (event_.event_class == EventClass::skip) return true;
    const bool cpu_side =
        event_.event_class == EventClass::op || event_.event_class == EventClass::annotation;
    if (cpu_side && event_.tid.text.raw.starts_with("stream "sv)) return skip(event_, "gpu annotation"sv);
    if (event_.name.raw.empty()) return skip(event_, "no name"sv);
    return read_times();
  }

  // A memory event counts only if it has totals of a GPU.
  bool conclude_memory() {
    const EventArgs& a = event_.args;
    const bool on_gpu = a.device_type > 0 && a.total_allocated >= 0 && a.total_reserved >= 0;
    if (!on_gpu || ts_.empty()) return skip(event_, skipped_phase(phase_));
    event_.event_class = EventClass::memory;
    return read_time(ts_, event_.start_ns) || skip(event_, kBadTime);
  }

  // An invalid time drops this event, but the file is still read.
  bool read_times() {
    if (ts_.empty() || !read_time(ts_, event_.start_ns)) return skip(event_, kBadTime);
    if (phase_ == 'B') return true;  // its end event has the duration
    if (duration_.empty()) return skip(event_, "no duration"sv);
    if (!read_time(duration_, event_.duration_ns) || event_.duration_ns < 0) return skip(event_, kBadTime);
    return true;
  }

  // Reads a time in microseconds, also in quotes as some tracers write it. False if it is not a number within
  // 126 years of 1970.
  static bool read_time(std::string_view text, std::int64_t& out) {
    if (text.size() > 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    const TimeError error =
        spells_number(text.front()) ? parse_microseconds(text, out) : TimeError::not_a_number;
    return error == TimeError::none && out <= kLongestNs && out >= -kLongestNs;
  }

  bool bad(std::string what, std::string found, std::string expected, std::string advice,
           std::size_t position) {
    problem_ = {std::move(what), std::move(found), std::move(expected), std::move(advice), position};
    return false;
  }

  std::string_view text_;
  JsonCursor cursor_;
  KinetoEvent& event_;
  EventProblem& problem_;
  char phase_ = '\0';
  bool has_category_ = false, is_frame_ = false;
  std::string_view ts_, duration_, late_args_;
};

}  // namespace

bool read_kineto_event(std::string_view text, KinetoEvent& event, EventProblem& problem) {
  event = KinetoEvent{};
  return EventReader(text, event, problem).read();
}

}  // namespace stepcast::detail
