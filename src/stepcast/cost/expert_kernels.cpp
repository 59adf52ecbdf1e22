#include "stepcast/cost/expert_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "stepcast/cost/detail/device_rates.h"
#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// Rows and columns of the tiles that libraries choose from.
// Rows and columns of the tiles that libraries choose from.
constexpr std::array<double, 3> kTileRows = {64, 128, 256};
constexpr double kTileColumns = 128;
// Upper limit of the share of the peak: the fastest measured grouped GEMMs reach 0.82 (H100, bf16) and 0.72
// (B200, fp8).
constexpr double kMostOfPeak = 0.85;
// Exponent of the sharp sum of arithmetic and memory time. Assumed.
constexpr double kSharpness = 4;
// Widening of the band, each side in ln, for rates of the nearest relative: the same as for its other
// kernels.
constexpr double kRatesOfSibling = 0.02;
// Sorted over served expert choices for which a single GEMM is averaged: layers on one rank, on one node and
// on several nodes.
constexpr std::array<double, 3> kSortedOverServed = {1, 8, 64};
// Tolerance, in ln, within which weights count as measured: the same as for sizes of other kernels.
constexpr double kSameWeights = 0.02;
// Widening of the band, each side in ln, for rates of another type. Assumed.
constexpr double kOfOtherType = 0.12;

// Bytes of an element in memory; fp4 takes half a byte.
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

// Measured types that can replace `dtype`, best first.
std::vector<DType> like(DType dtype) {
  switch (dtype) {
    case DType::fp8: return {DType::fp8, DType::fp8_block, DType::bf16};
    case DType::fp8_block: return {DType::fp8_block, DType::fp8, DType::bf16};
    case DType::fp4: return {DType::fp4, DType::fp8, DType::bf16};
    default: return {DType::bf16};
  }
}

// exp of the learned correction; 1 without one.
double learned_factor(const ExpertRates& rates, const ExpertFeatures& features) {
  if (!rates.learned) return 1;
  double sum = 0;
  rates.learned->add(features, features.size(), 1, {&sum, 1});
  return std::exp(sum);
}

// The same for a single GEMM: geometric mean over kSortedOverServed.
double learned_factor_of_product(const ExpertRates& rates, ExpertFeatures features) {
  double product = 1;
  for (const double sorted : kSortedOverServed) {
    features.back() = static_cast<float>(std::log(sorted));
    product *= learned_factor(rates, features);
  }
  return std::pow(product, 1.0 / kSortedOverServed.size());
}

// Figures for the closed form: those of the sibling where the rates are of one.
struct ExpertMachine {
  double flops_per_us, bytes_per_us, sm_count;
};

ExpertMachine machine_of(const ExpertRates& rates, const DeviceFigures& device) {
  ExpertMachine out{device.matrix_of(rates.dtype).per_us, device.memory.per_us, device.sm_count};
  if (!rates.sibling) return out;
  const DType type = rates.dtype == DType::fp8_block ? DType::fp8 : rates.dtype;
  if (const auto peak = rates.sibling->peak_TFLOPs.find(type); peak != rates.sibling->peak_TFLOPs.end())
    out.flops_per_us = peak->second * 1e6;
  out.bytes_per_us /= rates.sibling->memory;
  if (rates.sibling->sm_count > 0) out.sm_count = rates.sibling->sm_count;
  return out;
}

// A time of the sibling, scaled to this device. Layers were measured in short runs, so the power limit does
// not apply.
double moved_us(const ExpertRates& rates, const ExpertMachine& machine, double us, double bytes) {
  return rates.sibling ? us * rates.sibling->time_ratio(us, bytes / machine.bytes_per_us, 0, false) : us;
}

// Bytes of all operands of all experts.
double bytes_of(const GroupedProduct& product) {
  return product.experts * ((product.m * product.k + product.k * product.n) * product.operand_bytes +
                            product.m * product.n * product.output_bytes);
}

