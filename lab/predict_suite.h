// Scores predictions of recorded steps: the structure of a recorded step with times that come from elsewhere.
//
//   step_time          (primary) leave one rank out: a rank's host time is what the other ranks of the job
//                      needed for the same operators; its GPU work as recorded, the other ranks as recorded,
//                      start offsets given; ms
//   mean_of_others     the mean of the other ranks' steps instead: what knowing nothing of the rank comes to
//   published_algorithm, speed_of_light, overlap_factor   what others' models say of the same steps
//                      (trace_baselines.h)
//   own_overheads      every rank with the mean host times of its own step, all ranks together
//   cross_step         the median of what the other steps of the file take with this step's data loader time;
//                      without the steps before the job is under way, which are named
//   median_of_others   the median of the other steps as they are
//   two_captures       one capture's structure and GPU work with the host times of another capture of the same
//                      job (a trace set beside it with the same operators); the data loader's time as recorded;
//                      the mean of its steps
//   two_captures_each_step        the same, every step alone
//   two_captures_loader_learned   the mean step with the data loader's time from the other capture
//   foreign_overheads  host times of the job that knows most of this one's calls, another workload on whatever
//                      GPU, times the factor by which operators that both know are slower here; mean step
//   foreign_overheads_unrelated   the same where that job knows less than 60 % of the calls
//   execution_traces_alone   a rank's step from the execution traces of all ranks: its own recorded time
//                      gives no more than when it began; host times and launches of the other ranks
//   gpu_active         kernel time from models alone against the recorded one, without communication, table
//                      lookups and what has no known operation; ms
//   gpu_active_by_class   the same by class of kernel, lookups too
//   gpu_active_of_convolutions   the same of convolutions: 1x1, larger, strided, grouped
//   cross_device       kernel time of a workload recorded on two GPUs: one predicted from the other by the
//                      ratio of the models
//   cross_device_models, cross_device_unchanged   the same from models alone, and with the recorded time
//
// "recorded": nothing is fitted to what is scored. Host times of `step_time` are learned on other ranks.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Result<SuiteResult> validate_predict(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

[[nodiscard]] Suite predict_suite();

}  // namespace stepcast
