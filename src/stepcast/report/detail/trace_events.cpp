#include "stepcast/report/detail/trace_events.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"

namespace stepcast::detail {
namespace {

// The Trace Event Format: an object with a list of events; `ts` and `dur` in microseconds.
class JsonEvents final : public TraceEvents {
 public:
  JsonEvents() {
    json_.begin_object().field("displayTimeUnit", "ns");
    json_.key("traceEvents").begin_array();
  }

  void process(int pid, std::string_view name) override {
    metadata(pid, 0, "process_name", "name", name);
    metadata(pid, 0, "process_sort_index", "sort_index", pid);
  }

  void thread(int pid, int tid, std::string_view name, int order) override {
    metadata(pid, tid, "thread_name", "name", name);
    metadata(pid, tid, "thread_sort_index", "sort_index", order);
  }

  void slice(int pid, int tid, const TraceSlice& slice) override {
    json_.begin_object().field("ph", "X").field("pid", pid).field("tid", tid);
    time("ts", slice.start);
    time("dur", slice.end - slice.start);
    json_.field("name", slice.name).field("cat", slice.category);
    json_.key("args").begin_object();
    for (const TraceArg& arg : slice.args) {
      if (const auto* number = std::get_if<double>(&arg.value)) {
        json_.fixed_field(arg.key, *number, 3);
      } else if (const auto* whole = std::get_if<std::int64_t>(&arg.value)) {
        json_.field(arg.key, *whole);
      } else {
        json_.field(arg.key, std::get<std::string>(arg.value));
      }
    }
    json_.end_object();
    json_.end_object();
  }

  void arrow(const TraceArrow& arrow) override {
    const auto write = [&](std::string_view phase, const TraceArrow::End& end) {
      json_.begin_object().field("ph", phase).field("pid", end.pid).field("tid", end.tid);
      time("ts", end.at);
      json_.field("name", arrow.name).field("cat", "dependency").field("id", arrow.id);
      if (phase == "f") json_.field("bp", "e");
      json_.end_object();
    };
    write("s", arrow.from);
    write("f", arrow.to);
  }

  void counter(int pid, std::string_view name, Ns at, double value) override {
    json_.begin_object().field("ph", "C").field("pid", pid);
    time("ts", at);
    json_.field("name", name);
    json_.key("args").begin_object().fixed_field("value", value, 3).end_object();
    json_.end_object();
  }

  std::string finish() override {
    json_.end_array().end_object();
    return std::move(json_).text();
  }

 private:
  void metadata(int pid, int tid, std::string_view what, std::string_view key, const auto& value) {
    json_.begin_object().field("ph", "M").field("pid", pid).field("tid", tid).field("name", what);
    json_.key("args").begin_object().field(key, value).end_object();
    json_.end_object();
  }
  void time(std::string_view key, Ns at) { json_.fixed_field(key, static_cast<double>(at) * 1e-3, 3); }

  JsonWriter json_;
};

// One message of protobuf's wire format.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U);
    varint(value);
    return *this;
  }
  Message& fixed(std::uint32_t field, std::uint64_t value) {
    varint((std::uint64_t{field} << 3U) | 1U);
    for (int byte = 0; byte < 8; ++byte)
      bytes_ += static_cast<char>((value >> (8U * static_cast<unsigned>(byte))) & 0xffU);
    return *this;
  }
  Message& real(std::uint32_t field, double value) {
    return fixed(field, std::bit_cast<std::uint64_t>(value));
  }
  Message& text(std::uint32_t field, std::string_view value) {
    varint((std::uint64_t{field} << 3U) | 2U);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& value) { return text(field, value.bytes_); }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Numbers of fields in perfetto's protos/perfetto/trace: trace.proto, trace_packet.proto, track_event/track_descriptor.proto,
// process_descriptor.proto, thread_descriptor.proto, track_event.proto, debug_annotation.proto. They never change.
enum Field : std::uint32_t {
  kPacket = 1,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kTrackDescriptor = 60,
  kUuid = 1,
  kTrackName = 2,
  kProcess = 3,
  kThread = 4,
  kParentUuid = 5,
  kCounter = 8,
  kSiblingOrder = 12,
  kPid = 1,
  kProcessName = 6,
  kTid = 2,
  kThreadName = 5,
  kAnnotation = 4,
  kType = 9,
  kTrackUuid = 11,
  kCategories = 22,
  kName = 23,
  kDoubleCounterValue = 44,
  kFlowIds = 47,
  kTerminatingFlowIds = 48,
  kAnnotationName = 10,
  kAnnotationInt = 4,
  kAnnotationDouble = 5,
  kAnnotationText = 6,
};
enum EventType : std::uint64_t { kBegin = 1, kEnd = 2, kCounterValue = 4 };

// A packet per begin and end of a slice and per value of a counter. Arrows bind to slices, so packets of slices are written when
// all arrows are known.
class PacketEvents final : public TraceEvents {
 public:
  void process(int pid, std::string_view name) override {
    Message process;
    process.number(kPid, static_cast<std::uint64_t>(pid)).text(kProcessName, name);
    Message track;
    track.number(kUuid, uuid_of(pid, 0)).message(kProcess, process);
    describe(track);
  }

  void thread(int pid, int tid, std::string_view name, int order) override {
    // Not a ThreadDescriptor: lanes are tracks of their process, in the order given here.
    Message track;
    track.number(kUuid, uuid_of(pid, tid)).text(kTrackName, name).number(kParentUuid, uuid_of(pid, 0));
    track.number(kSiblingOrder, static_cast<std::uint64_t>(order));
    describe(track);
  }

