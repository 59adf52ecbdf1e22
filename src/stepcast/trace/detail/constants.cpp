#include "stepcast/trace/detail/constants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

enum GapKind : int { kKernel, kCommunication, kCopy, kFill };

GapKind gap_kind(const GpuWork& w) {
  if (w.communication) return kCommunication;
  if (w.kind == GpuOp::Kind::memcpy) return kCopy;
  if (w.kind == GpuOp::Kind::memset) return kFill;
  return kKernel;
}

std::string_view gap_name(int kind) {
  constexpr std::string_view names[] = {"kernel", "collective", "copy", "fill"};
  return names[kind];
}

std::string_view copy_name(MemcpyKind kind) {
  switch (kind) {
    case MemcpyKind::host_to_device: return "copy to device";
    case MemcpyKind::device_to_host: return "copy to host";
    case MemcpyKind::device_to_device: return "copy on device";
    default: return "copy";
  }
}

std::string_view wait_name(int kind) {
  constexpr std::string_view names[] = {"", "stream synchronisation", "device synchronisation",
                                        "event synchronisation", "blocking copy"};
  return names[kind];
}

const Call& call_of(const RankGraph& g, const GpuWork& w) {
  return g.calls[static_cast<std::size_t>(w.call)];
}

// Same call, same sort of work: the class of a launch delay.
std::string launch_class(const RankGraph& g, const GpuWork& w) {
  const Call& c = call_of(g, w);
  const std::string_view call = g.recorded->names.text(g.recorded->runtime_calls[c.recorded].name);
  std::string_view what = gap_name(gap_kind(w));
  std::string_view memory;
  if (w.kind == GpuOp::Kind::memcpy) {
    what = copy_name(w.copy);
    if (g.recorded->names.text(g.recorded->gpu_ops[w.recorded].name).find("Pageable") !=
        std::string_view::npos)
      memory = " (pageable)";
  }
  return fmt::format("{} -> {}{}", call, what, memory);
}

struct Samples {
  std::vector<double> clean;
  double smallest = std::numeric_limits<double>::infinity();
  std::uint32_t all = 0;
  bool borrowed = false;  // the clean ones are those of related classes

  void add(double value, bool is_clean) {
    value = std::max(value, 0.0);
    ++all;
    smallest = std::min(smallest, value);
    if (is_clean) clean.push_back(value);
  }
  // The middle of the clean ones, else the smallest of all.
  LearnedConstant learn(std::string name) {
    LearnedConstant c;
    c.name = std::move(name);
    c.clean = borrowed ? 0 : static_cast<std::uint32_t>(clean.size());
    c.all = all;
    c.fallback = borrowed;
    if (!clean.empty()) {
      const auto middle = clean.begin() + static_cast<std::ptrdiff_t>(clean.size() / 2);
      std::nth_element(clean.begin(), middle, clean.end());
      double median = *middle;
      if (clean.size() % 2 == 0) median = 0.5 * (median + *std::max_element(clean.begin(), middle));
      // Recorded times are rounded, a median of them too: over a thousand queued kernels half a microsecond
      // adds up. The mean of what lies within the clock's tolerance of the median has no such bias.
      double sum = 0;
      int near = 0;
      for (const double v : clean) {
        if (std::abs(v - median) <= kClockToleranceUs) {
          sum += v;
          ++near;
        }
      }
      c.value_us = near > 0 ? sum / near : median;
    } else {
      c.value_us = all > 0 ? smallest : 0;
      c.fallback = true;
    }
    return c;
  }
};

double lookup(const std::map<std::string, double>& table, const std::string& key, double otherwise) {
  const auto it = table.find(key);
  return it == table.end() ? otherwise : it->second;
}

}  // namespace

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
  const double began = call_of(g, w).start_us;
  if (w.previous != kNone && g.gpu[static_cast<std::size_t>(w.previous)].end_us > began) return false;
  for (const std::int32_t e : sources[work]) {
    if (g.gpu[static_cast<std::size_t>(g.gpu_edges[static_cast<std::size_t>(e)].from)].end_us > began)
      return false;
  }
  return true;
}

