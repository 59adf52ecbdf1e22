#include "lab/published_overheads.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "calibrate/overhead_fit.h"

namespace stepcast {

namespace {

constexpr double kEventCostUs = 2;
constexpr double kShortestGapUs = 2;
constexpr double kLongestGapUs = 200;
constexpr double kCallUs = 4;  // 10 us of a launch minus 2 us for its event and 4 us for the kernel event

constexpr std::int32_t kNone = -1;

// An operator, label or runtime call of one thread.
struct Event {
  double start_us = 0, end_us = 0;
  std::string_view name;
  bool label = false, call = false;
  std::int32_t parent = kNone;
  std::uint32_t after = 0;  // the first later event in the list that is not inside this one
};

bool is_label(const CpuOp& op, std::string_view name) {
  return op.kind != CpuOp::Kind::op || is_published_label(name);
}

bool is_launch(const Event& event) {
  return event.call && (event.name == "cudaLaunchKernel" || event.name == "cudaMemcpyAsync" ||
                        event.name == "cudaStreamSynchronize");
}

struct Span {
  double begin_us = 0, end_us = 0;
  [[nodiscard]] bool holds(double us) const { return us >= begin_us && us < end_us; }
};

class RankExtractor {
 public:
  explicit RankExtractor(const RecordedRank& rank) : rank_(rank) {
    if (!rank.cpu_ops.empty()) origin_ = rank.cpu_ops.front().start;
    for (const CpuOp& op : rank.cpu_ops)
      if (op.kind == CpuOp::Kind::step) steps_.push_back({us(op.start), us(op.end())});
    find_loading();
  }

  OverheadSamples extract() {
    for (std::size_t thread = 0; thread < rank_.threads.size(); ++thread) extract_thread(ThreadId{thread});
    drop_outliers();
    return std::move(samples_);
  }

 private:
  [[nodiscard]] double us(Nanoseconds t) const { return static_cast<double>((t - origin_).count()) * 1e-3; }

  void find_loading() {
    bool loading = false;
    double since_us = 0;
    for (const CpuOp& op : rank_.cpu_ops) {
      const std::string_view name = rank_.names.text(op.name);
      if (name.starts_with("enumerate(DataLoader)") && !loading) {
        loading = true;
        since_us = us(op.start);
      }
      if (name == "## Forward ##" && loading) {
        loading = false;
        loading_.push_back({since_us, us(op.start)});
      }
    }
  }

  [[nodiscard]] bool counts(double start_us) const {
    const auto inside = [&](const std::vector<Span>& spans) {
      return std::ranges::any_of(spans, [&](const Span& s) { return s.holds(start_us); });
    };
    return (steps_.empty() || inside(steps_)) && !inside(loading_);
  }

  void extract_thread(ThreadId thread) {
    std::vector<Event> events;
    for (const CpuOp& op : rank_.cpu_ops) {
      if (op.thread != thread || !counts(us(op.start)) || op.kind == CpuOp::Kind::step) continue;
      const std::string_view name = rank_.names.text(op.name);
      events.push_back({us(op.start), us(op.end()), name, is_label(op, name)});
    }
    if (events.empty()) return;
    for (const RuntimeCall& call : rank_.runtime_calls) {
      if (call.thread != thread || !counts(us(call.start))) continue;
      events.push_back({us(call.start), us(call.end()), rank_.names.text(call.name), false, true});
    }
    // Operators come before calls with the same start, which they may have made.
    std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
      return a.start_us != b.start_us ? a.start_us < b.start_us : a.end_us > b.end_us;
    });
    nest(events);
    std::optional<std::uint32_t> before;
    for (std::uint32_t i = 0; i < events.size();) {
      if (events[i].label || events[i].call) {
        ++i;
        continue;
      }
      if (before && events[*before].parent == events[i].parent) {
        const double gap = events[i].start_us - events[*before].end_us;
        if (gap > kShortestGapUs && gap < kLongestGapUs)
          samples_.add(OverheadType::t1, {}, {gap - kEventCostUs, 1});
      }
      extract_operator(std::span{events}.subspan(i, events[i].after - i));
      before = i;
      i = events[i].after;
    }
  }

