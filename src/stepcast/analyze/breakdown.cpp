// break_down() sweeps each rank in two passes. The first pass goes through the tasks of every lane
// (sweep_stream(), sweep_thread()): it sums what the lane does and records its activities as stretches of
// time. The second pass (sweep_rank()) goes through all stretches in the order of time and decides for every
// moment what the rank as a whole does, by the priorities of breakdown.h. Bodies (tasks that represent a pass
// of a pipeline stage) are not expanded: their finished breakdown is added.
#include "stepcast/analyze/breakdown.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "stepcast/analyze/body_profiles.h"
#include "stepcast/analyze/detail/interval_set.h"
#include "stepcast/analyze/detail/moment_sweep.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/program/stack_fold.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

using detail::Activity;
using detail::clip;
using detail::RunningStretch;
using detail::Stretch;

// Copies and fills of memory.
bool is_copy(TaskKind kind) { return kind == TaskKind::memcpy || kind == TaskKind::memset; }

// Whether a task on a stream is computation: a kernel that is not communication.
bool is_computation(const TaskInfo& info) {
  return info.kernel_class != KernelClass::communication && info.kind != TaskKind::collective &&
         info.kind != TaskKind::wait && !is_copy(info.kind);
}

// One task of a rank class that takes part in a collective.
struct Meeting {
  std::size_t task = 0;   // flat number
  bool receives = false;  // a send/receive with one other rank
  // A collective between the stages of a described step: early ranks wait for other pipeline stages.
  bool between_stages = false;
  double transfer_start_us = 0;  // when waiting ends and the transfer starts
};

// The value of Stretch::what for waiting that is charged to other pipeline stages.
constexpr std::size_t kForStages = 1;

// Whether a task is one in which the stages of a described step meet: the sum of the gradients of a tied
// embedding, or the norm of all gradients (a wait without length). Stages that arrive early wait until the
// pipeline has drained, so the time belongs to the pipeline and not to a slow rank.
bool is_between_stages(const Program& program, const TaskInfo& info) {
  const TaskWork* const work = info.work.valid() ? &program.works.of(info.work) : nullptr;
  if (work == nullptr) return false;
  if (const auto* sum = std::get_if<CollectiveWork>(work))
    return sum->group.valid() &&
           program.groups()[sum->group.index()].label == to_string(GroupKind::embedding);
  return std::holds_alternative<Waiting>(*work);
}

// The breakdown of one rank class. Use once: construct, then run().
class RankSweep {
 public:
  // `meetings`: the collectives of the class, sorted by task. `profile`: given if the class is a body; its
  // pieces and lanes are then written there.
  RankSweep(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId c,
            Interval window, double rank_start_us, std::span<const Meeting> meetings,
            BodyProfile* profile = nullptr)
      : flat_(flat),
        times_(times),
        costs_(costs),
        class_(c),
        window_(window),
        rank_start_us_(rank_start_us),
        meetings_(meetings),
        rank_class_(flat.program().rank_class(c)),
        of_class_(times.of(c)),
        profile_(profile),
        one_computes_(one_stream_computes()) {}

  RankBreakdown run() {
    result_.rank_class = class_;
    result_.window = window_;
    for (std::size_t lane = 0; lane < rank_class_.lanes.size(); ++lane) {
      const auto lane_index = static_cast<std::uint16_t>(lane);
      if (rank_class_.lanes[lane].kind == LaneKind::gpu_stream)
        sweep_stream(lane_index);
      else
        sweep_thread(lane_index);
    }
    sweep_rank();
    if (one_computes_) result_.class_us = result_.kernels_us;
    return std::move(result_);
  }

