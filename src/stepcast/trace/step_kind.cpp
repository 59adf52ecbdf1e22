#include "stepcast/trace/step_kind.h"

#include "stepcast/base/names.h"

namespace stepcast {

std::string_view to_string(StepKind kind) {
  return name_of<StepKind::start_up>(
      kind, {"ordinary", "loader", "profiler", "checkpoint", "evaluation", "start_up"}, "ordinary");
}

std::string_view describe(StepKind kind) {
  return name_of<StepKind::start_up>(
      kind,
      {"is like the others", "waits for its data loader", "starts or stops a profiler", "writes a checkpoint",
       "evaluates, without a backward pass", "compiles, loads code or allocates"},
      "is like the others");
}

}  // namespace stepcast