// Time of a grouped GEMM in us without correction: the best of the tile heights.
double closed_form_us(const ExpertRates& rates, const ExpertMachine& machine, const GroupedProduct& product) {
  double arithmetic_us = 0;
  for (const double rows : kTileRows) {
    const double tiles_of_rows = product.uneven ? product.m / rows + 0.5 : std::ceil(product.m / rows);
    const double tiles = product.experts * tiles_of_rows * std::ceil(product.n / kTileColumns);
    const double waves = std::max(1.0, tiles / machine.sm_count);
    const double share = std::min(kMostOfPeak, rates.arithmetic_share * rows / (rows + rates.tile_rows));
    const double tile_us = 2 * rows * kTileColumns * (product.k + rates.fill_depth) * machine.sm_count /
                           (machine.flops_per_us * share);
    const double us = waves * tile_us;
    if (arithmetic_us == 0 || us < arithmetic_us) arithmetic_us = us;
  }
  return detail::sharp_sum(arithmetic_us, bytes_of(product) / (machine.bytes_per_us * rates.memory_share),
                           kSharpness);
}

}  // namespace

ExpertFeatures expert_features(double rows, double experts, bool uneven, double weights,
                               double sorted_over_served) {
  const auto log_of = [](double x) { return static_cast<float>(std::log(std::max(x, 1e-3))); };
  return {log_of(rows), log_of(experts), uneven ? 1.F : 0.F, log_of(weights), log_of(sorted_over_served)};
}

// The band of known weights applies for one GEMM (w) or for up and gate together (2 w).
ExpertBand expert_band(const ExpertRates& rates, double weights) {
  const double sought = std::log(weights);
  const auto is_sought = [&](double w) {
    return std::abs(w - sought) < kSameWeights || std::abs(w + std::numbers::ln2 - sought) < kSameWeights;
  };
  const bool known = std::ranges::any_of(rates.known_weights, is_sought);
  return known ? ExpertBand{rates.known_log_p10, rates.known_log_p90}
               : ExpertBand{rates.log_p10, rates.log_p90};
}

double grouped_product_us(const ExpertRates& rates, const DeviceFigures& device, const GroupedProduct& p) {
  const ExpertFeatures features = p.weight_gradient ? expert_features(p.k, p.experts, p.uneven, p.m * p.n)
                                                    : expert_features(p.m, p.experts, p.uneven, p.n * p.k);
  // No time is below kMostOfPeak of the peak.
  const double least_us =
      2 * p.experts * p.m * p.n * p.k / (device.matrix_of(rates.dtype).per_us * kMostOfPeak);
  const ExpertMachine machine = machine_of(rates, device);
  const double us = closed_form_us(rates, machine, p) * learned_factor_of_product(rates, features);
  return std::max(moved_us(rates, machine, us, bytes_of(p)), least_us);
}

ExpertFeatures features_of(const ExpertLayer& layer) {
  return expert_features(layer.visits / layer.local_experts, layer.local_experts, layer.uneven,
                         layer.hidden_size * layer.expert_ffn_size,
                         layer.tokens * layer.experts_per_token / layer.visits);
}

double expert_layer_us(const ExpertRates& rates, const DeviceFigures& device, const ExpertLayer& layer) {
  const double size = real_size(rates.dtype), rows = layer.visits / layer.local_experts;
  const double matrices = layer.gated ? 2 : 1;
  const ExpertMachine machine = machine_of(rates, device);
  // Tokens are read and written in the order of experts; results are read back and their sums written.
  const double movement = layer.visits * layer.expert_ffn_size * (matrices + 1) * 2 +
                          layer.hidden_size * (layer.visits * (size + 2 + 2) + layer.tokens * 4);
  double us = rates.startup_us + rates.movement_factor * movement / machine.bytes_per_us +
              rates.per_expert_us * layer.local_experts;
  double bytes = movement;
  for (const auto& [n, k] : {std::pair{matrices * layer.expert_ffn_size, layer.hidden_size},
                             std::pair{layer.hidden_size, layer.expert_ffn_size}}) {
    const GroupedProduct product{layer.local_experts, rows, n, k, layer.uneven, size, 2};
    us += closed_form_us(rates, machine, product);
    bytes += bytes_of(product);
  }
  return moved_us(rates, machine, us * learned_factor(rates, features_of(layer)), bytes);
}

