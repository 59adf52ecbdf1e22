#include "stepcast/cost/detail/kernel_records.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

// Widening of the band for a record of another device of the architecture, each side, in ln: assumed.
constexpr double kOfSibling = 0.05;
// The same for a record scaled by sibling factors, in addition to a share of the correction: `validate
// siblings`.
constexpr double kOfFactors = 0.02;

// Exponent of the norm that combines arithmetic and bytes when a GEMM moves between devices; sharper than
// within one device. Where the bytes take less than 0.6 of the time, an H200 is as fast as an H100, and from
// 0.8 on it is faster by the memory ratio (gemm_by_dtype.csv.gz).
constexpr double kSharpnessOfMoved = 3;
// Position of long GEMM runs between the clock of the units (0) and the power-limited clock (1). Their
// measured times already include a slowdown, and half of the effect of a fifth more power on a GB200 shows in
// them (sustained rows of gemm_by_dtype.csv.gz).
constexpr double kLimitedInLongRuns = 0.5;

// Whether a kernel is limited by neither bytes nor arithmetic alone, and no reference tells its scaling with
// either: attention, and random fetches of table rows, which lose bandwidth to latency.
bool is_of_neither_bound(KernelFeatureSet features) {
  return features == KernelFeatureSet::attention || features == KernelFeatureSet::lookup;
}

// Copies that depend on the host link, to which sibling factors do not apply.
bool is_of_host_link(const Operation& operation) {
  const auto* transfer = std::get_if<TransferShape>(&operation.shape);
  return transfer != nullptr &&
         (transfer->kind == MemcpyKind::host_to_device || transfer->kind == MemcpyKind::device_to_host);
}

// Puts the figures of this device into a reference that was fitted on another one; the fitted constants stay.
void use_figures(FittedKernel& kernel, const Device& device) {
  if (is_of_neither_bound(kernel.features)) return;
  ReferenceParameters& reference = kernel.reference;
  if (device.memory_bandwidth.value() > 0) reference.bandwidth_GBps = device.memory_bandwidth.value() / 1e9;
  if (const auto peak = device.peak(kernel.dtype); peak && peak->value() > 0) {
    kernel.fastest_flops_per_us *= peak->value() / 1e12 / reference.peak_TFLOPs;
    reference.peak_TFLOPs = peak->value() / 1e12;
  }
  if (device.sm_count && *device.sm_count > 0) reference.sm_count = static_cast<double>(*device.sm_count);
}

// Ratios of the figures of this device to those that a record was fitted with.
KernelSibling rates_over(const FittedKernel& kernel, const Device& device) {
  KernelSibling rates;
  const auto peak = device.peak(kernel.dtype);
  if (peak && peak->value() > 0)
    rates.compute = rates.sustained = peak->value() / 1e12 / kernel.reference.peak_TFLOPs;
  if (device.memory_bandwidth.value() > 0)
    rates.memory = device.memory_bandwidth.value() / 1e9 / kernel.reference.bandwidth_GBps;
  return rates;
}

}  // namespace

Status KernelRecords::add(const ModelRecord& record) {
  // A platform file takes records of another device only on purpose. They correct a reference that gets the
  // figures of this device below, so they are valid for devices with the same units, that is, of the same
  // architecture.
  const bool of_sibling = !record.device.empty() && !device_->matches_name(record.device);
  const JsonValue* architecture = record.parameters.find("architecture");
  if (of_sibling && (architecture == nullptr || !architecture->is_text() || device_->architecture.empty() ||
                     !same_name(architecture->text(), device_->architecture))) {
    return Error{fmt::format("fitted on {}, this is {}", record.device, device_->name)};
  }
  STEPCAST_ASSIGN(const KernelRecordHeader header, KernelRecordHeader::read(record.parameters));
  auto family = std::ranges::find(families_, header.family, &Family::name);
  if (family == families_.end()) {
    Slots empty;
    for (auto& row : empty) row.fill(kNone);
    families_.push_back({header.family, empty});
    family = families_.end() - 1;
  }
  family->slots[static_cast<std::size_t>(header.dtype)][static_cast<std::size_t>(header.direction)] =
      records_.size();
  const bool scaled = of_sibling && sibling_ && same_name(record.device, sibling_->device);
  const char* another =
      header.features == KernelFeatureSet::matrix ? "(in another layout)" : "(of another kind)";
  const auto read = [device = device_, of_sibling,
                     scaled](const JsonValue& parameters) -> Result<FittedKernel> {
    STEPCAST_ASSIGN(FittedKernel kernel, FittedKernel::read(parameters));
    if (of_sibling && !scaled) use_figures(kernel, *device);
    return kernel;
  };
  std::string name = scaled ? fmt::format("{} (of {})", record.name, record.device) : record.name;
  if (header.cold) name += fmt::format(" {}", kColdCaches);
  records_.push_back(
      // NOLINTNEXTLINE(modernize-make-unique): the last member of the aggregate can be neither copied nor moved
      std::unique_ptr<Record>(new Record{name,
                                         fmt::format("{} {}", name, another),
                                         scaled       ? kOfFactors
                                         : of_sibling ? kOfSibling
                                                      : 0.0,
                                         scaled,
                                         of_sibling && !scaled && is_of_neither_bound(header.features),
                                         {record.parameters, read, record.is_shipped}}));
  return Ok{};
}

