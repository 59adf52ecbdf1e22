// Host time of recorded ranks from statistics instead of from their own record: what the CPU needs around the
// operators of a step (T1..T5 of Lin et al., TPDS 2024), learned on other ranks, steps or jobs.
//
//   STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
//   apply_host_overheads(host, recorded, RankClassId{3}, costs);
//
// A task takes the mean of its overhead as often as it stands for it (`TaskInfo::work_times`), so that a step which was
// learned from keeps its host time. Waiting is no host time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// What was put in place of a rank's own host time, and how much of it rests on which ground.
struct AppliedHostTimes {
  double own_us = 0;                                   // statistics of the same operator or call
  double default_us = 0;                               // of its family or of all: this one was not learned
  std::map<std::string, std::uint64_t> unknown_ops{};  // tasks of what was not learned, by name
};

// Host times over those of statistics: Python between operators, the framework inside of them and the driver's calls
// depend on other things (interpreter, framework's version, driver), and so are apart.
struct HostSpeed {
  double between_ops = 1;  // T1
  double in_ops = 1;       // T2, T3, T5, and hand-offs between threads
  double calls = 1;        // T4
  double data_loader = 1;  // operators that read the next batch, in the process itself
  // Each of them the same.
  [[nodiscard]] static HostSpeed all(double factor) { return {factor, factor, factor, factor}; }
  [[nodiscard]] double of(OverheadType type) const {
    return type == OverheadType::t1 ? between_ops : type == OverheadType::t4 ? calls : in_ops;
  }
};

// Sets the host time of the rank class in `costs`, times `speed`: a slower host. What no overhead is known for and
// latencies of hand-offs between threads stay as recorded.
AppliedHostTimes apply_host_overheads(const HostOverheads& overheads, const RecordedProgram& recorded,
                                      RankClassId rank_class, Costs& costs, const HostSpeed& speed = {});
// True for delays that a rank keeps from its own record and that are host time all the same.
[[nodiscard]] bool is_host_delay(const RecordedProgram& recorded, const EdgeInfo& edge);
// What such a delay is called among the overheads.
[[nodiscard]] std::string hand_off_name(const RecordedProgram& recorded, const EdgeInfo& edge);
// Scales the recorded host time of a rank class and the latencies between its threads.
void scale_host_time(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs, double factor);

}  // namespace stepcast
