// Builds lookup tables for a recorded rank: nesting of operators, operators of calls, GPU work and calls by
// correlation. They are computed once from sorted events; queries are binary searches.
#include "stepcast/trace/trace_index.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "stepcast/trace/trace_summary.h"

namespace stepcast::detail {
namespace {

// The enclosing operator of each operator and call, per thread. Operators are sorted by (start, -duration).
// On one thread they are nested, except for rounding and a few odd annotations. For those, the operator that
// started last and has not ended counts as the enclosing one.
struct Nesting {
  std::vector<std::int32_t> parent_of_op;
  std::vector<std::int32_t> op_of_call;
};

// One pass over operators and calls in the order of their starts, with a stack of open operators per thread.
Nesting nest(const RecordedRank& r) {
  Nesting n;
  n.parent_of_op.assign(r.cpu_ops.size(), kNone);
  n.op_of_call.assign(r.runtime_calls.size(), kNone);
  std::vector<std::vector<std::int32_t>> open(r.threads.size());
  const auto close_until = [&](std::vector<std::int32_t>& stack, Nanoseconds start, Nanoseconds end) {
    // An operator that ended before `start` is closed. Of two operators that meet at one instant, the second
    // one is a sibling. Closed operators below an open one stay on the stack until they are on top.
    const auto closed = [&](const CpuOp& op) {
      return op.end() < start || (op.end() == start && end > start);
    };
    while (!stack.empty() && closed(r.cpu_ops[static_cast<std::size_t>(stack.back())])) stack.pop_back();
  };
  std::size_t c = 0;
  const auto nest_call = [&](std::size_t index) {
    const RuntimeCall& call = r.runtime_calls[index];
    if (!call.thread.valid()) return;
    auto& stack = open[call.thread.index()];
    close_until(stack, call.start, call.end());
    if (!stack.empty()) n.op_of_call[index] = stack.back();
  };
  for (std::size_t i = 0; i < r.cpu_ops.size(); ++i) {
    const CpuOp& op = r.cpu_ops[i];
    while (c < r.runtime_calls.size() && r.runtime_calls[c].start < op.start) nest_call(c++);
    if (!op.thread.valid()) continue;
    auto& stack = open[op.thread.index()];
    close_until(stack, op.start, op.end());
    if (!stack.empty()) n.parent_of_op[i] = stack.back();
    stack.push_back(static_cast<std::int32_t>(i));
  }
  while (c < r.runtime_calls.size()) nest_call(c++);
  return n;
}

// The context of each operator, derived from that of its parent, which precedes it.
std::vector<OpContext> contexts_of(const RecordedRank& r, std::span<const std::int32_t> parent_of_op) {
  std::vector<OpContext> contexts(r.cpu_ops.size());
  enum class Role : std::uint8_t { unknown, other, collective, library };
  std::vector<Role> roles(r.names.size(), Role::unknown);
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const NameId name = r.cpu_ops[i].name;
    Role& role = roles[name.index()];
    if (role == Role::unknown) {
      const std::string_view text = r.names.text(name);
      role = text == "record_param_comms"                             ? Role::collective
             : text.starts_with("nccl:") || text.starts_with("rccl:") ? Role::library
                                                                      : Role::other;
    }
    const auto own = static_cast<std::int32_t>(i);
    OpContext& context = contexts[i];
    context.root = own;
    if (parent_of_op[i] != kNone) context = contexts[static_cast<std::size_t>(parent_of_op[i])];
    if (role == Role::collective) context.comm_op = own;
    if (role == Role::library) context.in_library_annotation = true;
  }
  return contexts;
}

// Resolution of GPU times in microseconds. Older profilers write whole microseconds.
double gpu_clock_step_us(const RecordedRank& r) {
  const bool whole = std::ranges::all_of(r.gpu_ops, [](const GpuOp& op) {
    return op.start.count() % 1000 == 0 && op.duration.count() % 1000 == 0;
  });
  return whole ? kClockToleranceUs : 1e-3;
}

// The range of entries with this number.
template <class Numbers>
auto equal(const Numbers& numbers, std::int64_t number) {
  const auto first = std::partition_point(numbers.begin(), numbers.end(),
                                          [&](const auto& entry) { return entry.first < number; });
  const auto last =
      std::partition_point(first, numbers.end(), [&](const auto& entry) { return entry.first == number; });
  return std::pair{first, last};
}

}  // namespace

