#include "stepcast/cost/generic_kernel.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/cost/detail/shape_cost.h"
#include "stepcast/platform/device_generation.h"

// Generic kernel records: terms, kriging over devices, reading and writing, and evaluation.

namespace stepcast {
namespace {

constexpr std::size_t kParameters = kMostGenericTerms + 1;

// Found by leaving out every GPU of the neusight_train files in turn (mean over five operation classes).
// Halving or doubling each of them changes the mean error by less than a tenth.
constexpr double kYearsOfDistance = 4;   // years between architectures at a distance of 1
constexpr double kMemoryDistance = 1.2;  // between stacked memory and memory chips on the board
constexpr double kVendorDistance = 0.8;  // assumed
// GEMM rate on a vendor without measurements over the rate that records of other vendors predict at the same
// share of the peak: hipBLASLt on an MI300X, 512x4096x4096 to 512x10240x4096 of Flux traces. These are too
// short for the power limit, which slows long runs of any kernel.
constexpr double kProductsOfOtherVendor = 0.62;
constexpr double kOwnVariance = 0.4;   // variance between devices at the same place
constexpr double kAnalyticWeight = 1;  // weight of the uncorrected analytic model, in devices
// Devices with at least this share of the similarity of the nearest device are relatives. Assumed.
constexpr double kRelativeLikeness = 0.8;

// Squared Euclidean distance.
double squared_distance(const DevicePlace& a, const DevicePlace& b) {
  const double g = a.generation - b.generation, m = a.memory - b.memory, v = a.vendor - b.vendor;
  return g * g + m * m + v * v;
}

// Solves a small symmetric positive definite system in place by Gauss-Jordan elimination. `rhs`: [n, n_rhs],
// replaced by the solution.
void solve(std::vector<double>& matrix, std::vector<double>& rhs, std::size_t n, std::size_t n_rhs) {
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = std::max(matrix[i * n + i], 1e-12);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = matrix[r * n + i] / pivot;
      for (std::size_t c = 0; c < n; ++c) matrix[r * n + c] -= factor * matrix[i * n + c];
      for (std::size_t c = 0; c < n_rhs; ++c) rhs[r * n_rhs + c] -= factor * rhs[i * n_rhs + c];
    }
    for (std::size_t c = 0; c < n; ++c) matrix[i * n + c] /= pivot;
    for (std::size_t c = 0; c < n_rhs; ++c) rhs[i * n_rhs + c] /= pivot;
  }
}

// Relative increase of a side that is rounded up to whole tiles.
double padding_of(double side, double tile) { return std::ceil(side / tile) * tile / side - 1; }

double log2_clamped(double value) { return std::log2(std::clamp(value, 1e-9, 1e18)); }

}  // namespace

DevicePlace place_of(const Device& device) {
  const DeviceGeneration& generation = generation_of(device);
  DevicePlace place;
  place.generation = generation.first_sold_year / kYearsOfDistance;
  // Memory chips on the board reach less of their bandwidth than stacks, since their error correction takes
  // some.
  const bool chips = generation.memory_chips || device.name.find("RTX") != std::string::npos ||
                     device.memory_bandwidth.value() < 550e9;
  place.memory = chips ? 0 : kMemoryDistance;
  place.vendor = device.vendor == "AMD" ? kVendorDistance : 0;
  return place;
}

double likeness(const DevicePlace& a, const DevicePlace& b) {
  return std::exp(-0.5 * squared_distance(a, b));
}

std::string_view dtype_class(DType dtype) {
  return dtype == DType::fp16 || dtype == DType::bf16 ? "half" : to_string(dtype);
}

std::string_view generic_family(const Operation& operation) {
  const auto* s = std::get_if<ElementwiseShape>(&operation.shape);
  if (s == nullptr) return family_of(operation);
  switch (s->function) {
    case ElementwiseFunction::gelu:            // as much arithmetic as memory traffic
    case ElementwiseFunction::masked_fill:     // two kernels
    case ElementwiseFunction::rotary_unfused:  // many kernels
      return family_of(operation);
    default: return kStreamingFamily;
  }
}

