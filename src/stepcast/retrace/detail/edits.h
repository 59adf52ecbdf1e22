// The edits of step_edit.h, by stage.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast::detail {

// gpu_times
[[nodiscard]] Status price_gpu_work(const TracePredictionOptions& options, EditedStep& step);
[[nodiscard]] Status check_rank_platforms(const TracePredictionOptions& options,
                                          const RecordedProgram& recorded);
[[nodiscard]] Status move_ranks(const TracePredictionOptions& options, EditedStep& step);
[[nodiscard]] Status check_models(const TracePredictionOptions& options, const RecordedProgram& recorded);
[[nodiscard]] Status change_links(const TracePredictionOptions& options, EditedStep& step);
[[nodiscard]] Status scale_between_batches(const TracePredictionOptions& options, EditedStep& step);
// What is left of the change of work when the batch lies between two recordings.
[[nodiscard]] WorkChange change_by_models(const TracePredictionOptions& options);
[[nodiscard]] Status change_work(const TracePredictionOptions& options, EditedStep& step);
[[nodiscard]] Status stretch_delays(const TracePredictionOptions& options, EditedStep& step);

// host_times
[[nodiscard]] Status check_host(const TracePredictionOptions& options, const RecordedProgram& recorded);
[[nodiscard]] Status change_host_times(const TracePredictionOptions& options, EditedStep& step);

// ranks
[[nodiscard]] Status start_together(const TracePredictionOptions& options, EditedStep& step);
[[nodiscard]] Status level_ranks(const TracePredictionOptions& options, EditedStep& step);

}  // namespace stepcast::detail
