#include "stepcast/report/perfetto.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/operation/operation.h"
#include "stepcast/report/detail/trace_events.h"

namespace stepcast {
namespace {

using detail::Ns;
using detail::TraceArg;
using detail::TraceEvents;

// Slices nest by their times, so times are whole numbers from here on.
Ns to_ns(double time_us) { return static_cast<Ns>(std::llround(time_us * 1e3)); }

// One slice of a thread.
struct Slice {
  Ns start = 0;
  Ns end = 0;
  std::string name;
  std::string category;
  std::size_t task = kNoTask;  // the task it shows; kNoTask: a group of tasks
  double waited_us = -1;       // of a synchronising call
  StackId frame{};             // of an open framework op
  std::int32_t micro_batch = -1;
};

std::string_view text_of(HostWork::Activity activity) {
  switch (activity) {
    case HostWork::Activity::overhead: return "overhead";
    case HostWork::Activity::kernel_launches: return "kernel launches";
    case HostWork::Activity::compiled_kernel_launches: return "kernel launches of compiled code";
    case HostWork::Activity::between_steps: return "between steps";
  }
  return "overhead";
}

std::string_view text_of(BlockRole role) {
  switch (role) {
    case BlockRole::forward: return "forward";
    case BlockRole::backward: return "backward";
    case BlockRole::weight_gradient: return "weight gradients";
    case BlockRole::update: return "update";
    case BlockRole::other: break;
  }
  return "pass";
}

// Slices of the passes and layers around the operations of one lane, as they are met from left to right. A pass is an instance
// with a micro-batch; a layer is a part of its block.
class PassSlices {
 public:
  PassSlices(const FlatProgram& flat, RankClassId c, std::vector<Slice>& slices)
      : flat_(flat), rank_class_(c), slices_(slices) {}

  // Whether `task` goes on with the pass before it.
  [[nodiscard]] bool is_inside(std::size_t task) const {
    return pass_ != kNone && flat_.ref(rank_class_, task).instance == instance_;
  }

  // The slice of a task was added last.
  void add(std::size_t task) {
    const Slice& last = slices_.back();
    const Ns start = last.start, end = last.end;
    const InstanceId instance = flat_.ref(rank_class_, task).instance;
    if (pass_ == kNone || instance != instance_) {
      layer_ = pass_ = kNone;
      instance_ = instance;
      const Program& program = flat_.program();
      const BlockInstance& of = program.rank_class(rank_class_).instances[instance.index()];
      if (of.micro_batch < 0) return;
      pass_ = slices_.size();
      slices_.push_back(
          {.start = start,
           .end = end,
           .name = fmt::format("{}, micro-batch {}", text_of(program.block(of.block).role()), of.micro_batch),
           .category = "pass",
           .micro_batch = of.micro_batch});
    }
    const NameId part = flat_.info(rank_class_, task).part;
    if (part != part_) layer_ = kNone;
    part_ = part;
    if (part.valid() && layer_ == kNone) {
      layer_ = slices_.size();
      slices_.push_back({.start = start,
                         .end = end,
                         .name = std::string{flat_.program().names.text(part)},
                         .category = "layer",
                         .micro_batch = slices_[pass_].micro_batch});
    }
    for (const std::size_t around : {pass_, layer_})
      if (around != kNone) slices_[around].end = std::max(slices_[around].end, end);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const FlatProgram& flat_;
  RankClassId rank_class_;
  std::vector<Slice>& slices_;
  InstanceId instance_{};
  NameId part_{};
  std::size_t pass_ = kNone, layer_ = kNone;
};

// Writes the slices and arrows of one set of times (simulated or measured). `first_pid` and `pid_stride`
// interleave the processes of two sets.
class TimelineWriter {
 public:
  TimelineWriter(const TimelineInput& input, const TaskTimes& times, TraceEvents& events, std::string label,
                 int first_pid, int pid_stride)
      : input_(input),
        flat_(input.flat),
        program_(flat_.program()),
        times_(times),
        events_(events),
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

