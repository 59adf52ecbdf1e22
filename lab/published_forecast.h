// Forecasts by two published methods, for comparison, as Forecast: recorded ranks by Algorithm 1 (published_algorithm.h), a
// described step by a closed formula (published_forecast.h).
//
//   STEPCAST_ASSIGN(const Forecast forecast, published_trace_forecast({.places = {"traces/dlrm8"}}));
//   forecast_text(forecast)      // its notes contain the recorded step and the error of the forecast
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

struct PublishedTraceRequest {
  // Profiler traces with the execution traces of the same ranks, or execution traces alone.
  std::vector<std::filesystem::path> places;
  // Platform of the kernel models, and of the overheads if only execution traces are given; empty: the shipped platform with
  // the GPU that recorded.
  std::string platform{};
  // Profiler traces of the same kind of host, for overheads with execution traces alone; they replace those of the platform.
  std::vector<std::filesystem::path> overheads_from{};
  std::optional<std::int64_t> step{};  // N of ProfilerStep#N; default: the last step that all ranks have
  ProgressReport progress{};           // while traces are read
};

// Forecast by Algorithm 1 of Lin et al. (TPDS 2024). With profiler traces, overheads are extracted from them by the
// published rules. The forecast has no band. Errors: traces of another kind, profiler traces without execution traces, no
// platform.
[[nodiscard]] Result<Forecast> published_trace_forecast(const PublishedTraceRequest& request);

// Our forecast of a described step. Forecast::published has the step composed from the same prices as by Zhang et al. (HiPC
// 2025). Errors: those of Session::predict and published_components(); an incomplete layout.
[[nodiscard]] Result<Forecast> published_step_forecast(const PredictRequest& request);

// The published composition of a step from the times of its operators, unchanged: Zhang et al., "Efficient Fine-Grained GPU
// Performance Modeling for Distributed Deep Learning of LLM" (HiPC 2025). For comparison only; stepcast forecasts with
// step_model.h. docs/published-method.md lists the differences.
//
//   step = (M - 1 + P)(max F + max B) + gradient all-reduce of the head + max(optimizer + all-gather)
//
// over a head, middle and tail stage, with M micro-batches, P stages.

// Layers of the three kinds of stages for n layers on p stages: ceil((n + 5) / p) - 2, floor((n + 5) / p), floor((n + 5) /
// p) - 3. Their sum is n only if (n + 5) mod p is 0 or 1; otherwise some layers are not counted.
struct PublishedLayerSplit {
  std::int64_t head = 0, middle = 0, tail = 0;
  // Layers on p stages, including head and tail. May differ from n, and be less than head + middle + tail, because the
  // maxima below include a middle stage even if p is 1 or 2.
  [[nodiscard]] std::int64_t counted(std::int64_t n_stages) const {
    return head + (n_stages - 2) * middle + tail;
  }
  friend bool operator==(const PublishedLayerSplit&, const PublishedLayerSplit&) = default;
};
// Requires n_layers and n_stages above 0.
[[nodiscard]] PublishedLayerSplit published_layer_split(std::int64_t n_layers, std::int64_t n_stages);

// One kind of stage, for one micro-batch, without transfers to other stages.
struct PublishedStage {
  double forward_us = 0, backward_us = 0;
  double all_reduce_us = 0, all_gather_us = 0;  // gradients and weights over data-parallel ranks
  double optimizer_us = 0;
};

struct PublishedComponents {
  std::int64_t n_stages = 1, micro_batches = 1, data_parallel = 1;
  double p2p_us = 0;  // activations of a micro-batch from stage to stage
  PublishedStage head, middle, tail;
};

struct PublishedStep {
  double longest_forward_us = 0, longest_backward_us = 0;  // with transfers
  double passes_us = 0;
  double all_reduce_us = 0;  // of the head; that of other stages is assumed to be hidden
  double update_us = 0;      // optimizer and all-gather; 0 without data parallelism
  [[nodiscard]] double step_us() const { return passes_us + all_reduce_us + update_us; }
};
[[nodiscard]] PublishedStep compose_as_published(const PublishedComponents& components);

// The components from our prices: layers, embedding and head priced by StepPricer, distributed to stages as published.
// Errors if the published method has no formula: another schedule than 1F1B, layers of several kinds, more stages than
// layers allow.
// several kinds, more stages than layers allow.
[[nodiscard]] Result<PublishedComponents> published_components(const PricedStep& step, const Layout& layout);

}  // namespace stepcast