std::vector<RecordedStep> find_steps(const RecordedRank& r) {
  std::vector<RecordedStep> steps;
  for (const CpuOp& op : r.cpu_ops) {
    if (op.kind != CpuOp::Kind::step || op.duration <= Nanoseconds{0} || !op.thread.valid()) continue;
    const auto number = profiler_step_number(r.names.text(op.name));
    if (!number) continue;
    steps.push_back({*number, op.start, op.end(), static_cast<std::int32_t>(op.thread.index())});
  }
  return steps;
}

// The main thread is the one with most operators, or with most calls if there are no operators.
RecordedStep whole_file(const RecordedRank& r) {
  RecordedStep step{.start = Nanoseconds::max()};
  step.end = Nanoseconds::min();
  std::vector<std::size_t> ops_on(r.threads.size(), 0);
  const auto cover = [&step](Nanoseconds start, Nanoseconds end) {
    step.start = std::min(step.start, start);
    step.end = std::max(step.end, end);
  };
  for (const CpuOp& op : r.cpu_ops) {
    cover(op.start, op.end());
    if (op.thread.valid()) ++ops_on[op.thread.index()];
  }
  // Threads that only poll are not part of the step: calls count only on threads that launch work or have
  // operators.
  std::unordered_set<std::int64_t> started_work;
  for (const GpuOp& g : r.gpu_ops) started_work.insert(g.correlation);
  std::vector<bool> works(r.threads.size(), false);
  for (std::size_t t = 0; t < works.size(); ++t) works[t] = ops_on[t] > 0;
  for (const RuntimeCall& call : r.runtime_calls)
    if (call.thread.valid() && call.correlation >= 0 && started_work.contains(call.correlation))
      works[call.thread.index()] = true;
  const bool nobody_works = std::ranges::find(works, true) == works.end();
  for (const RuntimeCall& call : r.runtime_calls) {
    if (!nobody_works && !(call.thread.valid() && works[call.thread.index()])) continue;
    cover(call.start, call.end());
    if (call.thread.valid() && r.cpu_ops.empty()) ++ops_on[call.thread.index()];
  }
  if (r.cpu_ops.empty() && r.runtime_calls.empty())
    for (const GpuOp& g : r.gpu_ops) cover(g.start, g.end());
  if (!ops_on.empty())
    step.main_thread = static_cast<std::int32_t>(std::ranges::max_element(ops_on) - ops_on.begin());
  return step;
}

// External ids are indexed only if they name operators in this file, see external_id_meaning().
TraceIndex::TraceIndex(const RecordedRank& r)
    : recorded_(&r), steps_(find_steps(r)), clock_step_us_(gpu_clock_step_us(r)) {
  Nesting nesting = nest(r);
  parent_of_op_ = std::move(nesting.parent_of_op);
  op_of_call_ = std::move(nesting.op_of_call);
  context_of_op_ = contexts_of(r, parent_of_op_);
  ops_of_thread_.resize(r.threads.size());
  for (std::size_t i = 0; i < r.cpu_ops.size(); ++i)
    if (r.cpu_ops[i].thread.valid())
      ops_of_thread_[r.cpu_ops[i].thread.index()].push_back(static_cast<std::int32_t>(i));
  kernel_classes_.assign(r.names.size(), KernelClass::none);
  work_.reserve(r.gpu_ops.size());
  ended_by_.reserve(r.gpu_ops.size());
  for (std::size_t i = 0; i < r.gpu_ops.size(); ++i) {
    const GpuOp& op = r.gpu_ops[i];
    if (op.correlation >= 0) work_.emplace_back(op.correlation, static_cast<std::int32_t>(i));
    if (KernelClass& known = kernel_classes_[op.name.index()];
        op.kind == GpuOp::Kind::kernel && known == KernelClass::none)
      known = classify_kernel(r.names.text(op.name));
    ended_by_.push_back(ended_by_.empty() ? op.end() : std::max(ended_by_.back(), op.end()));
    first_work_end_ = std::min(first_work_end_, op.end());
  }
  std::ranges::sort(work_);
  calls_.reserve(r.runtime_calls.size());
  for (std::size_t i = 0; i < r.runtime_calls.size(); ++i) {
    const RuntimeCall& call = r.runtime_calls[i];
    if (!call.thread.valid() || call.correlation < 0) continue;
    calls_.emplace_back(call.correlation, static_cast<std::int32_t>(i));
    if (call.start < first_launch_ && !work_of(call.correlation).empty()) first_launch_ = call.start;
  }
  std::ranges::sort(calls_);
  if (external_id_meaning(r) != ExternalIdMeaning::op) return;
  for (std::size_t i = 0; i < r.cpu_ops.size(); ++i)
    if (r.cpu_ops[i].external_id != -1)
      op_of_external_id_.emplace_back(r.cpu_ops[i].external_id, static_cast<std::int32_t>(i));
  std::ranges::sort(op_of_external_id_);
}