 private:
  // Whether at most one stream of the rank runs computation. Then kernels never share time, and consecutive
  // kernels without a gap can be merged into one stretch, which makes the sweep of moments shorter.
  bool one_stream_computes() const {
    std::vector<bool> seen(flat_.program().blocks().size()), computes(rank_class_.lanes.size());
    for (const BlockInstance& instance : rank_class_.instances) {
      if (instance.lanes.empty()) {  // all such instances run on the same streams
        if (seen[instance.block.index()]) continue;
        seen[instance.block.index()] = true;
      }
      const Block& block = flat_.program().block(instance.block);
      for (std::size_t t = 0; t < block.task_count(); ++t) {
        if (!is_computation(block.tasks()[t])) continue;
        const std::uint16_t lane = block.lane_codes()[t];
        computes[instance.lanes.empty() ? lane : instance.lanes[lane]] = true;
      }
    }
    std::size_t streams = 0;
    for (std::size_t lane = 0; lane < computes.size(); ++lane)
      if (computes[lane] && rank_class_.lanes[lane].kind == LaneKind::gpu_stream) ++streams;
    return streams <= 1;
  }

  // The cause of the idle time before a task.
  IdleCause cause_before(std::size_t task) const {
    return idle_cause_before(flat_, times_, costs_, class_, task, rank_start_us_);
  }

  // The same inside a body. Nothing if the task waits only for what the body as a whole waits for.
  std::optional<IdleCause> cause_in_body(std::size_t task) const {
    for (const double start = of_class_[task].start_us;;) {
      const Binding binding = binding_of(flat_, times_, costs_, class_, task, rank_start_us_);
      const std::size_t before = binding.source.task;
      if (binding.kind == Binding::Kind::rank_start || before == kNoTask) return std::nullopt;
      if (!waits_at(before, start)) return idle_cause(flat_, class_, task, binding);
      task = before;
    }
  }
  // Whether `task` is a waiting task that began at or after `us`.
  bool waits_at(std::size_t task, double us) const {
    return flat_.info(class_, task).kind == TaskKind::wait &&
           of_class_[task].start_us >= us - kTimeToleranceUs;
  }

  // Adds the idle time in front of a task. Before the first task of a lane inside a body, only the cause is
  // recorded: the task that represents the body adds that time where it runs.
  void add_idle_before(IdleTime& idle, std::size_t task, std::uint16_t lane, double free_from) {
    const double start_us = of_class_[task].start_us;
    if (profile_ != nullptr && !profile_->lanes[lane].seen) {
      BodyProfile::Lane& of_lane = profile_->lanes[lane];
      of_lane.seen = true;
      of_lane.busy.start_us = start_us;
      of_lane.before = cause_in_body(task);
      return;
    }
    if (start_us > free_from && start_us > window_.start_us && free_from < window_.end_us)
      add_idle(idle, cause_before(task), free_from, start_us);
  }
  // Adds the idle time after the last task of a lane, up to the end of the window. Inside a body, only the
  // end of the lane is recorded.
  void add_idle_behind(IdleTime& idle, std::uint16_t lane, std::size_t position, double free_from) {
    if (profile_ == nullptr) return add_idle(idle, IdleCause::rest, free_from, window_.end_us);
    profile_->lanes[lane].busy.end_us = free_from;
    profile_->lanes[lane].position = position;
  }

  // Adds the idle time of a lane before a body, and moves `free_from` to the end of the lane's part of the
  // body. Returns that part if the body lies in the window, otherwise a null pointer.
  const BodyProfile::Lane* pass_body(const BodyProfile& body, std::size_t task, std::uint16_t lane,
                                     IdleTime& idle, double& free_from) const {
    const Interval& at = of_class_[task];
    const BodyProfile::Lane& of_lane = body.lanes[lane];
    const double start_us = at.start_us + of_lane.busy.start_us;
    if (start_us > free_from && start_us > window_.start_us && free_from < window_.end_us)
      add_idle(idle, of_lane.before ? *of_lane.before : cause_before(task), free_from, start_us);
    free_from = std::max(free_from, at.start_us + of_lane.busy.end_us);
    // Bodies lie either inside or outside a window, except for rounding errors. The middle decides.
    const double middle_us = (at.start_us + at.end_us) / 2;
    return middle_us > window_.start_us && middle_us < window_.end_us ? &of_lane : nullptr;
  }
  // The tasks of a lane of a body that count in the window: those without length at the very start of it do
  // not.
  std::uint64_t tasks_in_window(const BodyProfile::Lane& lane, std::size_t task) const {
    return lane.tasks - (of_class_[task].start_us <= window_.start_us ? lane.at_start : 0);
  }

