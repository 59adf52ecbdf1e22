// Pieces that the pages of several verbs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"
#include "stepcast/report/html/charts.h"

namespace stepcast::detail {

// Columns of a table by their headings: "stage< | in all GiB=total_GiB | rests on<@". Behind a heading "<" is for words, "@" for
// pages alone, "=key" for the member that it shows (ReportColumn).
[[nodiscard]] std::vector<ReportColumn> columns(std::string_view headings);

// Milliseconds with as many decimals as their size asks for: "8,654.8", "12.35", "0.123".
[[nodiscard]] std::string ms_text(double ms);
[[nodiscard]] std::string percent_text(double part, double whole);
// "p10 447.9, p90 541.2"; empty for a time without a band.
[[nodiscard]] std::string band_text(double p10_ms, double p90_ms);

// The same of a rate that `step_ms` gives: the longest step has the lowest rate.
[[nodiscard]] std::string rate_band_text(double rate, double step_ms, double p10_ms, double p90_ms,
                                         int decimals);

// Where the time of rank classes goes: a stacked bar for each, and a table of the parts of one.
[[nodiscard]] ReportFigure parts_figure(const std::vector<ForecastClass>& classes, std::string caption);
[[nodiscard]] ReportTable parts_table(const ForecastClass& one);
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
[[nodiscard]] std::string gib(double value);
[[nodiscard]] Bar memory_bar(std::string label, const ForecastStageMemory& stage, double available_GiB);
[[nodiscard]] ReportFigure memory_figure(std::vector<Bar> bars);

[[nodiscard]] ReportTable shares_table(std::string heading, std::span<const ForecastShare> shares,
                                       double length_ms, std::size_t most);
// "1 GPU", "1,024 GPUs".
[[nodiscard]] std::string plural(std::int64_t n, std::string_view one, std::string_view many);
// With a capital first letter.
[[nodiscard]] std::string sentence(std::string text);

// Nothing where there is no path.
void add_critical_path(ReportDocument& document, const Forecast& forecast, const StepPicture* picture);
// What every stream of the class that ends last does.
void add_streams(ReportDocument& document, const Forecast& forecast);
// Throughput and the whole training among the figures on top. `under`: path of the forecast in the answer's JSON.
void add_throughput_figures(ReportDocument& document, const Forecast& forecast,
                            const std::string& under = {});
void add_training_section(ReportDocument& document, const Forecast& forecast);
void add_schedule(ReportDocument& document, std::string title, const StepPicture& picture,
                  std::string caption);

}  // namespace stepcast::detail
