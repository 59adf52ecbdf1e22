// Transformer operators, forward and backward in one row (operators_fwd_bwd_*.csv). The shapes are those of
// one tensor-parallel rank, as given by the notes next to the data.
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "calibrate/detail/kernel_layouts.h"

namespace stepcast::detail {
namespace {

// Vocabulary of all rows of the source (GPT-2), padded to a multiple of 128 for every rank.
constexpr std::int64_t kVocabulary = 50257, kVocabularyMultiple = 128;

std::int64_t padded_vocabulary(std::int64_t tp) {
  const std::int64_t multiple = kVocabularyMultiple * tp;
  return kVocabularyMultiple * ((kVocabulary + multiple - 1) / multiple);
}

// Parameters of a row. Those that its operator does not use are empty.
struct Parameters {
  std::int64_t tp = 1, b = 0, h = 0, l = 0, d = 0, layers = 0, tensors = 0, parameters = 0;
};

// Which parameters an operator needs, and whether it has separate forward and backward times.
struct Operator {
  std::string_view name;
  std::string_view needs;  // of "b", "h", "l", "d", "n" (layers), "t" (tensors and parameters)
  Operation (*make)(const Parameters& p, DType dtype);
};

Operation product(const Parameters& p, std::int64_t n, std::int64_t k, DType dtype, bool bias = false) {
  return gemm({.m = p.b * p.l, .n = n, .k = k, .bias = bias, .layout = GemmLayout::tn}, dtype);
}

Operation pointwise(ElementwiseFunction function, std::int64_t elements, std::int64_t inner, DType dtype) {
  return elementwise(
      {.function = function, .elements = elements, .reads = tensors_read(function), .inner = inner}, dtype);
}

// Weights and biases of one layer of the stage on one tensor-parallel rank: two norms, and the QKV, output,
// up and down projections.
std::int64_t layer_parameters(std::int64_t d, std::int64_t tp) {
  return 4 * d + 3 * d * (d + 1) / tp + d * (d + 1) / tp + 4 * d * (d + 1) / tp + d * (4 * d + 1) / tp;
}
constexpr std::int64_t kLayerTensors = 12;

Operation adam(std::int64_t parameters, std::int64_t tensors) {
  // The optimizer step works on fp32 states whatever the compute type.
  return {OptimizerShape{.kind = OptimizerKind::adam, .parameters = parameters, .tensors = tensors},
          DType::fp32, Direction::forward};
}

constexpr Operator kOperators[] = {
    {"embedding", "bld",
     [](const Parameters& p, DType t) {
       return Operation{LookupShape{.rows = padded_vocabulary(p.tp), .dim = p.d, .bags = p.b * p.l}, t};
     }},
    {"layernorm", "bld",
     [](const Parameters& p, DType t) {
       return norm({.kind = NormKind::layer_norm, .rows = p.b * p.l, .cols = p.d}, t);
     }},
    {"RMSlayernorm", "bld",
     [](const Parameters& p, DType t) {
       // Not fused: the measured times are five times those of one kernel.
       return norm({.kind = NormKind::rms_norm, .rows = p.b * p.l, .cols = p.d, .fused = false}, t);
     }},
    {"res_add", "bld",
     [](const Parameters& p, DType t) {
       return pointwise(ElementwiseFunction::residual_add, p.b * p.l * p.d, p.d, t);
     }},
    {"linear1", "bld", [](const Parameters& p, DType t) { return product(p, 3 * p.d / p.tp, p.d, t, true); }},
    {"linear2", "bld", [](const Parameters& p, DType t) { return product(p, p.d, p.d / p.tp, t); }},
    {"linear3", "bld", [](const Parameters& p, DType t) { return product(p, 4 * p.d / p.tp, p.d, t); }},
    {"linear4", "bld", [](const Parameters& p, DType t) { return product(p, p.d, 4 * p.d / p.tp, t); }},
    {"linear_final", "bld",
     [](const Parameters& p, DType t) { return product(p, padded_vocabulary(p.tp), p.d, t); }},
    {"gelu", "bld",
     [](const Parameters& p, DType t) {
       return pointwise(ElementwiseFunction::gelu, p.b * p.l * (4 * p.d / p.tp), 4 * p.d / p.tp, t);
     }},
    {"RoPE", "bhld",
     [](const Parameters& p, DType t) {
       return pointwise(ElementwiseFunction::rotary_unfused, p.b * p.l * (p.h / p.tp) * (p.d / p.h),
                        p.d / p.h, t);
     }},
    {"flash_atten", "bhld",
     [](const Parameters& p, DType t) {
       return attention({.batch = p.b,
                         .query_length = p.l,
                         .key_length = p.l,
                         .heads = p.h / p.tp,
                         .key_value_heads = p.h / p.tp,
                         .head_dim = p.d / p.h,
                         // FlashAttention 1: the measured rates are below a third of the peak of the A100.
                         .kernel = AttentionKernel::flash1},
                        t);
     }},
    {"baddbmm", "bhld",
     [](const Parameters& p, DType t) {
       return gemm(
           {.batch = p.b * (p.h / p.tp), .m = p.l, .n = p.l, .k = p.d / p.h, .layout = GemmLayout::tn}, t);
     }},
    {"bmm", "bhld",
     [](const Parameters& p, DType t) {
       return gemm(
           {.batch = p.b * (p.h / p.tp), .m = p.l, .n = p.d / p.h, .k = p.l, .layout = GemmLayout::nn}, t);
     }},
    {"fillmask", "bhl",
     [](const Parameters& p, DType t) {
       return pointwise(ElementwiseFunction::masked_fill, p.b * (p.h / p.tp) * p.l * p.l, p.l, t);
     }},
    {"softmax", "bhl",
     [](const Parameters& p, DType t) {
       return Operation{SoftmaxShape{.rows = p.b * (p.h / p.tp) * p.l, .cols = p.l}, t};
     }},
    {"ScaledUpperTriangMaskedSoftmax", "bhl",
     [](const Parameters& p, DType t) {
       return Operation{
           SoftmaxShape{.kind = SoftmaxKind::causal_masked, .rows = p.b * (p.h / p.tp) * p.l, .cols = p.l},
           t};
     }},
    {"parallel_cross_entropy_128", "bl",
     [](const Parameters& p, DType t) {
       return Operation{CrossEntropyShape{.rows = p.b * p.l, .classes = padded_vocabulary(p.tp)}, t};
     }},
    {"firstStage_optimizer", "dn",
     [](const Parameters& p, DType) {
       return adam(padded_vocabulary(p.tp) * p.d + p.layers * layer_parameters(p.d, p.tp),
                   1 + p.layers * kLayerTensors);
     }},
    {"middleStage_optimizer", "dn",
     [](const Parameters& p, DType) {
       return adam(p.layers * layer_parameters(p.d, p.tp), p.layers * kLayerTensors);
     }},
    {"lastStage_optimizer", "dn",
     [](const Parameters& p, DType) {
       return adam(p.layers * layer_parameters(p.d, p.tp) + 2 * p.d + padded_vocabulary(p.tp) * p.d,
                   p.layers * kLayerTensors + 3);
     }},
    {"optimizer", "t", [](const Parameters& p, DType) { return adam(p.parameters, p.tensors); }},
};

const Operator* find_operator(std::string_view name) {
  for (const Operator& o : kOperators)
    if (o.name == name) return &o;
  return nullptr;
}

Status check_divisible(const CsvRows& rows, std::string_view column, std::int64_t value, std::string_view by,
                       std::int64_t divisor) {
  if (value % divisor == 0) return Ok{};
  return rows.error(column).expected(fmt::format("a multiple of {}, which is {}", by, divisor));
}

// Limits far above any model, chosen so that batch x heads x length x length fits 63 bits.
constexpr std::int64_t kMostOf = 1 << 11, kMostLength = 1 << 20;

Result<Parameters> read_parameters(const CsvRows& rows, std::string_view needs) {
  Parameters p;
  const auto read = [&](std::string_view column, std::int64_t most) -> Result<std::int64_t> {
    STEPCAST_ASSIGN(const std::int64_t value, rows.extent(column));
    if (value > most) return rows.error(column).expected(fmt::format("at most {}", most));
    return value;
  };
  STEPCAST_ASSIGN(p.tp, rows.extent("tp", 1, 1));
  if (p.tp > kMostOf) return rows.error("tp").expected(fmt::format("at most {}", kMostOf));
  for (const char need : needs) {
    switch (need) {
      case 'b': {
        STEPCAST_ASSIGN(p.b, read("micro_batch", kMostOf));
        break;
      }
      case 'h': {
        STEPCAST_ASSIGN(p.h, read("n_heads", kMostOf));
        STEPCAST_TRY(check_divisible(rows, "n_heads", p.h, "tp", p.tp));
        break;
      }
      case 'l': {
        STEPCAST_ASSIGN(p.l, read("seq_len", kMostLength));
        break;
      }
      case 'd': {
        STEPCAST_ASSIGN(p.d, read("hidden_size", kMostLength));
        if (p.h > 0) STEPCAST_TRY(check_divisible(rows, "hidden_size", p.d, "n_heads", p.h));
        break;
      }
      case 'n': {
        STEPCAST_ASSIGN(p.layers, read("n_layers", kMostOf));
        break;
      }
      default: {
        STEPCAST_TRY(rows.extents({{"n_params", &p.parameters}, {"n_param_tensors", &p.tensors}}));
      }
    }
  }
  // All operators with a width split it by the tensor-parallel degree.
  if (p.d > 0 && p.b > 0) STEPCAST_TRY(check_divisible(rows, "hidden_size", p.d, "tp", p.tp));
  return p;
}

Status read_operators(CsvRows& rows, const KernelLayout& layout, KernelMeasurements& out) {
  const MeasurementSink sink{rows, layout, out};
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    const std::string_view name = rows.cell("operator");
    const Operator* op = find_operator(name);
    if (op == nullptr) {
      if (name.empty()) return rows.error("operator").expected("linear1, gelu, flash_atten, ...");
      sink.skip(name.substr(0, 60), "an operator that stepcast does not know");
      continue;
    }
    KernelMeasurement m;
    STEPCAST_ASSIGN(m.gpu, sink.text("gpu"));
    STEPCAST_ASSIGN(const DType dtype, sink.dtype());
    STEPCAST_ASSIGN(const Parameters p, read_parameters(rows, op->needs));
    m.label = op->name;
    m.operation = op->make(p, dtype);
    // These columns are filled in even if the operator does not depend on them.
    STEPCAST_TRY(
        rows.extents({{"hidden_size", &m.hidden_size, 0, 0}, {"seq_len", &m.sequence_length, 0, 0}}));
    bool any = false;
    for (const auto& [column, direction] :
         {std::pair{"fwd_time_us", Direction::forward}, std::pair{"bwd_time_us", Direction::backward},
          std::pair{"time_us", Direction::forward}}) {
      STEPCAST_ASSIGN(const auto time, sink.time(column));
      if (!time) continue;
      any = true;
      m.time = *time;
      m.operation.direction = direction;
      STEPCAST_TRY(sink.add(m));
    }
    if (!any) sink.skip(op->name, "rows without a time");
  }
}

}  // namespace

KernelLayout operators_layout() {
  return {"transformer operators",
          [](const CsvRows& header) {
            return header.has("operator") || header.has("fwd_time_us") || header.has("bwd_time_us");
          },
          {"gpu", "operator", "dtype", "tp", "micro_batch", "seq_len", "hidden_size", "fwd_time_us",
           "bwd_time_us"},
          {"n_heads", "n_layers", "n_param_tensors", "n_params", "time_us"},
          read_operators};
}

}  // namespace stepcast::detail