  // Adds the part of [from, to] that lies inside the window.
  void add_idle(IdleTime& idle, IdleCause cause, double from, double to) const {
    const double length = clip({from, to}, window_).length_us();
    if (length > 0) idle.add(cause, length);
  }

  // Whether an instance can be skipped, given the number of its last task on the lane: it ends before the
  // window begins, or the lane is busy beyond the end of the window.
  auto outside(const double& free_from) const {
    return [this, &free_from](std::size_t last) {
      return of_class_[last].end_us < window_.start_us || free_from > window_.end_us;
    };
  }

  // The first pass over one GPU stream.
  void sweep_stream(std::uint16_t lane) {
    StreamBreakdown stream;
    stream.lane = lane;
    stream.name = rank_class_.lanes[lane].name;
    stretches_.emplace_back();
    // Recorded neighbours may overlap by rounding errors. Each task counts only from where the lane is free,
    // so no time is counted twice.
    double free_from = window_.start_us;
    // The stretch that the next kernel can extend: the kernels before it, if they end at `free_from`. Else
    // null.
    Stretch* run = nullptr;
    flat_.for_each_on_lane(class_, lane, outside(free_from), [&](std::size_t task, const TaskInfo& info) {
      const Interval& at = of_class_[task];
      if (const BodyProfile* body = body_of(flat_, info); body != nullptr) {
        run = nullptr;
        add_body(stream, *body, task, free_from);
        return;
      }
      // Fast path for the common case: a kernel follows another without a gap. Same result as the code below.
      if (at.start_us == free_from && at.end_us > at.start_us && at.end_us <= window_.end_us &&
          profile_ == nullptr && is_computation(info)) {
        free_from = at.end_us;
        ++stream.tasks;
        if (run != nullptr) {
          stream.computation_us += at.length_us();
          stream.kernels_us[static_cast<std::size_t>(info.kernel_class)] += at.length_us();
          run->time.end_us = at.end_us;
          return;
        }
        add_computation(stream, info, task, at, true);
        if (one_computes_) run = &stretches_.back().back();
        return;
      }
      // A wait without length changes nothing but the number of tasks.
      if (info.kind == TaskKind::wait && at.start_us == free_from && at.end_us == free_from) {
        if (free_from > window_.start_us && free_from < window_.end_us) ++stream.tasks;
        return;
      }
      run = nullptr;
      add_idle_before(stream.idle, task, lane, free_from);
      const Interval own = clip({std::max(at.start_us, free_from), at.end_us}, window_);
      free_from = std::max(free_from, at.end_us);
      if (at.end_us < window_.start_us || at.start_us > window_.end_us) return;
      const bool touches = at.end_us > window_.start_us && at.start_us < window_.end_us;
      if (touches) ++stream.tasks;
      if (own.length_us() < 0) return;
      add_stretches(stream, info, task, own, at.start_us);
    });
    add_idle_behind(stream.idle, lane, result_.streams.size(), free_from);
    for (std::size_t k = 0; k < stream.kernels_us.size(); ++k) result_.kernels_us[k] += stream.kernels_us[k];
    result_.streams.push_back(std::move(stream));
  }

