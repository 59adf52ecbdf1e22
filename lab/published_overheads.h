// The five overheads by the extraction rules of Lin et al. (TPDS 2024), for comparison with the published
// method. They do not keep the sum of a step: 2 us are taken off for every event of the profiler, long gaps are
// left out, outliers are dropped.
//
//   top-level operator   the outermost one below labels; labels are annotations and names that begin with one
//                        of a list ("##", "module::", "Optimizer.step", ...)
//   launch               a call of cudaLaunchKernel, cudaMemcpyAsync or cudaStreamSynchronize inside it
//   T1   begin - end of the operator before under the same label; only gaps above 2 and below 200 us; - 2
//   T2   begin of the first launch - begin of the operator - 2 per event between
//   T3   end of the operator - end of the last launch - 2 per event behind it
//   T4   4 us for every sort of launch but cudaStreamSynchronize
//   T5   begin of a launch - end of the one before - 2 per event between; 0 where there is one launch only;
//        without launches the length of the operator - 2 per event inside, childless aten::to left out
//
// What is negative counts as 0. Then every list of a rank loses what is more than 1.5 interquartile ranges
// beyond a quartile. What begins between a data loader and the next "## Forward ##" is left out.
#pragma once

#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/trace/recorded_rank.h"

#include "calibrate/overhead_traces.h"

namespace stepcast {

// Of the complete ProfilerSteps of the file; of the whole file where it has none. T1 has no operator (an empty
// name); T5 of a call with one launch is a sample of 0 us.
[[nodiscard]] OverheadSamples published_overheads(const RecordedRank& rank);

// Samples of these rules as the published algorithm asks for them.
[[nodiscard]] HostOverheads published_host_overheads(const OverheadSamples& samples);

// Which events of a trace are labels and no operators in the code that Lin et al. (TPDS 2024) published.

// True for names that begin with one of its list: "##", "module::", "Optimizer.step", "c10d::", ... Names of modules
// of single workloads are left out; data loading is no operator.
[[nodiscard]] bool is_published_label(std::string_view name);

}  // namespace stepcast