  void slice(int pid, int tid, const TraceSlice& slice) override {
    Message event;
    event.number(kType, kBegin).number(kTrackUuid, uuid_of(pid, tid));
    event.text(kCategories, slice.category).text(kName, slice.name);
    for (const TraceArg& arg : slice.args) {
      Message annotation;
      annotation.text(kAnnotationName, arg.key);
      if (const auto* number = std::get_if<double>(&arg.value)) {
        annotation.real(kAnnotationDouble, *number);
      } else if (const auto* whole = std::get_if<std::int64_t>(&arg.value)) {
        annotation.number(kAnnotationInt, static_cast<std::uint64_t>(*whole));
      } else {
        annotation.text(kAnnotationText, std::get<std::string>(arg.value));
      }
      event.message(kAnnotation, annotation);
    }
    Track& track = tracks_[{pid, tid}];
    while (track.open != kNone && track.slices[track.open].end <= slice.start)
      track.open = track.slices[track.open].parent;
    track.slices.push_back({slice.start, slice.end, track.open, std::move(event)});
    track.open = track.slices.size() - 1;
  }

  void arrow(const TraceArrow& arrow) override {
    if (Open* from = innermost(arrow.from))
      if (Open* to = innermost(arrow.to)) {
        from->event.fixed(kFlowIds, arrow.id);
        to->event.fixed(kTerminatingFlowIds, arrow.id);
      }
  }

  void counter(int pid, std::string_view name, Ns at, double value) override {
    const auto [known, is_new] = counters_.try_emplace({pid, std::string{name}}, counters_.size());
    const std::uint64_t uuid = (std::uint64_t{1} << 62U) + known->second;
    if (is_new) {
      Message track;
      track.number(kUuid, uuid)
          .text(kTrackName, name)
          .number(kParentUuid, uuid_of(pid, 0))
          .message(kCounter, Message{});
      describe(track);
    }
    Message event;
    event.number(kType, kCounterValue).number(kTrackUuid, uuid).real(kDoubleCounterValue, value);
    write(at, event);
  }

  std::string finish() override {
    for (const auto& [name, track] : tracks_) {
      const auto end_of = [&, uuid = uuid_of(name.first, name.second)](Ns at) {
        Message event;
        event.number(kType, kEnd).number(kTrackUuid, uuid);
        write(at, event);
      };
      std::vector<Ns> open;  // ends of the slices around the next one
      for (const Open& slice : track.slices) {
        for (; !open.empty() && open.back() <= slice.start; open.pop_back()) end_of(open.back());
        write(slice.start, slice.event);
        open.push_back(slice.end);
      }
      for (; !open.empty(); open.pop_back()) end_of(open.back());
    }
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Open {
    Ns start, end;
    std::size_t parent;  // position in the track
    Message event;
  };
  struct Track {
    std::vector<Open> slices;
    std::size_t open = kNone;  // the last slice, until a later one begins
  };

  static std::uint64_t uuid_of(int pid, int tid) {
    return (static_cast<std::uint64_t>(pid) << 20U) + static_cast<std::uint64_t>(tid) + 1;
  }

  // The innermost slice of a thread around a moment; null: none.
  Open* innermost(const TraceArrow::End& end) {
    const auto found = tracks_.find({end.pid, end.tid});
    if (found == tracks_.end()) return nullptr;
    std::vector<Open>& slices = found->second.slices;
    const auto after = std::upper_bound(slices.begin(), slices.end(), end.at,
                                        [](Ns at, const Open& slice) { return at < slice.start; });
    if (after == slices.begin()) return nullptr;
    std::size_t at = static_cast<std::size_t>(after - slices.begin()) - 1;
    while (at != kNone && slices[at].end <= end.at) at = slices[at].parent;
    return at == kNone ? nullptr : &slices[at];
  }

  void packet(Message& content) {
    content.number(kSequenceId, 1);
    Message trace;
    trace.message(kPacket, content);
    bytes_ += std::move(trace).take();
  }
  void describe(const Message& track) {
    Message content;
    content.message(kTrackDescriptor, track);
    packet(content);
  }
  void write(Ns at, const Message& event) {
    Message content;
    content.number(kTimestamp, static_cast<std::uint64_t>(std::max<Ns>(0, at))).message(kTrackEvent, event);
    packet(content);
  }

  std::string bytes_;
  std::map<std::pair<int, int>, Track> tracks_;  // [process, thread]
  std::map<std::pair<int, std::string>, std::size_t> counters_;
};

}  // namespace

std::unique_ptr<TraceEvents> json_trace_events() { return std::make_unique<JsonEvents>(); }
std::unique_ptr<TraceEvents> perfetto_trace_events() { return std::make_unique<PacketEvents>(); }

Status write_events(const OutputFile& file, const std::function<void(TraceEvents&)>& add) {
  std::filesystem::path name = file.path();
  const bool is_packed = name.extension() == ".gz";
  if (is_packed) name.replace_extension();
  const auto events = name.extension() == ".pftrace" ? perfetto_trace_events() : json_trace_events();
  add(*events);
  std::string text = events->finish();
  if (is_packed) {
    STEPCAST_ASSIGN(text, gzip_compress(text));
  }
  return file.write(text);
}

}  // namespace stepcast::detail