  // Adds the profile of a body to a stream. Only the lane of the representing task gets a stretch for the
  // second pass.
  void add_body(StreamBreakdown& stream, const BodyProfile& body, std::size_t task, double& free_from) {
    const BodyProfile::Lane* lane = pass_body(body, task, stream.lane, stream.idle, free_from);
    if (lane == nullptr) return;
    const StreamBreakdown& parts = body.parts.streams[lane->position];
    stream.tasks += tasks_in_window(*lane, task);
    stream.computation_us += parts.computation_us;
    stream.transfer_us += parts.transfer_us;
    for (std::size_t k = 0; k < parts.kernels_us.size(); ++k) stream.kernels_us[k] += parts.kernels_us[k];
    for (std::size_t k = 0; k < parts.idle.by_cause_us.size(); ++k)
      stream.idle.by_cause_us[k] += parts.idle.by_cause_us[k];
    if (flat_.lane(class_, task) != stream.lane) return;
    stretches_.back().push_back({.time = clip(of_class_[task], window_),
                                 .task = task,
                                 .what = static_cast<std::uint32_t>(flat_.bodies()->index_of(body)),
                                 .activity = Activity::body,
                                 .begins_task = true});
  }

  // Adds the time `own` of a kernel. Merges it with the stretch before it if only one stream computes.
  void add_computation(StreamBreakdown& stream, const TaskInfo& info, std::size_t task, Interval own,
                       bool begins_task) {
    const auto what = static_cast<std::uint32_t>(info.kernel_class);
    stream.computation_us += own.length_us();
    stream.kernels_us[what] += own.length_us();
    std::vector<Stretch>& stretches = stretches_.back();
    if (one_computes_ && !stretches.empty() && stretches.back().time.end_us == own.start_us &&
        stretches.back().activity == Activity::computation) {
      stretches.back().time.end_us = own.end_us;
      return;
    }
    stretches.push_back({.time = own,
                         .task = task,
                         .what = what,
                         .activity = Activity::computation,
                         .begins_task = begins_task});
  }

  // Adds what a task does in `own`, the part of its time that counts. `start_us`: when the task starts.
  void add_stretches(StreamBreakdown& stream, const TaskInfo& info, std::size_t task, Interval own,
                     double start_us) {
    const double us = own.length_us();
    std::vector<Stretch>& stretches = stretches_.back();
    const auto add = [&](Interval time, Activity activity, std::size_t what) {
      stretches.push_back({.time = time,
                           .task = task,
                           .what = static_cast<std::uint32_t>(what),
                           .activity = activity,
                           .begins_task = time.start_us == start_us});
    };
    const Program& program = flat_.program();
    if (info.kind == TaskKind::wait) {
      const HostWork* work = program.works.host(info.work);
      const bool between = work != nullptr && work->activity == HostWork::Activity::between_steps;
      if (between) between_steps_.push_back(own);
      if (us > 0) stream.idle.add(between ? IdleCause::between_steps : IdleCause::rest, us);
      // The part before the transfer is waiting: for the pipeline if the task is a receive or between stages,
      // else for the rank that arrives last.
    } else if (info.kind == TaskKind::collective) {
      const Meeting meeting = meeting_of(task, start_us);
      const bool receive = meeting.receives;
      const double transfer_start = std::clamp(meeting.transfer_start_us, own.start_us, own.end_us);
      const Interval wait{own.start_us, transfer_start}, transfer{transfer_start, own.end_us};
      if (wait.length_us() > 0) {
        add(wait, receive ? Activity::posted : Activity::waiting, meeting.between_stages ? kForStages : 0);
        stream.idle.add(receive || meeting.between_stages ? IdleCause::pipeline : IdleCause::other_rank,
                        wait.length_us());
      }
      add(transfer, Activity::transfer, group_of(info));
      stream.transfer_us += transfer.length_us();
    } else if (is_copy(info.kind)) {
      add(own, Activity::copy, 0);
      stream.memcpy_us += us;
    } else if (info.kernel_class == KernelClass::communication) {
      // A communication kernel outside of the program's collectives: waiting and transfer cannot be
      // separated, so the whole kernel counts as transfer.
      add(own, Activity::transfer, group_of(info));
      stream.transfer_us += us;
    } else {
      add_computation(stream, info, task, own, own.start_us == start_us);
    }
  }

  // The meeting of a task. A task outside of all collectives transfers from its start. Binary search in the
  // meetings.
  Meeting meeting_of(std::size_t task, double start_us) const {
    const auto found = std::lower_bound(meetings_.begin(), meetings_.end(), task,
                                        [](const Meeting& m, std::size_t t) { return m.task < t; });
    return found != meetings_.end() && found->task == task ? *found : Meeting{task, false, false, start_us};
  }

