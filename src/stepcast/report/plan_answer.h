// The answer of `stepcast plan`: the values from which its text, its page and its JSON are made.
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
#include "stepcast/plan/plan_alternatives.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/document.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

// What was asked, as far as the plan itself does not contain it.
struct PlanSubject {
  std::string platform;  // as given
  std::string gpu;       // name of the device
  std::size_t top = 20;  // rows of tables in a terminal
  // The layout that runs now, given by --from.
  std::optional<LayoutNow> now = std::nullopt;
  // In a terminal, also show the searched space and why other layouts are not in the list (--why).
  bool why = false;
  // With --at-most: the given GPUs, and the plans that were compared.
  std::optional<std::int64_t> gpu_limit = std::nullopt;
  std::vector<PlanAlternative> alternatives{};
};

// A layout with its price. Every feasible layout of the space has one.
struct LayoutAnswer {
  STEPCAST_FIELDS(LayoutAnswer, "priced_layout");
  STEPCAST_FIELDS_OF(LayoutPoint, point);
  STEPCAST_FIELD_AS("step_time_ms", double, step_ms, "forecast step time, in ms");
  STEPCAST_FIELD_AS("peak_memory_GiB", double, peak_GiB, "peak memory of a GPU of the fullest stage, in GiB");
  STEPCAST_FIELD_AS("memory_margin_GiB", double, margin_GiB, "headroom of the fullest stage, in GiB");
};

// The shares of the step in percent; they sum to 100.
struct PlanShares {
  STEPCAST_FIELDS(PlanShares);
  STEPCAST_COLUMN(double, computation, "", TableColumn{"compute\n%", 1}.at(1));
  STEPCAST_COLUMN_AS("exposed_communication", double, communication, "",
                     TableColumn{"transfers\n%", 1}.at(1));
  STEPCAST_COLUMN(double, bubble, "", TableColumn{"bubble\n%", 1}.at(1));
  STEPCAST_COLUMN(double, rest, "", TableColumn{"rest\n%", 1}.at(1));
};

// A layout that was evaluated in full, with its interval and its comparison with the fastest layout.
struct RankedLayoutAnswer {
  STEPCAST_FIELDS(RankedLayoutAnswer, "layout");
  STEPCAST_FIELDS_OF(LayoutPoint, point);
  STEPCAST_COLUMN_AS("step_time_ms", double, step_ms, "forecast step time, in ms", "step\nms", 1);
  STEPCAST_COLUMN_AS("step_time_p10_ms", double, p10_ms, "10th percentile of the step time, in ms", "p10\nms",
                     1);
  STEPCAST_COLUMN_AS("step_time_p90_ms", double, p90_ms, "90th percentile of the step time, in ms", "p90\nms",
                     1);
  STEPCAST_FIELD_AS("behind_fastest_ms", double, behind_ms,
                    "step time minus that of the fastest layout, in ms");
  STEPCAST_FIELD_AS("uncertainty_of_difference_ms", double, uncertain_ms,
                    "half-width of the band of the difference to the fastest layout, in ms");
  STEPCAST_FIELD_AS("cannot_be_told_from_fastest", bool, alike,
                    "whether the layout is tied with the fastest within forecast error");
  STEPCAST_COLUMN(std::size_t, rank, "rank among all priced layouts, starting at 1",
                  TableColumn::plain("#").at(-2));
  STEPCAST_FIELD_IF_ANY("unmeasured_kind", std::string, unmeasured,
                        "kind of layout without a published run: its band is wider, and it must be faster "
                        "than that to be chosen");
  STEPCAST_COLUMN(double, tokens_per_s_per_gpu, "", "tokens/s\nper GPU");
  STEPCAST_FIELD_IF_ANY("mfu", double, mfu, "", "MFU\n%", 1, 100);
  STEPCAST_FIELD_AS("percent_of_step", PlanShares, percent, "parts of the step, in percent");
  STEPCAST_COLUMN_AS("peak_memory_GiB", double, peak_GiB, "peak memory of a GPU of the fullest stage, in GiB",
                     "memory\nGiB", 1);
  STEPCAST_FIELD_AS("memory_margin_GiB", double, margin_GiB, "headroom of the fullest stage, in GiB");
  STEPCAST_FIELD(std::size_t, worst_stage, "index of the fullest stage");
  STEPCAST_FIELD(MemoryVerdict, memory_verdict, "");
  STEPCAST_FIELD_IF_ANY("megatron_flags", std::string, megatron_flags, "");
  STEPCAST_FIELD_IF_ANY("torchtitan_toml", std::string, torchtitan_toml, "");
  STEPCAST_FIELD_IF_ANY("deepspeed_json", std::string, deepspeed_json, "");
  EstimateSource source{};
};