Constants Constants::learn(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes) {
  Constants result;
  std::vector<std::vector<std::vector<std::int32_t>>> into;
  for (const RankGraph& g : ranks) into.push_back(edges_into(g));

  // Base cost of waiting calls: the smallest occurrence over all ranks.
  std::array<Samples, kWaitKindCount> base;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CpuWait& wait : lanes[r].waits) {
      const Call& c = ranks[r].calls[static_cast<std::size_t>(wait.call)];
      base[static_cast<std::size_t>(wait.kind)].add(c.end_us - c.start_us, false);
    }
  }
  for (int k = 1; k < kWaitKindCount; ++k) {
    if (base[static_cast<std::size_t>(k)].all == 0) continue;
    LearnedConstant c =
        base[static_cast<std::size_t>(k)].learn(fmt::format("base cost, {} (smallest)", wait_name(k)));
    c.fallback = false;
    c.clean = 1;
    result.base_[static_cast<std::size_t>(k)] = c.value_us;
    result.table_.push_back(c);
  }

  // Launch delays.
  std::map<std::string, Samples> launch_end, launch_start;
  std::map<std::string, std::vector<double>> call_lengths;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankGraph& g = ranks[r];
    for (std::size_t i = 0; i < g.gpu.size(); ++i) {
      const GpuWork& w = g.gpu[i];
      if (w.call == kNone) continue;
      const Call& c = call_of(g, w);
      if (c.gpu.front() != static_cast<std::int32_t>(i)) continue;  // later work of a graph launch
      const bool clean = launched_clean(g, i, into[r]);
      if (starts_inside_call(g, w))
        launch_start[launch_class(g, w)].add(w.start_us - c.start_us, clean);
      else {
        launch_end[launch_class(g, w)].add(w.start_us - c.end_us, clean);
        call_lengths[launch_class(g, w)].push_back(c.end_us - c.start_us);
      }
    }
  }
  // A class whose every work waited says nothing of its delay but an upper bound: the like of it (the same
  // call and direction, then the same call, then any) is the better witness.
  const auto kin = [](std::string_view name, int level) {
    const auto cut = level == 0 ? name.find(" (") : level == 1 ? name.find(" -> ") : 0;
    return std::string(name.substr(0, cut));
  };
  for (auto& [name, samples] : launch_end) {
    if (!samples.clean.empty()) continue;
    for (int level = 0; level < 3 && samples.clean.empty(); ++level) {
      for (const auto& [other, theirs] : launch_end) {
        if (&theirs == &samples || theirs.borrowed || kin(other, level) != kin(name, level)) continue;
        samples.clean.insert(samples.clean.end(), theirs.clean.begin(), theirs.clean.end());
        samples.borrowed = true;
      }
    }
    for (double& v : samples.clean) v = std::min(v, samples.smallest);
  }
  for (auto& [name, samples] : launch_end) {
    result.table_.push_back(samples.learn(fmt::format("launch delay from the call's end, {}", name)));
    result.launch_end_[name] = result.table_.back().value_us;
  }
  // Work that begins inside its call is rarely seen without waiting when the GPU is behind: then a call of
  // usual length and the usual delay after its end are the better witness.
  for (auto& [name, samples] : launch_start) {
    if (!samples.clean.empty() || samples.all == 0) continue;
    Samples lengths, delays;
    for (int level = 0; level < 3 && delays.clean.empty(); ++level) {
      for (const auto& [other, theirs] : launch_end) {
        if (theirs.borrowed || kin(other, level) != kin(name, level)) continue;
        delays.clean.insert(delays.clean.end(), theirs.clean.begin(), theirs.clean.end());
        lengths.clean.insert(lengths.clean.end(), call_lengths[other].begin(), call_lengths[other].end());
      }
    }
    if (delays.clean.empty() || lengths.clean.empty()) continue;
    samples.borrowed = true;
    samples.clean.push_back(
        std::min(samples.smallest, lengths.learn({}).value_us + delays.learn({}).value_us));
  }
  for (auto& [name, samples] : launch_start) {
    result.table_.push_back(samples.learn(fmt::format("launch delay from the call's start, {}", name)));
    result.launch_start_[name] = result.table_.back().value_us;
  }

  const std::array<double, kWaitKindCount> shortest = result.base_;  // of whole calls
  // A blocking copy always waits for itself, so that its smallest length still holds a copy: what it does
  // before is over when it could begin.
  double& own = result.base_[static_cast<std::size_t>(WaitKind::blocking_copy)];
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CpuWait& wait : lanes[r].waits) {
      const Call& c = ranks[r].calls[static_cast<std::size_t>(wait.call)];
      if (wait.kind == WaitKind::blocking_copy && !c.gpu.empty())
        own = std::min(own, result.inside_launch_delay_us(
                                ranks[r], ranks[r].gpu[static_cast<std::size_t>(c.gpu.front())]));
    }
  }
  for (LearnedConstant& c : result.table_) {
    if (c.name.starts_with("base cost, blocking copy")) c.value_us = own;
  }

  // Stream gaps and event delays, where the predecessor alone held the work back: launched, and everything
  // else over, before.
  std::map<std::pair<int, int>, Samples> gap;
  std::map<std::pair<bool, bool>, Samples> event;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankGraph& g = ranks[r];
    for (std::size_t i = 0; i < g.gpu.size(); ++i) {
      const GpuWork& w = g.gpu[i];
      if (w.call == kNone || w.previous == kNone) continue;
      const GpuWork& previous = g.gpu[static_cast<std::size_t>(w.previous)];
      const double launched = starts_inside_call(g, w)
                                  ? call_of(g, w).start_us + result.inside_launch_delay_us(g, w)
                                  : call_of(g, w).end_us + result.launch_delay_us(g, w);
      double events = -std::numeric_limits<double>::infinity();
      for (const std::int32_t e : into[r][i])
        events = std::max(
            events, g.gpu[static_cast<std::size_t>(g.gpu_edges[static_cast<std::size_t>(e)].from)].end_us);
      const bool queued = launched <= previous.end_us && events < previous.end_us;
      if (queued) gap[{gap_kind(previous), gap_kind(w)}].add(w.start_us - previous.end_us, true);
    }
  }
  for (auto& [kinds, samples] : gap) {
    result.table_.push_back(
        samples.learn(fmt::format("stream gap, {} -> {}", gap_name(kinds.first), gap_name(kinds.second))));
    result.gap_[kinds] = result.table_.back().value_us;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankGraph& g = ranks[r];
    for (std::size_t i = 0; i < g.gpu.size(); ++i) {
      const GpuWork& w = g.gpu[i];
      if (w.call == kNone || into[r][i].empty()) continue;
      const double launched = starts_inside_call(g, w)
                                  ? call_of(g, w).start_us + result.inside_launch_delay_us(g, w)
                                  : call_of(g, w).end_us + result.launch_delay_us(g, w);
      const GpuWork* last = nullptr;
      for (const std::int32_t e : into[r][i]) {
        const GpuWork& source =
            g.gpu[static_cast<std::size_t>(g.gpu_edges[static_cast<std::size_t>(e)].from)];
        if (last == nullptr || source.end_us > last->end_us) last = &source;
      }
      if (launched > last->end_us) continue;
      if (w.previous != kNone) {
        const GpuWork& previous = g.gpu[static_cast<std::size_t>(w.previous)];
        if (previous.end_us + result.stream_gap_us(g, previous, w) > last->end_us) continue;
      }
      event[{last->communication, w.communication}].add(w.start_us - last->end_us, true);
    }
  }
  for (auto& [kinds, samples] : event) {
    result.table_.push_back(
        samples.learn(fmt::format("event delay, {} -> {}", kinds.first ? "collective" : "computation",
                                  kinds.second ? "collective" : "computation")));
    result.event_[kinds] = result.table_.back().value_us;
  }

  // Returns of calls that visibly waited.
  std::array<Samples, kWaitKindCount> returns;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankGraph& g = ranks[r];
    for (const CpuWait& wait : lanes[r].waits) {
      if (wait.sources.empty()) continue;
      const Call& c = g.calls[static_cast<std::size_t>(wait.call)];
      double last = 0;
      for (const std::int32_t s : wait.sources)
        last = std::max(last, g.gpu[static_cast<std::size_t>(s)].end_us);
      const bool waited = last > c.start_us + shortest[static_cast<std::size_t>(wait.kind)];
      if (waited) returns[static_cast<std::size_t>(wait.kind)].add(c.end_us - last, true);
    }
  }
  for (int k = 1; k < kWaitKindCount; ++k) {
    Samples& s = returns[static_cast<std::size_t>(k)];
    if (s.all == 0) continue;
    result.table_.push_back(s.learn(fmt::format("return delay, {}", wait_name(k))));
    result.return_delay_[static_cast<std::size_t>(k)] = result.table_.back().value_us;
  }
  return result;
}

double Constants::launch_delay_us(const RankGraph& g, const GpuWork& w) const {
  return lookup(launch_end_, launch_class(g, w), 0);
}

double Constants::inside_launch_delay_us(const RankGraph& g, const GpuWork& w) const {
  return lookup(launch_start_, launch_class(g, w), 0);
}

double Constants::stream_gap_us(const RankGraph&, const GpuWork& previous, const GpuWork& next) const {
  const auto it = gap_.find({gap_kind(previous), gap_kind(next)});
  return it == gap_.end() ? 0 : it->second;
}

double Constants::event_delay_us(const GpuWork& from, const GpuWork& to) const {
  const auto it = event_.find({from.communication, to.communication});
  return it == event_.end() ? 0 : it->second;
}

}  // namespace stepcast::detail
