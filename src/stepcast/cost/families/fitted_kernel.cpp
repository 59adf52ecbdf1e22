#include "stepcast/cost/families/fitted_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

// Fitted kernel records: parsing with validation, writing, and batched evaluation.

namespace stepcast {
namespace {

// Operations that are evaluated together.
constexpr std::size_t kBlock = 64;
// Limits of ln(us): 1e-9 us to 1e26 us. They keep the times of a broken record finite.
constexpr double kLeastLog = -20, kMostLog = 60;
// Sizes up to this far beyond the measured ones, in ln, count as measured.
constexpr double kSameSize = 0.02;
// Widening of the band per unit of ln beyond the distance that held-out sizes cover: assumed.
constexpr double kWiderPerDistance = 0.04;

// PyTorch's norms load four elements at once where rows start at whole vectors, and take 1 to 2 ns per row;
// else 6 to 10 (data/measured).
constexpr std::int64_t kVectorOfNorm = 4;

// Key of a reference parameter in records.
struct ReferenceKey {
  const char* key;
  double ReferenceParameters::*member;
  bool may_be_absent = false;  // absent: 0
};
constexpr ReferenceKey kReferenceKeys[] = {
    {"peak_TFLOPs", &ReferenceParameters::peak_TFLOPs},
    {"bandwidth_GBps", &ReferenceParameters::bandwidth_GBps},
    {"sm_count", &ReferenceParameters::sm_count},
    {"compute_factor", &ReferenceParameters::compute_factor},
    {"memory_factor", &ReferenceParameters::memory_factor},
    {"floor_us", &ReferenceParameters::floor_us},
    {"sharpness", &ReferenceParameters::sharpness},
    {"tile_cost", &ReferenceParameters::tile_cost},
    {"depth_cost", &ReferenceParameters::depth_cost},
    {"sustained_factor", &ReferenceParameters::sustained_factor},
    {"unit_us", &ReferenceParameters::unit_us, true},
    {"chain_us", &ReferenceParameters::chain_us, true},
};

// Linear interpolation, constant beyond the ends. `at` increases and is not empty.
double interpolate(const std::vector<double>& at, const std::vector<double>& values, double x) {
  if (!(x > at.front())) return values.front();  // also for NaN
  if (!(x < at.back())) return values.back();
  const auto above = std::upper_bound(at.begin(), at.end(), x);
  const auto i = static_cast<std::size_t>(above - at.begin());
  const double share = (x - at[i - 1]) / (at[i] - at[i - 1]);
  return values[i - 1] + share * (values[i] - values[i - 1]);
}

std::optional<Direction> parse_direction(std::string_view text) {
  for (const Direction d :
       {Direction::forward, Direction::backward, Direction::input_gradient, Direction::weight_gradient}) {
    if (to_string(d) == text) return d;
  }
  return std::nullopt;
}

std::optional<AttentionKernel> parse_attention_kernel(std::string_view text) {
  for (const AttentionKernel k : {AttentionKernel::any, AttentionKernel::flash1, AttentionKernel::flash2,
                                  AttentionKernel::flash3, AttentionKernel::efficient}) {
    if (to_string(k) == text) return k;
  }
  return std::nullopt;
}

// A text under `key`. Error: missing or not a text.
Result<std::string> text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  if (!value->is_text()) return Error{fmt::format("`{}` is {} (must be a text)", key, value->kind_name())};
  return value->text();
}

// An object under `key`. Error: missing or not an object.
Result<const JsonValue*> object_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  if (!value->is_object())
    return Error{fmt::format("`{}` is {} (must be an object)", key, value->kind_name())};
  return value;
}

// An array of `size` finite numbers.
Result<std::vector<float>> floats_of(const JsonValue& object, std::string_view key, std::size_t size) {
  STEPCAST_ASSIGN(const std::vector<double> numbers, finite_numbers(object, key, size));
  std::vector<float> out;
  for (const double number : numbers) out.push_back(static_cast<float>(number));
  return out;
}

