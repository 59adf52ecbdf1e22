#pragma once

#include "stepcast/base/result.h"
#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// The usual way: every class runs its instances in order and its tasks in block order, and stops where it
// needs the end of a collective that others have not joined yet. Takes time per step, not per task.
//
// Appends the steps to a linked order (check_and_link); false if every class waits for another one.
[[nodiscard]] bool plan_in_order(const Program& program, ExecutionOrder& order);

// When plan_in_order gets stuck: Kahn's algorithm over every task of every class. It finds an order wherever
// there is one (a task may overtake an earlier one of its block that waits for others), and where there is
// none, the circle.
//
// Appends the steps to a linked order (check_and_link) that has none yet.
[[nodiscard]] Status plan_by_tasks(const Program& program, ExecutionOrder& order);

}  // namespace stepcast::detail