  void write_rank(RankClassId c, std::uint64_t& flow) {
    const RankClass& rank_class = program_.rank_class(c);
    const int pid = pid_of(c);
    std::string name = rank_class.name;
    if (rank_class.multiplicity > 1) name += fmt::format(" (one of {})", rank_class.multiplicity);
    if (!label_.empty()) name += " " + label_;
    events_.process(pid, name);
    for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
      const int tid = static_cast<int>(lane) + 1;
      const bool is_stream = rank_class.lanes[lane].kind == LaneKind::gpu_stream;
      events_.thread(pid, tid, rank_class.lanes[lane].name, is_stream ? 1000 + tid : tid);
    }
    for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
      const auto lane_index = static_cast<std::uint16_t>(lane);
      std::vector<Slice> slices = rank_class.lanes[lane].kind == LaneKind::gpu_stream
                                      ? stream_slices(c, lane_index)
                                      : thread_slices(c, lane_index);
      std::erase_if(slices, [](const Slice& slice) { return slice.end <= slice.start; });
      // Parents before children: the reader builds the nesting from the order.
      std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
        if (a.start != b.start) return a.start < b.start;
        if (a.end != b.end) return a.end > b.end;
        return depth_of(a) < depth_of(b);
      });
      for (const Slice& slice : slices) write_slice(c, pid, static_cast<int>(lane) + 1, slice);
    }
    for (std::size_t task = 0; task < flat_.task_count(c); ++task) write_arrows(c, pid, task, flow);
    write_rates(c, pid);
    write_memory(c, pid);
  }

  // Of slices at the same times.
  static int depth_of(const Slice& slice) {
    return slice.category == "pass" ? 0 : slice.category == "layer" ? 1 : slice.category == "op" ? 2 : 3;
  }

  // The name of a task; its kind if it has no name.
  std::string_view name_of(const TaskInfo& info) const {
    const std::string_view name = program_.names.text(info.name);
    return name.empty() ? to_string(info.kind) : name;
  }

  // The slices of a GPU stream, with waiting and transfer inside collectives.
  std::vector<Slice> stream_slices(RankClassId c, std::uint16_t lane) const {
    std::vector<Slice> slices;
    PassSlices passes{flat_, c, slices};
    std::size_t previous = kNoTask;  // position of the last whole task in slices
    Ns free_from = 0;                // the end of the task before
    for (const std::size_t task : flat_.lane_tasks(c, lane)) {
      const Interval& at = times_.at(c, task);
      const TaskInfo& info = flat_.info(c, task);
      const bool waits = info.kind == TaskKind::wait;
      Slice slice{.start = to_ns(at.start_us),
                  .end = to_ns(at.end_us),
                  .name = std::string{name_of(info)},
                  .category = std::string{info.kind == TaskKind::kernel ? to_string(info.kernel_class)
                                                                        : to_string(info.kind)},
                  .task = task};
      // A wait takes no time of its own: it ends when the last of its sources is there.
      if (waits) slice.start = std::min(slice.start, free_from);
      free_from = std::max(free_from, slice.end);
      // Recorded neighbours may overlap by rounding; slices of one thread may not.
      for (std::size_t p = previous; p < slices.size(); ++p)
        slices[p].end = std::max(slices[p].start, std::min(slices[p].end, slice.start));
      previous = slices.size();
      slices.push_back(slice);
      // The wait for a pass to begin is not a part of it.
      if (!waits || passes.is_inside(task)) passes.add(task);
      const InCollective* meeting = find_collective(c, task);
      if (meeting == nullptr) continue;
      const Ns transfer = std::clamp(to_ns(meeting->stretch.transfer_start_us), slice.start, slice.end);
      if (transfer > slice.start) {
        slices.push_back({.start = slice.start,
                          .end = transfer,
                          .name = fmt::format("waiting for {}", program_.rank_class(meeting->last).name),
                          .category = "waiting",
                          .task = task});
        slices.push_back(
            {.start = transfer, .end = slice.end, .name = "transfer", .category = "transfer", .task = task});
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
                          .category = "op",
                          .frame = open.back().frame});
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

  void write_slice(RankClassId c, int pid, int tid, const Slice& slice) {
    events_.slice(pid, tid,
                  {.start = slice.start,
                   .end = slice.end,
                   .name = slice.name,
                   .category = slice.category,
                   .args = args_of(c, slice)});
  }

  std::vector<TraceArg> args_of(RankClassId c, const Slice& slice) const {
    std::vector<TraceArg> args;
    if (slice.micro_batch >= 0) args.push_back({"micro_batch", std::int64_t{slice.micro_batch}});
    if (slice.frame.valid()) args.push_back({"op_stack", stack_text(slice.frame)});
    if (slice.task == kNoTask) return args;
    const TaskInfo& info = flat_.info(c, slice.task);
    args.push_back({"kind", std::string{to_string(info.kind)}});
    if (info.part.valid()) args.push_back({"part", std::string{program_.names.text(info.part)}});
    if (info.stack.valid()) args.push_back({"op_stack", stack_text(info.stack)});
    if (slice.waited_us >= 0) args.push_back({"waited_us", slice.waited_us});
    if (info.kind == TaskKind::wait) add_cause(c, slice.task, args);
    const InCollective* meeting = find_collective(c, slice.task);
    if (meeting != nullptr) add_meeting(*meeting, args);
    add_work(info, meeting != nullptr, args);
    add_price(c, slice.task, args);
    return args;
  }

  void add_meeting(const InCollective& meeting, std::vector<TraceArg>& args) const {
    const Collective& collective = program_.collectives()[meeting.collective.index()];
    args.push_back({"collective", std::string{to_string(collective.op)}});
    args.push_back({"number", static_cast<std::int64_t>(meeting.collective.index())});
    if (collective.message_bytes >= 0)
      args.push_back({"message_bytes", static_cast<std::int64_t>(std::llround(collective.message_bytes))});
    args.push_back({"ranks", static_cast<std::int64_t>(collective.members.size())});
    args.push_back({"wait_us", meeting.stretch.wait_us()});
    args.push_back({"transfer_us", meeting.stretch.transfer_us()});
    args.push_back({"came_last", program_.rank_class(meeting.last).name});
  }

  // The operation with its shapes, or the message and its group: of one execution. `times`: how often the task executes it; a
  // slow GPU counts as more.
  void add_work(const TaskInfo& info, bool is_collective, std::vector<TraceArg>& args) const {
    if (const Operation* operation = program_.works.operation(info.work)) {
      const Work work = work_of(*operation);
      args.push_back({"operation", describe(*operation)});
      args.push_back({"flops", work.flops.value()});
      args.push_back({"bytes", work.bytes().value()});
    } else if (const CollectiveWork* transfer = program_.works.collective(info.work)) {
      if (!is_collective) {
        args.push_back({"collective", std::string{to_string(transfer->op)}});
        args.push_back({"message_bytes", transfer->message.value()});
      }
      if (transfer->group.valid())
        args.push_back({"group", program_.groups()[transfer->group.index()].label});
    } else if (const HostWork* host = program_.works.host(info.work)) {
      args.push_back({"activity", std::string{text_of(host->activity)}});
    }
    if (info.work.valid() && info.work_times != 1) args.push_back({"times", info.work_times});
  }

  // What the duration rests on, and its band.
  void add_price(RankClassId c, std::size_t task, std::vector<TraceArg>& args) const {
    const TaskInfo& info = flat_.info(c, task);
    if (input_.prices == nullptr || info.kind == TaskKind::wait) return;
    const Estimate estimate = input_.prices->estimate(info, flat_.duration_us(c, task, input_.costs));
    args.push_back({"source", std::string{to_string(estimate.source)}});
    args.push_back({"p10_us", estimate.p10.value()});
    args.push_back({"p90_us", estimate.p90.value()});
  }

  // The last of the tasks that a wait waits for.
  void add_cause(RankClassId c, std::size_t task, std::vector<TraceArg>& args) const {
    double latest_us = -1;
    std::string_view cause;
    flat_.for_each_source(c, task, input_.costs, [&](const FlatSource& source) {
      if (source.task == kNoTask) return;
      const Interval& from = times_.at(c, source.task);
      const double there_us = (source.from_end ? from.end_us : from.start_us) + source.delay_us;
      if (there_us <= latest_us) return;
      latest_us = there_us;
      cause = name_of(flat_.info(c, source.task));
    });
    if (!cause.empty()) args.push_back({"waits_for", std::string{cause}});
  }

  // "transfers GB/s": the bytes of all messages under way over the time of each.
  void write_rates(RankClassId c, int pid) {
    std::vector<std::pair<Ns, double>> changes;  // at a moment, GB/s more
    for (std::size_t task = 0; task < flat_.task_count(c); ++task) {
      const TaskInfo& info = flat_.info(c, task);
      const CollectiveWork* transfer = program_.works.collective(info.work);
      const InCollective* meeting = find_collective(c, task);
      double bytes = transfer != nullptr ? info.work_times * transfer->message.value() : 0;
      Ns start = to_ns(times_.at(c, task).start_us);
      const Ns end = to_ns(times_.at(c, task).end_us);
      if (meeting != nullptr) {
        start = std::clamp(to_ns(meeting->stretch.transfer_start_us), start, end);
        bytes = std::max(bytes, program_.collectives()[meeting->collective.index()].message_bytes);
      }
      if (bytes <= 0 || end <= start) continue;
      const double rate = bytes / static_cast<double>(end - start);
      changes.emplace_back(start, rate);
      changes.emplace_back(end, -rate);
    }
    write_sums(pid, "transfers GB/s", changes);
  }

  // "memory GiB": what stays over the step, and activations from the forward pass of a micro-batch to the end of its backward.
  void write_memory(RankClassId c, int pid) {
    if (c.index() >= input_.memory.size()) return;
    const RankClass& rank_class = program_.rank_class(c);
    std::vector<std::pair<Ns, double>> passes;  // at a moment, so many passes more
    std::size_t first = 0;
    for (const BlockInstance& instance : rank_class.instances) {
      const Block& block = program_.block(instance.block);
      const std::size_t end = first + block.task_count();
      const bool is_forward = block.role() == BlockRole::forward;
      if (is_forward || block.role() == BlockRole::backward) {
        Ns from = std::numeric_limits<Ns>::max(), until = 0;
        for (std::size_t task = first; task < end; ++task) {
          if (flat_.lane(c, task) != 0) continue;  // of computation
          from = std::min(from, to_ns(times_.at(c, task).start_us));
          until = std::max(until, to_ns(times_.at(c, task).end_us));
        }
        passes.emplace_back(is_forward ? from : until, is_forward ? 1 : -1);
      }
      first = end;
    }
    std::ranges::sort(passes);
    double now = 0, most = 0;
    for (const auto& [at, change] : passes) most = std::max(most, now += change);
    const TimelineMemory& memory = input_.memory[c.index()];
    std::vector<std::pair<Ns, double>> changes{{0, memory.kept_bytes / kGiB}};
    for (const auto& [at, change] : passes)
      changes.emplace_back(at, change * memory.activations_bytes / std::max(most, 1.0) / kGiB);
    write_sums(pid, "memory GiB", changes);
  }

  // A counter of the sum of all changes so far.
  void write_sums(int pid, std::string_view name, std::vector<std::pair<Ns, double>>& changes) {
    std::ranges::stable_sort(changes, {}, &std::pair<Ns, double>::first);
    double sum = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      sum += changes[i].second;
      if (i + 1 == changes.size() || changes[i + 1].first != changes[i].first)
        events_.counter(pid, name, changes[i].first, std::max(0.0, sum));
    }
  }

  // Arrows for the order on a stream would only clutter the picture, and recorded offsets have no cause.
  static bool is_shown(EdgeOrigin origin) {
    return origin != EdgeOrigin::stream_order && origin != EdgeOrigin::recorded_offset;
  }

  // Writes an arrow for each dependency of a task: a flow event that starts ("s") at the source and finishes
  // ("f") at the task.
  void write_arrows(RankClassId c, int pid, std::size_t task, std::uint64_t& flow) {
    flat_.for_each_source(c, task, input_.costs, [&](const FlatSource& source) {
      if (source.task == kNoTask || !is_shown(source.info.origin)) return;
      const Interval& from = times_.at(c, source.task);
      // A viewer attaches an arrow to the slice around its start, so it starts 1 ns before the slice ends.
      Ns leaves = to_ns(from.start_us);
      if (source.from_end) leaves = std::max(leaves, to_ns(from.end_us) - 1);
      const Ns arrives = std::max(leaves, to_ns(times_.at(c, task).start_us));
      std::string name{to_string(source.info.origin)};
      if (source.info.inferred) name += " (inferred)";
      events_.arrow({.id = ++flow,
                     .name = std::move(name),
                     .from = {pid, flat_.lane(c, source.task) + 1, leaves},
                     .to = {pid, flat_.lane(c, task) + 1, arrives}});
    });
  }

  const TimelineInput& input_;
  const FlatProgram& flat_;
  const Program& program_;
  const TaskTimes& times_;
  TraceEvents& events_;
  std::string label_;
  int first_pid_, pid_stride_;
  std::vector<std::vector<InCollective>> in_collective_;  // [class] sorted by task
};

}  // namespace

namespace {

void add_timelines(const TimelineInput& input, TraceEvents& events) {
  std::uint64_t flow = 0;
  if (input.measured == nullptr) {
    TimelineWriter{input, input.times, events, "", 1, 1}.write(flow);
  } else {
    TimelineWriter{input, *input.measured, events, "measured", 1, 2}.write(flow);
    TimelineWriter{input, input.times, events, "simulated", 2, 2}.write(flow);
  }
}

}  // namespace

std::string to_perfetto(const TimelineInput& input) {
  const auto events = detail::json_trace_events();
  add_timelines(input, *events);
  return events->finish();
}

Status write_perfetto(const OutputFile& file, const TimelineInput& input) {
  return detail::write_events(file, [&](TraceEvents& events) { add_timelines(input, events); });
}

}  // namespace stepcast
