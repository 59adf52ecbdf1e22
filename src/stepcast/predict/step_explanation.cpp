// Repeats the placement of every list of a priced step and reports its items.
#include "stepcast/predict/step_explanation.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/sustained_clock.h"

namespace stepcast {
namespace {

// Whether the record of a GEMM or attention kernel comes only from short runs. Its clock under load is then
// carried over from other devices.
bool rests_on_short_runs(const Operation& operation, KernelClass kernel_class, StepPricer& prices) {
  if (kernel_class != KernelClass::gemm && kernel_class != KernelClass::attention) return false;
  return prices.platform().find_model(kSustainedClockKind) != nullptr &&
         !prices.kernels().model().explain(operation).sustained;
}

// Report of one placed item.
ExplainedItem explained(const PlacedItem& placed, StepPricer& prices) {
  const WorkItem& item = *placed.item;
  ExplainedItem result;
  result.name = item.name;
  result.count = item.count;
  result.beside = placed.lane == WorkLane::beside;
  result.kernel_class = placed.kernel_class;
  result.alone = placed.alone;
  result.start_us = placed.start_us;
  result.duration_us = placed.duration_us;
  result.slowdown = placed.slowdown;
  if (const Transfer* transfer = item.transfer()) {
    result.collective = to_string(transfer->op);
    result.group = to_string(transfer->group);
    result.what = fmt::format("{} over {}", result.collective, result.group);
    result.hidden_us = placed.hidden_us();
    result.exposed_us = placed.exposed_us;
    result.bytes = transfer->message.value();
    return result;
  }
  const Operation& operation = *item.operation();
  const Work work = work_of(operation);
  result.what = describe(operation);
  result.flops = work.flops.value();
  result.bytes = work.bytes().value();
  result.record = prices.kernels().price(operation).record;
  if (!result.record.empty() && rests_on_short_runs(operation, placed.kernel_class, prices)) {
    result.record += " (short runs)";
  }
  return result;
}

// Title of a distinct update, naming the first run of stages that share it: "update", "update of stage 0",
// "update of stages 1 to 14".
std::string update_title(const PricedStep& step, std::size_t update) {
  std::size_t first = 0;
  while (step.update_of_stage[first] != update) ++first;
  std::size_t last = first;
  while (last + 1 < step.update_of_stage.size() && step.update_of_stage[last + 1] == update) ++last;
  if (step.update_of_stage.size() == 1) return "update";
  if (first == last) return fmt::format("update of stage {}", first);
  return fmt::format("update of stages {} to {}", first, last);
}

}  // namespace

Result<std::vector<ExplainedList>> explain(const PricedStep& step, StepPricer& prices) {
  std::vector<ExplainedList> lists;
  std::vector<PlacedItem> placed;
  // `launched`: the list waits for its launches, as passes do but updates do not.
  const auto add = [&](std::string title, const WorkList& work, bool launched) -> Status {
    if (work.empty()) return Ok{};
    STEPCAST_TRY(lay_out(work, prices, step.placement, placed));
    PricedList sum = sum_of(placed);
    if (launched) wait_for_launches(sum, time_with_launches(placed, sum, step.launch_us));
    ExplainedList list{std::move(title), {}, sum.time_us - sum.host_us, sum.host_us};
    for (const PlacedItem& item : placed) list.items.push_back(explained(item, prices));
    lists.push_back(std::move(list));
    return Ok{};
  };
  const auto add_layer = [&](const std::string& name, const LayerWork& work) -> Status {
    STEPCAST_TRY(add(name + ", forward", work.forward, true));
    STEPCAST_TRY(
        add(name + ", backward" + (work.recomputed ? " with recomputation" : ""), work.backward, true));
    return add(name + ", weight gradients held back", work.held_back, true);
  };
  for (std::size_t kind = 0; kind < step.layers.size(); ++kind) {
    STEPCAST_TRY(add_layer(step.layers.size() == 1 ? "layer" : fmt::format("layer of kind {}", kind),
                           *step.work.layer_kinds[kind]));
  }
  STEPCAST_TRY(add_layer("embedding", *step.work.embedding));
  STEPCAST_TRY(add_layer("head", *step.work.head));
  for (std::size_t u = 0; u < step.updates.size(); ++u) {
    STEPCAST_TRY(add(update_title(step, u), step.updates[u].work, false));
  }
  return lists;
}

}  // namespace stepcast
