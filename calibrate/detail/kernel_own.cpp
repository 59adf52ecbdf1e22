// The schema of this project: gpu, op, direction, dtype, the shape columns of the op, time_us, time_us_p10,
// time_us_p90, n, software. docs/kernels.md lists the shape columns of every op.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/operation/optimizer_rule.h"

#include "calibrate/detail/kernel_layouts.h"

namespace stepcast::detail {
namespace {

// The shape columns of one op, or of several ops that differ only in name.
struct OpSpec {
  std::string names;                  // separated by blanks
  std::string_view needed, optional;  // columns, separated by blanks
  Result<OperationShape> (*make)(const CsvRows& rows, std::string_view op);
};

Result<std::int64_t> product(const CsvRows& rows, std::string_view a, std::string_view b) {
  STEPCAST_ASSIGN(const std::int64_t x, rows.extent(a));
  STEPCAST_ASSIGN(const std::int64_t y, rows.extent(b));
  if (static_cast<double>(x) * static_cast<double>(y) > 0x1p60)
    return rows.error(a).expected(fmt::format("fewer elements together with {}", b));
  return x * y;
}

// Elements from the column `elements`, or from rows and cols.
Result<std::int64_t> elements_of(const CsvRows& rows, std::int64_t& inner) {
  STEPCAST_ASSIGN(inner, rows.extent("inner", 0, 0));
  if (!rows.cell("elements").empty()) return rows.extent("elements");
  if (rows.cell("rows").empty()) return rows.error("elements").expected("elements, or rows and cols");
  STEPCAST_ASSIGN(inner, rows.extent("cols"));
  return product(rows, "rows", "cols");
}

Result<OperationShape> make_gemm(const CsvRows& rows, std::string_view) {
  GemmShape s;
  STEPCAST_TRY(rows.extents({{"batch", &s.batch, 1, 1}, {"m", &s.m}, {"n", &s.n}, {"k", &s.k}}));
  STEPCAST_ASSIGN(s.bias, rows.truth("bias", false));
  STEPCAST_ASSIGN(s.accumulates, rows.truth("accumulates", false));
  constexpr GemmLayout kLayouts[] = {GemmLayout::any, GemmLayout::tn, GemmLayout::nn, GemmLayout::nt,
                                     GemmLayout::tt};
  constexpr std::string_view kSpellings[] = {"any", "TN", "NN", "NT", "TT"};
  if (const std::string_view layout = rows.cell("layout"); !layout.empty()) {
    const auto* const lower = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                           [&](GemmLayout l) { return to_string(l) == layout; });
    const auto* const upper = std::find(std::begin(kSpellings), std::end(kSpellings), layout);
    if (lower != std::end(kLayouts))
      s.layout = *lower;
    else if (upper != std::end(kSpellings))
      s.layout = kLayouts[upper - std::begin(kSpellings)];
    else
      return rows.error("layout").expected("TN, NN, NT or TT");
  }
  if (const std::string_view output = rows.cell("out_dtype"); !output.empty()) {
    s.output = parse_dtype(output);
    if (s.output == DType::unknown) return rows.error("out_dtype").expected("bf16, fp32, ...");
    if (s.output == parse_dtype(rows.cell("dtype"))) s.output = DType::unknown;
  }
  return OperationShape{s};
}

Result<OperationShape> make_attention(const CsvRows& rows, std::string_view) {
  AttentionShape s;
  STEPCAST_TRY(rows.extents({{"batch", &s.batch}, {"seq_len_tokens", &s.query_length}}));
  STEPCAST_ASSIGN(s.key_length, rows.extent("kv_len_tokens", 1, s.query_length));
  STEPCAST_ASSIGN(s.heads, rows.extent("n_heads"));
  STEPCAST_ASSIGN(s.key_value_heads, rows.extent("n_kv_heads", 1, s.heads));
  STEPCAST_TRY(rows.extents({{"head_dim", &s.head_dim}, {"value_head_dim", &s.value_head_dim, 0, 0}}));
  STEPCAST_ASSIGN(s.causal, rows.truth("causal", true));
  STEPCAST_ASSIGN(s.window, rows.extent("window_tokens", 0, 0));
  using enum AttentionKernel;
  if (const std::string_view kernel = rows.cell("kernel"); !kernel.empty()) {
    constexpr AttentionKernel kKernels[] = {any, flash1, flash2, flash3, efficient};
    const auto* const found = std::find_if(std::begin(kKernels), std::end(kKernels),
                                           [&](AttentionKernel k) { return to_string(k) == kernel; });
    if (found == std::end(kKernels))
      return rows.error("kernel").expected("flash1, flash2, flash3, efficient or any");
    s.kernel = *found;
  }
  return OperationShape{s};
}

Result<OperationShape> make_convolution(const CsvRows& rows, std::string_view op) {
  ConvolutionShape s;
  STEPCAST_TRY(rows.extents({{"batch", &s.batch},
                             {"in_channels", &s.in_channels},
                             {"out_channels", &s.out_channels},
                             {"width", &s.width},
                             {"kernel_width", &s.kernel_width}}));
  if (op == "conv2d") {
    STEPCAST_TRY(rows.extents({{"height", &s.height}, {"kernel_height", &s.kernel_height}}));
  }
  STEPCAST_TRY(rows.extents({{"stride", &s.stride, 1, 1},
                             {"padding", &s.padding, 0, 0},
                             {"dilation", &s.dilation, 1, 1},
                             {"groups", &s.groups, 1, 1}}));
  STEPCAST_TRY(check_convolution(rows, s));
  return OperationShape{s};
}

Result<OperationShape> make_lookup(const CsvRows& rows, std::string_view) {
  LookupShape s;
  STEPCAST_TRY(
      rows.extents({{"tables", &s.tables, 1, 1}, {"rows", &s.rows}, {"dim", &s.dim}, {"bags", &s.bags}}));
  STEPCAST_ASSIGN(s.pooling, rows.number("pooling", 0, 1));
  STEPCAST_ASSIGN(s.distinct_fraction, rows.number("distinct_fraction", 0, -1));
  STEPCAST_ASSIGN(s.fused_update, rows.truth("fused_update", false));
  return OperationShape{s};
}

Result<OperationShape> make_norm(const CsvRows& rows, std::string_view op) {
  NormShape s;
  for (const NormKind kind :
       {NormKind::layer_norm, NormKind::rms_norm, NormKind::batch_norm, NormKind::group_norm}) {
    if (to_string(kind) == op) s.kind = kind;
  }
  STEPCAST_TRY(rows.extents({{"rows", &s.rows}, {"cols", &s.cols}}));
  STEPCAST_ASSIGN(s.fused, rows.truth("fused", true));
  return OperationShape{s};
}

Result<OperationShape> make_softmax(const CsvRows& rows, std::string_view op) {
  SoftmaxShape s;
  if (op == "log_softmax") s.kind = SoftmaxKind::log_softmax;
  if (op == "causal_softmax") s.kind = SoftmaxKind::causal_masked;
  STEPCAST_TRY(rows.extents({{"rows", &s.rows}, {"cols", &s.cols}}));
  return OperationShape{s};
}

Result<OperationShape> make_cross_entropy(const CsvRows& rows, std::string_view) {
  CrossEntropyShape s;
  STEPCAST_TRY(rows.extents({{"rows", &s.rows}, {"cols", &s.classes}}));
  STEPCAST_ASSIGN(s.fused, rows.truth("fused", false));
  return OperationShape{s};
}

Result<OperationShape> make_reduction(const CsvRows& rows, std::string_view) {
  ReductionShape s;
  STEPCAST_TRY(rows.extents({{"rows", &s.rows}, {"cols", &s.cols}}));
  return OperationShape{s};
}

Result<OperationShape> make_elementwise(const CsvRows& rows, std::string_view op) {
  ElementwiseShape s{.function = parse_elementwise_function(op).value_or(ElementwiseFunction::other)};
  STEPCAST_ASSIGN(s.elements, elements_of(rows, s.inner));
  STEPCAST_ASSIGN(const double reads, rows.number("reads", 0, tensors_read(s.function)));
  STEPCAST_ASSIGN(const double writes, rows.number("writes", 0, 1));
  STEPCAST_ASSIGN(const double flops, rows.number("flops_per_element", 0, 1));
  s.reads = static_cast<float>(reads);
  s.writes = static_cast<float>(writes);
  s.flops_per_element = static_cast<float>(flops);
  return OperationShape{s};
}

Result<OperationShape> make_movement(const CsvRows& rows, std::string_view op) {
  MovementShape s;
  using enum MovementKind;
  for (const MovementKind kind : {copy, transpose, concatenate, split, gather, scatter, fill})
    if (to_string(kind) == op) s.kind = kind;
  STEPCAST_ASSIGN(s.elements, elements_of(rows, s.inner));
  return OperationShape{s};
}

Result<OperationShape> make_optimizer(const CsvRows& rows, std::string_view op) {
  OptimizerShape s;
  s.kind = find_optimizer(op).value_or(s.kind);
  STEPCAST_TRY(rows.extents({{"parameters", &s.parameters}, {"tensors", &s.tensors, 1, 1}}));
  const std::string_view implementation = rows.cell("implementation");
  if (implementation == "foreach")
    s.implementation = OptimizerImplementation::foreach;
  else if (implementation == "for_loop")
    s.implementation = OptimizerImplementation::for_loop;
  else if (!implementation.empty() && implementation != "fused")
    return rows.error("implementation").expected("fused, foreach or for_loop");
  STEPCAST_ASSIGN(const double read, rows.number("bytes_read_per_parameter", 0, s.bytes_read_per_parameter));
  STEPCAST_ASSIGN(const double written,
                  rows.number("bytes_written_per_parameter", 0, s.bytes_written_per_parameter));
  s.bytes_read_per_parameter = static_cast<float>(read);
  s.bytes_written_per_parameter = static_cast<float>(written);
  return OperationShape{s};
}

Result<OperationShape> make_transfer(const CsvRows& rows, std::string_view op) {
  TransferShape s;
  if (op == "memcpy_h2d") s.kind = MemcpyKind::host_to_device;
  if (op == "memcpy_d2h") s.kind = MemcpyKind::device_to_host;
  if (op == "memcpy_d2d") s.kind = MemcpyKind::device_to_device;
  if (op == "memcpy_peer") s.kind = MemcpyKind::peer;
  STEPCAST_ASSIGN(s.bytes, rows.extent("bytes"));
  STEPCAST_ASSIGN(s.pinned, rows.truth("pinned", true));
  return OperationShape{s};
}

Result<OperationShape> make_sparse(const CsvRows& rows, std::string_view op) {
  SparseShape s;
  STEPCAST_TRY(rows.extents({{"rows", &s.rows}, {"inner", &s.inner}, {"cols", &s.cols}}));
  STEPCAST_ASSIGN(s.nonzeros, rows.number("nonzeros", 1));
  STEPCAST_ASSIGN(s.reuse, rows.number("reuse", 0, 0));
  s.sparse_result = op == "spgemm";
  return OperationShape{s};
}

// "m, n, k" of "m n k".
std::string with_commas(std::string_view words) {
  std::string out;
  for (const char c : words) out.append(c == ' ' ? "," : "").push_back(c);
  return out;
}

std::string optimizer_names() {
  std::string names;
  for (const OptimizerRule& rule : kOptimizerRules) names.append(rule.name).append(" ");
  return names;
}

const std::vector<OpSpec>& op_specs() {
  static const std::vector<OpSpec> kSpecs{
      {"gemm bmm linear matmul", "m n k", "batch bias accumulates layout out_dtype", make_gemm},
      {"attention", "batch seq_len_tokens n_heads head_dim",
       "kv_len_tokens n_kv_heads value_head_dim causal window_tokens kernel", make_attention},
      {"conv2d", "batch in_channels out_channels height width kernel_height kernel_width",
       "stride padding dilation groups", make_convolution},
      {"conv1d", "batch in_channels out_channels width kernel_width", "stride padding dilation groups",
       make_convolution},
      {"embedding_bag embedding", "rows dim bags", "tables pooling distinct_fraction fused_update",
       make_lookup},
      {"layer_norm rms_norm batch_norm group_norm", "rows cols", "fused", make_norm},
      {"softmax log_softmax causal_softmax", "rows cols", "", make_softmax},
      {"cross_entropy", "rows cols", "fused", make_cross_entropy},
      {"reduction", "rows cols", "", make_reduction},
      {"copy transpose concatenate split gather scatter fill", "", "elements rows cols inner", make_movement},
      {optimizer_names(), "parameters",
       "tensors implementation bytes_read_per_parameter bytes_written_per_parameter", make_optimizer},
      {"memcpy_h2d memcpy_d2h memcpy_d2d memcpy_peer memset", "bytes", "pinned", make_transfer},
      {"spmm spgemm", "rows inner cols nonzeros", "reuse", make_sparse},
      // Any other name is an element-wise function.
      {"", "", "elements rows cols inner reads writes flops_per_element", make_elementwise}};
  return kSpecs;
}

const OpSpec* find_spec(std::string_view op) {
  for (const OpSpec& spec : op_specs())
    if (is_among(op, spec.names)) return &spec;
  return parse_elementwise_function(op) ? &op_specs().back() : nullptr;
}

// All shape columns of all ops.
std::vector<std::string_view> shape_columns() {
  std::vector<std::string_view> all;
  for (const OpSpec& spec : op_specs()) {
    for (const std::string_view columns : {spec.needed, spec.optional}) {
      any_word(columns, [&](std::string_view column) {
        if (std::ranges::find(all, column) == all.end()) all.push_back(column);
        return false;
      });
    }
  }
  return all;
}

// Shape columns of this file that the op does not use. A value in them is an error.
std::vector<std::size_t> foreign_columns(const CsvRows& rows, const OpSpec& spec) {
  std::vector<std::size_t> foreign;
  for (const std::string_view column : shape_columns()) {
    if (is_among(column, spec.needed) || is_among(column, spec.optional)) continue;
    if (const std::size_t at = rows.find(column); at != kNoColumn) foreign.push_back(at);
  }
  return foreign;
}

Result<Direction> direction_of(const CsvRows& rows) {
  const std::string_view cell = rows.cell("direction");
  constexpr std::pair<Direction, std::string_view> kSpellings[] = {
      {Direction::forward, "forward fwd"},
      {Direction::backward, "backward bwd"},
      {Direction::input_gradient, "input_gradient dgrad"},
      {Direction::weight_gradient, "weight_gradient wgrad"}};
  for (const auto& [direction, spellings] : kSpellings)
    if (is_among(cell, spellings)) return direction;
  return rows.error("direction").expected("forward, backward, input_gradient or weight_gradient");
}

// Converts an fp32 cast that writes half the bytes it reads from the collector's form to that of traces and descriptions: an
// operation of the narrower result type that reads twice as much.
void name_by_narrower_type(Operation& operation) {
  auto* cast = std::get_if<ElementwiseShape>(&operation.shape);
  if (cast == nullptr || cast->function != ElementwiseFunction::cast || operation.dtype != DType::fp32 ||
      cast->writes != 0.5F)
    return;
  cast->reads /= cast->writes;
  cast->writes = 1;
  operation.dtype = DType::bf16;
}

Status read_own(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  const MeasurementSink sink{rows, layout, out};
  std::vector<std::pair<const OpSpec*, std::vector<std::size_t>>> foreign;
  for (const OpSpec& spec : op_specs()) foreign.emplace_back(&spec, foreign_columns(rows, spec));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    const std::string_view op = rows.cell("op");
    const OpSpec* spec = find_spec(op);
    if (spec == nullptr) {
      return rows.error("op").expected(
          "gemm, attention, conv2d, layer_norm, softmax, gelu, add, embedding_bag, adam, ... "
          "(docs/kernels.md)");
    }
    KernelMeasurement m;
    STEPCAST_ASSIGN(m.gpu, sink.text("gpu"));
    STEPCAST_ASSIGN(const DType dtype, sink.dtype());
    STEPCAST_ASSIGN(const Direction direction, direction_of(rows));
    m.label = rows.cell("label").empty() ? op.substr(0, 60) : rows.cell("label").substr(0, 60);
    for (const std::size_t column : foreign[static_cast<std::size_t>(spec - op_specs().data())].second) {
      if (rows.cell(column).empty()) continue;
      return rows.error(rows.columns()[column]).expected(fmt::format("nothing: `{}` has no such extent", op));
    }
    std::string_view lacking;
    if (any_word(spec->needed, [&](std::string_view column) { return !rows.has(lacking = column); })) {
      return Error::at(rows.name(), "line 1", fmt::format("lacks the column {}", lacking))
          .found(fmt::format("`{}` in line {}", op, rows.line()))
          .expected(fmt::format("its shape in the columns {}", with_commas(spec->needed)));
    }
    STEPCAST_ASSIGN(const OperationShape shape, spec->make(rows, op));
    m.operation = {shape, dtype, direction};
    name_by_narrower_type(m.operation);
    m.cold = rows.cell("cache") == "flushed";
    STEPCAST_ASSIGN(const auto time, sink.time("time_us"));
    if (!time) {
      sink.skip(m.label, "rows without a time");
      continue;
    }
    m.time = *time;
    STEPCAST_ASSIGN(m.p10, sink.time("time_us_p10"));
    STEPCAST_ASSIGN(m.p90, sink.time("time_us_p90"));
    if (m.p10 && m.p90 && *m.p10 > *m.p90) return rows.error("time_us_p10").expected("at most time_us_p90");
    STEPCAST_ASSIGN(const std::int64_t n, rows.extent("n_repetitions", 1, 1));
    m.n = static_cast<std::uint64_t>(n);
    STEPCAST_TRY(rows.extents(
        {{"hidden_size", &m.hidden_size, 0, 0}, {"sequence_length_tokens", &m.sequence_length, 0, 0}}));
    STEPCAST_TRY(sink.add(std::move(m)));
  }
}

}  // namespace

KernelLayout own_kernel_layout() {
  KernelLayout layout{"kernel measurements",
                      [](const CsvRows& h) { return h.has("op") && h.has("direction"); },
                      {"gpu", "op", "direction", "dtype", "time_us"},
                      {"label", "hidden_size", "sequence_length_tokens", "regime"},
                      read_own};
  for (const std::string_view column : shape_columns()) layout.optional.push_back(column);
  return layout;
}

}  // namespace stepcast::detail
