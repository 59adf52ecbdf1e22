// Extracts the five overheads by the rules of Lin et al. (TPDS 2024), for comparison with the published method. The rules do
// not keep the sum of a step: 2 us are subtracted for every profiler event, long gaps are left out, outliers are dropped.
//
//   top-level operator   the outermost one below labels; labels are annotations and names that begin with one
//                        of a list ("##", "module::", "Optimizer.step", ...)
//   launch               a call of cudaLaunchKernel, cudaMemcpyAsync or cudaStreamSynchronize inside it
//   T1   begin - end of the operator before under the same label; only gaps above 2 and below 200 us; - 2
//   T2   begin of the first launch - begin of the operator - 2 per event between
//   T3   end of the operator - end of the last launch - 2 per event after it
//   T4   4 us for every kind of launch except cudaStreamSynchronize
//   T5   begin of a launch - end of the one before - 2 per event between; 0 with a single launch; without launches the
//        length of the operator - 2 per event inside, childless aten::to left out
//
// Negative values count as 0. Then values more than 1.5 interquartile ranges beyond a quartile are removed from every list
// of a rank. Events that begin between a data loader and the next "## Forward ##" are left out.
#pragma once

#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/trace/recorded_rank.h"

#include "calibrate/overhead_traces.h"

namespace stepcast {

// Overheads of the complete ProfilerSteps of the file, or of the whole file if it has none. T1 has no operator (an empty
// name); T5 of a call with one launch is a sample of 0 us.
[[nodiscard]] OverheadSamples published_overheads(const RecordedRank& rank);

// Means of these samples in the form that the published algorithm reads.
[[nodiscard]] HostOverheads published_host_overheads(const OverheadSamples& samples);

// The events of a trace that are labels, not operators, in the code published by Lin et al. (TPDS 2024).

// True for names that begin with a label of the published list: "##", "module::", "Optimizer.step", "c10d::", ... Module
// names of single workloads are left out of the list. Data loading is neither a label nor an operator.
[[nodiscard]] bool is_published_label(std::string_view name);

}  // namespace stepcast
