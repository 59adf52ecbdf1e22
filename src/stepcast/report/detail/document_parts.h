// Sections, pictures and cells that the documents of several commands share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"
#include "stepcast/report/html/charts.h"

namespace stepcast::detail {

// A key of ForecastClass::parts() as a cell, in words and with its colour.
[[nodiscard]] ReportCell part_cell(std::string_view key);
// The parts of a rank class as a bar, and of several classes as a picture.
[[nodiscard]] Bar parts_bar(std::string label, const ForecastClass& one);
[[nodiscard]] ReportFigure parts_figure(const std::vector<ForecastClass>& classes, std::string caption);

// The parts of the memory of a GPU, with colour and name. Their order is that of bars and columns.
struct MemoryPart {
  const char* colour;
  const char* name;
  double ForecastStageMemory::*value;
};
inline constexpr MemoryPart kMemoryParts[] = {
    {"c-weights", "weights", &ForecastStageMemory::weights_GiB},
    {"c-gradients", "gradients", &ForecastStageMemory::gradients_GiB},
    {"c-optimizer", "optimizer", &ForecastStageMemory::optimizer_GiB},
    {"c-activations", "activations", &ForecastStageMemory::activations_GiB},
    {"c-working", "working", &ForecastStageMemory::working_GiB},
    {"c-buffers", "communication buffers", &ForecastStageMemory::communication_GiB},
    {"c-buffers", "reserve", &ForecastStageMemory::reserve_GiB}};
// The memory of one GPU as a bar with its limit, and a picture of several.
[[nodiscard]] Bar memory_bar(std::string label, const ForecastStageMemory& stage, double available_GiB);
[[nodiscard]] ReportFigure memory_figure(std::vector<Bar> bars);

// The section on the critical path; nothing if the forecast has none. `picture` may be null.
void add_critical_path(ReportDocument& document, const Forecast& forecast, const StepPicture* picture);
// The section on the streams of the critical class.
void add_streams(ReportDocument& document, const Forecast& forecast);
// Adds throughput and MFU to the key figures. `under`: the path of the forecast in the JSON of the answer,
// for the keys.
void add_throughput_figures(ReportDocument& document, const Forecast& forecast,
                            const std::string& under = {});
// The sections on several recorded steps and on straggler scenarios, if the forecast has them. A terminal
// lists every step only if there are at most 12 of them or with `verbose`.
void add_distributions(ReportDocument& document, const Forecast& forecast, bool verbose = false);
// The losses of a long run and their reasons, in two or three lines.
std::string run_text(const RunForecast& run);
// The sections on layouts over pools of GPUs, on shared network links and pools, and on the whole training,
// as far as the forecast has them.
void add_pool_layouts(ReportDocument& document, const std::vector<ForecastPoolLayout>& layouts);
void add_cluster_sections(ReportDocument& document, const Forecast& forecast);
void add_training_section(ReportDocument& document, const Forecast& forecast);
// The section with at most five commands and what each would save, or a sentence that nothing would. Nothing
// if no advice was asked for. `n_gpus`: GPUs of the job. `under`: the path of the forecast in the JSON.
void add_what_to_change(ReportDocument& document, const std::optional<ForecastAdvice>& advice,
                        std::uint64_t n_gpus, const std::string& under = {});
// The first few commands for the first screen.
void add_what_to_change(FirstScreen& screen, const std::optional<ForecastAdvice>& advice);
// A picture as a section of its own; nothing if it has no rows.
void add_schedule(ReportDocument& document, std::string title, const StepPicture& picture,
                  std::string caption);

}  // namespace stepcast::detail
