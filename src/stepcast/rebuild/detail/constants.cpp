// Learns the machine's delays from traces. The central problem is that a recorded delay may contain waiting
// time. An operation is a clean sample only if the rebuilt edges show that nothing else held it back.
// Constants are learned in an order in which each step uses only constants that are already known.
#include "stepcast/rebuild/detail/constants.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "stepcast/base/statistics.h"

namespace stepcast::detail {

namespace {

// The kind of a piece of work, copy or call as an end of a delay.
DelayEnd end_of(const GpuWork& w) {
  if (w.communication) return DelayEnd::collective;
  if (w.kind == GpuOp::Kind::memcpy) return DelayEnd::copy;
  if (w.kind == GpuOp::Kind::memset) return DelayEnd::fill;
  return DelayEnd::kernel;
}

DelayEnd end_of(MemcpyKind kind) {
  switch (kind) {
    case MemcpyKind::host_to_device: return DelayEnd::copy_to_device;
    case MemcpyKind::device_to_host: return DelayEnd::copy_to_host;
    case MemcpyKind::device_to_device: return DelayEnd::copy_on_device;
    default: return DelayEnd::copy;
  }
}

DelayEnd end_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::none:
    case WaitKind::held: break;
    case WaitKind::stream_sync: return DelayEnd::stream_sync;
    case WaitKind::device_sync: return DelayEnd::device_sync;
    case WaitKind::event_sync: return DelayEnd::event_sync;
    case WaitKind::blocking_copy: return DelayEnd::blocking_copy;
  }
  return DelayEnd::none;
}

const Call& call_of(const RankGraph& g, const GpuWork& w) {
  return g.calls[static_cast<std::size_t>(w.call)];
}

// Samples of one class of delays in microseconds.
struct Samples {
  // Samples of operations that waited for nothing else.
  std::vector<double> clean;
  double smallest = std::numeric_limits<double>::infinity();
  std::uint32_t all = 0;
  bool borrowed = false;  // the clean samples are those of related classes

  void add(double value, bool is_clean) {
    value = std::max(value, 0.0);
    ++all;
    smallest = std::min(smallest, value);
    if (is_clean) clean.push_back(value);
  }
  // The constant: the mean of the clean samples without outliers, else the smallest of all samples, at most
  // `most_us`.
  LearnedConstant learn(const DelayClass& delay, double most_us = std::numeric_limits<double>::infinity()) {
    LearnedConstant c{.delay = delay,
                      .clean = borrowed ? 0 : static_cast<std::uint32_t>(clean.size()),
                      .all = all,
                      .fallback = borrowed};
    if (!clean.empty()) {
      // Delays add up over hundreds of dependent operations. The mean preserves their sum; the median of
      // rounded values, or of a distribution with two peaks, does not. Outliers by Tukey's fences are left
      // out.
      std::ranges::sort(clean);
      const double low = quantile(clean, 0.25), high = quantile(clean, 0.75);
      const double fence = std::max(1.5 * (high - low), kClockToleranceUs);
      double sum = 0;
      int near = 0;
      for (const double v : clean) {
        if (v < low - fence || v > high + fence) continue;
        sum += v;
        ++near;
      }
      c.value_us = sum / near;
    } else {
      c.value_us = all > 0 ? std::min(smallest, most_us) : 0;
      c.fallback = true;
    }
    return c;
  }
};

// Launch delay in microseconds if all work of a trace waited for other work, so that no sample is clean. It
// is the middle of the learned delays of recorded traces. Assumed (docs/constants.md).
constexpr double kUnseenLaunchUs = 5;

using SamplesByClass = std::map<DelayClass, Samples>;

// The work at which an edge starts.
const GpuWork& source_of(const RankGraph& g, std::int32_t edge) {
  return g.gpu[static_cast<std::size_t>(g.gpu_edges[static_cast<std::size_t>(edge)].from)];
}

// How similar two classes of launches are, in order of falling similarity.
enum class Kinship : std::uint8_t { call_and_direction, call, any };
constexpr Kinship kKinships[] = {Kinship::call_and_direction, Kinship::call, Kinship::any};

bool are_kin(const DelayClass& a, const DelayClass& b, Kinship kinship) {
  switch (kinship) {
    case Kinship::call_and_direction: return a.call == b.call && a.to == b.to;
    case Kinship::call: return a.call == b.call;
    case Kinship::any: break;
  }
  return true;
}

}  // namespace

