// Replaces the recorded host time of ranks by statistics: the CPU overheads around the operators of a step (T1..T5 of
// Lin et al., TPDS 2024), learned from other ranks, steps or jobs.
//
//   STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
//   apply_host_overheads(host, recorded, RankClassId{3}, costs);
//
// A task takes the mean of its overhead times `TaskInfo::work_times`, the number of recorded occurrences it represents.
// The total host time of a step is therefore unchanged if the statistics were learned from it. Waiting is not host time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// The host time that replaced that of a rank, by the source of the statistics.
struct AppliedHostTimes {
  double own_us = 0;      // statistics of the same operator or call
  double default_us = 0;  // of the operator family or of all operators: this one was not learned
  std::map<std::string, std::uint64_t> unknown_ops{};  // operators that were not learned -> number of tasks
};

// Factors on the learned host times. Python between operators, framework code inside operators and driver calls depend on
// different things (interpreter, framework version, driver), so each has its own factor.
struct HostSpeed {
  double between_ops = 1;  // T1
  double in_ops = 1;       // T2, T3, T5, and hand-offs between threads
  double calls = 1;        // T4
  double data_loader = 1;  // operators that read the next batch in the training process
  // The same factor for all four.
  [[nodiscard]] static HostSpeed all(double factor) { return {factor, factor, factor, factor}; }
  // The factor for an overhead type.
  [[nodiscard]] double of(OverheadType type) const {
    return type == OverheadType::t1 ? between_ops : type == OverheadType::t4 ? calls : in_ops;
  }
};

// Sets the host time of the rank class in `costs` to the learned means times `speed` (above 1: a slower host). Tasks without
// a known overhead and latencies of hand-offs between threads keep their recorded time.
AppliedHostTimes apply_host_overheads(const HostOverheads& overheads, const RecordedProgram& recorded,
                                      RankClassId rank_class, Costs& costs, const HostSpeed& speed = {});
// True for delays kept from the record of a rank that are host time nevertheless.
[[nodiscard]] bool is_host_delay(const RecordedProgram& recorded, const EdgeInfo& edge);
// The name of such a delay among the overheads.
[[nodiscard]] std::string hand_off_name(const RecordedProgram& recorded, const EdgeInfo& edge);
// Scales the recorded host time of a rank class and the latencies between its threads.
void scale_host_time(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs, double factor);

}  // namespace stepcast
