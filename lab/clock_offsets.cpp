#include "lab/clock_offsets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>

#include "stepcast/analyze/culprits.h"
#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/base/parallel.h"
#include "stepcast/predict/replay.h"
#include "stepcast/sources/recorded_steps.h"

namespace stepcast {
namespace {

constexpr std::array<std::int64_t, 4> kMostApartUs = {10, 50, 200, 1000};

void move_by(RecordedRank& rank, std::int64_t us) {
  const Nanoseconds by{us * 1000};
  for (CpuOp& op : rank.cpu_ops) op.start = op.start + by;
  for (RuntimeCall& call : rank.runtime_calls) call.start = call.start + by;
  for (GpuOp& op : rank.gpu_ops) op.start = op.start + by;
  for (StreamSync& sync : rank.stream_syncs) sync.start = sync.start + by;
  for (AllocatorState& state : rank.allocator_states) state.start = state.start + by;
}

Result<StepCulprits> culprits_of(const TraceSet& set, std::span<const RecordedRank> ranks,
                                 const std::optional<std::int64_t>& step) {
  std::vector<RecordedInput> inputs = set.inputs();
  for (std::size_t r = 0; r < inputs.size(); ++r) inputs[r].kineto = &ranks[r];
  ReplayOptions how;
  how.rebuild.step = step;
  STEPCAST_ASSIGN(const Replay replayed, replay(inputs, how));
  return culprits_of(replayed);
}

struct Named {
  std::uint32_t collectives = 0;
  std::optional<RankClassId> worst;
  double share = 0;  // of the waiting
};
Named named_by(const StepCulprits& culprits) {
  Named named{.collectives = culprits.collectives, .worst = {}};
  if (const RankCulprits* worst = culprits.worst()) {
    named.worst = worst->rank_class;
    named.share = worst->caused_wait_us / culprits.all_waiting_us();
  }
  return named;
}

void count(const Named& recorded, const Named& drawn, ClockDraws& all) {
  const auto off = [&](std::uint32_t n) { return std::abs(static_cast<double>(n) - recorded.collectives); };
  if (off(drawn.collectives) > off(all.most_other)) all.most_other = drawn.collectives;
  if (!drawn.worst) {
    ++all.said_not_known;
    return;
  }
  if (*drawn.worst != *recorded.worst) return;
  const double error = std::abs(drawn.share - recorded.share);
  all.largest_share_error = std::max(all.largest_share_error, error);
  if (error <= kShareWithin) ++all.named_right;
}

}  // namespace

Result<StepCulprits> culprits_of(const Replay& replayed) {
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(replayed));
  std::vector<Interval> steps;
  for (const ReplayedRank& rank : replayed.ranks) steps.push_back(rank.simulated_step);
  return find_culprits({.flat = times.flat,
                        .times = times.simulated,
                        .costs = times.costs,
                        .windows = steps,
                        .rank_start_us = replayed.recorded.start_offset_us,
                        .tie_us = replayed.recorded.clock_uncertainty_us});
}

Result<std::vector<ClockDraws>> draw_clock_offsets(const TraceSet& set, std::size_t draws, unsigned threads) {
  std::optional<std::int64_t> step;
  for (const std::int64_t one : common_steps(set)) step = one;
  STEPCAST_ASSIGN(const StepCulprits as_recorded, culprits_of(set, set.ranks, step));
  const Named recorded = named_by(as_recorded);
  std::vector<ClockDraws> all;
  if (!recorded.worst) return all;
  std::mt19937_64 random{31};
  for (const std::int64_t most_us : kMostApartUs) {
    std::vector<std::vector<RecordedRank>> moved(draws, set.ranks);
    for (std::vector<RecordedRank>& ranks : moved)
      for (RecordedRank& rank : ranks)
        move_by(rank, std::uniform_int_distribution<std::int64_t>{0, most_us}(random));
    std::vector<Named> named(draws);
    STEPCAST_TRY(parallel_for(draws, threads, [&](std::size_t i) -> Status {
      STEPCAST_ASSIGN(const StepCulprits culprits, culprits_of(set, moved[i], step));
      named[i] = named_by(culprits);
      return Ok{};
    }));
    ClockDraws& drawn = all.emplace_back(ClockDraws{.most_us = most_us,
                                                    .draws = draws,
                                                    .collectives = recorded.collectives,
                                                    .most_other = recorded.collectives});
    for (const Named& one : named) count(recorded, one, drawn);
  }
  return all;
}

}  // namespace stepcast
