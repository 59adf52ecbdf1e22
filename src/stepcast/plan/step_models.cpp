#include "stepcast/plan/step_models.h"

namespace stepcast {

StepModels::Lease StepModels::take(const StepAssumptions& assumptions) {
  std::unique_ptr<StepModel> model;
  {
    // A search takes some five. Models that have served often start anew, so that what they keep has an end.
    constexpr std::size_t kMostTaken = 512;
    const std::scoped_lock lock{mutex_};
    if (++n_taken_ % kMostTaken == 0) free_.clear();
    if (!free_.empty()) {
      model = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (model != nullptr)
    model->set_assumptions(assumptions);
  else
    model = std::make_unique<StepModel>(platform_, assumptions);
  return {*this, std::move(model)};
}

void StepModels::give_back(std::unique_ptr<StepModel> model) {
  const std::scoped_lock lock{mutex_};
  free_.push_back(std::move(model));
}

}  // namespace stepcast