  // GroupId + 1 of a task's process group; 0 if it is unknown.
  std::size_t group_of(const TaskInfo& info) const {
    const CollectiveWork* work = flat_.program().works.collective(info.work);
    return work != nullptr && work->group.valid() ? work->group.index() + 1 : 0;
  }

  // The first pass over one CPU thread: busy time by outermost operator, and idle time by cause.
  void sweep_thread(std::uint16_t lane) {
    ThreadBreakdown thread;
    thread.lane = lane;
    thread.name = rank_class_.lanes[lane].name;
    std::map<std::string_view, OpTime> by_op;
    double free_from = window_.start_us;
    flat_.for_each_on_lane(class_, lane, outside(free_from), [&](std::size_t task, const TaskInfo& info) {
      const Interval& at = of_class_[task];
      if (const BodyProfile* body = body_of(flat_, info); body != nullptr) {
        add_body(thread, by_op, *body, task, free_from);
        return;
      }
      add_idle_before(thread.idle, task, lane, free_from);
      const Interval own = clip({std::max(at.start_us, free_from), at.end_us}, window_);
      free_from = std::max(free_from, at.end_us);
      if (own.length_us() <= 0) return;
      thread.busy_us += own.length_us();
      const HostWork* work = flat_.program().works.host(info.work);
      if (work != nullptr && work->activity == HostWork::Activity::between_steps)
        between_steps_.push_back(own);
      else
        work_of_threads_.push_back(own);
      OpTime& op = by_op[outermost_op(info.stack)];
      op.time_us += own.length_us();
      ++op.tasks;
    });
    add_idle_behind(thread.idle, lane, result_.threads.size(), free_from);
    for (auto& [name, op] : by_op) {
      op.name = name;
      thread.busy_by_op.push_back(std::move(op));
    }
    std::stable_sort(thread.busy_by_op.begin(), thread.busy_by_op.end(),
                     [](const OpTime& a, const OpTime& b) { return a.time_us > b.time_us; });
    result_.threads.push_back(std::move(thread));
  }

  // Adds the profile of a body to a thread.
  void add_body(ThreadBreakdown& thread, std::map<std::string_view, OpTime>& by_op, const BodyProfile& body,
                std::size_t task, double& free_from) {
    const BodyProfile::Lane* lane = pass_body(body, task, thread.lane, thread.idle, free_from);
    if (lane == nullptr) return;
    const ThreadBreakdown& parts = body.parts.threads[lane->position];
    const double start_us = of_class_[task].start_us;
    thread.busy_us += parts.busy_us;
    work_of_threads_.push_back({start_us + lane->busy.start_us, start_us + lane->busy.end_us});
    for (std::size_t k = 0; k < parts.idle.by_cause_us.size(); ++k)
      thread.idle.by_cause_us[k] += parts.idle.by_cause_us[k];
    for (const OpTime& of_body : parts.busy_by_op) {
      OpTime& op = by_op[of_body.name];
      op.time_us += of_body.time_us;
      op.tasks += of_body.tasks;
    }
  }

  // The outermost frame of a stack that is not the mark of a profiler step. Cached by stack.
  std::string_view outermost_op(StackId stack) {
    return outermost_ops_.of(stack, [&](std::string_view outer, StackId frame) {
      const std::string_view name = flat_.program().names.text(flat_.program().stacks.name(frame));
      return outer.empty() && !name.starts_with("ProfilerStep") ? name : outer;
    });
  }

