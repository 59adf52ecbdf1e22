#pragma once

#include "stepcast/base/result.h"
#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// Fast planner. Every class runs its instances in order and its tasks in block order, and stops where it
// needs the end of a collective that other classes have not joined yet. It takes time per step, not per task.
//
// Appends the steps to `order`, which check_and_link() made. Returns false if every class waits for another
// one; `order` then contains a partial list of steps.
[[nodiscard]] bool plan_in_order(const Program& program, ExecutionOrder& order);

// Slow planner for programs in which plan_in_order() gets stuck: Kahn's algorithm over every task of every
// class. A task may overtake an earlier task of its block that waits for other ranks. It finds an order
// whenever one exists. Error: a cycle of collectives that wait for each other.
//
// Appends the steps to `order`, which check_and_link() made and which must have no steps.
[[nodiscard]] Status plan_by_tasks(const Program& program, ExecutionOrder& order);

}  // namespace stepcast::detail