std::size_t generic_terms(const Operation& operation, const AnalyticTime& analytic,
                          const DeviceFigures& figures, GenericTerms& terms) {
  terms.fill(0);
  terms[0] = 1;
  const detail::GenericShape shape =
      std::visit([](const auto& s) { return detail::CostOf<decltype(s)>::generic(s); }, operation.shape);
  if (shape.row_length) {
    // Row kernels keep up to 1024 values in registers of a warp, and longer rows in shared memory.
    terms[1] = *shape.row_length <= 1024 ? 0.5 : -0.5;
    terms[2] = std::clamp(log2_clamped(*shape.row_length / 1600), -2.0, 2.0) / 2;
    return 3;
  }
  if (shape.inputs) {
    terms[1] = std::clamp(*shape.inputs - 1.5, -0.5, 0.5);
    terms[2] = shape.power ? 1 : 0;
    return 3;
  }
  if (!analytic.work.matrix) return 1;
  // Length of the run, and the ratio of arithmetic to memory time.
  const double length = (log2_clamped(analytic.time.value()) - 9) / 4;
  terms[1] = std::clamp(length, -1.5, 0.0);
  terms[2] = std::clamp(length, 0.0, 1.5);
  const double flops_us = analytic.work.flops.value() / figures.matrix_of(operation.dtype).per_us;
  const double bytes_us = analytic.work.bytes().value() / figures.memory.per_us;
  const double intensity = log2_clamped(flops_us / std::max(bytes_us, 1e-9)) / 4;
  terms[3] = std::clamp(intensity, -1.0, 0.0);
  terms[4] = std::clamp(intensity, 0.0, 1.0);
  // The shape of the GEMM.
  const auto& sides = shape.sides;
  terms[5] = std::clamp(log2_clamped(std::min(sides.m, sides.n) / 64), -4.0, 0.0) / 4;
  terms[6] = std::clamp(log2_clamped(sides.n / 128), -2.0, 2.0) / 2;
  terms[7] = std::clamp(log2_clamped(sides.k / 256), -3.0, 3.0) / 3;
  terms[8] = std::min(padding_of(sides.m, 128) + padding_of(sides.n, 128), 2.0) / 2;
  return 9;
}

double generic_time_us(const GenericParameters& p, const GenericTerms& terms, double analytic_us,
                       double kernel_floor_us) {
  double exponent = 0;
  for (std::size_t j = 0; j < kMostGenericTerms; ++j) exponent += p[j + 1] * terms[j];
  return std::exp(p[0]) + std::max(analytic_us - kernel_floor_us, 1e-3) * std::exp(exponent);
}

void generic_features(const Operation& operation, const AnalyticTime& analytic, const DeviceFigures& figures,
                      GenericFeatures& features) {
  features.fill(0);
  compute_kernel_features(operation, figures.sm_count, std::log(analytic.time.value()), features);
  for (float& f : features)
    if (!std::isfinite(f)) f = 0;
}

double tree_correction(const GradientTrees& trees, const GenericFeatures& features) {
  double sum = 0;
  trees.add(features, kMostKernelFeatures, 1, {&sum, 1});
  return std::clamp(sum, -kMostTreeCorrection, kMostTreeCorrection);
}

GenericParameters GenericKernel::parameters_at(const DevicePlace& place,
                                               std::optional<std::size_t> left_out) const {
  GenericParameters usual{};
  usual[0] = log_usual_floor;
  if (adapted && !devices.empty()) return devices.front().parameters;
  std::vector<const Measured*> known;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i != left_out) known.push_back(&devices[i]);
  const std::size_t n = known.size();
  if (n == 0) return usual;
  // K^-1 [1, k, B]: ones, similarity to `place`, parameters. Ordinary kriging with the analytic model as one
  // more device of weight kAnalyticWeight in the mean.
  constexpr std::size_t kColumns = 2 + kParameters;
  std::vector<double> matrix(n * n), rhs(n * kColumns);
  std::vector<double> k(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      matrix[i * n + j] = likeness(known[i]->place, known[j]->place) + (i == j ? kOwnVariance : 0);
    k[i] = likeness(place, known[i]->place);
    rhs[i * kColumns] = 1;
    rhs[i * kColumns + 1] = k[i];
    for (std::size_t c = 0; c < kParameters; ++c) rhs[i * kColumns + 2 + c] = known[i]->parameters[c];
  }
  solve(matrix, rhs, n, kColumns);
  double ones = 0, likeness_of_ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ones += rhs[i * kColumns];
    likeness_of_ones += k[i] * rhs[i * kColumns];
  }
  GenericParameters out{};
  for (std::size_t c = 0; c < kParameters; ++c) {
    double sum = 0, near = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += rhs[i * kColumns + 2 + c];
      near += k[i] * rhs[i * kColumns + 2 + c];
    }
    const double mean = (sum + kAnalyticWeight * usual[c]) / (ones + kAnalyticWeight);
    out[c] = mean + near - mean * likeness_of_ones;
  }
  return out;
}