  static void nest(std::vector<Event>& events) {
    std::vector<std::uint32_t> open;
    const auto close = [&](std::uint32_t next) {
      events[open.back()].after = next;
      open.pop_back();
    };
    for (std::uint32_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      while (!open.empty() &&
             (events[open.back()].end_us < event.start_us || events[open.back()].call ||
              (events[open.back()].end_us == event.start_us && event.end_us > event.start_us))) {
        close(i);
      }
      events[i].parent = open.empty() ? kNone : static_cast<std::int32_t>(open.back());
      open.push_back(i);
    }
    while (!open.empty()) close(static_cast<std::uint32_t>(events.size()));
  }

  // `op`: the operator and the events inside it.
  void extract_operator(std::span<const Event> op) {
    const std::string_view name = op.front().name;
    std::vector<std::size_t> launches;
    for (std::size_t i = 1; i < op.size(); ++i)
      if (is_launch(op[i])) launches.push_back(i);
    // Subtracts the time that the profiler added for `events` events.
    const auto add = [&](OverheadType type, double us, std::size_t events) {
      samples_.add(type, name,
                   {std::max(0.0, us - kEventCostUs * static_cast<double>(events)),
                    static_cast<std::uint32_t>(events)});
    };
    std::vector<std::string> calls;
    for (const std::size_t i : launches) {
      calls.emplace_back(op[i].name);
      if (op[i].name != "cudaStreamSynchronize") samples_.add(OverheadType::t4, op[i].name, {kCallUs, 1});
    }
    const double length_us = op.front().end_us - op.front().start_us;
    if (launches.empty()) {
      if (name != "aten::to" || op.size() > 1) add(OverheadType::t5, length_us, op.size() - 1);
      return;
    }
    const std::string_view called = overhead_name(name);
    if (!name.starts_with("Optimizer") && !samples_.launches.contains(called))
      samples_.launches[std::string{called}][std::move(calls)] = 1;  // the first of the trace
    add(OverheadType::t2, op[launches.front()].start_us - op.front().start_us, launches.front() - 1);
    add(OverheadType::t3, op.front().end_us - op[launches.back()].end_us, op.size() - 1 - launches.back());
    for (std::size_t i = 1; i < launches.size(); ++i) {
      add(OverheadType::t5, op[launches[i]].start_us - op[launches[i - 1]].end_us,
          launches[i] - launches[i - 1] - 1);
    }
    if (launches.size() == 1) add(OverheadType::t5, 0, 0);
  }

  void drop_outliers() {
    for (auto& [key, list] : samples_.of) {
      std::vector<double> times;
      for (const OverheadSample& sample : list) times.push_back(sample.duration_us);
      const auto [low, high] = outlier_fences(times);
      std::erase_if(list, [low = low, high = high](const OverheadSample& sample) {
        return sample.duration_us < low || sample.duration_us > high;
      });
    }
  }

  const RecordedRank& rank_;
  Nanoseconds origin_{};
  std::vector<Span> steps_, loading_;
  OverheadSamples samples_;
};

}  // namespace

OverheadSamples published_overheads(const RecordedRank& rank) { return RankExtractor{rank}.extract(); }

HostOverheads published_host_overheads(const OverheadSamples& samples) {
  return fit_overheads(samples, {.profiler_cost_us = 0, .published_rules = true}).host();
}

bool is_published_label(std::string_view name) {
  static constexpr std::array<std::string_view, 15> kLabels = {"##",
                                                               "__",
                                                               "module::",
                                                               "DLRM ",
                                                               "DistributedDataParallel",
                                                               "Profiler",
                                                               "forward",
                                                               "backward",
                                                               "Optimizer.step",
                                                               "Optimizer.zero_grad",
                                                               "c10d::",
                                                               "split_with_sizes",
                                                               "chunk",
                                                               "All2All_Pooled_",
                                                               "enumerate(DataLoader)"};
  return std::ranges::any_of(kLabels, [&](auto label) { return name.starts_with(label); });
}

}  // namespace stepcast
