// Step models of one platform for searches on several threads: each serves one at a time, and keeps what it has priced for the
// next step of the search, and for the next search.
//
//   StepModels models{platform};
//   const StepModels::Lease steps = models.take(assumptions);
//   steps->price(model, layout);
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {

class StepModels {
 public:
  // `platform` must outlive them.
  explicit StepModels(const Platform& platform) : platform_(platform) {}

  // One that nobody else uses until the lease ends, which must not outlive the models.
  class Lease {
   public:
    Lease(StepModels& of, std::unique_ptr<StepModel> model) : of_(&of), model_(std::move(model)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (model_ != nullptr) of_->give_back(std::move(model_));
    }
    [[nodiscard]] StepModel& operator*() const { return *model_; }
    [[nodiscard]] StepModel* operator->() const { return model_.get(); }

   private:
    StepModels* of_;
    std::unique_ptr<StepModel> model_;
  };
  [[nodiscard]] Lease take(const StepAssumptions& assumptions);

 private:
  void give_back(std::unique_ptr<StepModel> model);

  const Platform& platform_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StepModel>> free_;
  std::size_t n_taken_ = 0;
};

}  // namespace stepcast
