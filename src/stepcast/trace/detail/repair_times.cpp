// Corrects times of a profiler trace that are impossible, such as a kernel that ends after the next kernel on
// its serial stream.
#include "stepcast/trace/detail/repair_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace stepcast::detail {
namespace {

// An end may exceed its limit by this time. It is more than clocks round and dependent launches overlap in
// recorded traces.
constexpr Nanoseconds kMayOutlast{20'000};
// If a larger share of neighbours on a stream overlap, the stream runs work concurrently, so overlaps are
// possible.
constexpr double kSerialShare = 0.02;
// A step is cut if nothing happens in its rest and the rest is this many times as long as the part before.
constexpr int kEmptyRest = 10;

// Repairs one rank in place.
class TimeRepair {
 public:
  explicit TimeRepair(RecordedRank& rank) : rank_(rank) {}

  void run() {
    repair_streams();
    repair_steps();
    repair_threads();
    std::int64_t all_ns = 0;
    for (const GpuOp& op : rank_.gpu_ops) all_ns += op.duration.count();
    double share = all_ns > 0 ? static_cast<double>(gpu_ns_) / static_cast<double>(all_ns) : 0;
    std::int64_t steps_ns = 0;
    for (const CpuOp& op : rank_.cpu_ops)
      if (op.kind == CpuOp::Kind::step) steps_ns += op.duration.count();
    if (steps_ns > 0) share = std::max(share, static_cast<double>(cpu_ns_) / static_cast<double>(steps_ns));
    rank_.repaired.share = std::min(share, 1.0);
  }

 private:
  // Groups GPU work by stream.
  void repair_streams() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> streams;
    for (std::size_t i = 0; i < rank_.gpu_ops.size(); ++i)
      streams[{rank_.gpu_ops[i].device, rank_.gpu_ops[i].stream}].push_back(i);
    for (const auto& [stream, work] : streams) repair_stream(work);
  }

  // Repairs a stream from the last to the first work, so that later work is already correct.
  void repair_stream(const std::vector<std::size_t>& work) {
    std::vector<std::size_t> impossible;
    for (std::size_t k = work.size(); k-- > 1;) {
      GpuOp& op = rank_.gpu_ops[work[k - 1]];
      const GpuOp& next = rank_.gpu_ops[work[k]];
      // Nodes of one CUDA graph launch can run concurrently.
      const bool one_launch = op.correlation >= 0 && op.correlation == next.correlation;
      if (!one_launch && next.start > op.start && op.end() > next.end() + kMayOutlast)
        impossible.push_back(k - 1);
    }
    if (static_cast<double>(impossible.size()) > kSerialShare * static_cast<double>(work.size())) return;
    for (const std::size_t k : impossible) {
      GpuOp& op = rank_.gpu_ops[work[k]];
      op.duration = rank_.gpu_ops[work[k + 1]].start - op.start;
      gpu_ns_ += op.duration.count();
      ++rank_.repaired.gpu_work;
    }
  }

  // Cuts steps that extend into the next step, or far beyond the last event.
  void repair_steps() {
    std::vector<CpuOp*> steps;
    Nanoseconds last{Nanoseconds::min()};
    for (CpuOp& op : rank_.cpu_ops)
      if (op.kind == CpuOp::Kind::step)
        steps.push_back(&op);
      else if (op.kind == CpuOp::Kind::op)
        last = std::max(last, op.end());
    for (const RuntimeCall& call : rank_.runtime_calls) last = std::max(last, call.end());
    for (const GpuOp& op : rank_.gpu_ops) last = std::max(last, op.end());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CpuOp& step = *steps[i];
      const auto cut = [&](Nanoseconds end) {
        step.duration = end - step.start;
        cpu_ns_ += step.duration.count();
        ++rank_.repaired.steps;
      };
      const bool is_before_next = i + 1 < steps.size() && steps[i + 1]->thread == step.thread &&
                                  steps[i + 1]->name != step.name && steps[i + 1]->start > step.start;
      if (is_before_next && step.end() > steps[i + 1]->start + kMayOutlast)
        cut(steps[i + 1]->start);
      else if (last > step.start && step.end() - last > kEmptyRest * (last - step.start))
        cut(last);
    }
  }

  // Cuts operators and calls that end after the operator or step in which they began.
  void repair_threads() {
    std::vector<std::vector<std::size_t>> open(rank_.threads.size());
    std::size_t c = 0;
    const auto enclosing = [&](ThreadId thread, Nanoseconds start) -> const CpuOp* {
      std::vector<std::size_t>& stack = open[thread.index()];
      while (!stack.empty() && rank_.cpu_ops[stack.back()].end() <= start) stack.pop_back();
      return stack.empty() ? nullptr : &rank_.cpu_ops[stack.back()];
    };
    const auto repair = [&](auto& event) {
      const CpuOp* around = enclosing(event.thread, event.start);
      if (around == nullptr || event.end() <= around->end() + kMayOutlast) return;
      event.duration = around->end() - event.start;
      cpu_ns_ += event.duration.count();
      ++rank_.repaired.cpu_time;
    };
    const auto repair_calls_until = [&](Nanoseconds start) {
      for (; c < rank_.runtime_calls.size() && rank_.runtime_calls[c].start < start; ++c)
        if (rank_.runtime_calls[c].thread.valid()) repair(rank_.runtime_calls[c]);
    };
    for (std::size_t i = 0; i < rank_.cpu_ops.size(); ++i) {
      CpuOp& op = rank_.cpu_ops[i];
      repair_calls_until(op.start);
      // Annotations can end on other threads.
      if (!op.thread.valid() || op.kind == CpuOp::Kind::annotation) continue;
      if (op.kind == CpuOp::Kind::op) repair(op);
      open[op.thread.index()].push_back(i);
    }
    repair_calls_until(Nanoseconds::max());
  }

  RecordedRank& rank_;
  std::int64_t gpu_ns_ = 0, cpu_ns_ = 0;  // durations after correction
};

}  // namespace

void repair_times(RecordedRank& rank) { TimeRepair{rank}.run(); }

}  // namespace stepcast::detail
