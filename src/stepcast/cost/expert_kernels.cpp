#include "stepcast/cost/expert_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "stepcast/cost/detail/device_rates.h"

namespace stepcast {
namespace {

// Rows and columns of the tiles that libraries choose from.
constexpr std::array<double, 3> kTileRows = {64, 128, 256};
constexpr double kTileColumns = 128;
// No grouped product reaches more of the peak: the fastest that were measured 0.82 (H100, bf16), 0.72 (B200, fp8).
constexpr double kMostOfPeak = 0.85;
// Of the sum of arithmetic and memory time: |x| of a 4-norm. Assumed.
constexpr double kSharpness = 4;
// What rates of the nearest relative lose, each side, in ln: as its other kernels.
constexpr double kRatesOfSibling = 0.02;
// What rates of another type lose in certainty, each side, in ln. Assumed.
constexpr double kOfOtherType = 0.12;

double real_size(DType dtype) { return dtype == DType::fp4 ? 0.5 : element_size(dtype).value(); }

constexpr std::array<detail::RateField<ExpertRates>, 9> kExpertFields{
    {{"startup_us", &ExpertRates::startup_us},
     {"arithmetic_share", &ExpertRates::arithmetic_share},
     {"memory_share", &ExpertRates::memory_share},
     {"fill_depth", &ExpertRates::fill_depth},
     {"tile_rows", &ExpertRates::tile_rows},
     {"movement_factor", &ExpertRates::movement_factor},
     {"per_expert_us", &ExpertRates::per_expert_us},
     {"log_p10", &ExpertRates::log_p10, false},
     {"log_p90", &ExpertRates::log_p90, false}}};
constexpr std::span<const detail::RateField<ExpertRates>> kExpertRates{kExpertFields};

// The types to ask for, in this order.
std::vector<DType> like(DType dtype) {
  switch (dtype) {
    case DType::fp8: return {DType::fp8, DType::fp8_block, DType::bf16};
    case DType::fp8_block: return {DType::fp8_block, DType::fp8, DType::bf16};
    case DType::fp4: return {DType::fp4, DType::fp8, DType::bf16};
    default: return {DType::bf16};
  }
}

double learned_factor(const ExpertRates& rates, const ExpertFeatures& features) {
  if (!rates.learned) return 1;
  double sum = 0;
  rates.learned->add(features, features.size(), 1, {&sum, 1});
  return std::exp(sum);
}

double closed_form_us(const ExpertRates& rates, const DeviceFigures& device, const GroupedProduct& product) {
  const double peak = device.matrix_of(rates.dtype).per_us;
  double arithmetic_us = 0;
  for (const double rows : kTileRows) {
    const double tiles_of_rows = product.uneven ? product.m / rows + 0.5 : std::ceil(product.m / rows);
    const double tiles = product.experts * tiles_of_rows * std::ceil(product.n / kTileColumns);
    const double waves = std::max(1.0, tiles / device.sm_count);
    const double share = std::min(kMostOfPeak, rates.arithmetic_share * rows / (rows + rates.tile_rows));
    const double tile_us =
        2 * rows * kTileColumns * (product.k + rates.fill_depth) * device.sm_count / (peak * share);
    const double us = waves * tile_us;
    if (arithmetic_us == 0 || us < arithmetic_us) arithmetic_us = us;
  }
  const double bytes =
      product.experts * ((product.m * product.k + product.k * product.n) * product.operand_bytes +
                         product.m * product.n * product.output_bytes);
  return detail::sharp_sum(arithmetic_us, bytes / (device.memory.per_us * rates.memory_share), kSharpness);
}

}  // namespace

ExpertFeatures expert_features(double rows, double experts, bool uneven, double weights) {
  const auto log_of = [](double x) { return static_cast<float>(std::log(std::max(x, 1e-3))); };
  return {log_of(rows), log_of(experts), uneven ? 1.F : 0.F, log_of(weights)};
}

double grouped_product_us(const ExpertRates& rates, const DeviceFigures& device, const GroupedProduct& p) {
  const ExpertFeatures features = p.weight_gradient ? expert_features(p.k, p.experts, p.uneven, p.m * p.n)
                                                    : expert_features(p.m, p.experts, p.uneven, p.n * p.k);
  const double least_us =
      2 * p.experts * p.m * p.n * p.k / (device.matrix_of(rates.dtype).per_us * kMostOfPeak);
  return std::max(closed_form_us(rates, device, p) * learned_factor(rates, features), least_us);
}

ExpertFeatures features_of(const ExpertLayer& layer) {
  return expert_features(layer.visits / layer.local_experts, layer.local_experts, layer.uneven,
                         layer.hidden_size * layer.expert_ffn_size);
}

double expert_layer_us(const ExpertRates& rates, const DeviceFigures& device, const ExpertLayer& layer) {
  const double size = real_size(rates.dtype), rows = layer.visits / layer.local_experts;
  const double matrices = layer.gated ? 2 : 1;
  const auto product = [&](double n, double k) {
    return closed_form_us(rates, device, {layer.local_experts, rows, n, k, layer.uneven, size, 2});
  };
  const double products = product(matrices * layer.expert_ffn_size, layer.hidden_size) +
                          product(layer.hidden_size, layer.expert_ffn_size);
  const double activation = layer.visits * layer.expert_ffn_size * (matrices + 1) * 2;
  // Tokens are read and written in the order of experts, results read back and their sums written.
  const double movement = layer.hidden_size * (layer.visits * (size + 2 + 2) + layer.tokens * 4);
  return learned_factor(rates, features_of(layer)) *
         (rates.startup_us + products +
          rates.movement_factor * (activation + movement) / device.memory.per_us +
          rates.per_expert_us * layer.local_experts);
}

std::optional<ExpertRates> ExpertKernels::rates(const Device& device, DType dtype,
                                                const std::optional<KernelSibling>& sibling) const {
  double other_type = 0;
  for (const DType type : like(dtype)) {
    std::vector<const ExpertRates*> of_type, of_sibling;
    bool own = false;
    for (const ExpertRates& r : measured) {
      if (r.dtype != type) continue;
      of_type.push_back(&r);
      own = own || device.matches_name(r.device);
      if (sibling && same_name(r.device, sibling->device)) of_sibling.push_back(&r);
    }
    const auto peak = device.peak(dtype);
    double peak_there = 0;  // of the type that is asked for
    if (sibling)
      for (const auto& [known, tera] : sibling->peak_TFLOPs)
        if (known == (dtype == DType::fp8_block ? DType::fp8 : dtype)) peak_there = tera;
    const bool scaled = !own && !of_sibling.empty() && peak && peak_there > 0;
    std::optional<ExpertRates> found =
        detail::rates_for<ExpertRates>(device, scaled ? of_sibling : of_type, kExpertRates, other_type);
    if (found) {
      const auto of_device = [&](const ExpertRates* r) {
        return r->learned && (scaled || (own && device.matches_name(r->device)));
      };
      const auto& candidates = scaled ? of_sibling : of_type;
      const auto with = std::ranges::find_if(candidates, of_device);
      found->learned = with != candidates.end() ? (*with)->learned : nullptr;
      found->dtype = dtype;  // the peak is that of the type that is asked for
      if (scaled) {          // closer than any device of the architecture
        found->log_p10 += detail::kRatesOfArchitecture - kRatesOfSibling;
        found->log_p90 -= detail::kRatesOfArchitecture - kRatesOfSibling;
      }
      if (scaled) found->arithmetic_share *= peak_there * sibling->sustained / (peak->value() / 1e12);
      return found;
    }
    other_type += kOfOtherType;
  }
  return std::nullopt;
}

Result<ExpertKernels> ExpertKernels::read(const JsonValue& parameters) {
  ExpertKernels kernels;
  const auto read_type = [](const auto& text, ExpertRates& rates) -> Status {
    rates.dtype = parse_dtype(text("dtype"));
    if (!rates.device.empty() && rates.dtype != DType::unknown) return Ok{};
    return Error{"an entry of `rates` lacks its device or a type that is known"};
  };
  STEPCAST_ASSIGN(kernels.measured, detail::read_rates<ExpertRates>(parameters, kExpertRates, read_type));
  const auto& items = parameters.find("rates")->items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const JsonValue* learned = items[i].find("learned");
    if (learned == nullptr) continue;
    STEPCAST_ASSIGN(GradientTrees trees, GradientTrees::read(*learned, ExpertFeatures{}.size()));
    kernels.measured[i].learned = std::make_shared<const GradientTrees>(std::move(trees));
  }
  return kernels;
}

JsonValue ExpertKernels::write() const {
  return detail::write_rates<ExpertRates>(measured, kExpertRates,
                                          [](JsonValue& item, const ExpertRates& rates) {
                                            item.add("dtype", JsonValue{to_string(rates.dtype)});
                                            if (rates.learned) item.add("learned", rates.learned->write());
                                          });
}

bool is_expert_product(const Operation& operation) {
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  return product != nullptr && product->batch > 1 && product->output != DType::unknown &&
         operation.direction == Direction::forward;
}

}  // namespace stepcast
