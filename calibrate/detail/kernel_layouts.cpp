#include "calibrate/detail/kernel_layouts.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "stepcast/platform/provenance.h"

namespace stepcast::detail {
namespace {

// Endings of time columns in units other than microseconds, or of other quantities.
constexpr std::string_view kOtherTimes[] = {"_ms", "_ns", "_s", "_sec", "_seconds", "_cycles", ""};

}  // namespace

std::span<const KernelLayout> kernel_layouts() {
  static const std::array<KernelLayout, 8> kLayouts{
      operators_layout(), efficiency_layout(), own_kernel_layout(), convolution_layout(),
      vector_layout(),    matmul_layout(),     attention_layout(),  gemm_layout()};
  return kLayouts;
}

MeasurementSink::MeasurementSink(const CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out)
    : rows_(rows), out_(out) {
  for (const auto* columns : {&layout.needed, &layout.optional}) {
    for (const std::string_view column : *columns)
      if (const std::size_t at = rows.find(column); at != kNoColumn) identity_.push_back(at);
  }
}

Result<std::optional<Microseconds>> MeasurementSink::time(std::string_view column) const {
  if (rows_.cell(column).empty()) return std::optional<Microseconds>{};
  const auto value = rows_.number(column, 0);
  if (!value || !(*value > 0)) {
    return rows_.error(column)
        .expected("microseconds above 0, as a plain number")
        .advice("leave this row out or measure it again");
  }
  return std::optional{Microseconds{*value}};
}

Status MeasurementSink::add(KernelMeasurement measurement) const {
  if (std::string problem = shape_problem(measurement.operation); !problem.empty()) {
    return Error::at(rows_.name(), fmt::format("line {}", rows_.line()),
                     fmt::format("the shape of `{}`", measurement.label))
        .found(std::move(problem))
        .expected("extents that the operation can have");
  }
  if (const std::string_view regime = rows_.cell("regime"); !regime.empty()) {
    const std::optional<Regime> known = parse_regime(regime);
    if (!known) return rows_.error("regime").expected("burst or sustained");
    measurement.regime = *known;
  }
  measurement.line = rows_.line();
  std::vector<std::string_view> cells;
  cells.reserve(identity_.size() + 1);
  cells.push_back(to_string(measurement.operation.direction));
  for (const std::size_t column : identity_) cells.push_back(rows_.cell(column));
  measurement.hash = row_hash(cells);
  out_.rows.push_back(std::move(measurement));
  return Ok{};
}

void MeasurementSink::skip(std::string_view what, std::string_view why) const {
  for (SkippedRows& s : out_.skipped) {
    if (s.what == what && s.why == why) {
      ++s.n;
      return;
    }
  }
  out_.skipped.push_back({std::string{what}, std::string{why}, 1});
}

Result<DType> MeasurementSink::dtype(DType otherwise) const {
  const std::string_view cell = rows_.cell("dtype");
  if (cell.empty() && otherwise != DType::unknown) return otherwise;
  const DType dtype = parse_dtype(cell);
  if (dtype == DType::unknown)
    return rows_.error("dtype").expected("fp32, tf32, fp16, bf16, fp8, fp8_block, fp4, int8, ...");
  return dtype;
}

Result<std::string> MeasurementSink::text(std::string_view column) const {
  const std::string_view cell = rows_.cell(column);
  if (cell.empty()) return rows_.error(column).expected("a name");
  return std::string{cell.substr(0, 200)};
}

float tensors_read(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  switch (function) {
    case add:
    case multiply:
    case divide:
    case power:
    case gated_silu:
    case residual_add: return 2;
    default: return 1;
  }
}

std::optional<ElementwiseFunction> parse_elementwise_function(std::string_view text) {
  using enum ElementwiseFunction;
  constexpr std::pair<std::string_view, ElementwiseFunction> kShort[] = {
      {"mul", multiply}, {"div", divide}, {"pow", power}};
  for (const auto& [name, function] : kShort)
    if (name == text) return function;
  for (int i = 0; i <= static_cast<int>(rotary_unfused); ++i)
    if (const auto function = static_cast<ElementwiseFunction>(i); to_string(function) == text)
      return function;
  return std::nullopt;
}

Status check_convolution(const CsvRows& rows, const ConvolutionShape& shape) {
  constexpr std::int64_t kMost = 1 << 20;
  for (const std::int64_t extent : {shape.height, shape.width, shape.kernel_height, shape.kernel_width,
                                    shape.stride, shape.padding, shape.dilation}) {
    if (extent <= kMost) continue;
    return Error::at(rows.name(), fmt::format("line {}", rows.line()), "a convolution")
        .found(fmt::format("an extent of {}", extent))
        .expected(fmt::format("images, kernels, strides, paddings and dilations up to {}", kMost));
  }
  return Ok{};
}

Status check_columns(const CsvRows& rows, std::span<const std::string_view> needed, std::string_view layout) {
  for (const std::string_view column : needed) {
    if (rows.has(column)) continue;
    if (column.ends_with("_us")) {
      const std::string stem{column.substr(0, column.size() - 3)};
      for (const std::string_view ending : kOtherTimes) {
        const std::string other = fmt::format("{}{}", stem, ending);
        if (!rows.has(other)) continue;
        return Error::at(rows.name(), fmt::format("line 1, column {}", other), "the unit of the time")
            .expected(fmt::format("the column {}", column))
            .advice("convert the times to microseconds and call the column so");
      }
    }
    std::string all;
    for (const std::string_view c : needed) all += fmt::format("{}{}", all.empty() ? "" : ", ", c);
    return Error::at(rows.name(), "line 1", fmt::format("lacks the column {}", column))
        .expected(fmt::format("the columns of {}: {}", layout, all));
  }
  return Ok{};
}

}  // namespace stepcast::detail
