// Host time of recorded ranks from statistics instead of from their own record: what the CPU needs around the
// operators of a step (T1..T5 of Lin et al., TPDS 2024), learned on other ranks, steps or jobs.
//
//   const HostTimes times = HostTimes::learn(recorded, other_ranks);
//   times.apply(recorded, RankClassId{3}, costs);    // rank 3 as the others would have it
//
// The unit is a stretch: all time of one thread that is one overhead of one call of an operator (from its begin
// to its first launch, say), of no length where nothing was recorded. Its mean is kept, so that the sum over a
// step that was learned from is that step's host time; within a stretch time is spread evenly. Waiting is no
// host time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/program.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

// Host time of one kind around one call of an operator.
struct HostStretch {
  OverheadType type = OverheadType::t1;
  NameId op{};               // T1: the operator behind the gap, invalid at the end; T4: the runtime call
  NameId after{};            // T1: the operator before the gap, invalid at the begin
  std::uint32_t n = 1;       // occurrences: T5 one for each pair of neighbouring launches
  bool begins_call = false;  // the first of its operator's call, with what the call launches, in order:
  std::vector<NameId> launches{};
  std::uint32_t anchor = 0;            // task of the block that takes the time of a stretch of no length
  std::vector<std::uint32_t> tasks{};  // of the block, in order, on one thread
};
// Of all CPU threads of the block, by thread and time. Time outside of any host work is in none.
[[nodiscard]] std::vector<HostStretch> host_stretches(const Program& program, const Block& block);

// Which calls the operators of these rank classes make: of every operator its most frequent sequence.
[[nodiscard]] LaunchTable launches_of(const RecordedProgram& recorded, std::span<const RankClassId> classes);

// What was put in place of a rank's own host time, and how much of it rests on which ground.
struct AppliedHostTimes {
  double own_us = 0;                                   // statistics of the same operator or call
  double default_us = 0;                               // of its family or of all: this one was not learned
  std::map<std::string, std::uint64_t> unknown_ops{};  // stretches of what was not learned, by name
};

// Host times over those of statistics: Python between operators, the framework inside of them and the driver's calls
// depend on other things (interpreter, framework's version, driver), and so are apart.
struct HostSpeed {
  double between_ops = 1;  // T1
  double in_ops = 1;       // T2, T3, T5, and hand-offs between threads
  double calls = 1;        // T4
  double data_loader = 1;  // reading the next batch, in the process itself
  [[nodiscard]] double of(OverheadType type) const {
    return type == OverheadType::t1 ? between_ops : type == OverheadType::t4 ? calls : in_ops;
  }
};

class HostTimes {
 public:
  // From the recorded times of these rank classes.
  [[nodiscard]] static HostTimes learn(const RecordedProgram& recorded, std::span<const RankClassId> classes);
  // Pools what was learned elsewhere.
  void add(const HostTimes& more);

  // Medians over jobs, each counting alike whatever its length and the speed of its host: the first says how fast a host
  // the times are of, the others are brought to it by what they share with those before (speed_of).
  [[nodiscard]] static HostTimes pooled(std::span<const HostTimes> jobs);
  // With operators of a family all alike: what is left without knowing operators by name.
  [[nodiscard]] HostTimes by_family_alone() const;

  // Sets the host time of the rank class, and the latencies of hand-offs between its threads, in `costs`.
  // `speed` scales them: a slower host.
  AppliedHostTimes apply(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs,
                         const HostSpeed& speed = {}) const;

  // Time of `times` on operators and calls that both know, over what these statistics say of as many: how much slower
  // that host is. 1 where they have nothing in common; a part of which they share little counts as the whole. A data loader
  // is as much slower as the median of the operators that run inside of it; 1 where none does.
  [[nodiscard]] HostSpeed speed_of(const HostTimes& times) const;
  // Share of the occurrences in `times` that are of operators and calls these statistics know themselves, 0 to 1.
  [[nodiscard]] double share_known(const HostTimes& times) const;

 private:
  struct Statistic {
    std::uint64_t n = 0;
    double sum_us = 0;
    void count(double time_us, std::uint64_t occurrences) {
      n += occurrences;
      sum_us += time_us;
    }
    [[nodiscard]] double mean_us() const { return n > 0 ? sum_us / static_cast<double>(n) : 0; }
  };
  struct Key {
    OverheadType type;
    std::string op, after;
    auto operator<=>(const Key&) const = default;
  };
  [[nodiscard]] const Statistic* find(const Key& key) const;

  std::map<Key, Statistic> by_op_;  // T1 also by the operator before the gap
  std::map<Key, Statistic> by_family_;
  // Delays of hand-offs and of launches inside their calls, by description.
  std::map<std::string, Statistic> delays_;
};

// The same with the overheads of a platform's host; latencies of hand-offs stay as recorded.
AppliedHostTimes apply_host_overheads(const HostOverheads& overheads, const RecordedProgram& recorded,
                                      RankClassId rank_class, Costs& costs, double factor = 1);
// True for delays that a rank keeps from its own record and that are host time all the same.
[[nodiscard]] bool is_host_delay(const RecordedProgram& recorded, const EdgeInfo& edge);
// Scales the recorded host time of a rank class and the latencies between its threads.
void scale_host_time(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs, double factor);

}  // namespace stepcast