namespace {

// `rates` with the corrections learned on the device of `from`.
ExpertRates learned_of(const ExpertRates& from, ExpertRates rates) {
  rates.learned = from.learned;
  rates.known_weights = from.known_weights;
  rates.known_log_p10 = from.known_log_p10;
  rates.known_log_p90 = from.known_log_p90;
  return rates;
}

}  // namespace

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
    const bool scaled = !own && !of_sibling.empty() &&
                        sibling->peak_TFLOPs.contains(dtype == DType::fp8_block ? DType::fp8 : dtype);
    std::optional<ExpertRates> found =
        detail::rates_for<ExpertRates>(device, scaled ? of_sibling : of_type, kExpertRates, other_type);
    if (found) {
      // Corrections belong to one device, not to a mean of several.
      found->learned = nullptr;
      found->known_weights.clear();
      const auto& candidates = scaled ? of_sibling : of_type;
      const auto with = std::ranges::find_if(candidates, [&](const ExpertRates* r) {
        return r->learned && (scaled || device.matches_name(r->device));
      });
      if (with != candidates.end()) *found = learned_of(**with, *found);
      found->dtype = dtype;  // the peak is that of the requested type
      if (!scaled) return found;
      // Closer than other devices of the architecture.
      found->log_p10 += detail::kRatesOfArchitecture - kRatesOfSibling;
      found->log_p90 -= detail::kRatesOfArchitecture - kRatesOfSibling;
      found->known_log_p10 -= kRatesOfSibling;
      found->known_log_p90 += kRatesOfSibling;
      found->sibling = std::make_shared<const KernelSibling>(*sibling);
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
    ExpertRates& rates = kernels.measured[i];
    if (items[i].find("known_weights") != nullptr) {
      STEPCAST_ASSIGN(rates.known_weights, finite_numbers(items[i], "known_weights"));
      STEPCAST_ASSIGN(rates.known_log_p10, finite_number(items[i], "known_log_p10"));
      STEPCAST_ASSIGN(rates.known_log_p90, finite_number(items[i], "known_log_p90"));
    }
    const JsonValue* learned = items[i].find("learned");
    if (learned == nullptr) continue;
    STEPCAST_ASSIGN(GradientTrees trees, GradientTrees::read(*learned, ExpertFeatures{}.size()));
    rates.learned = std::make_shared<const GradientTrees>(std::move(trees));
  }
  return kernels;
}

JsonValue ExpertKernels::write() const {
  constexpr int kDigits = 4;
  const auto add_others = [](JsonValue& item, const ExpertRates& rates) {
    item.add("dtype", JsonValue{to_string(rates.dtype)});
    if (!rates.known_weights.empty()) {
      std::vector<double> weights;
      for (const double w : rates.known_weights) weights.push_back(rounded(w, kDigits));
      item.add("known_weights", number_array(weights));
      item.add("known_log_p10", JsonValue{rounded(rates.known_log_p10, kDigits)});
      item.add("known_log_p90", JsonValue{rounded(rates.known_log_p90, kDigits)});
    }
    if (rates.learned) item.add("learned", rates.learned->write());
  };
  return detail::write_rates<ExpertRates>(measured, kExpertRates, add_others);
}

bool is_expert_product(const Operation& operation) {
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  return product != nullptr && product->batch > 1 && product->output != DType::unknown &&
         operation.direction == Direction::forward;
}

}  // namespace stepcast