  // The second pass: over all moments in which the set of running stretches does not change, and over the
  // gaps.
  void sweep_rank() {
    result_.exposed_by_group_us.assign(flat_.program().groups().size() + 1, 0.0);
    detail::sweep_moments(
        stretches_, window_,
        [&](Interval moment, std::span<const RunningStretch> running, const detail::ActivityCounts& count) {
          if (count[static_cast<std::size_t>(Activity::body)] > 0)
            add_body_moment(moment, running, count);
          else
            add_moment(moment.length_us(), running, count);
          if (profile_ != nullptr) add_piece(moment.end_us, running, count);
        },
        [&](Interval gap, const Stretch* next) { add_gap(gap, next); });
    result_.overlap_us = result_.transfer_us - result_.exposed_comm_us;
    result_.gpu_active_us = result_.computation_us + result_.exposed_comm_us + result_.exposed_memcpy_us;
  }

  // Appends a moment to the pieces of a body, or extends the last piece if it is the same.
  void add_piece(double end_us, std::span<const RunningStretch> running,
                 const detail::ActivityCounts& count) {
    BodyProfile::Piece piece{.end_us = end_us,
                             .computes = count[static_cast<std::size_t>(Activity::computation)] > 0,
                             .transfers = {}};
    for (const RunningStretch& r : running)
      if (r.stretch->activity == Activity::transfer) piece.transfers.push_back({r.stream, r.stretch->what});
    std::vector<BodyProfile::Piece>& pieces = profile_->pieces;
    if (!pieces.empty() && pieces.back().computes == piece.computes &&
        pieces.back().transfers == piece.transfers)
      pieces.back().end_us = end_us;
    else
      pieces.push_back(std::move(piece));
  }

  // Adds a moment in which a body runs. If nothing else runs and the moment covers at least half of the body,
  // the whole breakdown is added and the parts outside the moment are subtracted. Otherwise its pieces are
  // added one by one.
  void add_body_moment(Interval moment, std::span<const RunningStretch> running,
                       detail::ActivityCounts count) {
    const auto found = std::find_if(running.begin(), running.end(), [](const RunningStretch& r) {
      return r.stretch->activity == Activity::body;
    });
    const BodyProfile& body = (*flat_.bodies())[found->stretch->what];
    const double start_us = of_class_[found->stretch->task].start_us;
    const Interval own{moment.start_us - start_us, moment.end_us - start_us};
    others_.assign(running.begin(), running.end());
    others_.erase(others_.begin() + (found - running.begin()));
    --count[static_cast<std::size_t>(Activity::body)];
    // A posted receive does not count as something else: it only adds waiting time.
    if (others_.size() != count[static_cast<std::size_t>(Activity::posted)] ||
        own.length_us() < body.length_us() / 2) {
      add_pieces(body, own, 1, count);
      return;
    }
    others_.clear();
    const RankBreakdown& parts = body.parts;
    if (count[static_cast<std::size_t>(Activity::posted)] > 0) result_.collective_wait_us += body.length_us();
    result_.computation_us += parts.computation_us;
    result_.transfer_us += parts.transfer_us;
    result_.exposed_comm_us += parts.exposed_comm_us;
    for (std::size_t g = 0; g < parts.exposed_by_group_us.size(); ++g)
      result_.exposed_by_group_us[g] += parts.exposed_by_group_us[g];
    for (std::size_t s = 0; s < parts.streams.size(); ++s)
      result_.streams[s].exposed_comm_us += parts.streams[s].exposed_comm_us;
    add_pieces(body, {0, own.start_us}, -1, count);
    add_pieces(body, {own.end_us, body.length_us()}, -1, count);
  }

  // Adds the pieces of a body in `own`, overlapped with `others_`, multiplied by `times` (-1 subtracts them).
  void add_pieces(const BodyProfile& body, Interval own, double times, const detail::ActivityCounts& count) {
    const std::size_t n_others = others_.size();
    auto piece = std::lower_bound(body.pieces.begin(), body.pieces.end(), own.start_us,
                                  [](const BodyProfile::Piece& p, double us) { return p.end_us <= us; });
    for (double from = own.start_us; from < own.end_us && piece != body.pieces.end(); ++piece) {
      const bool is_last = piece + 1 == body.pieces.end();
      const double to = is_last ? own.end_us : std::min(own.end_us, piece->end_us);
      if (to <= from) continue;
      detail::ActivityCounts with_piece = count;
      if (piece->computes) ++with_piece[static_cast<std::size_t>(Activity::computation)];
      with_piece[static_cast<std::size_t>(Activity::transfer)] +=
          static_cast<std::uint32_t>(piece->transfers.size());
      in_piece_.clear();
      for (const BodyProfile::Transfer& transfer : piece->transfers)
        in_piece_.push_back({.time = {}, .what = transfer.group, .activity = Activity::transfer});
      for (std::size_t i = 0; i < in_piece_.size(); ++i)
        others_.push_back({piece->transfers[i].stream, &in_piece_[i]});
      add_moment(times * (to - from), others_, with_piece);
      others_.resize(n_others);
      from = to;
    }
  }