double GenericKernel::nearest_bound_at(const DevicePlace& place) const {
  double nearest = 0;
  for (const Measured& m : devices) nearest = std::max(nearest, likeness(place, m.place));
  double share = 0;
  for (const Measured& m : devices)
    if (likeness(place, m.place) >= kRelativeLikeness * nearest) share = std::max(share, m.nearest_bound);
  return share > 0 ? share : 1;
}

std::vector<double> GenericKernel::spread_at(const DevicePlace& place,
                                             std::optional<std::size_t> left_out) const {
  std::vector<const Measured*> known;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i != left_out) known.push_back(&devices[i]);
  GenericParameters mean{};
  const double n = std::max(1.0, static_cast<double>(known.size()));
  for (const Measured* m : known)
    for (std::size_t c = 0; c < kParameters; ++c) mean[c] += m->parameters[c] / n;
  double nearest = 0;
  for (const Measured* m : known) nearest = std::max(nearest, likeness(place, m->place));
  // Remaining share of the spread; at least 0.3, even with a device at the same place.
  const double share = std::max(0.3, 1 - nearest * nearest / (1 + kOwnVariance));
  std::vector<double> out(kParameters * kParameters, 0);
  for (const Measured* m : known)
    for (std::size_t a = 0; a < kParameters; ++a)
      for (std::size_t b = 0; b < kParameters; ++b)
        out[a * kParameters + b] +=
            share * (m->parameters[a] - mean[a]) * (m->parameters[b] - mean[b]) / std::max(1.0, n - 1);
  // Few devices cannot show every difference: adds a variance of 0.05 to the log floor and 0.01 to every
  // factor.
  for (std::size_t a = 0; a < kParameters; ++a) out[a * kParameters + a] += a == 0 ? 0.05 : 0.01;
  return out;
}

// ------------------------------------------------------------------------------------------------- records

namespace {

JsonValue band_json(const GenericBand& band) {
  JsonValue out = JsonValue::object();
  out.add("log_p10", JsonValue{band.low});
  out.add("log_p90", JsonValue{band.high});
  return out;
}

// A finite number under `key`. Error: missing or not a number.
Result<double> number_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->number()))
    return Error{fmt::format("`{}` is missing or no finite number", key)};
  return value->number();
}
// A text under `key`. Error: missing or not a text.
Result<std::string> text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || !value->is_text()) return Error{fmt::format("`{}` is missing or no text", key)};
  return value->text();
}
// A band under `key`. Errors: missing, or log_p10 above log_p90.
Result<GenericBand> band_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  GenericBand band;
  STEPCAST_ASSIGN(band.low, number_of(*value, "log_p10"));
  STEPCAST_ASSIGN(band.high, number_of(*value, "log_p90"));
  if (band.low > band.high) return Error{fmt::format("`{}`: log_p10 is above log_p90", key)};
  return band;
}

constexpr double kMostParameter = 50;  // limit of stored exponents, so that exp() stays a usable time
constexpr double kMostBand = 5;        // limit of the band in ln

}  // namespace

JsonValue GenericKernel::write() const {
  JsonValue out = JsonValue::object();
  out.add("version", JsonValue{static_cast<double>(kGenericRecordVersion)});
  out.add("analytic_revision", JsonValue{static_cast<double>(kAnalyticRevision)});
  out.add("family", JsonValue{family});
  out.add("dtype", JsonValue{dtype});
  out.add("direction", JsonValue{to_string(direction)});
  out.add("adapted", JsonValue{adapted});
  out.add("log_usual_floor_us", JsonValue{log_usual_floor});
  out.add("unseen", band_json(unseen));
  out.add("inside", band_json(inside));
  JsonValue list = JsonValue::array();
  for (const Measured& m : devices) {
    JsonValue entry = JsonValue::object();
    entry.add("device", JsonValue{m.device});
    entry.add("place", JsonValue{JsonValue::Array{JsonValue{m.place.generation}, JsonValue{m.place.memory},
                                                  JsonValue{m.place.vendor}}});
    entry.add("log_floor_us", JsonValue{m.parameters[0]});
    JsonValue factors = JsonValue::array();
    for (std::size_t j = 1; j < kParameters; ++j) factors.add(JsonValue{m.parameters[j]});
    entry.add("factors", std::move(factors));
    entry.add("n_rows", JsonValue{static_cast<double>(m.n_rows)});
    entry.add("nearest_bound", JsonValue{m.nearest_bound});
    list.add(std::move(entry));
  }
  out.add("devices", std::move(list));
  if (trees) {
    out.add("features", JsonValue{to_string(features)});
    out.add("trees", trees->write());
  }
  return out;
}