// Errors: no knots or more than 64, knots that do not increase, missing fields.
Result<ResidualBand> read_band(const JsonValue& value) {
  ResidualBand band;
  STEPCAST_ASSIGN(band.log_time, finite_numbers(value, "log_time"));
  if (band.log_time.empty() || band.log_time.size() > 64) return Error{"`log_time` must have 1 to 64 knots"};
  for (std::size_t i = 1; i < band.log_time.size(); ++i)
    if (!(band.log_time[i] > band.log_time[i - 1])) return Error{"the knots of `log_time` must increase"};
  STEPCAST_ASSIGN(band.low, finite_numbers(value, "log_p10", band.log_time.size()));
  STEPCAST_ASSIGN(band.high, finite_numbers(value, "log_p90", band.log_time.size()));
  STEPCAST_ASSIGN(band.outside_low, finite_number(value, "outside_log_p10"));
  STEPCAST_ASSIGN(band.outside_high, finite_number(value, "outside_log_p90"));
  STEPCAST_ASSIGN(band.outside_distance, positive_number(value, "outside_distance"));
  return band;
}

// A correction by its `kind`. Errors: an unknown kind, or unreadable parameters.
Result<Correction> read_correction(const JsonValue& value, std::size_t n_features) {
  if (!value.is_object()) return Error{"`corrections` must hold objects"};
  STEPCAST_ASSIGN(const double weight, finite_number(value, "weight"));
  STEPCAST_ASSIGN(const std::string kind, text_of(value, "kind"));
  if (kind == "trees") {
    STEPCAST_ASSIGN(GradientTrees trees, GradientTrees::read(value, n_features));
    return Correction{weight, std::move(trees)};
  }
  if (kind == "gaussian_process") {
    STEPCAST_ASSIGN(GaussianProcess process, GaussianProcess::read(value, n_features));
    return Correction{weight, std::move(process)};
  }
  return Error{fmt::format("a correction of kind `{}` (known are trees and gaussian_process)", kind)};
}

JsonValue write_correction(const Correction& correction) {
  JsonValue value = JsonValue::object();
  constexpr std::string_view kNames[] = {"trees", "gaussian_process"};
  value.add("kind", JsonValue{kNames[correction.learned.index()]});
  value.add("weight", JsonValue{correction.weight});
  JsonValue learned = std::visit([](const auto& l) { return l.write(); }, correction.learned);
  for (const JsonValue::Member& member : learned.members()) value.add(member.key, member.value);
  return value;
}

Result<std::vector<AttentionKernel>> read_attention_kernels(const JsonValue& parameters) {
  std::vector<AttentionKernel> out;
  const JsonValue* kernels = parameters.find("attention_kernels");
  if (kernels == nullptr) return out;
  if (!kernels->is_array()) return Error{"`attention_kernels` must be an array"};
  for (const JsonValue& item : kernels->items()) {
    const auto kernel = item.is_text() ? parse_attention_kernel(item.text()) : std::nullopt;
    if (!kernel) return Error{"`attention_kernels` holds a kernel that is not known"};
    out.push_back(*kernel);
  }
  return out;
}

}  // namespace

std::string_view narrow_family_of(const Operation& operation) {
  if (const auto* transfer = std::get_if<TransferShape>(&operation.shape); transfer && !transfer->pinned) {
    if (transfer->kind == MemcpyKind::host_to_device) return "memcpy_h2d_pageable";
    if (transfer->kind == MemcpyKind::device_to_host) return "memcpy_d2h_pageable";
  }
  if (const auto* norm = std::get_if<NormShape>(&operation.shape); norm && norm->cols % kVectorOfNorm != 0) {
    if (norm->kind == NormKind::layer_norm) return "layer_norm_unaligned";
    if (norm->kind == NormKind::rms_norm && norm->fused) return "rms_norm_unaligned";
  }
  // PyTorch has no vectorised kernel for casts to a wider type; it loads one element at a time.
  if (const auto* cast = std::get_if<ElementwiseShape>(&operation.shape);
      cast && cast->function == ElementwiseFunction::cast && cast->writes > cast->reads)
    return "cast_widening";
  const auto* attention = std::get_if<AttentionShape>(&operation.shape);
  if (attention == nullptr) return "";
  switch (attention->kernel) {
    case AttentionKernel::flash1: return "attention_flash1";
    case AttentionKernel::flash2: return "attention_flash2";
    case AttentionKernel::flash3: return "attention_flash3";
    case AttentionKernel::efficient: return "attention_efficient";
    case AttentionKernel::any: break;
  }
  return "";
}

