// Layouts with one kind of operation and one time per row: GEMM and attention sweeps of inference
// frameworks, the NeuSight training set, and tables of measured efficiencies.
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "calibrate/detail/kernel_layouts.h"

namespace stepcast::detail {
namespace {

// Calls `make` for every row with a time. `make` returns the operation; label, gpu and dtype are already set.
template <class Make>
Status read_rows(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out, std::string_view label,
                 DType otherwise, Make make) {
  const MeasurementSink sink{rows, layout, out};
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    KernelMeasurement m;
    STEPCAST_ASSIGN(m.gpu, sink.text("gpu"));
    STEPCAST_ASSIGN(const DType dtype, sink.dtype(otherwise));
    if (label.empty()) {
      STEPCAST_ASSIGN(m.label, sink.text("op"));
    } else {
      m.label = label;
    }
    STEPCAST_ASSIGN(const auto time, sink.time("time_us"));
    if (!time) {
      sink.skip(m.label, "rows without a time");
      continue;
    }
    m.time = *time;
    STEPCAST_ASSIGN(m.operation, make(std::as_const(m), dtype));
    // Tables by regime contain several types: each type is one set of rows.
    if (rows.has("regime")) m.label += fmt::format("_{}", to_string(dtype));
    STEPCAST_TRY(sink.add(std::move(m)));
  }
}

Result<GemmShape> gemm_of(const CsvRows& rows, bool with_batch) {
  GemmShape s;
  if (with_batch) {
    STEPCAST_ASSIGN(s.batch, rows.extent("batch", 1, 1));
  }
  STEPCAST_TRY(rows.extents({{"m", &s.m}, {"n", &s.n}, {"k", &s.k}}));
  return s;
}

Status read_gemm(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(rows, layout, out, "gemm", DType::unknown,
                   [&](const KernelMeasurement&, DType dtype) -> Result<Operation> {
                     STEPCAST_ASSIGN(GemmShape shape, gemm_of(rows, true));
                     // Tables with a regime measure linear layers, which have weights of shape [out, in].
                     if (rows.has("regime")) shape.layout = GemmLayout::tn;
                     return gemm(shape, dtype);
                   });
}

Status read_attention(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(
      rows, layout, out, "attention", DType::unknown,
      [&](const KernelMeasurement&, DType dtype) -> Result<Operation> {
        AttentionShape s;
        STEPCAST_TRY(rows.extents({{"batch", &s.batch}, {"seq_len_tokens", &s.query_length}}));
        s.key_length = s.query_length;
        STEPCAST_TRY(rows.extents(
            {{"n_heads", &s.heads}, {"n_kv_heads", &s.key_value_heads}, {"head_dim", &s.head_dim}}));
        STEPCAST_ASSIGN(s.causal, rows.truth("causal", true));
        STEPCAST_ASSIGN(s.window, rows.extent("window_tokens", 0, 0));
        return attention(s, dtype);
      });
}

Status read_matmul(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(rows, layout, out, {}, DType::unknown,
                   [&](const KernelMeasurement& m, DType dtype) -> Result<Operation> {
                     STEPCAST_ASSIGN(GemmShape shape, gemm_of(rows, true));
                     // A linear layer stores its weight as [out, in].
                     if (m.label == "linear")
                       shape.layout = GemmLayout::tn;
                     else if (m.label == "bmm")
                       shape.layout = GemmLayout::nn;
                     else if (m.label != "matmul" && m.label != "gemm")
                       return rows.error("op").expected("linear, bmm, matmul or gemm");
                     return gemm(shape, dtype);
                   });
}

// Element-wise functions of the NeuSight set. Names that end in u take a tensor and a number.
constexpr std::pair<std::string_view, ElementwiseFunction> kVectorOps[] = {
    {"add", ElementwiseFunction::add},         {"addu", ElementwiseFunction::add_scalar},
    {"mul", ElementwiseFunction::multiply},    {"mulu", ElementwiseFunction::multiply_scalar},
    {"div", ElementwiseFunction::divide},      {"divu", ElementwiseFunction::divide_scalar},
    {"pow", ElementwiseFunction::power},       {"powu", ElementwiseFunction::power_scalar},
    {"relu", ElementwiseFunction::relu},       {"gelu", ElementwiseFunction::gelu},
    {"tanh", ElementwiseFunction::tanh},       {"sigmoid", ElementwiseFunction::sigmoid},
    {"exp", ElementwiseFunction::exponential}, {"silu", ElementwiseFunction::silu},
};

Status read_vector(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(
      rows, layout, out, {}, DType::unknown,
      [&](const KernelMeasurement& m, DType dtype) -> Result<Operation> {
        STEPCAST_ASSIGN(const std::int64_t n, rows.extent("rows"));
        STEPCAST_ASSIGN(const std::int64_t cols, rows.extent("cols"));
        if (m.label == "softmax") return Operation{SoftmaxShape{.rows = n, .cols = cols}, dtype};
        if (m.label == "layernorm") return norm({.rows = n, .cols = cols}, dtype);
        if (static_cast<double>(n) * static_cast<double>(cols) > 0x1p60)
          return rows.error("rows").expected("fewer elements in total");
        for (const auto& [name, function] : kVectorOps) {
          if (name != m.label) continue;
          return elementwise(
              {.function = function, .elements = n * cols, .reads = tensors_read(function), .inner = cols},
              dtype);
        }
        return rows.error("op").expected(
            "add, mul, div, pow, addu, ..., relu, gelu, tanh, softmax or layernorm");
      });
}

Status read_convolution(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(rows, layout, out, {}, DType::unknown,
                   [&](const KernelMeasurement& m, DType dtype) -> Result<Operation> {
                     if (m.label != "conv2d") return rows.error("op").expected("conv2d");
                     ConvolutionShape s;
                     STEPCAST_TRY(rows.extents({{"batch", &s.batch},
                                                {"in_channels", &s.in_channels},
                                                {"out_channels", &s.out_channels},
                                                {"kernel_size", &s.kernel_height}}));
                     s.kernel_width = s.kernel_height;
                     STEPCAST_ASSIGN(s.height, rows.extent("input_size"));
                     s.width = s.height;
                     STEPCAST_TRY(rows.extents({{"stride", &s.stride, 1, 1}, {"padding", &s.padding, 0, 0}}));
                     STEPCAST_TRY(check_convolution(rows, s));
                     return Operation{s, dtype};
                   });
}

Status read_efficiency(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  return read_rows(rows, layout, out, {}, DType::bf16,
                   [&](const KernelMeasurement& m, DType dtype) -> Result<Operation> {
                     if (m.label != "matmul" && m.label != "group_matmul")
                       return rows.error("op").expected("matmul or group_matmul where there is a time");
                     STEPCAST_ASSIGN(GemmShape s, gemm_of(rows, m.label == "matmul"));
                     if (m.label == "group_matmul") {
                       STEPCAST_ASSIGN(s.batch, rows.extent("n_groups"));
                     }
                     const std::string_view order = rows.cell("layout");
                     if (order == "TN")
                       s.layout = GemmLayout::tn;
                     else if (order == "NN")
                       s.layout = GemmLayout::nn;
                     else if (order == "NT")
                       s.layout = GemmLayout::nt;
                     else if (!order.empty())
                       return rows.error("layout").expected("TN, NN or NT");
                     STEPCAST_ASSIGN(s.accumulates, rows.truth("accumulate", false));
                     if (const std::string_view output = rows.cell("out_dtype"); !output.empty()) {
                       s.output = parse_dtype(output);
                       if (s.output == DType::unknown)
                         return rows.error("out_dtype").expected("bf16, fp32, ...");
                       if (s.output == dtype) s.output = DType::unknown;
                     }
                     return gemm(s, dtype);
                   });
}

}  // namespace

