// The flags of `predict`: what they hold, how they are declared and under which headings --help shows them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/api/stepcast.h"

#include "command_line.h"
#include "report_output.h"

namespace stepcast::cli {

struct PredictOptions {
  std::string framework, dtype;
  std::string command_line, torchtitan, deepspeed, from_log;
  PredictRequest request;
  PredictTraceRequest traces;
  std::string ranks;
  bool json = false, require_fit = false, sensitivity = false;
  std::optional<std::int64_t> nodes;
  std::vector<std::int64_t> batches, recorded_batches, gpus;
  std::string timeline, chakra;
  bool chakra_per_rank = false;
  ReportOptions report;
  std::string tables, indices, plan;  // of recommendation models
  CLI::App* app = nullptr;            // holds the flags that Megatron knows and we pass on
};

// Flags that mean something with --trace alone.
inline constexpr auto kOfTracesAlone = std::to_array<std::string_view>({"--recorded-on",
                                                                        "--kernels",
                                                                        "--host",
                                                                        "--step",
                                                                        "--ranks",
                                                                        "--ranks-from",
                                                                        "--batch",
                                                                        "--recorded-batch",
                                                                        "--second-trace",
                                                                        "--like-median-rank",
                                                                        "--tokens-per-step",
                                                                        "--overlap",
                                                                        "--bucket-size-mb",
                                                                        "--recompute",
                                                                        "--data-parallel-ranks",
                                                                        "--samples-per-step",
                                                                        "--links-of",
                                                                        "--rank-platform",
                                                                        "--all-steps",
                                                                        "--scenarios",
                                                                        "--seed",
                                                                        "--jitter"});

// Declares all of them on `app`; `options` takes their values and has to outlive it.
void declare_predict_options(CLI::App& app, PredictOptions& options);

}  // namespace stepcast::cli