std::string kernel_record_name(std::string_view family, DType dtype, Direction direction) {
  return fmt::format("{}/{}/{}", family, to_string(dtype), to_string(direction));
}

Result<KernelRecordHeader> KernelRecordHeader::read(const JsonValue& parameters) {
  if (!parameters.is_object()) return Error{"the parameters are not an object"};
  STEPCAST_ASSIGN(const double version, finite_number(parameters, "version"));
  if (version != kKernelRecordVersion)
    return Error{fmt::format("version {:g} (this program reads {})", version, kKernelRecordVersion)};
  KernelRecordHeader out;
  STEPCAST_ASSIGN(out.family, text_of(parameters, "family"));
  STEPCAST_ASSIGN(const std::string dtype, text_of(parameters, "dtype"));
  out.dtype = parse_dtype(dtype);
  if (out.dtype == DType::unknown) return Error{fmt::format("dtype `{}` is not known", dtype)};
  STEPCAST_ASSIGN(const std::string direction, text_of(parameters, "direction"));
  const auto known_direction = parse_direction(direction);
  if (!known_direction) return Error{fmt::format("direction `{}` is not known", direction)};
  out.direction = *known_direction;
  STEPCAST_ASSIGN(const std::string features, text_of(parameters, "features"));
  const auto set = parse_kernel_feature_set(features);
  if (!set) return Error{fmt::format("features `{}` are not known", features)};
  out.features = *set;
  if (const JsonValue* cache = parameters.find("cache"))
    out.cold = cache->is_text() && cache->text() == "flushed";
  return out;
}