Result<GenericRecordHeader> GenericRecordHeader::read(const JsonValue& parameters) {
  GenericRecordHeader out;
  STEPCAST_ASSIGN(const double version, number_of(parameters, "version"));
  if (version != kGenericRecordVersion)
    return Error{fmt::format("version {:g} (this program reads {})", version, kGenericRecordVersion)};
  STEPCAST_ASSIGN(const double revision, number_of(parameters, "analytic_revision"));
  if (revision != kAnalyticRevision)
    return Error{fmt::format("fitted to revision {:g} of the analytic model (this program has {})", revision,
                             kAnalyticRevision)};
  STEPCAST_ASSIGN(out.family, text_of(parameters, "family"));
  STEPCAST_ASSIGN(out.dtype, text_of(parameters, "dtype"));
  STEPCAST_ASSIGN(const std::string direction, text_of(parameters, "direction"));
  bool known = false;
  for (const Direction d :
       {Direction::forward, Direction::backward, Direction::input_gradient, Direction::weight_gradient}) {
    if (direction != to_string(d)) continue;
    out.direction = d;
    known = true;
  }
  if (!known) return Error{fmt::format("direction `{}` is not known", direction)};
  if (const JsonValue* adapted = parameters.find("adapted"); adapted != nullptr && adapted->is_bool())
    out.adapted = adapted->truth();
  return out;
}

Result<GenericKernel> GenericKernel::read(const JsonValue& parameters) {
  GenericKernel out;
  STEPCAST_ASSIGN(static_cast<GenericRecordHeader&>(out), GenericRecordHeader::read(parameters));
  STEPCAST_ASSIGN(out.log_usual_floor, number_of(parameters, "log_usual_floor_us"));
  if (!(std::abs(out.log_usual_floor) <= kMostParameter))
    return Error{fmt::format("`log_usual_floor_us` is {:g}", out.log_usual_floor)};
  STEPCAST_ASSIGN(out.unseen, band_of(parameters, "unseen"));
  STEPCAST_ASSIGN(out.inside, band_of(parameters, "inside"));
  const JsonValue* devices = parameters.find("devices");
  if (devices == nullptr || !devices->is_array() || devices->items().empty())
    return Error{"`devices` is missing or empty"};
  for (const JsonValue& entry : devices->items()) {
    Measured m;
    STEPCAST_ASSIGN(m.device, text_of(entry, "device"));
    const JsonValue* place = entry.find("place");
    const auto at = place != nullptr ? place->numbers() : std::nullopt;
    if (!at || at->size() != 3) return Error{fmt::format("`place` of {} is not three numbers", m.device)};
    m.place = {(*at)[0], (*at)[1], (*at)[2]};
    STEPCAST_ASSIGN(m.parameters[0], number_of(entry, "log_floor_us"));
    const JsonValue* factors = entry.find("factors");
    const auto numbers = factors != nullptr ? factors->numbers() : std::nullopt;
    if (!numbers || numbers->size() != kMostGenericTerms)
      return Error{fmt::format("`factors` of {} are not {} numbers", m.device, kMostGenericTerms)};
    std::copy(numbers->begin(), numbers->end(), m.parameters.begin() + 1);
    for (const double p : m.parameters)
      if (!(std::abs(p) <= kMostParameter)) return Error{fmt::format("a factor of {} is {:g}", m.device, p)};
    if (const JsonValue* rows = entry.find("n_rows");
        rows != nullptr && rows->is_number() && rows->number() >= 0)
      m.n_rows = static_cast<std::size_t>(std::min(rows->number(), 1e15));
    STEPCAST_ASSIGN(m.nearest_bound, number_of(entry, "nearest_bound"));
    if (!(m.nearest_bound > 0 && m.nearest_bound <= 1))
      return Error{fmt::format("`nearest_bound` of {} is {:g}", m.device, m.nearest_bound)};
    out.devices.push_back(std::move(m));
  }
  if (const JsonValue* trees = parameters.find("trees")) {
    STEPCAST_ASSIGN(const std::string set, text_of(parameters, "features"));
    const auto features = parse_kernel_feature_set(set);
    if (!features || *features == KernelFeatureSet::none)
      return Error{fmt::format("features `{}` are not known", set)};
    out.features = *features;
    STEPCAST_ASSIGN(out.trees, GradientTrees::read(*trees, kernel_features_of(out.features).size()));
  }
  return out;
}

// ------------------------------------------------------------------------------------------------ evaluation

