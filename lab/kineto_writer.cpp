#include "lab/kineto_writer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/output_file.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

template <class Number>
void append_number(std::string& out, Number value) {
  if constexpr (std::is_integral_v<Number>) {
    const fmt::format_int text(value);
    out.append(text.data(), text.size());
  } else {
    out += fmt::format("{}", value);
  }
}

// Members of one JSON object.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  // For an event. Metadata has no category.
  Members(std::string& out, std::string_view phase, std::string_view category, std::string_view name)
      : Members(out) {
    text("ph", phase);
    if (!category.empty()) text("cat", category);
    text("name", name);
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members() { out_ += '}'; }

  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json(out_, value);
  }
  template <class Number>
  void number(std::string_view key, Number value) {
    append_number(begin(key), value);
  }
  // -1 means an absent value in the arrays of a RecordedRank.
  template <class Number>
  void number_if_given(std::string_view key, Number value) {
    if (value != Number{-1}) number(key, value);
  }
  [[nodiscard]] Members object(std::string_view key) { return Members{begin(key)}; }
  void raw(std::string_view key, std::string_view json) {
    begin(key);
    out_ += json;
  }
  // Writes nanoseconds as microseconds with three decimals.
  void microseconds(std::string_view key, std::int64_t nanoseconds) {
    begin(key);
    const bool negative = nanoseconds < 0;
    const std::uint64_t magnitude =
        negative ? ~static_cast<std::uint64_t>(nanoseconds) + 1 : static_cast<std::uint64_t>(nanoseconds);
    if (negative) out_ += '-';
    append_number(out_, magnitude / 1000);
    const std::uint64_t rest = magnitude % 1000;
    out_ += '.';
    for (const std::uint64_t digit : {rest / 100, rest / 10 % 10, rest % 10})
      out_ += static_cast<char>('0' + digit);
  }
  template <class List>
  void list_text(std::string_view key, const List& list) {
    begin(key) += "\"[";
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      append_number(out_, list[i]);
    }
    out_ += "]\"";
  }
  std::string& begin(std::string_view key) {
    if (!first_) out_ += ", ";
    first_ = false;
    append_json(out_, key);
    out_ += ": ";
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

class KinetoText {
 public:
  explicit KinetoText(const RecordedRank& rank) : rank_(rank), base_(base_time(rank)) {}

  std::string write() {
    out_ += "{\n";
    if (!rank_.schema.empty()) {
      // Files have this as a number; any other text is written as a string.
      const bool number = std::ranges::all_of(rank_.schema, [](char c) { return c >= '0' && c <= '9'; });
      out_ += "  \"schemaVersion\": ";
      if (number && (rank_.schema.size() == 1 || rank_.schema.front() != '0'))
        out_ += rank_.schema;
      else
        append_json(out_, rank_.schema);
      out_ += ",\n";
    }
    write_devices();
    write_distributed_info();
    out_ += "  \"traceEvents\": [";
    for (const CpuOp& op : rank_.cpu_ops) write_event(op);
    for (const RuntimeCall& call : rank_.runtime_calls) write_event(call);
    for (const GpuOp& op : rank_.gpu_ops) write_event(op);
    for (const StreamSync& sync : rank_.stream_syncs) write_event(sync);
    for (const AllocatorState& state : rank_.allocator_states) write_event(state);
    write_thread_names();
    out_ += "\n  ],\n  \"displayTimeUnit\": \"ms\",\n";
    out_ += "  \"baseTimeNanoseconds\": ";
    append_number(out_, base_);
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  // Zero of written times: the first start, so that microseconds have few digits.
  static std::int64_t base_time(const RecordedRank& rank) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    const auto look = [&first, &last](const auto& events) {
      for (const auto& event : events) {
        first = std::min(first, event.start.count());
        last = std::max(last, event.start.count());
      }
    };
    look(rank.cpu_ops);
    look(rank.runtime_calls);
    look(rank.gpu_ops);
    look(rank.stream_syncs);
    look(rank.allocator_states);
    // Readers accept times of up to 126 years. Events with larger distances are written without a shift.
    constexpr std::uint64_t kLongestNs = 4'000'000'000'000'000'000;
    const bool near =
        first <= last && static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) <= kLongestNs;
    return near ? first : 0;
  }

  void write_devices() {
    if (rank_.devices.empty()) return;
    out_ += "  \"deviceProperties\": [";
    for (std::size_t i = 0; i < rank_.devices.size(); ++i) {
      const DeviceProperties& device = rank_.devices[i];
      out_ += i == 0 ? "\n    " : ",\n    ";
      Members m(out_);
      m.number("id", device.id);
      m.text("name", device.name);
      m.number("totalGlobalMem", device.memory_bytes);
      m.number("maxThreadsPerMultiprocessor", device.max_threads_per_sm);
      m.number("numSms", device.sm_count);
    }
    out_ += "\n  ],\n";
  }

  void write_distributed_info() {
    if (!rank_.rank && !rank_.world_size) return;
    out_ += "  \"distributedInfo\": ";
    {
      Members m(out_);
      if (rank_.rank) m.number("rank", *rank_.rank);
      if (rank_.world_size) m.number("world_size", *rank_.world_size);
    }
    out_ += ",\n";
  }

  Members event(std::string_view phase, std::string_view category, std::string_view name) {
    out_ += first_event_ ? "\n  " : ",\n  ";
    first_event_ = false;
    return {out_, phase, category, name};
  }

  template <class Event>
  void times(Members& m, const Event& event) {
    m.microseconds("ts", event.start.count() - base_);
    m.microseconds("dur", event.duration.count());
  }

  static void write_thread(Members& m, const RecordedThread& thread) {
    m.number("pid", thread.pid);
    m.number("tid", thread.tid);
  }

  void write_event(const CpuOp& op) {
    Members m =
        event("X", op.kind == CpuOp::Kind::op ? "cpu_op" : "user_annotation", rank_.names.text(op.name));
    write_thread(m, rank_.threads[op.thread.index()]);
    times(m, op);
    Members args = m.object("args");
    args.number_if_given("External id", op.external_id);
    args.number_if_given("Ev Idx", op.order);
    args.number_if_given("Sequence number", op.sequence_number);
    if (op.input_shapes.valid()) args.raw("Input Dims", rank_.names.text(op.input_shapes));
    collective(args, op.collective);
  }

  void write_event(const RuntimeCall& call) {
    Members m = event("X", "cuda_runtime", rank_.names.text(call.name));
    write_thread(m, rank_.threads[call.thread.index()]);
    times(m, call);
    Members args = m.object("args");
    args.number_if_given("External id", call.external_id);
    args.number_if_given("correlation", call.correlation);
  }

  void write_event(const GpuOp& op) {
    const char* const category = op.kind == GpuOp::Kind::kernel   ? "kernel"
                                 : op.kind == GpuOp::Kind::memcpy ? "gpu_memcpy"
                                                                  : "gpu_memset";
    Members m = event("X", category, rank_.names.text(op.name));
    m.number("pid", op.device);
    m.number("tid", op.stream);
    times(m, op);
    Members args = m.object("args");
    args.number_if_given("External id", op.external_id);
    args.number("device", op.device);
    args.number("stream", op.stream);
    args.number_if_given("correlation", op.correlation);
    args.number_if_given("bytes", op.bytes);
    if (op.blocks_per_sm >= 0) args.number("blocks per SM", op.blocks_per_sm);
    if (op.blocks >= 0) args.raw("grid", '[' + std::to_string(op.blocks) + ", 1, 1]");
    collective(args, op.collective);
  }

  void write_event(const StreamSync& sync) {
    const std::string_view kind = [&sync] {
      switch (sync.kind) {
        case StreamSync::Kind::stream_wait_event: return "Stream Wait Event"sv;
        case StreamSync::Kind::event_sync: return "Event Sync"sv;
        case StreamSync::Kind::stream_sync: return "Stream Sync"sv;
        case StreamSync::Kind::context_sync: return "Context Sync"sv;
        case StreamSync::Kind::other: break;
      }
      return "Other Sync"sv;
    }();
    Members m = event("X", "cuda_sync", kind);
    m.number("pid", 0);
    m.number("tid", sync.stream);
    times(m, sync);
    Members args = m.object("args");
    args.text("cuda_sync_kind", kind);
    args.number("stream", sync.stream);
    args.number_if_given("correlation", sync.correlation);
    args.number_if_given("wait_on_stream", sync.wait_on_stream);
    args.number_if_given("wait_on_cuda_event_record_corr_id", sync.wait_on_event_record_correlation);
  }

  void write_event(const AllocatorState& state) {
    Members m = event("i", "cpu_instant_event", "[memory]");
    m.microseconds("ts", state.start.count() - base_);
    Members args = m.object("args");
    args.number("Device Type", 1);  // CUDA
    args.number("Device Id", state.device);
    args.number("Total Allocated", state.allocated_bytes);
    args.number("Total Reserved", state.reserved_bytes);
  }

  void collective(Members& args, std::int32_t index) {
    if (index < 0) return;
    const CollectiveInfo& info = rank_.collective_infos[static_cast<std::size_t>(index)];
    args.text("Collective name", info.name.valid() ? rank_.names.text(info.name) : ""sv);
    if (info.dtype != DType::unknown) args.text("dtype", to_string(info.dtype));
    args.number_if_given("In msg nelems", info.in_elements);
    args.number_if_given("Out msg nelems", info.out_elements);
    args.number_if_given("Group size", info.group_size);
    if (info.process_group.valid()) args.text("Process Group Name", rank_.names.text(info.process_group));
    args.number_if_given("Seq", info.sequence);
    args.number_if_given("Comms Id", info.comms_id);
    if (!info.group_ranks.empty()) args.list_text("Process Group Ranks", info.group_ranks);
    if (!info.in_split.empty()) args.list_text("In split size", info.in_split);
    if (!info.out_split.empty()) args.list_text("Out split size", info.out_split);
  }

  void write_thread_names() {
    for (const RecordedThread& thread : rank_.threads) {
      if (thread.name.empty()) continue;
      Members m = event("M", {}, "thread_name");
      write_thread(m, thread);
      m.object("args").text("name", thread.name);
    }
  }

  const RecordedRank& rank_;
  std::int64_t base_;
  std::string out_;
  bool first_event_ = true;
};

}  // namespace

std::string to_kineto_json(const RecordedRank& rank) { return KinetoText(rank).write(); }

Status write_kineto(const RecordedRank& rank, const std::filesystem::path& file) {
  std::string text = to_kineto_json(rank);
  if (file.extension() == ".gz") {
    STEPCAST_ASSIGN(text, gzip_compress(text));
  }
  return write_file(file, text);
}

}  // namespace stepcast
