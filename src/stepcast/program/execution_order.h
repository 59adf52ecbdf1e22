// The order in which the tasks of a Program can be computed.
//
// Ranks of one class do the same, so one order serves them all: a list of steps, each a stretch of tasks of
// one block instance that needs no other rank before its end. Where ranks meet stands a `complete` step.
//
// A collective cuts an instance as late as possible. That a member has arrived is known at its task; when it
// leaves is needed by the first task that depends on it: the next one on its lane (in this or a later
// instance), an edge from its end, an in-port that reads it. Until then the sweep goes on, so ranks may list
// independent collectives in different orders, and an early send is no barrier.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"

namespace stepcast {

struct OrderStep {
  enum class Kind : std::uint8_t {
    sweep,      // tasks first .. end
    fill_port,  // one in-port takes its value
    complete,   // members of a collective learn when they leave
  };
  static constexpr std::uint32_t kAllMembers = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::sweep;
  bool fills_ports = false;  // sweep: first gives every in-port its value
  std::uint32_t rank_class = 0, instance = 0;
  std::uint32_t first = 0, end = 0;                    // sweep: tasks; fill_port: the port is `first`
  std::uint32_t collective = 0, member = kAllMembers;  // complete
};

// Where an in-port's value comes from, found once: a moment of an earlier instance plus the delay of its
// out-port.
struct PortSource {
  static constexpr std::uint32_t kStartOffset = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t instance = kStartOffset;  // of the same class; kStartOffset: the slot was not written before
  Moment moment;                          // in that instance
  double delay_us = 0;
};

struct CollectiveMembership {
  std::uint32_t collective = 0, member = 0;
};

// True if the member's end depends on more than its own arrival.
[[nodiscard]] inline bool waits_for_others(const Collective& collective, std::uint32_t member) {
  return collective.kind == CollectiveKind::all || member != collective.root;
}

struct ExecutionOrder {
  std::vector<OrderStep> steps;
  // Instances of all classes are numbered through: first_instance[class] + instance.
  std::vector<std::uint32_t> first_instance;  // [class], one more at the end
  std::vector<std::size_t> first_port;        // [instance] -> into port_sources, one more at the end
  std::vector<PortSource> port_sources;
  std::vector<std::size_t> first_membership;      // [instance] -> into memberships, one more at the end
  std::vector<CollectiveMembership> memberships;  // of the block's collective_tasks(), in their order
};

// Checks the Program (the invariants listed at Program::check) and orders it.
[[nodiscard]] Result<ExecutionOrder> order_execution(const Program& program);

}  // namespace stepcast
