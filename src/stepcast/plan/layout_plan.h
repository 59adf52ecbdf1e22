// The layouts of one training on one machine, searched and ranked.
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

struct PlanRequest {
  Job job;  // what it says of degrees, sharding, recomputation and micro-batch restricts the space
  std::int64_t n_gpus = 1;
  LayoutRestrictions restrictions;
  std::optional<double> memory_bytes;  // of a GPU; nothing: of the device
  std::size_t top = 20;
  unsigned threads = 0;  // 0: one per hardware thread
  StepAssumptions assumptions;
  PlanObjective objective = PlanObjective::step_time;
  std::optional<double> power_limit_W{};  // of each GPU; changes `assumptions` (predict/what_if.h)
  Jitter jitter;  // above 0: also how layouts stand it, and the steadiest is chosen (layout_jitter.h)
  // Also what the lists do not hold (layout_refinement.h): where the fastest step is wanted, the fastest of these whose
  // memory is not tight and which the framework has flags for is chosen if no choice of the lists is as fast.
  bool refines = false;
  // Of the platform, that keeps what is priced for the next plan; nothing: its own.
  const StepModel* steps = nullptr;
};

struct LayoutPlan {
  LayoutPrototypes prototypes;
  LayoutSpace space;
  SearchedLayouts found;
  LayoutRanking ranking;
  std::vector<RefinedLayout> refined;    // ascending; empty if nothing came out faster, or nobody asked
  std::vector<JitteredLayout> jittered;  // in the order of the ranking; empty unless asked for
  Bytes memory;
  std::vector<std::string> notes;
  StepAssumptions assumptions{};  // that layouts were priced with
  // Of `refined`; ranking.chosen is then the layout that it refines. Nothing: that one as it stands in the ranking.
  std::optional<std::size_t> chosen_refinement{};
  std::size_t n_refined = 0;  // layouts that refinement was tried on
};

// The one layout that a plan recommends, with its numbers. Refers to the plan.
struct ChosenLayout {
  std::size_t of = 0;  // index of the ranking
  const RefinedLayout* refinement = nullptr;
  LayoutPoint point;  // of a refinement with the recomputation that it chose
  const Layout& layout;
  const StepPrediction& step;
  const MemoryForecast& memory;
  Estimate promise;  // the expected step (promise.h)
};
// For a plan that has layouts.
[[nodiscard]] ChosenLayout chosen_layout(const LayoutPlan& plan);
// One of the ranking, as it stands there.
[[nodiscard]] ChosenLayout listed_layout(const LayoutPlan& plan, std::size_t index);
// As layout_flags.h says it; of a refinement what its settings say.
[[nodiscard]] std::optional<std::string> megatron_text(const ChosenLayout& chosen,
                                                       const LayoutPrototypes& prototypes);
// The batch of a step where nobody says it, and the note that says so.
struct UsualBatch {
  std::int64_t sequences = 0;
  std::string note;
};
// Language models: about four million tokens. Encoders in front of decoders: 2,048 sequences. Images: 256 of every GPU, or
// the largest power of two that fits into its memory. A whole number for every GPU, and one that one of `micro_batches`
// divides (none: any). Of `layout` the sequence length, types and software count.
[[nodiscard]] UsualBatch usual_batch(const Transformer& model, const Layout& layout, Bytes memory,
                                     std::int64_t n_gpus, const std::vector<std::int64_t>& micro_batches);
// `list` as far as flags of one layout leave it. Errors: a list without what a flag says.
[[nodiscard]] Result<LayoutRestrictions> restricted(const JobSettings& flags, LayoutRestrictions list);

// Errors: those of resolve() and of layout_space(). No layout that runs and fits is none; why_none() says why then.
[[nodiscard]] Result<LayoutPlan> plan_layouts(const PlanRequest& request, const Platform& platform);

// Of all that were priced those that no other beats in time and in memory to spare: the fastest first, every further one
// needs less memory than all before it.
[[nodiscard]] std::vector<PricedLayout> pareto_of(const std::vector<PricedLayout>& priced);

// "none of the 3,360 layouts runs on 7 GPUs; most often: ...".
[[nodiscard]] Error why_none(const LayoutPlan& plan);

}  // namespace stepcast
