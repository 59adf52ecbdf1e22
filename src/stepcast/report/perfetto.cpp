#include "stepcast/report/perfetto.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"

namespace stepcast {
namespace {

// Times in integer nanoseconds. Viewers nest slices by comparing their times, so rounding must happen only
// once.
using Ns = std::int64_t;
Ns to_ns(double time_us) { return static_cast<Ns>(std::llround(time_us * 1e3)); }

// One slice of a thread.
struct Slice {
  Ns start = 0;
  Ns end = 0;
  std::string name;
  std::string category;
  std::size_t task = kNoTask;  // the task with the arguments to show; kNoTask: none
  double waited_us = -1;       // time that a synchronising call waited; negative: not such a call
};

// Writes the slices and arrows of one set of times (simulated or measured). `first_pid` and `pid_stride`
// interleave the processes of two sets.
class TimelineWriter {
 public:
  TimelineWriter(const FlatProgram& flat, const Costs& costs, const TaskTimes& times, JsonWriter& json,
                 std::string label, int first_pid, int pid_stride)
      : flat_(flat),
        program_(flat.program()),
        costs_(costs),
        times_(times),
        json_(json),
        label_(std::move(label)),
        first_pid_(first_pid),
        pid_stride_(pid_stride) {}

  // `flow` numbers the arrows of all writers of one document.
  void write(std::uint64_t& flow) {
    collect_collectives();
    for (std::size_t c = 0; c < program_.rank_classes().size(); ++c) write_rank(RankClassId{c}, flow);
  }

 private:
  // A task in a collective, its waiting and transfer, and the rank that arrived last.
  struct InCollective {
    std::size_t task = kNoTask;
    CollectiveId collective;
    CollectiveStretch stretch;
    RankClassId last;
  };

  int pid_of(RankClassId c) const { return first_pid_ + pid_stride_ * static_cast<int>(c.index()); }

  // Fills in in_collective_, sorted by task for find_collective().
  void collect_collectives() {
    in_collective_.resize(flat_.class_count());
    for (std::size_t i = 0; i < program_.collectives().size(); ++i) {
      const Collective& collective = program_.collectives()[i];
      const std::vector<CollectiveStretch> stretches = collective_stretches(flat_, times_, CollectiveId{i});
      std::size_t last = 0;
      for (std::size_t m = 1; m < stretches.size(); ++m)
        if (stretches[m].arrival_us > stretches[last].arrival_us) last = m;
      for (std::size_t m = 0; m < stretches.size(); ++m) {
        const CollectiveMember& member = collective.members[m];
        in_collective_[member.rank_class.index()].push_back({flat_.flat({.rank_class = member.rank_class,
                                                                         .rank = 0,
                                                                         .instance = member.instance,
                                                                         .task = member.task}),
                                                             CollectiveId{i}, stretches[m],
                                                             collective.members[last].rank_class});
      }
    }
    for (std::vector<InCollective>& of_class : in_collective_)
      std::ranges::sort(of_class, {}, &InCollective::task);
  }

  const InCollective* find_collective(RankClassId c, std::size_t task) const {
    const std::vector<InCollective>& of_class = in_collective_[c.index()];
    const auto found = std::lower_bound(of_class.begin(), of_class.end(), task,
                                        [](const InCollective& a, std::size_t t) { return a.task < t; });
    return found != of_class.end() && found->task == task ? &*found : nullptr;
  }

  // Writes a metadata event, such as the name of a process or thread.
  void metadata(int pid, int tid, std::string_view what, std::string_view key, const auto& value) {
    json_.begin_object().field("ph", "M").field("pid", pid).field("tid", tid).field("name", what);
    json_.key("args").begin_object().field(key, value).end_object();
    json_.end_object();
  }