  // Adds `us` microseconds during which `running` runs, with its number of stretches by activity. The first
  // that applies decides the state of the rank: computation, transfer, copy, waiting.
  void add_moment(double us, std::span<const RunningStretch> running, const detail::ActivityCounts& count) {
    const auto n = [&](Activity activity) { return count[static_cast<std::size_t>(activity)]; };
    const std::size_t computing = n(Activity::computation), transferring = n(Activity::transfer);
    if (transferring > 0) result_.transfer_us += us;
    if (n(Activity::waiting) + n(Activity::posted) > 0) result_.collective_wait_us += us;
    if (computing > 0) {
      result_.computation_us += us;
      if (one_computes_) return;
      // Kernels that run at the same time share the time equally, so the classes sum to the computation.
      const double share = us / static_cast<double>(computing);
      for (const RunningStretch& r : running)
        if (r.stretch->activity == Activity::computation) result_.class_us[r.stretch->what] += share;
      return;
    }
    if (transferring > 0)
      result_.exposed_comm_us += us;
    else if (n(Activity::copy) > 0)
      result_.exposed_memcpy_us += us;
    else if (n(Activity::waiting) > 0)
      result_.idle.add(waits_for_stages(running) ? IdleCause::pipeline : IdleCause::other_rank, us);
    for (const RunningStretch& r : running) {
      if (r.stretch->activity == Activity::transfer) {
        result_.exposed_by_group_us[r.stretch->what] += us / static_cast<double>(transferring);
        result_.streams[r.stream].exposed_comm_us += us;
      } else if (r.stretch->activity == Activity::copy) {
        result_.streams[r.stream].exposed_memcpy_us += us;
      }
    }
  }

  // Whether some waiting in `running` is charged to other pipeline stages.
  static bool waits_for_stages(std::span<const RunningStretch> running) {
    return std::ranges::any_of(running, [](const RunningStretch& r) {
      return r.stretch->activity == Activity::waiting && r.stretch->what == kForStages;
    });
  }

  // Adds a gap in which nothing runs. `next` is the stretch that ends the gap; null at the end of the window.
  void add_gap(Interval gap, const Stretch* next) {
    // Bodies end where the next task starts, except for rounding errors.
    if (flat_.bodies() != nullptr && gap.length_us() < kTimeToleranceUs) return;
    if (next != nullptr) {
      // A stretch that continues a task is a posted receive, and its sender has arrived now: the rank waited
      // for a stage.
      const IdleCause cause = next->begins_task ? cause_before(next->task) : IdleCause::pipeline;
      Interval host{gap.start_us, gap.start_us};
      // Part of an unexplained gap is the host's if the launch call returned only after the gap had begun.
      if (cause == IdleCause::rest) host = before_launch(flat_, times_, costs_, class_, next->task, gap);
      if (host.length_us() > 0) result_.idle.add(IdleCause::cpu, host.length_us());
      result_.idle.add(cause, gap.end_us - host.end_us);
      return;
    }
    // After the last GPU work: time counts for the host until its threads end, except where it is between two
    // steps. What remains is rest.
    const detail::IntervalSet in_step = detail::IntervalSet{{gap}}.minus(detail::IntervalSet{between_steps_});
    double threads_end_us = gap.start_us;
    for (const Interval& work : work_of_threads_) threads_end_us = std::max(threads_end_us, work.end_us);
    const double rest_us = in_step.minus(detail::IntervalSet{{{gap.start_us, threads_end_us}}}).total_us();
    const double between_us = gap.length_us() - in_step.total_us();
    if (between_us > 0) result_.idle.add(IdleCause::between_steps, between_us);
    result_.idle.add(IdleCause::cpu, in_step.total_us() - rest_us);
    result_.idle.add(IdleCause::rest, rest_us);
  }

