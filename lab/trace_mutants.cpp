#include "lab/trace_mutants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <type_traits>

#include "stepcast/operation/kernel_class.h"

namespace stepcast {
namespace {

using Ranks = std::vector<RecordedRank>;

// Calls with GPU work, of which the first of every `period` stay where that is more than one.
void remove_launches(Ranks& ranks, std::size_t period) {
  for (RecordedRank& rank : ranks) {
    std::set<std::int64_t> launched;
    for (const GpuOp& op : rank.gpu_ops) launched.insert(op.correlation);
    std::size_t n = 0;
    std::erase_if(rank.runtime_calls, [&](const RuntimeCall& call) {
      return call.correlation >= 0 && launched.contains(call.correlation) &&
             (period == 1 || n++ % period != 0);
    });
  }
}

// `at` gives the new moment of every moment of a rank.
template <class At>
void move_times(RecordedRank& rank, const At& at) {
  const auto move = [&](auto& events) {
    for (auto& event : events) {
      const Nanoseconds end = at(event.start + event.duration);
      event.start = at(event.start);
      event.duration = end - event.start;
    }
    std::ranges::stable_sort(events, [](const auto& a, const auto& b) {
      return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    });
  };
  move(rank.cpu_ops);
  move(rank.runtime_calls);
  move(rank.gpu_ops);
  move(rank.stream_syncs);
  for (AllocatorState& state : rank.allocator_states) state.start = at(state.start);
}

Nanoseconds first_moment(const RecordedRank& rank) {
  Nanoseconds first = Nanoseconds::max();
  for (const CpuOp& op : rank.cpu_ops) first = std::min(first, op.start);
  for (const GpuOp& op : rank.gpu_ops) first = std::min(first, op.start);
  return first;
}

void scale_times(Ranks& ranks, double factor) {
  if (ranks.empty()) return;
  Nanoseconds zero = Nanoseconds::max();
  for (const RecordedRank& rank : ranks) zero = std::min(zero, first_moment(rank));
  for (RecordedRank& rank : ranks) {
    move_times(rank, [&](Nanoseconds t) {
      return zero + Nanoseconds{std::llround(factor * static_cast<double>((t - zero).count()))};
    });
  }
}

void set_clocks_apart(Ranks& ranks) {
  constexpr std::int64_t kMostUs = 1000, kStride = 379;  // a prime, so that neighbours are far apart
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const Nanoseconds ahead{1000 * ((static_cast<std::int64_t>(r) * kStride) % (kMostUs + 1))};
    move_times(ranks[r], [&](Nanoseconds t) { return t + ahead; });
  }
}

void record_less(Ranks& ranks) {
  constexpr std::int64_t kUs = 1000;
  for (RecordedRank& rank : ranks) {
    move_times(rank, [](Nanoseconds t) { return Nanoseconds{t.count() / kUs * kUs}; });
    for (CpuOp& op : rank.cpu_ops) {
      op.input_shapes = op.input_types = op.input_values = {};
      op.external_id = op.order = op.sequence_number = -1;
      op.collective = -1;
    }
    for (RuntimeCall& call : rank.runtime_calls) call.external_id = -1;
    for (GpuOp& op : rank.gpu_ops) {
      op.external_id = -1;
      op.blocks_per_sm = -1;
      op.blocks = op.collective = -1;
    }
    rank.stream_syncs.clear();
    rank.collective_infos.clear();
  }
}

void cut_first_events(Ranks& ranks) {
  constexpr std::int64_t kShare = 10;
  for (RecordedRank& rank : ranks) {
    const Nanoseconds first = first_moment(rank);
    Nanoseconds length{};
    for (const CpuOp& op : rank.cpu_ops)
      if (op.kind == CpuOp::Kind::step && length == Nanoseconds{}) length = op.end() - first;
    if (length == Nanoseconds{})
      for (const CpuOp& op : rank.cpu_ops) length = std::max(length, op.end() - first);
    const Nanoseconds cut = first + length / kShare;
    std::erase_if(rank.cpu_ops,
                  [&](const CpuOp& op) { return op.kind != CpuOp::Kind::step && op.start < cut; });
    std::erase_if(rank.runtime_calls, [&](const RuntimeCall& call) { return call.start < cut; });
    std::erase_if(rank.gpu_ops, [&](const GpuOp& op) { return op.start < cut; });
    std::erase_if(rank.stream_syncs, [&](const StreamSync& sync) { return sync.start < cut; });
  }
}

void rename_streams(Ranks& ranks) {
  for (RecordedRank& rank : ranks) {
    std::set<std::int64_t> numbers;
    for (const GpuOp& op : rank.gpu_ops) numbers.insert(op.stream);
    std::map<std::int64_t, std::int64_t> renamed;
    auto other = numbers.rbegin();
    for (const std::int64_t number : numbers) renamed[number] = *other++;
    const auto rename = [&](auto& stream) {
      if (const auto it = renamed.find(stream); it != renamed.end())
        stream = static_cast<std::remove_reference_t<decltype(stream)>>(it->second);
    };
    for (GpuOp& op : rank.gpu_ops) rename(op.stream);
    for (StreamSync& sync : rank.stream_syncs) {
      rename(sync.stream);
      rename(sync.wait_on_stream);
    }
  }
}

void spread_collectives(Ranks& ranks) {
  constexpr std::int32_t kFirstStream = 1000, kStreams = 3;
  for (RecordedRank& rank : ranks) {
    std::int32_t n = 0;
    for (GpuOp& op : rank.gpu_ops) {
      const bool transfers =
          op.kind == GpuOp::Kind::kernel &&
          (op.collective >= 0 || classify_kernel(rank.names.text(op.name)) == KernelClass::communication);
      if (transfers) op.stream = kFirstStream + n++ % kStreams;
    }
  }
}

constexpr std::array kMutations{
    TraceMutation{"launches removed", false, [](Ranks& ranks) { remove_launches(ranks, 1); }},
    TraceMutation{"every other launch removed", false, [](Ranks& ranks) { remove_launches(ranks, 2); }},
    TraceMutation{"rank offsets", true, set_clocks_apart},
    TraceMutation{"another profiler", false, record_less},
    TraceMutation{"steps of 0.3 times the length", false, [](Ranks& ranks) { scale_times(ranks, 0.3); }},
    TraceMutation{"steps of 4 times the length", false, [](Ranks& ranks) { scale_times(ranks, 4); }},
    TraceMutation{"first events cut", false, cut_first_events},
    TraceMutation{"streams renamed", false, rename_streams},
    TraceMutation{"collectives spread", false, spread_collectives},
};

}  // namespace

std::span<const TraceMutation> trace_mutations() { return kMutations; }

}  // namespace stepcast