  // Writes the process of a rank: names, slices of every lane, arrows.
  void write_rank(RankClassId c, std::uint64_t& flow) {
    const RankClass& rank_class = program_.rank_class(c);
    const int pid = pid_of(c);
    std::string name = rank_class.name;
    if (rank_class.multiplicity > 1) name += fmt::format(" (one of {})", rank_class.multiplicity);
    if (!label_.empty()) name += " " + label_;
    metadata(pid, 0, "process_name", "name", name);
    metadata(pid, 0, "process_sort_index", "sort_index", pid);
    for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
      const int tid = static_cast<int>(lane) + 1;
      const bool is_stream = rank_class.lanes[lane].kind == LaneKind::gpu_stream;
      metadata(pid, tid, "thread_name", "name", rank_class.lanes[lane].name);
      // GPU streams come below the CPU threads.
      metadata(pid, tid, "thread_sort_index", "sort_index", is_stream ? 1000 + tid : tid);
    }
    for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
      const auto lane_index = static_cast<std::uint16_t>(lane);
      std::vector<Slice> slices = rank_class.lanes[lane].kind == LaneKind::gpu_stream
                                      ? stream_slices(c, lane_index)
                                      : thread_slices(c, lane_index);
      // Parents before their children, since viewers derive the nesting from the order.
      std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
        return a.start != b.start ? a.start < b.start : a.end > b.end;
      });
      for (const Slice& slice : slices) write_slice(c, pid, static_cast<int>(lane) + 1, slice);
    }
    for (std::size_t task = 0; task < flat_.task_count(c); ++task) write_arrows(c, pid, task, flow);
  }

  // The name of a task; its kind if it has no name.
  std::string_view name_of(const TaskInfo& info) const {
    const std::string_view name = program_.names.text(info.name);
    return name.empty() ? to_string(info.kind) : name;
  }

  // The slices of a GPU stream, with waiting and transfer inside collectives.
  std::vector<Slice> stream_slices(RankClassId c, std::uint16_t lane) const {
    std::vector<Slice> slices;
    std::size_t previous = kNoTask;  // index of the last task's slice
    for (const std::size_t task : flat_.lane_tasks(c, lane)) {
      const Interval& at = times_.at(c, task);
      const TaskInfo& info = flat_.info(c, task);
      Slice slice{.start = to_ns(at.start_us),
                  .end = to_ns(at.end_us),
                  .name = std::string{name_of(info)},
                  .category = std::string{info.kind == TaskKind::kernel ? to_string(info.kernel_class)
                                                                        : to_string(info.kind)},
                  .task = task};
      // Recorded neighbours may overlap by rounding errors, which slices of one thread must not: the earlier
      // one is cut.
      for (std::size_t p = previous; p < slices.size(); ++p)
        slices[p].end = std::max(slices[p].start, std::min(slices[p].end, slice.start));
      previous = slices.size();
      slices.push_back(slice);
      const InCollective* meeting = find_collective(c, task);
      if (meeting == nullptr) continue;
      const Ns transfer = std::clamp(to_ns(meeting->stretch.transfer_start_us), slice.start, slice.end);
      if (transfer > slice.start) {
        slices.push_back({.start = slice.start,
                          .end = transfer,
                          .name = fmt::format("waiting for {}", program_.rank_class(meeting->last).name),
                          .category = "waiting"});
        slices.push_back({.start = transfer, .end = slice.end, .name = "transfer", .category = "transfer"});
      }
    }
    return slices;
  }

  // The slices of a CPU thread. Operators are rebuilt from the stacks of its tasks: an operator is open as
  // long as consecutive tasks have its frame in their stacks.
  std::vector<Slice> thread_slices(RankClassId c, std::uint16_t lane) const {
    struct Open {
      StackId frame;
      Ns start;
    };
    std::vector<Slice> slices;
    std::vector<Open> open;  // open operators, outermost first
    std::vector<StackId> frames;
    Ns last_end = 0;
    const auto close_down_to = [&](std::size_t depth) {
      for (; open.size() > depth; open.pop_back()) {
        slices.push_back({.start = open.back().start,
                          .end = last_end,
                          .name = std::string{program_.names.text(program_.stacks.name(open.back().frame))},
                          .category = "op"});
      }
    };
    std::size_t entered = kNoTask;  // synchronising call that has not returned yet
    for (const std::size_t task : flat_.lane_tasks(c, lane)) {
      const Interval& at = times_.at(c, task);
      const TaskInfo& info = flat_.info(c, task);
      const Ns start = to_ns(at.start_us);
      const Ns end = to_ns(at.end_us);
      // The frames of the task's stack, outermost first. Frames in common with the open operators stay open.
      frames.clear();
      for (StackId frame = info.stack; frame.valid(); frame = program_.stacks.parent(frame))
        frames.push_back(frame);
      std::reverse(frames.begin(), frames.end());
      std::size_t common = 0;
      while (common < frames.size() && common < open.size() && open[common].frame == frames[common]) ++common;
      close_down_to(common);
      for (std::size_t f = common; f < frames.size(); ++f) open.push_back({frames[f], start});
      last_end = std::max(last_end, end);

      const bool is_return = info.kind == TaskKind::sync_return && entered != kNoTask;
      // Segments of operators need no slice of their own: the operator's slice shows them.
      const bool shown_by_its_op = info.kind == TaskKind::cpu_segment && info.stack.valid();
      if (is_return) {
        const Interval& enter = times_.at(c, entered);
        slices.push_back({.start = to_ns(enter.start_us),
                          .end = end,
                          .name = std::string{name_of(flat_.info(c, entered))},
                          .category = "synchronization",
                          .task = task,
                          .waited_us = std::max(0.0, at.start_us - enter.end_us)});
      } else if (info.kind != TaskKind::sync_enter && !shown_by_its_op) {
        slices.push_back({.start = start,
                          .end = end,
                          .name = std::string{name_of(info)},
                          .category = std::string{to_string(info.kind)},
                          .task = task});
      }
      entered = info.kind == TaskKind::sync_enter ? task : kNoTask;
    }
    close_down_to(0);
    return slices;
  }

  // The stack as text: "outer > inner".
  std::string stack_text(StackId stack) const {
    std::vector<std::string_view> names;
    for (StackId frame = stack; frame.valid(); frame = program_.stacks.parent(frame))
      names.push_back(program_.names.text(program_.stacks.name(frame)));
    std::string text;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (!text.empty()) text += " > ";
      text += *name;
    }
    return text;
  }

  void write_time(std::string_view key, Ns time) {
    json_.fixed_field(key, static_cast<double>(time) * 1e-3, 3);
  }

  // Writes one complete event ("X") with start and duration.
  void write_slice(RankClassId c, int pid, int tid, const Slice& slice) {
    json_.begin_object().field("ph", "X").field("pid", pid).field("tid", tid);
    write_time("ts", slice.start);
    write_time("dur", slice.end - slice.start);
    json_.field("name", slice.name).field("cat", slice.category);
    if (slice.task != kNoTask) write_args(c, slice);
    json_.end_object();
  }

  // Writes the arguments that a viewer shows for a selected slice.
  void write_args(RankClassId c, const Slice& slice) {
    const TaskInfo& info = flat_.info(c, slice.task);
    json_.key("args").begin_object();
    if (info.stack.valid()) json_.field("op_stack", stack_text(info.stack));
    if (slice.waited_us >= 0) json_.fixed_field("waited_us", slice.waited_us, 3);
    if (const InCollective* meeting = find_collective(c, slice.task); meeting != nullptr) {
      const Collective& collective = program_.collectives()[meeting->collective.index()];
      json_.field("collective", to_string(collective.op));
      json_.field("number", meeting->collective.index());
      if (collective.message_bytes >= 0) json_.field("message_bytes", collective.message_bytes);
      json_.field("ranks", collective.members.size());
      json_.fixed_field("wait_us", meeting->stretch.wait_us(), 3);
      json_.fixed_field("transfer_us", meeting->stretch.transfer_us(), 3);
      json_.field("came_last", program_.rank_class(meeting->last).name);
    }
    json_.end_object();
  }

  // Arrows for the order on a stream would only clutter the picture, and recorded offsets have no cause.
  static bool is_shown(EdgeOrigin origin) {
    return origin != EdgeOrigin::stream_order && origin != EdgeOrigin::recorded_offset;
  }

  // Writes an arrow for each dependency of a task: a flow event that starts ("s") at the source and finishes
  // ("f") at the task.
  void write_arrows(RankClassId c, int pid, std::size_t task, std::uint64_t& flow) {
    flat_.for_each_source(c, task, costs_, [&](const FlatSource& source) {
      if (source.task == kNoTask || !is_shown(source.info.origin)) return;
      const Interval& from = times_.at(c, source.task);
      // A viewer attaches an arrow to the slice around its start, so it starts 1 ns before the slice ends.
      Ns leaves = to_ns(from.start_us);
      if (source.from_end) leaves = std::max(leaves, to_ns(from.end_us) - 1);
      const Ns arrives = std::max(leaves, to_ns(times_.at(c, task).start_us));
      std::string name{to_string(source.info.origin)};
      if (source.info.inferred) name += " (inferred)";
      ++flow;
      const auto end_of_arrow = [&](std::string_view phase, std::size_t of, Ns when) {
        json_.begin_object().field("ph", phase).field("pid", pid).field("tid", flat_.lane(c, of) + 1);
        write_time("ts", when);
        json_.field("name", name).field("cat", "dependency").field("id", flow);
        if (phase == "f") json_.field("bp", "e");
        json_.end_object();
      };
      end_of_arrow("s", source.task, leaves);
      end_of_arrow("f", task, arrives);
    });
  }

  const FlatProgram& flat_;
  const Program& program_;
  const Costs& costs_;
  const TaskTimes& times_;
  JsonWriter& json_;
  std::string label_;
  int first_pid_, pid_stride_;
  std::vector<std::vector<InCollective>> in_collective_;  // [class] sorted by task
};

}  // namespace

std::string to_perfetto(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                        const TaskTimes* measured) {
  JsonWriter json;
  json.begin_object().field("displayTimeUnit", "ns");
  json.key("traceEvents").begin_array();
  std::uint64_t flow = 0;
  if (measured == nullptr) {
    TimelineWriter{flat, costs, times, json, "", 1, 1}.write(flow);
  } else {
    TimelineWriter{flat, costs, *measured, json, "measured", 1, 2}.write(flow);
    TimelineWriter{flat, costs, times, json, "simulated", 2, 2}.write(flow);
  }
  json.end_array().end_object();
  return std::move(json).text();
}

Status write_perfetto(const OutputFile& file, const FlatProgram& flat, const Costs& costs,
                      const TaskTimes& times, const TaskTimes* measured) {
  std::string text = to_perfetto(flat, costs, times, measured);
  if (file.path().extension() == ".gz") {
    STEPCAST_ASSIGN(text, gzip_compress(text));
  }
  return file.write(text);
}

}  // namespace stepcast