Result<FittedKernel> FittedKernel::read(const JsonValue& parameters) {
  FittedKernel out;
  STEPCAST_ASSIGN(static_cast<KernelRecordHeader&>(out), KernelRecordHeader::read(parameters));
  const std::size_t n_features = kernel_features_of(out.features).size();

  STEPCAST_ASSIGN(const JsonValue* reference, object_of(parameters, "reference"));
  for (const ReferenceKey& key : kReferenceKeys) {
    if (key.may_be_absent && reference->find(key.key) == nullptr) continue;
    STEPCAST_ASSIGN(out.reference.*key.member, finite_number(*reference, key.key));
    const double value = out.reference.*key.member;
    if (!(value >= 1e-9 && value <= 1e12))
      return Error{fmt::format("`reference.{}` is {:g} (must be from 1e-9 to 1e12)", key.key, value)};
  }
  if (out.reference.sharpness < 0.1) return Error{"`reference.sharpness` is below 0.1"};
  STEPCAST_ASSIGN(out.log_offset, finite_number(parameters, "log_offset"));

  STEPCAST_ASSIGN(const JsonValue* range, object_of(parameters, "range"));
  STEPCAST_ASSIGN(const std::string features, text_of(parameters, "features"));
  const std::size_t n_stated = stated_features(features);
  STEPCAST_ASSIGN(out.low, floats_of(*range, "min", n_stated));
  STEPCAST_ASSIGN(out.high, floats_of(*range, "max", n_stated));
  STEPCAST_ASSIGN(out.typical, floats_of(*range, "typical", n_stated));
  // Features that were added to the set after the record was written: its corrections do not use them.
  for (std::vector<float>* values : {&out.low, &out.high, &out.typical}) values->resize(n_features, 0.F);
  for (std::size_t i = 0; i < n_features; ++i)
    if (!(out.low[i] <= out.high[i])) return Error{fmt::format("`range`: min is above max of feature {}", i)};

  if (const JsonValue* values = parameters.find("measured_values")) {
    STEPCAST_ASSIGN(out.measured_values, MeasuredValues::read(out.features, *values));
  }

  if (parameters.find("fastest_TFLOPs") != nullptr) {
    STEPCAST_ASSIGN(const double fastest_TFLOPs, positive_number(parameters, "fastest_TFLOPs"));
    out.fastest_flops_per_us = fastest_TFLOPs * 1e6;
  }

  if (parameters.find("regime") != nullptr) {
    STEPCAST_ASSIGN(const std::string regime, text_of(parameters, "regime"));
    out.sustained = regime == "sustained";
    if (!out.sustained && regime != "burst")
      return Error{fmt::format("`regime` is `{}` (burst or sustained)", regime)};
  }

  const JsonValue* corrections = parameters.find("corrections");
  if (corrections == nullptr || !corrections->is_array()) return Error{"`corrections` is missing (an array)"};
  if (corrections->items().size() > 8) return Error{"more than 8 corrections"};
  std::vector<Correction> learned;
  for (const JsonValue& item : corrections->items()) {
    STEPCAST_ASSIGN(Correction correction, read_correction(item, n_stated));
    learned.push_back(std::move(correction));
  }
  out.correct_with(std::move(learned));
  STEPCAST_ASSIGN(const JsonValue* band, object_of(parameters, "interval"));
  STEPCAST_ASSIGN(out.band, read_band(*band));

  STEPCAST_ASSIGN(out.attention_kernels, read_attention_kernels(parameters));
  return out;
}

void FittedKernel::correct_with(std::vector<Correction> learned) {
  corrections = std::move(learned);
  // Gaussian processes interpolate between neighbours, so each measured value applies at all amounts of work.
  const bool by_neighbours = std::ranges::all_of(
      corrections, [](const Correction& c) { return std::holds_alternative<GaussianProcess>(c.learned); });
  if (by_neighbours && !corrections.empty()) measured_values.answer_for_each();
}

JsonValue FittedKernel::write() const {
  JsonValue value = JsonValue::object();
  value.add("version", JsonValue{static_cast<double>(kKernelRecordVersion)});
  value.add("family", JsonValue{family});
  value.add("dtype", JsonValue{to_string(dtype)});
  value.add("direction", JsonValue{to_string(direction)});
  value.add("features", JsonValue{to_string(features)});
  JsonValue ref = JsonValue::object();
  for (const ReferenceKey& key : kReferenceKeys)
    if (!key.may_be_absent || reference.*key.member > 0) ref.add(key.key, JsonValue{reference.*key.member});
  value.add("reference", std::move(ref));
  value.add("log_offset", JsonValue{log_offset});
  JsonValue range = JsonValue::object();
  range.add("min", number_array(low));
  range.add("max", number_array(high));
  range.add("typical", number_array(typical));
  value.add("range", std::move(range));
  if (!measured_values.values().empty()) value.add("measured_values", measured_values.write());
  if (fastest_flops_per_us > 0)
    value.add("fastest_TFLOPs", JsonValue{rounded(fastest_flops_per_us / 1e6, 6)});
  value.add("regime", JsonValue{sustained ? "sustained" : "burst"});
  if (cold) value.add("cache", JsonValue{"flushed"});
  JsonValue all = JsonValue::array();
  for (const Correction& correction : corrections) all.add(write_correction(correction));
  value.add("corrections", std::move(all));
  JsonValue interval = JsonValue::object();
  interval.add("log_time", number_array(band.log_time));
  interval.add("log_p10", number_array(band.low));
  interval.add("log_p90", number_array(band.high));
  interval.add("outside_log_p10", JsonValue{band.outside_low});
  interval.add("outside_log_p90", JsonValue{band.outside_high});
  interval.add("outside_distance", JsonValue{band.outside_distance});
  value.add("interval", std::move(interval));
  if (!attention_kernels.empty()) {
    JsonValue kernels = JsonValue::array();
    for (const AttentionKernel kernel : attention_kernels) kernels.add(JsonValue{to_string(kernel)});
    value.add("attention_kernels", std::move(kernels));
  }
  return value;
}

