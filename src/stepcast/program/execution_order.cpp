#include "stepcast/program/execution_order.h"

#include "stepcast/program/detail/program_check.h"
#include "stepcast/program/detail/task_planner.h"

namespace stepcast {

Result<ExecutionOrder> order_execution(const Program& program) {
  STEPCAST_ASSIGN(ExecutionOrder order, detail::check_and_link(program));
  // The fast planner takes time per step. It fails when a task must overtake an earlier one of its block, and
  // on cycles. The slow planner then works per task and reports cycles.
  if (detail::plan_in_order(program, order)) return order;
  order.steps.clear();
  STEPCAST_TRY(detail::plan_by_tasks(program, order));
  return order;
}

}  // namespace stepcast
