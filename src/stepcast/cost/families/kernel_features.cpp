#include "stepcast/cost/families/kernel_features.h"

#include "stepcast/cost/detail/shape_cost.h"

// Tables of the features: name, is_size, is_amount, is_discrete. ShapeCost<...>::features() writes them in
// this order.

namespace stepcast {
namespace {

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
    {"whole_vectors", false},
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
    {"log_queries", false},
    {"causal", false},
    {"log_window", false},
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
    {"pixels_alone", false},
    {"whole_vectors", false},
    {"log_few_in_channels", false},
    {"log_few_out_channels", false},
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

struct Names {
  KernelFeatureSet set;
  std::string_view name;
  std::span<const KernelFeature> features;
};
constexpr Names kSets[] = {
    {KernelFeatureSet::none, "none", {}},
    {KernelFeatureSet::matrix, "matrix_2", kMatrix},
    {KernelFeatureSet::attention, "attention_2", kAttention},
    {KernelFeatureSet::convolution, "convolution_2", kConvolution},
    {KernelFeatureSet::rows, "rows_1", kRows},
    {KernelFeatureSet::elements, "elements_1", kElements},
    {KernelFeatureSet::lookup, "lookup_1", kLookup},
    {KernelFeatureSet::optimizer, "optimizer_1", kOptimizer},
};
static_assert(std::size(kMatrix) <= kMostKernelFeatures);
// Former names of sets that have grown since: such records have only the first features.
struct FormerNames {
  std::string_view name;
  KernelFeatureSet set;
  std::size_t n_features;
};
constexpr FormerNames kFormerSets[] = {
    {"matrix_1", KernelFeatureSet::matrix, 24},
    {"attention_1", KernelFeatureSet::attention, 15},
    {"convolution_1", KernelFeatureSet::convolution, 18},
};

}  // namespace

std::string_view to_string(KernelFeatureSet set) { return kSets[static_cast<std::size_t>(set)].name; }

std::optional<KernelFeatureSet> parse_kernel_feature_set(std::string_view text) {
  for (const Names& names : kSets)
    if (names.name == text && names.set != KernelFeatureSet::none) return names.set;
  for (const FormerNames& former : kFormerSets)
    if (former.name == text) return former.set;
  return std::nullopt;
}

std::size_t stated_features(std::string_view text) {
  for (const FormerNames& former : kFormerSets)
    if (former.name == text) return former.n_features;
  const auto set = parse_kernel_feature_set(text);
  return set ? kernel_features_of(*set).size() : 0;
}

std::span<const KernelFeature> kernel_features_of(KernelFeatureSet set) {
  return kSets[static_cast<std::size_t>(set)].features;
}

KernelFeatureSet kernel_feature_set_of(const Operation& operation) {
  return std::visit([](const auto& s) { return detail::CostOf<decltype(s)>::kFeatures; }, operation.shape);
}

void compute_kernel_features(const Operation& operation, double sm_count, double log_reference,
                             std::span<float, kMostKernelFeatures> out) {
  detail::FeatureWriter write{out};
  std::visit([&](const auto& s) { detail::CostOf<decltype(s)>::features(s, write, sm_count, log_reference); },
             operation.shape);
}

}  // namespace stepcast