namespace {

// Short kernels do not reach the power limit; used for GEMMs of unmeasured vendors.
Device without_power_limit(Device device) {
  device.power_limit_W.reset();
  return device;
}

}  // namespace

GenericKernels::GenericKernels(const Device& device)
    : place_(place_of(device)), without_power_limit_(without_power_limit(device)) {}

Status GenericKernels::add(const ModelRecord& record) {
  STEPCAST_ASSIGN(const GenericRecordHeader header, GenericRecordHeader::read(record.parameters));
  const auto read = [place = place_](const JsonValue& parameters) -> Result<Prepared> {
    STEPCAST_ASSIGN(GenericKernel kernel, GenericKernel::read(parameters));
    return Prepared{kernel.parameters_at(place),
                    kernel.adapted ? kernel.inside : kernel.unseen,
                    kernel.nearest_bound_at(place),
                    kernel.features,
                    std::move(kernel.trees),
                    std::ranges::none_of(kernel.devices, [&](const GenericKernel::Measured& m) {
                      return m.place.vendor == place.vendor;
                    })};
  };
  // A record that was adapted to this device has priority over the general one.
  const auto same = std::ranges::find_if(kernels_, [&](const auto& k) {
    return k->header.family == header.family && k->header.dtype == header.dtype &&
           k->header.direction == header.direction;
  });
  if (same != kernels_.end() && (*same)->header.adapted && !header.adapted) return Ok{};
  std::unique_ptr<Entry> entry{new Entry{record.name,
                                         fmt::format("{} (of other vendors)", record.name),
                                         header,
                                         {record.parameters, read, record.is_shipped}}};
  if (same == kernels_.end())
    kernels_.push_back(std::move(entry));
  else
    *same = std::move(entry);
  return Ok{};
}

const GenericKernels::Entry* GenericKernels::find(const Operation& operation) const {
  const std::string_view family = generic_family(operation);
  const std::string_view dtype = dtype_class(operation.dtype);
  for (const auto& k : kernels_)
    if (k->header.direction == operation.direction && k->header.family == family && k->header.dtype == dtype)
      return k->kernel.get() != nullptr ? k.get() : nullptr;
  return nullptr;
}

std::string_view GenericKernels::record_of(const Operation& operation) const {
  const Entry* entry = find(operation);
  if (entry == nullptr) return {};
  return entry->kernel.get()->of_other_vendors ? entry->name_of_other_vendors : entry->name;
}

std::vector<std::string> GenericKernels::unreadable(bool also_shipped) const {
  std::vector<std::string> out;
  for (const auto& k : kernels_)
    if ((also_shipped || !k->kernel.can_be_read()) && k->kernel.get() == nullptr)
      out.push_back(fmt::format("model {}: {}", k->name, k->kernel.problem()));
  return out;
}

std::optional<Estimate> GenericKernels::estimate(const Operation& operation,
                                                 const AnalyticModel& model) const {
  const Entry* entry = find(operation);
  if (entry == nullptr) return std::nullopt;
  const Prepared* k = entry->kernel.get();
  const AnalyticTime analytic = model.answer(operation);
  GenericTerms terms;
  generic_terms(operation, analytic, model.figures(), terms);
  double us = generic_time_us(k->parameters, terms, analytic.time.value(), model.figures().kernel_floor_us);
  if (k->trees && kernel_feature_set_of(operation) == k->features) {
    GenericFeatures features;
    generic_features(operation, analytic, model.figures(), features);
    us *= std::exp(tree_correction(*k->trees, features));
  }
  // Records of other vendors: the rate is corrected by kProductsOfOtherVendor, without counting the power
  // limit twice.
  if (k->of_other_vendors && std::holds_alternative<GemmShape>(operation.shape)) {
    const double floor_us = std::min(us, model.figures().kernel_floor_us);
    const double unlimited = without_power_limit_.time(operation) / analytic.time;
    us = floor_us + (us - floor_us) * std::max(unlimited / kProductsOfOtherVendor, 1.0);
  }
  if (!std::isfinite(us)) return std::nullopt;
  const Microseconds time = std::max(Microseconds{us}, analytic.lower_bound / k->nearest_bound);
  const Microseconds low =
      std::max(time * std::exp(std::clamp(k->band.low, -kMostBand, 0.0)), analytic.lower_bound);
  return Estimate{time, low, time * std::exp(std::clamp(k->band.high, 0.0, kMostBand)),
                  entry->header.adapted ? EstimateSource::fitted : EstimateSource::analytic};
}

}  // namespace stepcast
