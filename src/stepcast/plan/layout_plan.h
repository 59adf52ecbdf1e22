// Searches and ranks the layouts of one training on one machine.
//
//   STEPCAST_ASSIGN(const LayoutPlan plan, plan_layouts({.job = job, .n_gpus = 1024}, platform));
//   plan.found.n_layouts(), chosen_layout(plan).step
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_jitter.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/plan/layout_refinement.h"
#include "stepcast/plan/layout_search.h"
#include "stepcast/plan/layout_space.h"
#include "stepcast/plan/promise.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {

class StepModel;

// What to plan. Fields of `job` about degrees, sharding, recomputation and micro-batch restrict the space.
struct PlanRequest {
  Job job;  // the model, batch and fixed parts of the layout
  std::int64_t n_gpus = 1;
  LayoutRestrictions restrictions;
  std::optional<double> memory_bytes;  // memory per GPU in bytes; empty: that of the device
  std::size_t top = 20;                // layouts to list
  unsigned threads = 0;                // 0: one per hardware thread
  StepAssumptions assumptions;
  PlanObjective objective = PlanObjective::step_time;
  // Power limit per GPU in W; changes `assumptions` (predict/what_if.h).
  std::optional<double> power_limit_W{};
  Jitter jitter;  // above 0: also simulates jitter and chooses the steadiest layout (layout_jitter.h)
  // Also refines layouts beyond the lists (layout_refinement.h). With the objective step time, the fastest refined layout is
  // chosen if it is faster than all listed ones, has enough headroom and framework flags exist for it.
  bool refines = false;
  // Model of the platform with cached prices of earlier plans; null: a new one.
  const StepModel* steps = nullptr;
};

// The result of a search.
struct LayoutPlan {
  LayoutPrototypes prototypes;
  LayoutSpace space;
  SearchedLayouts found;
  LayoutRanking ranking;
  std::vector<RefinedLayout> refined;    // ascending in time; empty if not requested or if nothing got faster
  std::vector<JitteredLayout> jittered;  // in the order of the ranking; empty if not requested
  // Memory of a GPU that layouts had to fit.
  Bytes memory;
  std::vector<std::string> notes;
  StepAssumptions assumptions{};  // used for the prices of all layouts
  // Index into `refined` if a refinement is chosen; ranking.chosen is then the layout it refines. Empty: the ranked layout is
  // chosen unchanged.
  std::optional<std::size_t> chosen_refinement{};
  std::size_t n_refined = 0;  // layouts on which refinement was tried
};

// The recommended layout of a plan with its numbers. Refers to the plan, which must outlive it.
struct ChosenLayout {
  std::size_t of = 0;  // index into the ranking
  const RefinedLayout* refinement = nullptr;
  LayoutPoint point;  // of a refinement: with its recomputation
  const Layout& layout;
  const StepPrediction& step;
  const MemoryForecast& memory;
  Estimate promise;  // the expected step, with the factor for searched layouts
};
// Requires a plan with at least one layout.
[[nodiscard]] ChosenLayout chosen_layout(const LayoutPlan& plan);
// The layout of the ranking at `index`, without refinement.
[[nodiscard]] ChosenLayout listed_layout(const LayoutPlan& plan, std::size_t index);
// Flags as in layout_flags.h; for a refinement the flags of its settings.
[[nodiscard]] std::optional<std::string> megatron_text(const ChosenLayout& chosen,
                                                       const LayoutPrototypes& prototypes);
// The default batch of a step, and the note about it.
struct UsualBatch {
  std::int64_t sequences = 0;
  std::string note;
};
// Language models: about four million tokens. Encoder-decoder models: 2,048 sequences. Image models: 256 images per GPU, or
// the largest power of two that fits its memory. The batch is divisible by the number of GPUs and by at least one of
// `micro_batches` (empty: any). `layout` gives the sequence length, types and software.
[[nodiscard]] UsualBatch usual_batch(const Transformer& model, const Layout& layout, Bytes memory,
                                     std::int64_t n_gpus, const std::vector<std::int64_t>& micro_batches);
// `list` restricted further by the flags of a single layout. Error: a list without the value of a flag.
[[nodiscard]] Result<LayoutRestrictions> restricted(const JobSettings& flags, LayoutRestrictions list);

// Errors: those of resolve() and layout_space(). A plan without any layout that runs and fits is not an error; why_none()
// then gives the reason.
[[nodiscard]] Result<LayoutPlan> plan_layouts(const PlanRequest& request, const Platform& platform);

// The Pareto-optimal layouts of `priced` in step time and peak memory: ascending in time, each with less memory than all
// before it.
[[nodiscard]] std::vector<PricedLayout> pareto_of(const std::vector<PricedLayout>& priced);

// The error for a plan without layouts: "none of the 3,360 layouts runs on 7 GPUs; most often: ...".
[[nodiscard]] Error why_none(const LayoutPlan& plan);

}  // namespace stepcast