void FittedKernel::prepare(const Operation& operation, std::span<float, kMostKernelFeatures> out,
                           double& log_reference) const {
  log_reference = std::log(reference_time_us(operation, reference));
  compute_kernel_features(operation, reference.sm_count, log_reference, out);
  for (std::size_t i = 0; i < typical.size(); ++i)
    if (std::isnan(out[i])) out[i] = typical[i];
}

void FittedKernel::estimate(std::span<const Operation* const> operations, std::span<FittedTime> out) const {
  constexpr std::size_t kStride = kMostKernelFeatures;
  const std::span<const KernelFeature> names = kernel_features_of(features);
  // Left uninitialised: clearing would take longer than the estimate of a single operation.
  std::array<float, kBlock * kStride> rows;
  std::array<double, kBlock> log_us, uncorrected;
  for (std::size_t begin = 0; begin < operations.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, operations.size() - begin);
    for (std::size_t i = 0; i < n; ++i) {
      float* row = rows.data() + i * kStride;
      double log_reference = 0;
      prepare(*operations[begin + i], std::span<float, kMostKernelFeatures>{row, kStride}, log_reference);
      uncorrected[i] = std::clamp(log_reference + log_offset, kLeastLog, kMostLog);
      log_us[i] = uncorrected[i];
      // Features beyond the measured range are clamped; the distance to it widens the band.
      out[begin + i].of_another_value = measured_values.replace({row, names.size()});
      float distance = 0, below = 0;
      for (std::size_t f = 0; f < names.size(); ++f) {
        const float x = row[f];
        const float clamped = std::min(std::max(x, low[f]), high[f]);
        if (names[f].is_size) distance = std::max(distance, std::abs(x - clamped));
        if (names[f].is_amount) below = std::max(below, low[f] - x);
        row[f] = clamped;
      }
      out[begin + i].distance = static_cast<double>(distance);
      out[begin + i].below = static_cast<double>(below);
    }
    for (const Correction& correction : corrections) {
      std::visit(
          [&](const auto& learned) {
            learned.add(rows, kStride, correction.weight, std::span{log_us.data(), n});
          },
          correction.learned);
    }
    for (std::size_t i = 0; i < n; ++i) {
      FittedTime& time = out[begin + i];
      // The numbers of a broken record can be finite one by one and overflow together.
      time.log_us = std::isfinite(log_us[i]) ? std::clamp(log_us[i], kLeastLog, kMostLog) : uncorrected[i];
      // No GEMM is faster than the fastest measured one.
      if (fastest_flops_per_us > 0) {
        const double flops = work_of(*operations[begin + i]).flops.value();
        time.log_us = std::max(time.log_us, std::log(std::max(flops, 1.0) / fastest_flops_per_us));
      }
      time.log_low = interpolate(band.log_time, band.low, time.log_us);
      time.log_high = interpolate(band.log_time, band.high, time.log_us);
      if (time.distance <= kSameSize) {
        time.distance = 0;
        continue;
      }
      // The band moves from the inside to the outside band with the distance, then widens linearly.
      const double share = std::min(time.distance / band.outside_distance, 1.0);
      const double farther = std::max(time.distance - band.outside_distance, 0.0) * kWiderPerDistance;
      time.log_low += share * (std::min(band.outside_low, time.log_low) - time.log_low) - farther;
      time.log_high += share * (std::max(band.outside_high, time.log_high) - time.log_high) + farther;
    }
  }
}

}  // namespace stepcast