// A layout with changes that made it faster, such as uneven stages or recomputation of some layers only.
struct RefinedLayoutAnswer {
  STEPCAST_FIELDS(RefinedLayoutAnswer);
  STEPCAST_FIELD(std::size_t, of, "index into layouts of the layout that is refined");
  STEPCAST_COLUMN_AS("step_time_ms", double, step_ms, "", "step\nms", 1);
  STEPCAST_FIELD_AS("step_time_p10_ms", double, p10_ms, "");
  STEPCAST_FIELD_AS("step_time_p90_ms", double, p90_ms, "");
  STEPCAST_COMPUTED_COLUMN(x.before_ms, "before\nms", 1)
  STEPCAST_COLUMN_AS("peak_memory_GiB", double, peak_GiB, "", "memory\nGiB", 1);
  STEPCAST_FIELD(std::vector<std::string>, changes, "changes to that layout");
  STEPCAST_FIELD(std::vector<std::int64_t>, layers_per_stage, "");
  STEPCAST_FIELD(std::string, megatron_flags, "");
  double before_ms = 0;  // the step time of the layout that it refines
};

// The recommended layout. The numbers in `layout` include the changes of a refinement.
struct ChosenLayoutAnswer {
  STEPCAST_FIELDS(ChosenLayoutAnswer);
  STEPCAST_FIELD(std::size_t, of, "index into layouts of the chosen layout");
  STEPCAST_FIELD(std::vector<std::string>, changes,
                 "refinements of that layout, included in the numbers below; empty: none");
  STEPCAST_FIELD_AS("promised_step_time_ms", double, promised_ms,
                    "expected step time in ms: the forecast (step_time_ms). With experts it is multiplied by "
                    "the median of published runs over forecasts of searched layouts.");
  STEPCAST_FIELD_AS("promised_step_time_p10_ms", double, promised_p10_ms,
                    "10th percentile of the expected step time, in ms");
  STEPCAST_FIELD_AS("promised_step_time_p90_ms", double, promised_p90_ms,
                    "90th percentile of the expected step time, in ms");
  STEPCAST_FIELD(double, promised_tokens_per_s_per_gpu, "");
  STEPCAST_FIELDS_OF(RankedLayoutAnswer, layout);
  StageMemory worst_stage{};
  // Why it was chosen: "2.3 % behind #1 by the forecast, and with memory to spare". May be empty.
  std::string reason{};
};

// A faster layout that differs from the current one in few choices.
struct NearbyLayoutAnswer {
  STEPCAST_FIELDS(NearbyLayoutAnswer);
  STEPCAST_FIELD(int, changes, "number of choices that differ from the running layout");
  STEPCAST_FIELD(std::string, which, "the choices that differ");
  STEPCAST_FIELD(LayoutAnswer, becomes, "the layout after these changes");
};

// The layout that runs now, with better ones near it.
struct RunningLayoutAnswer {
  STEPCAST_FIELDS(RunningLayoutAnswer);
  STEPCAST_FIELDS_OF(LayoutPoint, point);
  STEPCAST_FIELD_AS("step_time_ms", std::optional<double>, step_ms, "");
  STEPCAST_FIELD(std::optional<std::string>, why_no_time, "why the layout cannot run on this machine");
  STEPCAST_FIELD(std::vector<NearbyLayoutAnswer>, nearby,
                 "faster layouts that differ in few choices from the running one");
};

// A plan on all given GPUs, for comparison with the plan on at most these.
struct PlanAlternativeAnswer {
  STEPCAST_FIELDS(PlanAlternativeAnswer);
  STEPCAST_COLUMN(std::int64_t, n_gpus, "", "GPUs");
  STEPCAST_COLUMN(std::int64_t, global_batch_sequences, "", TableColumn::plain("batch"));
  STEPCAST_COLUMN_AS("promised_step_time_ms", double, step_ms, "expected step time, in ms", "step\nms", 1);
  STEPCAST_COLUMN(double, ms_per_sequence, "expected step time / global batch, in ms", "ms per\nsample", 3);
  STEPCAST_COLUMN(double, gpu_s_per_sequence, "GPUs x expected step time / global batch, in GPU-seconds",
                  "GPU-s per\nsample", 3);
  STEPCAST_COLUMN(std::string, layout, "", TableColumn{"layout<"});
  STEPCAST_FIELD_IF_ANY("megatron_flags", std::string, megatron_flags, "");
  STEPCAST_FIELD_IF_ANY("command", std::string, command, "command that prints this plan");
};

// The number of layouts in the space, by what became of them. `all` is the sum of the others.
struct LayoutCounts {
  STEPCAST_FIELDS(LayoutCounts);
  STEPCAST_FIELD(std::uint64_t, all, "all layouts of the space");
  STEPCAST_FIELD(std::uint64_t, cannot_run, "layouts that are invalid");
  STEPCAST_FIELD_AS("same_as_another", std::uint64_t, same, "duplicates of another layout");
  STEPCAST_FIELD(std::uint64_t, too_large, "layouts that do not fit in memory");
  STEPCAST_FIELD(std::uint64_t, priced, "layouts with a forecast");
};

