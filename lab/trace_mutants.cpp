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

bool is_transfer(const RecordedRank& rank, const GpuOp& op) {
  return op.kind == GpuOp::Kind::kernel &&
         (op.collective >= 0 || classify_kernel(rank.names.text(op.name)) == KernelClass::communication);
}

// Removes runtime calls with GPU work. With `period` above 1, the first call of every `period` stays.
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

// Removes runtime calls of transfers, or of copies and fills.
void remove_launches_of(Ranks& ranks, bool transfers) {
  for (RecordedRank& rank : ranks) {
    std::set<std::int64_t> launched;
    for (const GpuOp& op : rank.gpu_ops)
      if (transfers ? is_transfer(rank, op) : op.kind != GpuOp::Kind::kernel) launched.insert(op.correlation);
    std::erase_if(rank.runtime_calls, [&](const RuntimeCall& call) {
      return call.correlation >= 0 && launched.contains(call.correlation);
    });
  }
}

// Moves all events of a rank. `at` maps an old time to the new time.
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

void set_clocks_apart(Ranks& ranks, std::int64_t most_us) {
  constexpr std::int64_t kParts = 1000, kStride = 379;  // a prime, so that neighbours get distant offsets
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const std::int64_t part = (static_cast<std::int64_t>(r) * kStride) % (kParts + 1);
    const Nanoseconds ahead{1000 * most_us * part / kParts};
    move_times(ranks[r], [&](Nanoseconds t) { return t + ahead; });
  }
}

void round_times(RecordedRank& rank, std::int64_t to_ns) {
  move_times(rank, [&](Nanoseconds t) { return Nanoseconds{t.count() / to_ns * to_ns}; });
}

void record_less(Ranks& ranks) {
  constexpr std::int64_t kUs = 1000;
  for (RecordedRank& rank : ranks) {
    round_times(rank, kUs);
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

void record_no_metadata(Ranks& ranks) {
  for (RecordedRank& rank : ranks) {
    for (CpuOp& op : rank.cpu_ops) op.collective = -1;
    for (GpuOp& op : rank.gpu_ops) op.collective = -1;
    rank.collective_infos.clear();
    std::erase_if(rank.cpu_ops, [&](const CpuOp& op) {
      return rank.names.text(op.name).starts_with("nccl:") ||
             rank.names.text(op.name) == "record_param_comms";
    });
  }
}

void forget_step_markers(Ranks& ranks) {
  for (RecordedRank& rank : ranks)
    std::erase_if(rank.cpu_ops, [](const CpuOp& op) { return op.kind == CpuOp::Kind::step; });
}

// Removes the events of the first `hundredths` percent of the first step.
void cut_first_events(Ranks& ranks, std::int64_t hundredths) {
  constexpr std::int64_t kHundred = 100;
  for (RecordedRank& rank : ranks) {
    const Nanoseconds first = first_moment(rank);
    Nanoseconds length{};
    for (const CpuOp& op : rank.cpu_ops)
      if (op.kind == CpuOp::Kind::step && length == Nanoseconds{}) length = op.end() - first;
    if (length == Nanoseconds{})
      for (const CpuOp& op : rank.cpu_ops) length = std::max(length, op.end() - first);
    const Nanoseconds cut = first + length * hundredths / kHundred;
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

void spread_collectives(Ranks& ranks, std::int32_t streams) {
  constexpr std::int32_t kFirstStream = 1000;
  for (RecordedRank& rank : ranks) {
    std::int32_t n = 0;
    for (GpuOp& op : rank.gpu_ops)
      if (is_transfer(rank, op)) op.stream = kFirstStream + n++ % streams;
  }
}

constexpr std::array kMutations{
    TraceMutation{"launches removed", false, [](Ranks& ranks) { remove_launches(ranks, 1); }},
    TraceMutation{"every other launch removed", false, [](Ranks& ranks) { remove_launches(ranks, 2); }},
    TraceMutation{"launches of transfers removed", false,
                  [](Ranks& ranks) { remove_launches_of(ranks, true); }},
    TraceMutation{"launches of copies removed", false,
                  [](Ranks& ranks) { remove_launches_of(ranks, false); }},
    TraceMutation{"rank offsets", true, [](Ranks& ranks) { set_clocks_apart(ranks, 1000); }},
    TraceMutation{"small rank offsets", true, [](Ranks& ranks) { set_clocks_apart(ranks, 30); }},
    TraceMutation{"large rank offsets", true, [](Ranks& ranks) { set_clocks_apart(ranks, 20'000); }},
    TraceMutation{"another profiler", false, record_less},
    TraceMutation{"no metadata of collectives", false, record_no_metadata},
    TraceMutation{"tens of microseconds", false,
                  [](Ranks& ranks) {
                    for (RecordedRank& rank : ranks) round_times(rank, 10'000);
                  }},
    TraceMutation{"no step markers", false, forget_step_markers},
    TraceMutation{"steps of 0.05 times the length", false, [](Ranks& ranks) { scale_times(ranks, 0.05); }},
    TraceMutation{"steps of 0.3 times the length", false, [](Ranks& ranks) { scale_times(ranks, 0.3); }},
    TraceMutation{"steps of 4 times the length", false, [](Ranks& ranks) { scale_times(ranks, 4); }},
    TraceMutation{"first events cut", false, [](Ranks& ranks) { cut_first_events(ranks, 10); }},
    TraceMutation{"half of the first events cut", false, [](Ranks& ranks) { cut_first_events(ranks, 50); }},
    TraceMutation{"streams renamed", false, rename_streams},
    TraceMutation{"collectives spread", false, [](Ranks& ranks) { spread_collectives(ranks, 3); }},
    TraceMutation{"collectives on streams of their own", false,
                  [](Ranks& ranks) { spread_collectives(ranks, 1'000'000); }},
};

}  // namespace

std::span<const TraceMutation> trace_mutations() { return kMutations; }

}  // namespace stepcast
