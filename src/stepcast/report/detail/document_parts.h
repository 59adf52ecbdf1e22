// Pieces that the pages of several verbs share.
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

// A part of ForecastClass::parts() with its colour.
[[nodiscard]] ReportCell part_cell(std::string_view key);
// Where the time of a rank class goes, and of several side by side.
[[nodiscard]] Bar parts_bar(std::string label, const ForecastClass& one);
[[nodiscard]] ReportFigure parts_figure(const std::vector<ForecastClass>& classes, std::string caption);
// The most classes that a figure shows.
inline constexpr std::size_t kMostClassesDrawn = 64;

// What fills the memory of a GPU.
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
[[nodiscard]] Bar memory_bar(std::string label, const ForecastStageMemory& stage, double available_GiB);
[[nodiscard]] ReportFigure memory_figure(std::vector<Bar> bars);

// Nothing where there is no path.
void add_critical_path(ReportDocument& document, const Forecast& forecast, const StepPicture* picture);
// What every stream of the class that ends last does.
void add_streams(ReportDocument& document, const Forecast& forecast);
// Throughput and the whole training among the figures on top. `under`: path of the forecast in the answer's JSON.
void add_throughput_figures(ReportDocument& document, const Forecast& forecast,
                            const std::string& under = {});
// Several steps of one job: recorded ones, each by itself, and scenarios that were drawn, where the forecast has them. A
// terminal shows every step where there are at most 12 or `verbose`.
void add_distributions(ReportDocument& document, const Forecast& forecast, bool verbose = false);
// What a run loses and why, in lines.
std::string run_text(const RunForecast& run);
// Layouts that were tried over pools of GPUs; links that others pass, too, and the pools: where the forecast has them.
void add_pool_layouts(ReportDocument& document, const std::vector<ForecastPoolLayout>& layouts);
void add_cluster_sections(ReportDocument& document, const Forecast& forecast);
void add_training_section(ReportDocument& document, const Forecast& forecast);
// At most five commands with what each saves, or that nothing is to be gained; nothing where it was not looked for. `n_gpus`: of
// the job; `under`: path of the forecast in the answer's JSON.
void add_what_to_change(ReportDocument& document, const std::optional<ForecastAdvice>& advice,
                        std::uint64_t n_gpus, const std::string& under = {});
// The first of them on the first screen.
void add_what_to_change(FirstScreen& screen, const std::optional<ForecastAdvice>& advice);
void add_schedule(ReportDocument& document, std::string title, const StepPicture& picture,
                  std::string caption);

}  // namespace stepcast::detail