// The complete answer. Members without STEPCAST_FIELD are only used by the text and the page.
struct PlanAnswer {
  using Space = std::vector<std::pair<std::string, std::string>>;
  STEPCAST_FIELDS(PlanAnswer);
  STEPCAST_FIELD(std::string, model, "");
  STEPCAST_FIELD(std::string, platform, "");
  STEPCAST_FIELD(std::string, gpu, "");
  STEPCAST_FIELD(std::int64_t, n_gpus, "");
  STEPCAST_FIELD(std::int64_t, global_batch_sequences, "");
  STEPCAST_FIELD(std::int64_t, seq_len_tokens, "");
  STEPCAST_FIELD(double, memory_GiB, "memory of a GPU, in GiB");
  STEPCAST_FIELD(Space, space, "lists of values that span the search space, as text");
  STEPCAST_FIELD_AS("layouts_counted", LayoutCounts, n, "");
  STEPCAST_FIELD_AS("cannot_run", std::vector<LayoutRejection>, rejections, "invalid layouts by reason");
  STEPCAST_FIELD_AS("same_as_another", std::vector<LayoutRejection>, same,
                    "duplicates of other layouts by reason");
  STEPCAST_FIELD(std::vector<LayoutRejection>, too_large, "layouts that do not fit in memory, by reason");
  STEPCAST_FIELD_AS("n_cannot_be_told_apart", std::size_t, n_alike,
                    "number of layouts tied with the fastest within forecast error");
  STEPCAST_COMPUTED_FIELD("chosen", x.chosen.of,
                          "index into layouts of the chosen layout; chosen_layout may refine it")
  STEPCAST_FIELD_AS("chosen_layout", ChosenLayoutAnswer, chosen, "recommended layout");
  STEPCAST_FIELD(std::vector<RankedLayoutAnswer>, layouts, "");
  STEPCAST_FIELD(std::vector<RefinedLayoutAnswer>, refined, "refinements of the best layouts");
  STEPCAST_FIELD_AS("refinement_tried_on", std::size_t, n_refined,
                    "number of layouts for which refinements were tried");
  STEPCAST_FIELD_IF_ANY("now", RunningLayoutAnswer, now, "running layout, with --from");
  STEPCAST_FIELD_IF_ANY("gpu_limit", std::int64_t, gpu_limit,
                        "GPUs given with --at-most; those that n_gpus leaves are idle");
  STEPCAST_COMPUTED_FIELD("alternatives", given_if(x.gpu_limit.has_value(), x.alternatives),
                          "with --at-most: plans on all given GPUs, with this batch and with batches that "
                          "divide better")
  STEPCAST_FIELD(std::vector<LayoutAnswer>, pareto, "Pareto-optimal layouts in step time and free memory");
  STEPCAST_COMPUTED_FIELD("jitter", given_if(!x.jittered.empty(), x.jittered),
                          "best layouts with random variation of GPU speed, with --jitter")
  STEPCAST_FIELD(std::vector<std::string>, notes, "");
  std::vector<PlanAlternativeAnswer> alternatives{};
  std::vector<JitteredLayout> jittered{};
  Framework framework{};
  // The name of a training sample: "sequence" or "image".
  std::string_view sample = "sequence";
  std::size_t top = 20;
  bool why = false;
  // More layouts than the ranking contains are tied with the fastest.
  bool more_alike = false;
};

// The document: step time against memory, layouts that are tied, the flags of the chosen layout, and the
// reasons why other layouts are not in the list (report/document.h).
[[nodiscard]] ReportDocument plan_document(const PlanAnswer& plan);
// Makes the answer. The plan must contain at least one layout.
[[nodiscard]] PlanAnswer plan_answer(const LayoutPlan& plan, const PlanSubject& subject);
// The answer as JSON, stepcast.plan/1 (docs/plan.md), and its schema.
[[nodiscard]] std::string plan_json(const PlanAnswer& answer);
[[nodiscard]] std::string plan_schema();
// All priced layouts: as CSV with intervals and flags, and as JSON objects, one per line. plan_csv()
// evaluates each layout again, so it takes longer. Errors: those of the evaluation; a stop request.
[[nodiscard]] Result<std::string> plan_csv(const LayoutPlan& plan, const Platform& platform);
[[nodiscard]] std::string plan_jsonl(const LayoutPlan& plan);

// The options for a whole training: numbers of GPUs and platforms. Schema stepcast.training_plan/1.
struct TrainingAnswer {
  TrainingPlan plan;
  TrainingGoal goal;
  std::size_t top = 20;  // rows of the table: the fastest options, and the picked ones
};
[[nodiscard]] ReportDocument training_document(const TrainingAnswer& training);
[[nodiscard]] std::string training_json(const TrainingAnswer& answer);
[[nodiscard]] std::string training_schema();

// Several trainings on one pool of GPUs. Schema stepcast.job_plan/1.
[[nodiscard]] ReportDocument jobs_document(const JobPool& pool);
[[nodiscard]] std::string jobs_json(const JobPool& answer);
[[nodiscard]] std::string jobs_schema();

}  // namespace stepcast