DelayClass launch_class(DelayKind kind, const RankGraph& g, const GpuWork& w) {
  return {.kind = kind,
          .call = call_of(g, w).name,
          .to = w.kind == GpuOp::Kind::memcpy ? end_of(w.copy) : end_of(w),
          .pageable = w.pageable};
}

DelayClass gap_class(const GpuWork& previous, const GpuWork& next) {
  return {.kind = DelayKind::stream_gap, .from = end_of(previous), .to = end_of(next)};
}

DelayClass event_class(const GpuWork& from, const GpuWork& to) {
  return {.kind = DelayKind::event,
          .from = from.communication ? DelayEnd::collective : DelayEnd::computation,
          .to = to.communication ? DelayEnd::collective : DelayEnd::computation};
}

DelayClass lost_launch_class() { return {.kind = DelayKind::launch}; }
DelayClass return_class(WaitKind kind) { return {.kind = DelayKind::sync_return, .to = end_of(kind)}; }
DelayClass base_class(WaitKind kind) { return {.kind = DelayKind::wait_base, .to = end_of(kind)}; }

bool starts_inside_call(const RankGraph& g, const GpuWork& w) {
  const Call& c = call_of(g, w);
  return c.blocking_copy || w.start_us < c.end_us;
}

std::vector<std::vector<std::int32_t>> edges_into(const RankGraph& g) {
  std::vector<std::vector<std::int32_t>> into(g.gpu.size());
  for (std::size_t e = 0; e < g.gpu_edges.size(); ++e)
    into[static_cast<std::size_t>(g.gpu_edges[e].to)].push_back(static_cast<std::int32_t>(e));
  return into;
}

bool launched_clean(const RankGraph& g, std::size_t work,
                    const std::vector<std::vector<std::int32_t>>& sources) {
  const GpuWork& w = g.gpu[work];
  const Call& c = call_of(g, w);
  // A call that returns long after its work started was delayed by the work's start; other work that ended
  // before did not delay it.
  const bool held_by_call = !c.blocking_copy && w.start_us < c.end_us;
  const double over_by = held_by_call ? std::max(c.start_us, w.start_us - kLateUs) : c.start_us;
  if (w.previous != kNone && g.gpu[static_cast<std::size_t>(w.previous)].end_us > over_by) return false;
  return std::ranges::all_of(sources[work], [&](std::int32_t e) {
    const std::int32_t from = g.gpu_edges[static_cast<std::size_t>(e)].from;
    return g.gpu[static_cast<std::size_t>(from)].end_us <= over_by;
  });
}

// Learns all constants of a set of ranks.
class ConstantsLearner {
 public:
  ConstantsLearner(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes,
                   const StringTable& names)
      : ranks_(ranks), lanes_(lanes), names_(names) {
    for (const RankGraph& g : ranks) into_.push_back(edges_into(g));
  }

  Constants run() {
    learn_base_costs();
    learn_launch_delays();
    correct_base_of_blocking_copies();
    learn_gaps();
    learn_event_delays();
    learn_returns();
    return std::move(out_);
  }

 private:
  void keep(LearnedConstant constant) {
    out_.value_us_[constant.delay] = constant.value_us;
    out_.table_.push_back(constant);
  }

  // Classes sorted by name, so that the order of the files does not change the result.
  std::vector<std::pair<const DelayClass*, Samples*>> by_name(SamplesByClass& samples) const {
    std::map<std::string, std::pair<const DelayClass*, Samples*>> sorted;
    for (auto& [delay, of_class] : samples)
      sorted.emplace(describe(delay, names_), std::pair{&delay, &of_class});
    std::vector<std::pair<const DelayClass*, Samples*>> out;
    for (auto& [name, entry] : sorted) out.push_back(entry);
    return out;
  }

  // The time at which the work could have started by its launch alone.
  [[nodiscard]] double launched_us(const RankGraph& g, const GpuWork& w) const {
    return starts_inside_call(g, w)
               ? call_of(g, w).start_us + out_.value_us(launch_class(DelayKind::inside_launch, g, w))
               : call_of(g, w).end_us + out_.value_us(launch_class(DelayKind::launch, g, w));
  }

