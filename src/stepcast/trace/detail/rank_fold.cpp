// Sums up the events of a trace without keeping them, so that `stepcast inspect` can read traces of any size.
// Links between events (launches, operators by id) are counted with tables of the ids seen so far.
#include "stepcast/trace/detail/rank_fold.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "stepcast/operation/kernel_class.h"
#include "stepcast/trace/trace_index.h"

namespace stepcast::detail {
namespace {

// Number of recent calls, and of recent GPU work, in which a launch inside a step is searched.
constexpr std::size_t kMostLatest = std::size_t{1} << 14U;  // calls, and work
// Number of recent step marks that are compared with a launch.
constexpr std::size_t kMostMarks = 64;
constexpr auto kLaunchTolerance = Nanoseconds{static_cast<std::int64_t>(kClockToleranceUs * 1e3)};

}  // namespace

void LinkCount::use(std::int64_t id) {
  const auto at = defined_.find(id >> kShift);
  if (at != defined_.end() && at->second.test(static_cast<std::size_t>(id & kMask))) {
    ++found_;
    return;
  }
  waiting_.push_back(id);
  if (waiting_.size() >= settle_at_) settle();
}

void LinkCount::settle() {
  std::vector<std::int64_t> waiting;
  waiting.swap(waiting_);
  settle_at_ = std::numeric_limits<std::size_t>::max();
  for (const std::int64_t id : waiting) use(id);
  settle_at_ = std::max(std::size_t{1} << 16U, 2 * waiting_.size());
}

std::size_t LinkCount::count() {
  settle();
  return found_;
}

// With `bounded`, the older half of the stretches is summed and dropped if they do not merge. Later stretches
// in the dropped range are refused.
bool BusyTime::add(Nanoseconds start, Nanoseconds end, bool bounded) {
  if (end <= start) return true;
  if (start < settled_until_) return false;
  if (!stretches_.empty() && start >= stretches_.back().start && start <= stretches_.back().end) {
    stretches_.back().end = std::max(stretches_.back().end, end);
    return true;
  }
  stretches_.push_back({start, end});
  if (stretches_.size() < unite_at_) return true;
  unite();
  if (stretches_.size() < unite_at_ / 2) return true;
  if (!bounded) {
    unite_at_ *= 2;
    return true;
  }
  const auto half = stretches_.begin() + static_cast<std::ptrdiff_t>(stretches_.size() / 2);
  for (auto s = stretches_.begin(); s != half; ++s) settled_ += s->end - s->start;
  settled_until_ = std::prev(half)->end;
  stretches_.erase(stretches_.begin(), half);
  return true;
}

void BusyTime::unite() {
  std::ranges::sort(stretches_, {}, &Stretch::start);
  std::size_t n = 0;
  for (const Stretch& s : stretches_) {
    if (n > 0 && s.start <= stretches_[n - 1].end)
      stretches_[n - 1].end = std::max(stretches_[n - 1].end, s.end);
    else
      stretches_[n++] = s;
  }
  stretches_.resize(n);
}

Nanoseconds BusyTime::total() {
  unite();
  Nanoseconds sum = settled_;
  for (const Stretch& s : stretches_) sum += s.end - s.start;
  return sum;
}

// Records that a call launched work, and whether that was inside of a step. Uses the same rule as a replay:
// clocks of whole microseconds can show work slightly before its launch.
void RankFold::look_for_launch(std::int64_t correlation, Nanoseconds start, const Starts& others,
                               Starts& own) {
  if (launches_in_a_step_ || correlation < 0) return;
  const auto other = others.find(correlation);
  if (other == others.end()) {
    if (own.size() >= kMostLatest) own.clear();
    own.emplace(correlation, start);
    return;
  }
  const bool is_call = &own == &latest_calls_;
  const Nanoseconds call = is_call ? start : other->second, work = is_call ? other->second : start;
  if (work + kLaunchTolerance < call) return;
  const std::span<const Step> known{steps_};
  const auto of_call = [&](const Step& step) {
    return call >= step.start && call < step.start + step.duration;
  };
  launches_in_a_step_ = std::ranges::any_of(known.last(std::min(known.size(), kMostMarks)), of_call);
  if (launching_.size() < kMostLatest) launching_.push_back(call);
}

RankFold::Thread& RankFold::thread_of(ThreadId id, Nanoseconds start, Nanoseconds end) {
  if (threads_.size() <= id.index()) threads_.resize(id.index() + 1);
  Thread& thread = threads_[id.index()];
  thread.first = std::min(thread.first, start);
  thread.last = std::max(thread.last, end);
  return thread;
}

// Facts about a name, computed once.
RankFold::Name& RankFold::look_up(NameId name, const StringTable& names) {
  while (names_.size() <= name.index())
    names_.push_back({.is_record = names.text(NameId{names_.size()}) == "record_param_comms"});
  return names_[name.index()];
}

// Counts per thread, since threads of GPU rows are subtracted at the end.
void RankFold::add(const CpuOp& op, const StringTable& names) {
  if (!first_op_) first_op_ = op;
  Thread& thread = thread_of(op.thread, op.start, op.end());
  if (look_up(op.name, names).is_record) {
    ++thread.records;
    if (op.collective >= 0) ++thread.records_with_metadata;
  }
  if (op.external_id != -1) operators_.define(op.external_id);
  switch (op.kind) {
    case CpuOp::Kind::op: ++thread.ops; break;
    case CpuOp::Kind::annotation: ++thread.annotations; break;
    case CpuOp::Kind::step:
      ++thread.steps;
      if (const auto number = profiler_step_number(names.text(op.name)))
        steps_.push_back({*number, op.start, op.duration, op.thread});
      break;
  }
}

void RankFold::add(const RuntimeCall& call, const StringTable&) {
  ++thread_of(call.thread, call.start, call.end()).calls;
  ++s_.runtime_calls;
  if (call.correlation == -1) return;
  launches_.define(call.correlation);
  look_for_launch(call.correlation, call.start, latest_work_, latest_calls_);
}

// Kernel classes are computed once per name.
void RankFold::add(const GpuOp& op, const StringTable& names) {
  ++s_.gpu_events;
  first_work_ = std::min(first_work_, op.start);
  last_work_ = std::max(last_work_, op.end());
  if (op.correlation != -1) launches_.use(op.correlation);
  if (op.external_id != -1) {
    ++with_external_id_;
    if (op.external_id == op.correlation)
      ++with_correlation_as_id_;
    else
      operators_.use(op.external_id);
  }
  look_for_launch(op.correlation, op.start, latest_calls_, latest_work_);
  Stream& stream = streams_[{op.device, op.stream}];
  if (!stream.busy.add(op.start, op.end(), bounded_)) out_of_order_ = true;
  if (op.kind != GpuOp::Kind::kernel) {
    ++stream.counts.copies;
    ++(op.kind == GpuOp::Kind::memcpy ? s_.copies : s_.fills);
    return;
  }
  ++s_.kernels;
  ++stream.counts.kernels;
  KernelClass& kernel_class = look_up(op.name, names).kernel_class;
  if (kernel_class == KernelClass::none) kernel_class = classify_kernel(names.text(op.name));
  kernel_time_[static_cast<std::size_t>(kernel_class)] += op.duration;
  if (kernel_class == KernelClass::communication) {
    ++stream.counts.communication_kernels;
    ++s_.communication_kernels;
    if (op.collective >= 0) ++s_.communication_kernels_with_metadata;
  }
}

void RankFold::add(const AllocatorState& state, const StringTable&) {
  ++s_.allocator_totals;
  if (!s_.memory) s_.memory.emplace();
  s_.memory->allocated_bytes = std::max(s_.memory->allocated_bytes, state.allocated_bytes);
  s_.memory->reserved_bytes = std::max(s_.memory->reserved_bytes, state.reserved_bytes);
}

std::size_t RankFold::rows_of(ThreadId thread) const {
  if (thread.index() >= threads_.size()) return 0;
  const Thread& t = threads_[thread.index()];
  return t.ops + t.annotations + t.steps;
}

// Maps threads to their final numbers and fills the summary.
void RankFold::finish(std::span<const ThreadId> renamed, std::size_t n_threads, Nanoseconds base_time) {
  Nanoseconds first = first_work_, last = last_work_;
  s_.threads.resize(n_threads);
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (!renamed[t].valid()) continue;
    const Thread& from = threads_[t];
    s_.threads[renamed[t].index()] = {from.ops, from.annotations + from.steps, from.calls};
    s_.ops += from.ops;
    s_.annotations += from.annotations;
    s_.collective_records += from.records;
    s_.collective_records_with_metadata += from.records_with_metadata;
    first = std::min(first, from.first);
    last = std::max(last, from.last);
  }
  if (first <= last) {
    s_.first_start = first + base_time;
    s_.span = to_microseconds(last + base_time) - to_microseconds(s_.first_start);
  }
  std::erase_if(steps_, [&](const Step& step) { return !renamed[step.thread.index()].valid(); });
  std::ranges::stable_sort(steps_, [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  for (const Nanoseconds call : launching_) {
    const auto behind = std::ranges::upper_bound(steps_, call, {}, &Step::start);
    launches_in_a_step_ =
        launches_in_a_step_ || steps_.empty() ||
        (behind != steps_.begin() && call < std::prev(behind)->start + std::prev(behind)->duration);
  }
  for (const Step& step : steps_) {
    s_.steps.push_back({step.number, to_microseconds(step.start - first), to_microseconds(step.duration),
                        renamed[step.thread.index()]});
  }
  for (auto& [row, stream] : streams_) {
    std::tie(stream.counts.device, stream.counts.stream) = row;
    stream.counts.busy = to_microseconds(stream.busy.total());
    s_.streams.push_back(stream.counts);
  }
  for (std::size_t c = 0; c < kernel_time_.size(); ++c) s_.kernel_time[c] = to_microseconds(kernel_time_[c]);
  s_.gpu_events_with_launch = launches_.count();
  s_.external_id = external_id_meaning(with_external_id_, with_correlation_as_id_, operators_.count());
}

std::vector<StepStretch> RankFold::steps() const {
  std::vector<StepStretch> all;
  for (const Step& step : steps_)
    if (step.duration > Nanoseconds{0})
      all.push_back({step.number, step.start.count(), (step.start + step.duration).count()});
  return all;
}

ExternalIdMeaning external_id_meaning(std::size_t with_id, std::size_t is_correlation, std::size_t names_op) {
  if (with_id == 0) return ExternalIdMeaning::absent;
  // Ids are small numbers in both number spaces and can coincide by chance, so the rule is what nearly all
  // events do.
  if (is_correlation * 10 >= with_id * 9) return ExternalIdMeaning::correlation;
  if (names_op * 2 >= with_id && is_correlation * 10 < with_id) return ExternalIdMeaning::op;
  return ExternalIdMeaning::unclear;
}

}  // namespace stepcast::detail
