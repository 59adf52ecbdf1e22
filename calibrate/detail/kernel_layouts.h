// Readers of files with measured kernels, one for each layout. docs/kernels.md lists the columns.
//
// To add a layout: one function here and one line in kernel_layouts().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/operation.h"

#include "calibrate/kernel_measurements.h"

namespace stepcast::detail {

struct KernelLayout {
  std::string_view name;
  bool (*is_meant)(const CsvRows& header);  // true if the columns are those of the layout, complete or not
  std::vector<std::string_view> needed;
  std::vector<std::string_view> optional;  // read where they are
  Status (*read)(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out);
};

// Ordered: the first layout with a true `is_meant` reads the file.
[[nodiscard]] std::span<const KernelLayout> kernel_layouts();

// gpu, op, direction, dtype, ...: the schema of this project.
[[nodiscard]] KernelLayout own_kernel_layout();
// operator, fwd_time_us, bwd_time_us, ...: transformer operators per tensor-parallel rank.
[[nodiscard]] KernelLayout operators_layout();
[[nodiscard]] KernelLayout gemm_layout();
[[nodiscard]] KernelLayout attention_layout();
[[nodiscard]] KernelLayout matmul_layout();
[[nodiscard]] KernelLayout vector_layout();
[[nodiscard]] KernelLayout convolution_layout();
[[nodiscard]] KernelLayout efficiency_layout();

// Adds the measurements of the rows of one file.
class MeasurementSink {
 public:
  MeasurementSink(const CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out);

  // The time in this cell. Empty cell: nullopt. A time that is not positive is an error.
  [[nodiscard]] Result<std::optional<Microseconds>> time(std::string_view column) const;
  // Adds the time of `operation` from this row, with the fields common to all layouts. Error: an impossible shape.
  [[nodiscard]] Status add(KernelMeasurement measurement) const;
  // Counts a row that is left out.
  void skip(std::string_view what, std::string_view why) const;
  // The type in the cell, or `otherwise` without such a column. Error: not an element type.
  [[nodiscard]] Result<DType> dtype(DType otherwise = DType::unknown) const;
  [[nodiscard]] Result<std::string> text(std::string_view column) const;

 private:
  const CsvRows& rows_;
  KernelMeasurements& out_;
  std::vector<std::size_t> identity_;  // columns with cells that identify a row
};

// Number of tensors that an element-wise function reads: 2 for binary functions.
[[nodiscard]] float tensors_read(ElementwiseFunction function);
[[nodiscard]] std::optional<ElementwiseFunction> parse_elementwise_function(std::string_view text);

// Error: extents that are not valid for an image. Their sums must fit 63 bits.
[[nodiscard]] Status check_convolution(const CsvRows& rows, const ConvolutionShape& shape);

// An error that names the missing ones of the `needed` columns, and a column of the header with the quantity in another
// unit.
[[nodiscard]] Status check_columns(const CsvRows& rows, std::span<const std::string_view> needed,
                                   std::string_view layout);

}  // namespace stepcast::detail