KernelLayout gemm_layout() {
  return {"GEMM measurements",
          [](const CsvRows& h) { return !h.has("op") && int{h.has("m")} + h.has("n") + h.has("k") >= 2; },
          {"gpu", "dtype", "m", "n", "k", "time_us"},
          {"batch", "regime"},
          read_gemm};
}

KernelLayout attention_layout() {
  return {"attention measurements",
          [](const CsvRows& h) {
            // A file with layers contains steps of whole models; one with cache_dtype contains latent attention.
            return !h.has("op") && !h.has("n_layers") && !h.has("cache_dtype") &&
                   int{h.has("seq_len_tokens")} + h.has("n_heads") + h.has("head_dim") >= 2;
          },
          {"gpu", "dtype", "batch", "seq_len_tokens", "n_heads", "n_kv_heads", "head_dim", "time_us"},
          {"causal", "window_tokens", "regime"},
          read_attention};
}

KernelLayout matmul_layout() {
  return {"matrix products",
          [](const CsvRows& h) { return h.has("op") && int{h.has("m")} + h.has("n") + h.has("k") >= 2; },
          {"gpu", "op", "dtype", "batch", "m", "n", "k", "time_us"},
          {},
          read_matmul};
}

KernelLayout vector_layout() {
  return {"vector operations",
          [](const CsvRows& h) { return h.has("op") && (h.has("rows") || h.has("cols")); },
          {"gpu", "op", "dtype", "rows", "cols", "time_us"},
          {},
          read_vector};
}

KernelLayout convolution_layout() {
  return {
      "convolutions",
      [](const CsvRows& h) { return h.has("op") && (h.has("kernel_size") || h.has("in_channels")); },
      {"gpu", "op", "dtype", "batch", "in_channels", "out_channels", "kernel_size", "input_size", "time_us"},
      {"stride", "padding"},
      read_convolution};
}

KernelLayout efficiency_layout() {
  return {"measured efficiencies",
          [](const CsvRows& h) { return h.has("efficiency") && h.has("op"); },
          {"gpu", "op", "m", "n", "k", "layout", "time_us"},
          {"batch", "accumulate", "out_dtype", "n_groups", "stage", "dtype"},
          read_efficiency};
}

}  // namespace stepcast::detail