// Without a reference (attention, lookups): KernelSibling::time_ratio. Else the ratio of the reference times
// with the figures of both devices, interpolated between the two clocks.
double KernelRecords::log_of_sibling(std::size_t index, const Operation& operation, double time_us) const {
  const Record& record = *records_[index];
  if ((!record.of_sibling && !record.of_relative) || is_of_host_link(operation)) return 0;
  const ReferenceParameters& there = kernel(index).reference;
  const double launch_us = std::min(there.floor_us, device_->kernel_floor.value_or(Microseconds{0}).value());
  const bool is_sustained = kernel(index).sustained;
  if (is_of_neither_bound(kernel(index).features)) {
    const double streamed_us = reference_terms(operation, there).bytes_us;
    const auto ratio = [&](const KernelSibling& rates) {
      return std::log(rates.time_ratio(time_us, streamed_us, launch_us, is_sustained));
    };
    return ratio(record.of_relative ? rates_over(kernel(index), *device_) : *sibling_);
  }
  ReferenceParameters sharp = there;
  const bool is_product = std::holds_alternative<GemmShape>(operation.shape);
  if (is_product) sharp.sharpness = std::max(sharp.sharpness, kSharpnessOfMoved);
  const double us = reference_time_us(operation, sharp);
  const double limited = !is_sustained ? KernelSibling::limited_share(us)
                         : is_product  ? kLimitedInLongRuns
                                       : 1;
  const auto moved = [&](double compute) {
    ReferenceParameters here = sharp;
    here.bandwidth_GBps *= sibling_->memory;
    here.peak_TFLOPs *= compute;
    here.floor_us = launch_us + (there.floor_us - launch_us) / compute;
    here.unit_us /= compute;
    here.chain_us /= compute;
    return std::log(reference_time_us(operation, here) / us);
  };
  return (1 - limited) * moved(sibling_->compute) + limited * moved(sibling_->sustained);
}

std::size_t KernelRecords::find(const Operation& operation) const {
  if (const std::string_view narrow = narrow_family_of(operation); !narrow.empty()) {
    const std::size_t own = find(narrow, operation.dtype, operation.direction);
    if (own != kNone) return own;
  }
  return find(family_of(operation), operation.dtype, operation.direction);
}

std::size_t KernelRecords::find(std::string_view family, DType dtype, Direction direction) const {
  for (const Family& f : families_) {
    if (f.name != family) continue;
    const std::size_t index = f.slots[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(direction)];
    return index != kNone && records_[index]->kernel.get() != nullptr ? index : kNone;
  }
  return kNone;
}

bool KernelRecords::has(std::string_view family, DType dtype, Direction direction) const {
  return std::ranges::any_of(families_, [&](const Family& f) {
    const std::size_t index = f.slots[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(direction)];
    return f.name == family && index != kNone && records_[index]->kernel.can_be_read();
  });
}

std::vector<std::string> KernelRecords::unreadable(bool also_shipped) const {
  std::vector<std::string> out;
  for (const auto& record : records_)
    if ((also_shipped || !record->kernel.can_be_read()) && record->kernel.get() == nullptr)
      out.push_back(fmt::format("model {}: {}", record->name, record->kernel.problem()));
  return out;
}

}  // namespace stepcast::detail