  const FlatProgram& flat_;
  const TaskTimes& times_;
  const Costs& costs_;
  RankClassId class_;
  StackFold<std::string_view> outermost_ops_{flat_.program().stacks};
  Interval window_;
  double rank_start_us_;
  std::span<const Meeting> meetings_;
  const RankClass& rank_class_;
  std::span<const Interval> of_class_;  // the times of the tasks of the class
  BodyProfile* profile_;
  bool one_computes_;  // at most one stream of the rank runs computation
  RankBreakdown result_;
  std::vector<std::vector<Stretch>> stretches_;  // [index into result_.streams]
  std::vector<Interval> between_steps_;          // when the CPU is between two steps
  std::vector<Interval> work_of_threads_;
  // Scratch memory of add_pieces(): the stretches that run together with a body, and the transfers of one
  // piece.
  std::vector<RunningStretch> others_;
  std::vector<Stretch> in_piece_;
};

}  // namespace

double IdleTime::total_us() const {
  double total = 0;
  for (const double time : by_cause_us) total += time;
  return total;
}

std::vector<RankBreakdown> break_down(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                      std::span<const Interval> windows,
                                      std::span<const double> rank_start_us,
                                      std::optional<RankClassId> only) {
  const Program& program = flat.program();
  std::vector<std::vector<Meeting>> meetings(flat.class_count());
  std::vector<CollectiveStretch> stretches;
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    const Collective& collective = program.collectives()[i];
    const auto is_asked = [&](const CollectiveMember& m) { return !only || m.rank_class == *only; };
    if (std::none_of(collective.members.begin(), collective.members.end(), is_asked)) continue;
    collective_stretches(flat, times, CollectiveId{i}, stretches);
    for (std::size_t m = 0; m < stretches.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const std::size_t task = flat.flat(
          {.rank_class = member.rank_class, .rank = 0, .instance = member.instance, .task = member.task});
      meetings[member.rank_class.index()].push_back(
          {task, collective.op == CollectiveOp::send_receive,
           is_between_stages(program, flat.info(member.rank_class, task)), stretches[m].transfer_start_us});
    }
  }
  for (std::vector<Meeting>& of_class : meetings) {
    std::sort(of_class.begin(), of_class.end(),
              [](const Meeting& a, const Meeting& b) { return a.task < b.task; });
  }
  const std::size_t first = only ? only->index() : 0;
  std::vector<RankBreakdown> ranks(only ? 1 : flat.class_count());
  // A stop request does not interrupt this: callers need the complete breakdown.
  const StopScope to_the_end{std::stop_token{}};
  const Status done = parallel_for(ranks.size(), flat.threads(), [&](std::size_t i) -> Status {
    const std::size_t c = first + i;
    ranks[i] = RankSweep{flat, times, costs, RankClassId{c}, windows[c], rank_start_us[c], meetings[c]}.run();
    return Ok{};
  });
  static_cast<void>(done);  // nothing above fails
  return ranks;
}

void break_down_body(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId body,
                     Interval window, double before_us, BodyProfile& profile) {
  profile.parts = RankSweep{flat, times, costs, body, window, before_us, {}, &profile}.run();
}

std::vector<Interval> whole_windows(const FlatProgram& flat, const TaskTimes& times,
                                    std::span<const double> rank_start_us) {
  std::vector<Interval> windows;
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const double start = rank_start_us[c];
    windows.push_back({start, std::max(start, times.end_us(RankClassId{c}, start))});
  }
  return windows;
}

}  // namespace stepcast
