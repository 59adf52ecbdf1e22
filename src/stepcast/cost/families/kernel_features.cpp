#include "stepcast/cost/families/kernel_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stepcast/cost/families/reference_time.h"

namespace stepcast {
namespace {

// A count of blocks, divided as integers on purpose.
float whole(std::int64_t count) { return static_cast<float>(count); }

constexpr KernelFeature kMatrix[] = {
    {"log_m", true},
    {"log_n", true},
    {"log_k", true},
    {"log_batch", true},
    {"log_reference", true},
    {"log_outputs", true},
    {"log_multiplications", true, true},
    {"log_k_per_n", false},
    {"log_m_per_n", false},
    {"last_wave_128x128", false},
    {"padding_128x128", false},
    {"last_wave_128x256", false},
    {"padding_128x256", false},
    {"last_wave_256x128", false},
    {"padding_256x128", false},
    {"twos_in_m", false},
    {"twos_in_n", false},
    {"twos_in_k", false},
    {"m_in_128", false},
    {"n_in_128", false},
    {"k_in_64", false},
    {.name = "bias", .is_size = false, .is_discrete = true},
    {.name = "accumulates", .is_size = false, .is_discrete = true},
    {.name = "layout", .is_size = false, .is_discrete = true},
};
constexpr KernelFeature kAttention[] = {
    {"log_batch", true},
    {"log_length", true},
    {"log_heads", true},
    {"log_head_dim", true},
    {"log_query_heads_per_key_head", false},
    {"log_reference", true},
    {"log_sequences", true},
    {"log_blocks_per_sm", true},
    {"last_wave_128", false},
    {"sequences_in_wave", false},
    {"head_dim_steps_32", false},
    {"head_dim_padding_64", false},
    {"head_dim_in_32", false},
    {"head_dim_in_64", false},
    {"log_key_value_elements", true, true},
};
constexpr KernelFeature kConvolution[] = {
    {"log_m", true},
    {"log_n", true},
    {"log_k", true},
    {"log_groups", false},
    {"log_reference", true},
    {"log_outputs", true, true},
    {"log_in_channels", true},
    {"log_batch", true},
    {"kernel", false},
    {"stride", false},
    {"log_image", true},
    {"log_input", true},
    {"last_wave_128x128", false},
    {"padding_128x128", false},
    {"twos_in_in_channels", false},
    {"twos_in_out_channels", false},
    {"n_in_128", false},
    {"padding", false},
};
constexpr KernelFeature kRows[] = {
    {"log_rows", true},
    {"log_cols", true},
    {"log_reference", true},
    {"log_elements", true, true},
    {"twos_in_cols", false},
    {"cols_per_1024", false},
    {.name = "kind", .is_size = false, .is_discrete = true},
};
constexpr KernelFeature kElements[] = {
    {"log_elements", true, true}, {"log_inner", true},
    {"log_reference", true},      {"log_outer", true},
    {"twos_in_inner", false},     {"twos_in_elements", false},
    {"tensors", false},           {.name = "function", .is_size = false, .is_discrete = true},
    {"flops_per_element", false},
};
constexpr KernelFeature kLookup[] = {
    {"log_rows", true},           {"log_dim", true},          {"log_lookups", true},
    {"log_reference", true},      {"log_output", true, true}, {"log_lookups_per_row", true},
    {"twos_in_dim", false},       {"log_pooling", true},      {"log_tables", true},
    {"log_table_elements", true},
};
constexpr KernelFeature kOptimizer[] = {
    {"log_parameters", true, true},
    {"log_tensors", true},
    {"log_reference", true},
    {"log_per_tensor", true},
    {"bytes_per_parameter", false},
    {.name = "implementation", .is_size = false, .is_discrete = true},
    {.name = "kind", .is_size = false, .is_discrete = true},
};

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

double real(std::int64_t extent) { return static_cast<double>(std::max<std::int64_t>(extent, 1)); }

// How often two divides the extent, up to a limit: what alignment a kernel can count on.
float twos_in(std::int64_t extent, int most) {
  if (extent <= 0) return 0;
  return static_cast<float>(std::min(std::countr_zero(static_cast<std::uint64_t>(extent)), most));
}

float remainder(std::int64_t extent, std::int64_t step) {
  return static_cast<float>(extent % step) / static_cast<float>(step);
}

class Writer {
 public:
  explicit Writer(std::span<float, kMostKernelFeatures> out) : out_(out) {}
  void operator()(double value) { out_[next_++] = static_cast<float>(value); }
  void operator()(float value) { out_[next_++] = value; }

