// Implementations of the edits that step_edit.h lists, by stage. A `check_` function finds missing inputs before any edit
// is made; the others change `step`.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast::detail {

// Stage gpu_times: durations of kernels, copies and transfers.
// Prices all GPU work on the platform, or keeps the recorded times with what-if factors.
[[nodiscard]] Status price_gpu_work(const TracePredictionOptions& options, EditedStep& step);
// Error: a rank platform names a rank that is not recorded, or the models it needs are missing.
[[nodiscard]] Status check_rank_platforms(const TracePredictionOptions& options,
                                          const RecordedProgram& recorded);
// Prices the computation of single ranks on their own devices (TracePredictionOptions::rank_platforms).
[[nodiscard]] Status move_ranks(const TracePredictionOptions& options, EditedStep& step);
// Error: the question needs models of the machine that recorded, and none are given.
[[nodiscard]] Status check_models(const TracePredictionOptions& options, const RecordedProgram& recorded);
// Prices transfers with the links of another platform (TracePredictionOptions::links).
[[nodiscard]] Status change_links(const TracePredictionOptions& options, EditedStep& step);
// Takes GPU times from the line through recordings at two batches (batch_pair.h).
[[nodiscard]] Status scale_between_batches(const TracePredictionOptions& options, EditedStep& step);
// The part of the requested change of work that models must price: without the batch if two recordings determine it.
[[nodiscard]] WorkChange change_by_models(const TracePredictionOptions& options);
// Scales GPU times by the requested change of batch, type, shapes or ranks (changed_work.h).
[[nodiscard]] Status change_work(const TracePredictionOptions& options, EditedStep& step);
// Recomputes delays that are a share of the duration of their source (EdgeInfo::share_of_source) from the new durations.
[[nodiscard]] Status stretch_delays(const TracePredictionOptions& options, EditedStep& step);

// Stage host_times: durations on CPU threads.
// Error: host overheads are requested without a platform.
[[nodiscard]] Status check_host(const TracePredictionOptions& options, const RecordedProgram& recorded);
// Takes host times from the overheads of the platform, or scales the recorded ones by the what-if factor.
[[nodiscard]] Status change_host_times(const TracePredictionOptions& options, EditedStep& step);

// Stage ranks: differences between ranks.
// Moves the start of all ranks to the earliest one.
[[nodiscard]] Status start_together(const TracePredictionOptions& options, EditedStep& step);
// Gives all ranks the total computation time, host time and start of the median rank.
[[nodiscard]] Status level_ranks(const TracePredictionOptions& options, EditedStep& step);

}  // namespace stepcast::detail
