// The time of a rank's CPU threads in a recorded step, cut into the pieces that the five overheads count
// (Lin et al., TPDS 2024). Every microsecond of every thread that is no waiting lies in one piece.
//
// The unit is the top-level operator: the outermost one below the labels of modules and steps. A launch is a
// call that starts GPU work or waits for a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/operation/overhead_type.h"

namespace stepcast {

// One occurrence of an overhead. Pieces of no length count: an operator whose first launch is at its very begin
// has a T2 of 0 us.
struct HostPiece {
  OverheadType type = OverheadType::t1;
  // T1: the top-level operator behind the gap, invalid where the step ends; T2, T3, T5: the operator; T4: the
  // runtime call.
  NameId op{};
  // Without waiting: synchronising calls and blocking copies hold what they cost when nothing has to be waited
  // for. Other runtime calls inside the piece are pieces of their own (T4) and not part of it.
  double duration_us = 0;
  // What the profiler wrote meanwhile: T1 the operator behind it and labels, T4 the call, others the operators
  // inside.
  std::uint32_t profiler_events = 0;
};

// One call of a top-level operator.
struct HostOperator {
  NameId op{};
  std::uint32_t first_launch = 0, n_launches = 0;  // in RecordedHost::launches
};

// Names are those of the Program that stands beside.
struct RecordedHost {
  std::vector<HostPiece> pieces;
  std::vector<HostOperator> operators;
  std::vector<NameId> launches;  // the calls, in order
};

}  // namespace stepcast