  // The base cost of each kind of waiting call: the smallest occurrence over all ranks. If all calls of a
  // kind waited, the time from the end of the awaited work to the return is a better estimate. An example is
  // a loop that synchronises once per step.
  void learn_base_costs() {
    struct Calls {
      Samples lengths, behind;  // `behind`: time after the awaited work, for calls that waited
    };
    std::array<Calls, kWaitKindCount> calls;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankGraph& g = ranks_[r];
      for (const CpuWait& wait : lanes_[r].waits) {
        if (wait.kind == WaitKind::held) continue;
        const Call& c = g.calls[static_cast<std::size_t>(wait.call)];
        Calls& of_kind = calls[static_cast<std::size_t>(wait.kind)];
        of_kind.lengths.add(c.end_us - c.start_us, false);
        double over_us = -std::numeric_limits<double>::infinity();
        for (const std::int32_t s : wait.sources)
          over_us = std::max(over_us, g.gpu[static_cast<std::size_t>(s)].end_us);
        if (over_us > c.start_us + kClockToleranceUs) of_kind.behind.add(c.end_us - over_us, true);
      }
    }
    for (int k = 1; k < kWaitKindCount; ++k) {
      Calls& of_kind = calls[static_cast<std::size_t>(k)];
      if (of_kind.lengths.all == 0) continue;
      LearnedConstant c = of_kind.lengths.learn(base_class(static_cast<WaitKind>(k)));
      // Copies always wait for themselves, see correct_base_of_blocking_copies().
      const bool all_waited =
          of_kind.behind.all == of_kind.lengths.all && static_cast<WaitKind>(k) != WaitKind::blocking_copy;
      if (all_waited) c.value_us = std::min(c.value_us, of_kind.behind.learn({}).value_us);
      c.fallback = false;
      c.clean = 1;
      shortest_[static_cast<std::size_t>(k)] = c.value_us;
      keep(c);
    }
  }

  // Launch delays, separately for work that starts after its call has returned and inside its call.
  void learn_launch_delays() {
    SamplesByClass after_call, inside_call;
    std::map<DelayClass, std::vector<double>> call_lengths;  // of `after_call`
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankGraph& g = ranks_[r];
      for (std::size_t i = 0; i < g.gpu.size(); ++i) {
        const GpuWork& w = g.gpu[i];
        if (w.call == kNone) continue;
        const Call& c = call_of(g, w);
        if (is_later_node(g, i)) continue;
        // The first work of a stream in the file may have waited for work from before the file.
        const bool unseen_before = g.begins_with_file && w.previous == kNone;
        const bool clean = !unseen_before && launched_clean(g, i, into_[r]);
        if (starts_inside_call(g, w)) {
          inside_call[launch_class(DelayKind::inside_launch, g, w)].add(w.start_us - c.start_us, clean);
        } else {
          const DelayClass delay = launch_class(DelayKind::launch, g, w);
          after_call[delay].add(w.start_us - c.end_us, clean);
          call_lengths[delay].push_back(c.end_us - c.start_us);
        }
      }
    }
    const auto after_by_name = by_name(after_call);
    // If all operations of a class waited, its samples are only upper bounds. The constant of the most
    // similar class is used, limited by the smallest sample.
    for (const auto& [delay, samples] : after_by_name) {
      if (!samples->clean.empty()) continue;
      for (const Kinship kinship : kKinships) {
        if (!samples->clean.empty()) break;
        for (const auto& [other, theirs] : after_by_name) {
          if (theirs == samples || theirs->borrowed || !are_kin(*other, *delay, kinship)) continue;
          samples->clean.insert(samples->clean.end(), theirs->clean.begin(), theirs->clean.end());
          samples->borrowed = true;
        }
      }
      for (double& v : samples->clean) v = std::min(v, samples->smallest);
    }
    for (const auto& [delay, samples] : after_by_name) {
      // Longer than any launch takes, so all of them waited.
      keep(samples->smallest > kLateUs ? samples->learn(*delay, kUnseenLaunchUs) : samples->learn(*delay));
    }
    const auto inside_by_name = by_name(inside_call);
    // Work that starts inside its call is rarely seen without waiting if the GPU is behind. Then the usual
    // length of a call plus the usual delay after its end is a better estimate.
    for (const auto& [delay, samples] : inside_by_name) {
      if (!samples->clean.empty() || samples->all == 0) continue;
      Samples lengths, delays;
      for (const Kinship kinship : kKinships) {
        if (!delays.clean.empty()) break;
        for (const auto& [other, theirs] : after_by_name) {
          if (theirs->borrowed || !are_kin(*other, *delay, kinship)) continue;
          delays.clean.insert(delays.clean.end(), theirs->clean.begin(), theirs->clean.end());
          const std::vector<double>& of_calls = call_lengths[*other];
          lengths.clean.insert(lengths.clean.end(), of_calls.begin(), of_calls.end());
        }
      }
      if (delays.clean.empty() || lengths.clean.empty()) continue;
      samples->borrowed = true;
      samples->clean.push_back(
          std::min(samples->smallest, lengths.learn({}).value_us + delays.learn({}).value_us));
    }
    for (const auto& [delay, samples] : inside_by_name) keep(samples->learn(*delay));
  }

  // A blocking copy always waits for itself, so its smallest length includes a copy. Its base cost ends where
  // the copy could start.
  void correct_base_of_blocking_copies() {
    const DelayClass base = base_class(WaitKind::blocking_copy);
    double own = out_.value_us(base);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const CpuWait& wait : lanes_[r].waits) {
        const Call& c = ranks_[r].calls[static_cast<std::size_t>(wait.call)];
        if (wait.kind != WaitKind::blocking_copy || c.gpu.empty()) continue;
        const GpuWork& copy = ranks_[r].gpu[static_cast<std::size_t>(c.gpu.front())];
        own = std::min(own, out_.value_us(launch_class(DelayKind::inside_launch, ranks_[r], copy)));
      }
    }
    for (LearnedConstant& c : out_.table_) {
      if (c.delay != base) continue;
      c.value_us = own;
      out_.value_us_[base] = own;
    }
  }

  // Stream gaps, from work that only its predecessor on the stream delayed: launched earlier, and all events
  // earlier.
  void learn_gaps() {
    SamplesByClass gaps;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankGraph& g = ranks_[r];
      for (std::size_t i = 0; i < g.gpu.size(); ++i) {
        const GpuWork& w = g.gpu[i];
        if (w.call == kNone || w.previous == kNone || is_later_node(g, i)) continue;
        const GpuWork& previous = g.gpu[static_cast<std::size_t>(w.previous)];
        if (overlaps(g, previous, w)) continue;
        double events = -std::numeric_limits<double>::infinity();
        for (const std::int32_t e : into_[r][i]) events = std::max(events, source_of(g, e).end_us);
        const bool queued = launched_us(g, w) <= previous.end_us && events < previous.end_us;
        if (queued) gaps[gap_class(previous, w)].add(w.start_us - previous.end_us, true);
      }
    }
    for (auto& [delay, samples] : gaps) keep(samples.learn(delay));
  }

  // Event delays, from work that only the awaited work delayed.
  void learn_event_delays() {
    SamplesByClass events;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankGraph& g = ranks_[r];
      for (std::size_t i = 0; i < g.gpu.size(); ++i) {
        const GpuWork& w = g.gpu[i];
        if (w.call == kNone || into_[r][i].empty() || is_later_node(g, i)) continue;
        const GpuWork* last = nullptr;
        for (const std::int32_t e : into_[r][i]) {
          const GpuWork& source = source_of(g, e);
          if (last == nullptr || source.end_us > last->end_us) last = &source;
        }
        if (launched_us(g, w) > last->end_us) continue;
        if (w.previous != kNone) {
          const GpuWork& previous = g.gpu[static_cast<std::size_t>(w.previous)];
          if (previous.end_us + out_.value_us(gap_class(previous, w)) > last->end_us) continue;
        }
        events[event_class(*last, w)].add(w.start_us - last->end_us, true);
      }
    }
    for (auto& [delay, samples] : events) keep(samples.learn(delay));
  }

  // Return delays, from calls that visibly waited.
  void learn_returns() {
    std::array<Samples, kWaitKindCount> returns;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankGraph& g = ranks_[r];
      for (const CpuWait& wait : lanes_[r].waits) {
        if (wait.sources.empty() || wait.kind == WaitKind::held) continue;
        const Call& c = g.calls[static_cast<std::size_t>(wait.call)];
        double last = 0;
        for (const std::int32_t s : wait.sources)
          last = std::max(last, g.gpu[static_cast<std::size_t>(s)].end_us);
        const auto kind = static_cast<std::size_t>(wait.kind);
        if (last > c.start_us + shortest_[kind]) returns[kind].add(c.end_us - last, true);
      }
    }
    for (int k = 1; k < kWaitKindCount; ++k) {
      Samples& s = returns[static_cast<std::size_t>(k)];
      if (s.all > 0) keep(s.learn(return_class(static_cast<WaitKind>(k))));
    }
  }

  const std::vector<RankGraph>& ranks_;
  const std::vector<CpuLanes>& lanes_;
  const StringTable& names_;
  std::vector<std::vector<std::vector<std::int32_t>>> into_;  // [rank][work] -> edges into it
  std::array<double, kWaitKindCount> shortest_{};             // [WaitKind] shortest call, microseconds
  Constants out_;
};

Constants Constants::learn(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes,
                           const StringTable& names) {
  return ConstantsLearner(ranks, lanes, names).run();
}

}  // namespace stepcast::detail
