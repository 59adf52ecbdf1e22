// Algorithm 1 of Lin et al., "Towards Universal Performance Modeling for Machine Learning Training on Multi-GPU Platforms"
// (TPDS 2024), as printed in the paper and completed by its research code. predict_trace() and untimed_program() are
// compared with this method. It reads execution traces, means of the overheads T1..T5 by its extraction rules
// (lab/published_overheads.h), and kernel times of models.
//
//   STEPCAST_ASSIGN(const PublishedTraceStep step, published_step(ranks, overheads, pricer));
//   score_replay(step.recorded, Costs{step.recorded.program})->ranks[0].step.simulated_us
//
// State of a rank: the CPU clock c and the clocks of two streams, g_cp and g_cm. Steps for every top-level operator (below
// labels), by id, from the first label with "## " in its name; calls of a data loader are left out:
//   1. skip a broadcast, and a record_param_comms without tensors
//   2. if it reads the tensor of the last collective, waits for an all-to-all, or communicates: both streams continue when
//      both are done
//   3. c += T1
//   4. with launches and kernels: c += T2; for each kernel up to the number of launches
//        start = max(end of the stream's last kernel + 1 us, c + T4), time = prediction + 5 us
//        c += T4, and T5 after all but the last; then c += T3
//      with launches only: c += T2 + sum of T4 + T5 (launches - 1) + T3; without launches: c += T5
//      the last kernel of an operator that communicates runs on the second stream, after the first one, and ends when
//      it has ended on every rank
//   5. aten::to: c waits for the first stream
// The step is max(g_cp, g_cm, c) of the slowest rank. Unseen operators cost T1. Work without a model takes no time.
//
// Difference from the paper: its kernel-time networks were not published, so kernel times, and the set of operators that
// have one, are those of the platform. The size of an all-to-all is the max over ranks of max(received, sent) bytes, with
// elements of 4 bytes.
#pragma once

#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct PublishedTraceStep {
  RecordedProgram recorded;  // the durations of its Program are the prediction
  Coverage coverage;
};

// `overheads`: records by the published extraction rules; only records of the same operator are used. Errors: those of
// untimed_program(); overheads without T1.
[[nodiscard]] Result<PublishedTraceStep> published_step(std::span<const UntimedRank> ranks,
                                                        const HostOverheads& overheads, StepPricer& prices);

}  // namespace stepcast
