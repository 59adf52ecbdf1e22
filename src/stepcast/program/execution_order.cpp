#include "stepcast/program/execution_order.h"

#include "stepcast/program/detail/program_check.h"
#include "stepcast/program/detail/task_planner.h"

namespace stepcast {

Result<ExecutionOrder> order_execution(const Program& program) {
  STEPCAST_ASSIGN(ExecutionOrder order, detail::check_and_link(program));
  if (detail::plan_in_order(program, order)) return order;
  order.steps.clear();
  STEPCAST_TRY(detail::plan_by_tasks(program, order));
  return order;
}

}  // namespace stepcast
