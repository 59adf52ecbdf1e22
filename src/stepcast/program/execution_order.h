// Computes an order in which the tasks of a Program can be evaluated.
//
// All ranks of a class do the same, so one order serves them all. It is a list of steps. A `sweep` step is a
// range of tasks of one block instance that needs no other rank before its end. A `complete` step computes the
// ends of the members of a collective.
//
// An instance is cut at a collective as late as possible. The arrival of a member is known at its task. Its
// end is first needed by the first task that depends on it: the next one on its lane (in this or a later
// instance), a task with an edge from its end, or an in-port that reads it. The sweep continues until then.
// So ranks may list independent collectives in different orders, and an early send does not block its sender.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"

namespace stepcast {

// One step of the evaluation. Which fields are used depends on `kind`.
struct OrderStep {
  enum class Kind : std::uint8_t {
    sweep,      // tasks first .. end
    fill_port,  // compute the value of one in-port
    complete,   // compute the ends of the members of a collective
  };
  static constexpr std::uint32_t kAllMembers = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::sweep;
  bool fills_ports = false;  // sweep: compute all in-ports of the instance first
  std::uint32_t rank_class = 0, instance = 0;
  std::uint32_t first = 0, end = 0;  // sweep: range of tasks; fill_port: `first` is the port
  std::uint32_t collective = 0, member = kAllMembers;  // complete: one member or all
};

// Source of the value of an in-port: a moment of an earlier instance plus the delay of that instance's
// out-port. Resolved once, because slots are static.
struct PortSource {
  static constexpr std::uint32_t kStartOffset = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t instance = kStartOffset;  // of the same class; kStartOffset: the slot was not written before
  Moment moment;                          // in that instance
  double delay_us = 0;
};

// The collective that a collective task takes part in, and its position among the members.
struct CollectiveMembership {
  std::uint32_t collective = 0, member = 0;
};

// Whether the end of a member depends on more than its own arrival. False only for the root of a rooted
// collective.
[[nodiscard]] inline bool waits_for_others(const Collective& collective, std::uint32_t member) {
  return collective.kind == CollectiveKind::all || member != collective.root;
}

// The steps and the tables that resolve their indices.
struct ExecutionOrder {
  std::vector<OrderStep> steps;
  // Instances of all classes are numbered consecutively: first_instance[class] + instance.
  std::vector<std::uint32_t> first_instance;  // [class], one extra entry at the end
  std::vector<std::size_t> first_port;  // [instance] -> index into port_sources, one extra entry at the end
  std::vector<PortSource> port_sources;
  // [instance] -> index into memberships, one extra entry at the end.
  std::vector<std::size_t> first_membership;
  // Of collective_tasks() of the instance's block, in that order.
  std::vector<CollectiveMembership> memberships;
};

// Checks the Program (invariants of Program::check) and computes its order. Errors: the first broken
// invariant.
[[nodiscard]] Result<ExecutionOrder> order_execution(const Program& program);

}  // namespace stepcast
