#pragma once

#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// The usual way: every class runs its instances in order and its tasks in block order, and stops where it
// needs the end of a collective that others have not joined yet. Takes time per step, not per task.
//
// Appends the steps to a linked order (check_and_link); false if every class waits for another one.
[[nodiscard]] bool plan_in_order(const Program& program, ExecutionOrder& order);

}  // namespace stepcast::detail
