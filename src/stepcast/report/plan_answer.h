// The answer of `stepcast plan`: the values that its text, its page and its JSON read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/plan/job_pool.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct PlanSubject {
  std::string platform;  // as it was asked for
  std::string gpu;       // name of the device
  std::size_t top = 20;  // rows of tables in a terminal
  std::optional<LayoutNow> now = std::nullopt;
  bool why = false;  // a terminal shows the space and why the others are not among the layouts, too
};

// A layout that was priced.
struct LayoutAnswer {
  LayoutPoint point;
  double step_ms = 0, peak_GiB = 0, margin_GiB = 0;
};

// A layout that was looked at in full.
struct RankedLayoutAnswer {
  LayoutPoint point;
  double step_ms = 0, p10_ms = 0, p90_ms = 0;
  EstimateSource source{};
  double behind_ms = 0, uncertain_ms = 0;  // the fastest one; half of the band of that difference
  bool alike = false;                      // within it
  std::size_t rank = 0;                    // among all priced layouts, from 1
  std::optional<std::string> unmeasured;   // the kind of layouts, if no run of it was published
  double tokens_per_s_per_gpu = 0;
  std::optional<double> mfu;
  double computation_percent = 0, communication_percent = 0, bubble_percent = 0,
         rest_percent = 0;  // of the step
  double peak_GiB = 0, margin_GiB = 0;
  std::size_t worst_stage = 0;
  MemoryVerdict memory_verdict{};
  std::optional<std::string> megatron_flags, torchtitan_toml, deepspeed_json;
};

struct RefinedLayoutAnswer {
  std::size_t of = 0;  // index of the layouts, which takes `before_ms`
  double step_ms = 0, p10_ms = 0, p90_ms = 0, before_ms = 0, peak_GiB = 0;
  std::vector<std::string> changes;
  std::vector<std::int64_t> layers_per_stage;
  std::string megatron_flags;
};

// What is recommended: `layout` has the numbers with the changes in it.
struct ChosenLayoutAnswer {
  std::size_t of = 0;                // index of the layouts
  std::vector<std::string> changes;  // what refines that one; empty: it is that one
  RankedLayoutAnswer layout;
  double promised_ms = 0, promised_p10_ms = 0, promised_p90_ms = 0;  // what to count on
  double promised_tokens_per_s_per_gpu = 0;
  StageMemory worst_stage;
  std::string reason;  // "2.3 % behind #1 by the forecast, and with memory to spare"
};

struct NearbyLayoutAnswer {
  int changes = 0;
  std::string which;
  LayoutAnswer becomes;
};

struct RunningLayoutAnswer {
  LayoutPoint point;
  std::optional<double> step_ms;
  std::optional<std::string> why_no_time;
  std::vector<NearbyLayoutAnswer> nearby;
};

struct PlanAnswer {
  std::string model, platform, gpu;
  std::int64_t n_gpus = 0, global_batch_sequences = 0, seq_len_tokens = 0;
  double memory_GiB = 0;
  Framework framework{};
  std::size_t top = 20;
  bool why = false;
  std::vector<std::pair<std::string, std::string>> space;
  std::uint64_t n_layouts = 0, n_rejected = 0, n_same = 0, n_too_large = 0, n_priced = 0;
  std::vector<LayoutRejection> rejections, same, too_large;
  std::size_t n_alike = 0;
  bool more_alike = false;
  ChosenLayoutAnswer chosen;
  std::vector<RankedLayoutAnswer> layouts;
  std::vector<RefinedLayoutAnswer> refined;
  std::size_t n_refined = 0;  // layouts that refinement was tried on
  std::optional<RunningLayoutAnswer> now;
  std::vector<LayoutAnswer> pareto;
  std::vector<JitteredLayout> jittered;
  std::vector<std::string> notes;
};

// Step time against memory, what cannot be told apart, the flags to run what is chosen, and why the others are not in the
// list (report/document.h).
[[nodiscard]] ReportDocument plan_document(const PlanAnswer& plan);
// For a plan that has layouts.
[[nodiscard]] PlanAnswer plan_answer(const LayoutPlan& plan, const PlanSubject& subject);
// Schema stepcast.plan/1 (docs/plan.md).
[[nodiscard]] std::string plan_json(const PlanAnswer& plan);
[[nodiscard]] std::string plan_schema();
// All priced layouts: as CSV, with bands and flags; and as JSON objects, one a line.
[[nodiscard]] Result<std::string> plan_csv(const LayoutPlan& plan, const Platform& platform);
[[nodiscard]] std::string plan_jsonl(const LayoutPlan& plan);

// GPUs and machines for a training. Schema stepcast.training_plan/1.
struct TrainingAnswer {
  TrainingPlan plan;
  TrainingGoal goal;
  std::size_t top = 20;  // rows of the table: the fastest, and what is picked
};
[[nodiscard]] ReportDocument training_document(const TrainingAnswer& training);
[[nodiscard]] std::string training_json(const TrainingAnswer& training);
[[nodiscard]] std::string training_schema();

// Several trainings on one pool. Schema stepcast.job_plan/1.
[[nodiscard]] ReportDocument jobs_document(const JobPool& pool);
[[nodiscard]] std::string jobs_json(const JobPool& pool);
[[nodiscard]] std::string jobs_schema();

}  // namespace stepcast
