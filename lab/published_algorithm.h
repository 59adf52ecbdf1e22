// Algorithm 1 of Lin et al., "Towards Universal Performance Modeling for Machine Learning Training on Multi-GPU
// Platforms" (TPDS 2024), as the paper prints it and as its research code completes it: the method that
// predict_trace() and untimed_program() are held against. It reads execution traces, means of the overheads T1..T5
// by its own extraction rules (lab/published_overheads.h), and kernel times of models.
//
//   STEPCAST_ASSIGN(const PublishedTraceStep step, published_step(ranks, overheads, pricer));
//   score_replay(step.recorded, Costs{step.recorded.program})->ranks[0].step.simulated_us
//
// A rank is one CPU clock c and the clocks of two streams, g_cp and g_cm. For every operator outside of other
// operators (labels are looked through), by id, from the first label that holds "## " on; what a data loader calls
// is left out:
//   1. nothing for a broadcast and for a record_param_comms without tensors
//   2. where it reads the tensor of the last collective, waits for an exchange, or communicates itself: both streams
//      go on when both are done
//   3. c += T1
//   4. with launches and kernels: c += T2; for each kernel up to the number of launches
//        start = max(end of the stream's last kernel + 1 us, c + T4), time = prediction + 5 us
//        c += T4, and T5 behind all but the last; then c += T3
//      with launches alone: c += T2 + sum of T4 + T5 (launches - 1) + T3; with no launches: c += T5
//      the last kernel of an operator that communicates runs on the second stream, behind the first one, and ends
//      when it has ended on every rank
//   5. aten::to: c waits for the first stream
// The step is max(g_cp, g_cm, c) of the slowest rank. Operators that were never seen cost T1, work without a model no
// time: neither is estimated.
//
// What is not theirs: the kernel times, since their networks were not published. They are those of the platform's
// models, and so is the set of operators that have one. An all-to-all counts max over ranks of max(what it receives,
// what it sends) bytes, elements 4 bytes.
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

// `overheads`: records by the published extraction rules; only those of the very operator count. Errors: those of
// untimed_program(); overheads without T1.
[[nodiscard]] Result<PublishedTraceStep> published_step(std::span<const UntimedRank> ranks,
                                                        const HostOverheads& overheads, StepPricer& prices);

}  // namespace stepcast