IndexRange TraceIndex::calls_of(const RecordedStep& step) const {
  const std::vector<RuntimeCall>& calls = recorded_->runtime_calls;
  const auto position = [&](Nanoseconds time) {
    return static_cast<std::size_t>(
        std::partition_point(calls.begin(), calls.end(),
                             [&](const RuntimeCall& call) { return call.start < time; }) -
        calls.begin());
  };
  const std::size_t first = position(step.start);
  return {first, std::max(first, position(step.end))};
}

std::span<const std::pair<std::int64_t, std::int32_t>> TraceIndex::work_of(std::int64_t correlation) const {
  const auto [first, last] = equal(work_, correlation);
  return {first, last};
}

std::optional<std::size_t> TraceIndex::call_outside(std::int64_t correlation, IndexRange except) const {
  if (correlation < 0) return std::nullopt;
  auto [first, last] = equal(calls_, correlation);
  while (last != first) {
    const auto call = static_cast<std::size_t>((--last)->second);
    if (call < except.first || call >= except.last) return call;
  }
  return std::nullopt;
}

std::size_t TraceIndex::first_work_running_at(Nanoseconds time) const {
  return static_cast<std::size_t>(
      std::partition_point(ended_by_.begin(), ended_by_.end(), [&](Nanoseconds end) { return end <= time; }) -
      ended_by_.begin());
}

bool TraceIndex::launches_gpu_work(const RecordedStep& step) const {
  // The steps of XLA profiles without launches are stretches of device time.
  if (recorded_->format == ProfileFormat::xplane && recorded_->runtime_calls.empty()) {
    return std::ranges::any_of(
        recorded_->gpu_ops, [&](const GpuOp& op) { return op.start >= step.start && op.start < step.end; });
  }
  const IndexRange calls = calls_of(step);
  for (std::size_t i = calls.first; i < calls.last; ++i) {
    const std::int64_t correlation = recorded_->runtime_calls[i].correlation;
    if (correlation >= 0 && !work_of(correlation).empty()) return true;
  }
  return false;
}

std::vector<std::int32_t> TraceIndex::ops_in(std::size_t thread, Nanoseconds begin, Nanoseconds end) const {
  const std::vector<CpuOp>& ops = recorded_->cpu_ops;
  const std::vector<std::int32_t>& of_thread = ops_of_thread_[thread];
  const auto starts_before = [&](Nanoseconds time) {
    return std::partition_point(of_thread.begin(), of_thread.end(), [&](std::int32_t i) {
      return ops[static_cast<std::size_t>(i)].start < time;
    });
  };
  const auto first = starts_before(begin);
  std::vector<std::int32_t> found;
  // Operators open at `begin` are usually the enclosing ones of the last operator that started before.
  for (std::int32_t op = first == of_thread.begin() ? kNone : *std::prev(first); op != kNone;
       op = parent_of_op_[static_cast<std::size_t>(op)]) {
    if (ops[static_cast<std::size_t>(op)].end() > begin) found.push_back(op);
  }
  std::reverse(found.begin(), found.end());
  const auto last = starts_before(end);
  if (first < last) found.insert(found.end(), first, last);
  return found;
}

std::int32_t TraceIndex::op_with_external_id(std::int64_t id) const {
  if (id == -1) return kNone;
  const auto [first, last] = equal(op_of_external_id_, id);
  return first == last ? kNone : first->second;
}

}  // namespace stepcast::detail
