#include "stepcast/platform/device_siblings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

// GEMMs reach 0.75 to 0.82 of a 16-bit peak (gemm_by_dtype.csv.gz): a chip with a cut peak reaches nearly its
// whole peak.
constexpr double kShareOfPeak = 0.8;
// Duration of a run halfway between the two clocks: attention of attention_by_dtype.csv.gz on GB200 over
// B200, 0.96 at 32 us, 0.95 at 100, 0.935 at 316, 0.92 beyond a millisecond.
constexpr double kHalfLimitedUs = 150;
// The share of the time that scales with the memory, for kernels limited by neither bytes nor peak: (time of
// the bytes at kStreamedBandwidth of the bandwidth / time of the kernel)^kStreamedBinds.
// attention_by_dtype.csv.gz, H200 over H100 and back.
constexpr double kStreamedBandwidth = 0.85, kStreamedBinds = 1.5;

// Peak in a 16-bit type, FLOP/s; 0: not stated.
double half_peak(const Device& device) {
  for (const DType dtype : {DType::bf16, DType::fp16})
    if (const auto peak = device.peak(dtype)) return peak->value();
  return 0;
}

// Peak in fp4 over fp8: it distinguishes chips of one architecture with equal 16-bit peaks (B200 2, B300 3).
// 0: not stated.
double narrowest_gain(const Device& device) {
  const auto fp4 = device.peak(DType::fp4), fp8 = device.peak(DType::fp8);
  return fp4 && fp8 && fp8->value() > 0 ? *fp4 / *fp8 : 0;
}

}  // namespace

KernelSibling sibling_of(const Device& sibling, const Device& device) {
  KernelSibling out;
  out.device = sibling.name;
  const auto ratio = [](double of, double to) { return of > 0 && to > 0 ? of / to : 1.0; };
  out.memory = ratio(device.memory_bandwidth.value(), sibling.memory_bandwidth.value());
  const double peaks = ratio(half_peak(device), half_peak(sibling));
  const double units = ratio(device.sm_count.value_or(0), sibling.sm_count.value_or(0));
  const double power = ratio(device.power_limit_W.value_or(0), sibling.power_limit_W.value_or(0));
  const double clocks = ratio(device.clock_MHz.value_or(0), sibling.clock_MHz.value_or(0));
  // Limits a rate to the possible range around the ratio of peaks.
  const auto possible = [&](double rate) {
    return std::clamp(rate, peaks * kShareOfPeak, peaks / kShareOfPeak);
  };
  out.compute = possible(units * clocks);
  out.sustained = possible(std::cbrt(units * units * power));
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp8, DType::fp4})
    if (const auto peak = sibling.peak(dtype)) out.peak_TFLOPs[dtype] = peak->value() / 1e12;
  out.sm_count = static_cast<double>(sibling.sm_count.value_or(0));
  return out;
}

double KernelSibling::limited_share(double us) {
  return us * us / (us * us + kHalfLimitedUs * kHalfLimitedUs);
}

double KernelSibling::time_ratio(double us, double streamed_us, double launched_us, bool is_sustained) const {
  const double limited = is_sustained ? 1 : limited_share(us);
  const double bound = std::pow(std::min(streamed_us / kStreamedBandwidth / us, 1.0), kStreamedBinds);
  const double launched = std::min(launched_us / us, 1.0);
  const auto log_at = [&](double rate) {
    return std::log(launched + (1 - launched) * (bound / memory + (1 - bound) / rate));
  };
  return std::exp((1 - limited) * log_at(compute) + limited * log_at(sustained));
}

std::optional<double> sibling_distance(const Device& a, const Device& b) {
  if (a.architecture.empty() || !same_name(a.architecture, b.architecture)) return std::nullopt;
  if (!a.sm_count || !b.sm_count || half_peak(a) <= 0 || half_peak(b) <= 0) return std::nullopt;
  constexpr double kTies = 0.01;  // weight of the other differences
  double most = 0, sum = 0;
  const auto add = [&](double of_a, double of_b) {
    if (!(of_a > 0 && of_b > 0)) return;
    const double apart = std::abs(std::log(of_a / of_b));
    most = std::max(most, apart);
    sum += apart;
  };
  add(a.memory_bandwidth.value(), b.memory_bandwidth.value());
  add(half_peak(a), half_peak(b));
  add(*a.sm_count, *b.sm_count);
  add(a.power_limit_W.value_or(0), b.power_limit_W.value_or(0));
  add(narrowest_gain(a), narrowest_gain(b));
  return most + kTies * sum;
}

Result<KernelSibling> KernelSibling::read(const JsonValue& parameters) {
  KernelSibling out;
  const JsonValue* device = parameters.find("device");
  if (device == nullptr || !device->is_text() || device->text().empty()) return Error{"`device` is missing"};
  out.device = device->text();
  const auto rate = [](const JsonValue* value) {
    return value != nullptr && value->is_number() && value->number() > 0 && std::isfinite(value->number());
  };
  for (const auto& [key, member] : {std::pair{"compute", &KernelSibling::compute},
                                    {"sustained", &KernelSibling::sustained},
                                    {"memory", &KernelSibling::memory}}) {
    const JsonValue* value = parameters.find(key);
    if (!rate(value)) return Error{fmt::format("`{}` is not a number above 0", key)};
    out.*member = value->number();
  }
  if (const JsonValue* units = parameters.find("sm_count")) {
    if (!rate(units)) return Error{"`sm_count` is not a number above 0"};
    out.sm_count = units->number();
  }
  const JsonValue* peaks = parameters.find("peak_TFLOPs");
  if (peaks == nullptr || !peaks->is_object()) return out;
  for (const auto& [name, value] : peaks->members()) {
    const DType dtype = parse_dtype(name);
    if (dtype == DType::unknown || !rate(&value))
      return Error{fmt::format("`peak_TFLOPs.{}` is not a number above 0", name)};
    out.peak_TFLOPs[dtype] = value.number();
  }
  return out;
}

ModelRecord KernelSibling::record() const {
  const auto rounded = [](double value) { return JsonValue{std::round(value * 1e4) / 1e4}; };
  ModelRecord out;
  out.name = out.kind = kKernelSiblingKind;
  out.parameters.add("device", JsonValue{device});
  out.parameters.add("compute", rounded(compute));
  out.parameters.add("sustained", rounded(sustained));
  out.parameters.add("memory", rounded(memory));
  if (sm_count > 0) out.parameters.add("sm_count", JsonValue{sm_count});
  JsonValue peaks = JsonValue::object();
  for (const auto& [dtype, peak] : peak_TFLOPs) peaks.add(std::string{to_string(dtype)}, JsonValue{peak});
  out.parameters.add("peak_TFLOPs", std::move(peaks));
  out.provenance.source = FigureSource::assumed;
  out.provenance.document =
      fmt::format("figures of the device over those of {}, the nearest measured device", device);
  return out;
}

}  // namespace stepcast