 private:
  std::span<float, kMostKernelFeatures> out_;
  std::size_t next_ = 0;
};

// How much longer the waves are than their work (1: the last wave is full), and how much larger the tiles
// than the matrix.
void write_tiles(Writer& write, double batch, std::int64_t m, std::int64_t n, std::int64_t rows,
                 std::int64_t columns, double sm_count) {
  const double row_tiles = real((m + rows - 1) / rows), column_tiles = real((n + columns - 1) / columns);
  const double waves = row_tiles * column_tiles * batch / sm_count;
  write(std::ceil(waves) / waves);
  write(row_tiles * static_cast<double>(rows) / real(m) * column_tiles * static_cast<double>(columns) /
        real(n));
}

void write_matrix(Writer& write, const GemmShape& s, double sm_count, double log_reference) {
  const double log_m = std::log(real(s.m)), log_n = std::log(real(s.n)), log_k = std::log(real(s.k));
  const double log_batch = s.batch > 1 ? std::log(real(s.batch)) : 0;
  write(log_m);
  write(log_n);
  write(log_k);
  write(log_batch);
  write(log_reference);
  write(log_batch + log_m + log_n);
  write(log_batch + log_m + log_n + log_k);
  write(log_k - log_n);
  write(log_m - log_n);
  const double batch = real(s.batch);
  write_tiles(write, batch, s.m, s.n, 128, 128, sm_count);
  write_tiles(write, batch, s.m, s.n, 128, 256, sm_count);
  write_tiles(write, batch, s.m, s.n, 256, 128, sm_count);
  write(twos_in(s.m, 8));
  write(twos_in(s.n, 8));
  write(twos_in(s.k, 8));
  write(remainder(s.m, 128));
  write(remainder(s.n, 128));
  write(remainder(s.k, 64));
  write(s.bias ? 1.F : 0.F);
  write(s.accumulates ? 1.F : 0.F);
  write(s.layout == GemmLayout::any ? kUnknown : static_cast<float>(s.layout));
}

void write_attention(Writer& write, const AttentionShape& s, double sm_count, double log_reference) {
  // As long as a causal square with as many pairs.
  const double length = std::max(std::sqrt(2 * attended_pairs(s)) - 0.5, 1.0);
  const double kv_heads = real(s.key_value_heads > 0 ? s.key_value_heads : s.heads);
  const double log_batch = std::log(real(s.batch)), log_length = std::log(length);
  const double log_heads = std::log(real(s.heads)), log_dim = std::log(real(s.head_dim));
  const double log_group = log_heads - std::log(kv_heads);
  write(log_batch);
  write(log_length);
  write(log_heads);
  write(log_dim);
  write(log_group);
  write(log_reference);
  write(log_batch + log_heads);
  const double sequences = real(s.batch) * real(s.heads) / sm_count;
  const double waves = sequences * std::ceil(real(s.query_length) / 128);
  write(std::log(waves));
  write(std::ceil(waves) / waves);
  write(sequences / std::ceil(sequences));
  write(whole((s.head_dim + 31) / 32));
  write(whole((s.head_dim + 63) / 64 * 64) / static_cast<float>(real(s.head_dim)));
  write(remainder(s.head_dim, 32));
  write(remainder(s.head_dim, 64));
  write(log_batch + log_heads - log_group + log_length + log_dim);
}

void write_convolution(Writer& write, const ConvolutionShape& s, double sm_count, double log_reference) {
  const GemmShape product = implicit_gemm(s);
  const double log_m = std::log(real(product.m)), log_n = std::log(real(product.n));
  write(log_m);
  write(log_n);
  write(std::log(real(product.k)));
  write(std::log(real(product.batch)));
  write(log_reference);
  write(log_m + log_n);
  write(std::log(real(s.in_channels)));
  write(std::log(real(s.batch)));
  write(static_cast<float>(std::max(s.kernel_height, s.kernel_width)));
  write(static_cast<float>(s.stride));
  write(std::log(real(s.height) * real(s.width)));
  write(std::log(real(s.batch) * real(s.in_channels) * real(s.height) * real(s.width)));
  write_tiles(write, real(product.batch), product.m, product.n, 128, 128, sm_count);
  write(twos_in(s.in_channels, 8));
  write(twos_in(s.out_channels, 8));
  write(remainder(product.n, 128));
  write(static_cast<float>(s.padding));
}

void write_rows(Writer& write, std::int64_t rows, std::int64_t cols, int kind, double log_reference) {
  const double log_rows = std::log(real(rows)), log_cols = std::log(real(cols));
  write(log_rows);
  write(log_cols);
  write(log_reference);
  write(log_rows + log_cols);
  write(twos_in(cols, 12));
  write(whole((cols + 1023) / 1024));
  write(static_cast<float>(kind));
}

void write_elements(Writer& write, std::int64_t elements, std::int64_t inner, double tensors, int function,
                    double flops_per_element, double log_reference) {
  const double log_elements = std::log(real(elements));
  write(log_elements);
  const double log_inner = inner > 0 ? std::log(real(inner)) : std::numeric_limits<double>::quiet_NaN();
  write(log_inner);
  write(log_reference);
  write(log_elements - log_inner);
  write(inner > 0 ? twos_in(inner, 12) : kUnknown);
  write(twos_in(elements, 12));
  write(tensors);
  write(static_cast<float>(function));
  write(flops_per_element);
}

struct Names {
  KernelFeatureSet set;
  std::string_view name;
  std::span<const KernelFeature> features;
};
constexpr Names kSets[] = {
    {KernelFeatureSet::none, "none", {}},
    {KernelFeatureSet::matrix, "matrix_1", kMatrix},
    {KernelFeatureSet::attention, "attention_1", kAttention},
    {KernelFeatureSet::convolution, "convolution_1", kConvolution},
    {KernelFeatureSet::rows, "rows_1", kRows},
    {KernelFeatureSet::elements, "elements_1", kElements},
    {KernelFeatureSet::lookup, "lookup_1", kLookup},
    {KernelFeatureSet::optimizer, "optimizer_1", kOptimizer},
};
static_assert(std::size(kMatrix) <= kMostKernelFeatures);

}  // namespace

std::string_view to_string(KernelFeatureSet set) { return kSets[static_cast<std::size_t>(set)].name; }

std::optional<KernelFeatureSet> parse_kernel_feature_set(std::string_view text) {
  for (const Names& names : kSets) {
    if (names.name == text && names.set != KernelFeatureSet::none) return names.set;
  }
  return std::nullopt;
}

std::span<const KernelFeature> kernel_features_of(KernelFeatureSet set) {
  return kSets[static_cast<std::size_t>(set)].features;
}

KernelFeatureSet kernel_feature_set_of(const Operation& operation) {
  struct Visitor {
    KernelFeatureSet operator()(const GemmShape&) const { return KernelFeatureSet::matrix; }
    KernelFeatureSet operator()(const AttentionShape&) const { return KernelFeatureSet::attention; }
    KernelFeatureSet operator()(const ConvolutionShape&) const { return KernelFeatureSet::convolution; }
    KernelFeatureSet operator()(const NormShape&) const { return KernelFeatureSet::rows; }
    KernelFeatureSet operator()(const SoftmaxShape&) const { return KernelFeatureSet::rows; }
    KernelFeatureSet operator()(const CrossEntropyShape&) const { return KernelFeatureSet::rows; }
    KernelFeatureSet operator()(const ReductionShape&) const { return KernelFeatureSet::rows; }
    KernelFeatureSet operator()(const ElementwiseShape&) const { return KernelFeatureSet::elements; }
    KernelFeatureSet operator()(const MovementShape&) const { return KernelFeatureSet::elements; }
    KernelFeatureSet operator()(const TransferShape&) const { return KernelFeatureSet::elements; }
    KernelFeatureSet operator()(const LookupShape&) const { return KernelFeatureSet::lookup; }
    KernelFeatureSet operator()(const OptimizerShape&) const { return KernelFeatureSet::optimizer; }
    KernelFeatureSet operator()(const SparseShape&) const { return KernelFeatureSet::none; }
    KernelFeatureSet operator()(const AmountShape&) const { return KernelFeatureSet::none; }
  };
  return std::visit(Visitor{}, operation.shape);
}

void compute_kernel_features(const Operation& operation, double sm_count, double log_reference,
                             std::span<float, kMostKernelFeatures> out) {
  Writer write{out};
  if (const auto* gemm = std::get_if<GemmShape>(&operation.shape)) {
    write_matrix(write, *gemm, sm_count, log_reference);
  } else if (const auto* attention = std::get_if<AttentionShape>(&operation.shape)) {
    write_attention(write, *attention, sm_count, log_reference);
  } else if (const auto* convolution = std::get_if<ConvolutionShape>(&operation.shape)) {
    write_convolution(write, *convolution, sm_count, log_reference);
  } else if (const auto* norm = std::get_if<NormShape>(&operation.shape)) {
    write_rows(write, norm->rows, norm->cols, static_cast<int>(norm->kind), log_reference);
  } else if (const auto* softmax = std::get_if<SoftmaxShape>(&operation.shape)) {
    write_rows(write, softmax->rows, softmax->cols, static_cast<int>(softmax->kind), log_reference);
  } else if (const auto* entropy = std::get_if<CrossEntropyShape>(&operation.shape)) {
    write_rows(write, entropy->rows, entropy->classes, entropy->fused ? 1 : 0, log_reference);
  } else if (const auto* reduction = std::get_if<ReductionShape>(&operation.shape)) {
    write_rows(write, reduction->rows, reduction->cols, 0, log_reference);
  } else if (const auto* e = std::get_if<ElementwiseShape>(&operation.shape)) {
    write_elements(write, e->elements, e->inner,
                   static_cast<double>(e->reads) + static_cast<double>(e->writes),
                   static_cast<int>(e->function), static_cast<double>(e->flops_per_element), log_reference);
  } else if (const auto* move = std::get_if<MovementShape>(&operation.shape)) {
    write_elements(write, move->elements, move->inner, 2, static_cast<int>(move->kind), 0, log_reference);
  } else if (const auto* transfer = std::get_if<TransferShape>(&operation.shape)) {
    write_elements(write, transfer->bytes, 0, 1, static_cast<int>(transfer->kind), transfer->pinned ? 1 : 0,
                   log_reference);
  } else if (const auto* lookup = std::get_if<LookupShape>(&operation.shape)) {
    const double log_rows = std::log(real(lookup->rows)), log_dim = std::log(real(lookup->dim));
    const double log_pooling = std::log(std::max(lookup->pooling, 1.0));
    const double log_tables = std::log(real(lookup->tables));
    const double log_lookups = log_tables + std::log(real(lookup->bags)) + log_pooling;
    write(log_rows);
    write(log_dim);
    write(log_lookups);
    write(log_reference);
    write(log_lookups - log_pooling + log_dim);
    write(log_lookups - log_rows - log_tables);
    write(twos_in(lookup->dim, 12));
    write(log_pooling);
    write(log_tables);
    write(log_tables + log_rows + log_dim);
  } else if (const auto* step = std::get_if<OptimizerShape>(&operation.shape)) {
    const double log_parameters = std::log(real(step->parameters)),
                 log_tensors = std::log(real(step->tensors));
    write(log_parameters);
    write(log_tensors);
    write(log_reference);
    write(log_parameters - log_tensors);
    write(static_cast<double>(step->bytes_read_per_parameter) +
          static_cast<double>(step->bytes_written_per_parameter));
    write(static_cast<float>(step->implementation));
    write(static_cast<float>(step->kind));
  }
}

}  // namespace stepcast
