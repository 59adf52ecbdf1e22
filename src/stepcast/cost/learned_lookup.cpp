#include "stepcast/cost/learned_lookup.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

constexpr double kNoPooling = 1e-3;  // as in the published features
// Limit of a correction in ln; a larger one means that the measurement is of something else.
constexpr double kMostCorrection = 3;

// p-norm of two non-negative times.
double norm(double a, double b, double p) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (high <= 0) return 0;
  return high * std::pow(1 + std::pow(low / high, p), 1 / p);
}

// An array of kLookupFeatures finite numbers.
Result<LookupFeatures> bounds(const JsonValue& value, std::string_view key) {
  STEPCAST_ASSIGN(const std::vector<double> numbers, finite_numbers(value, key, kLookupFeatures));
  LookupFeatures out{};
  std::transform(numbers.begin(), numbers.end(), out.begin(), [](double x) { return static_cast<float>(x); });
  return out;
}

}  // namespace

LookupFeatures lookup_features(double bags, double rows, double pooling, double dim,
                               const ReuseHistogram& of_rows) {
  LookupFeatures f{};
  f[0] = static_cast<float>(std::log(std::max(1.0, bags)));
  f[1] = static_cast<float>(std::log(std::max(1.0, rows)));
  f[2] = static_cast<float>(std::log(std::max(kNoPooling, pooling)));
  f[3] = static_cast<float>(std::log(std::max(1.0, dim)));
  for (std::size_t k = 0; k < kReuseBins; ++k) f[4 + k] = static_cast<float>(of_rows[k]);
  return f;
}

Result<LearnedLookup> LearnedLookup::make(Parameters p) {
  if (p.corrections.size() != Parameters::works_of(p.direction)) {
    return Error{fmt::format("{} corrections (must be {} {})", p.corrections.size(),
                             Parameters::works_of(p.direction), to_string(p.direction))};
  }
  if (!(p.sharpness >= 1 && p.sharpness <= 100)) return Error{"`sharpness` must be 1 to 100"};
  if (!(p.start_us > 0 && p.start_us < 1e6)) return Error{"`start_us` must be above 0"};
  if (!(p.log_p10 <= p.log_p90)) return Error{"`log_p10` must not be above `log_p90`"};
  LearnedLookup out;
  out.parameters_ = std::move(p);
  return out;
}

Result<LearnedLookup> LearnedLookup::read(const JsonValue& value) {
  Parameters p;
  STEPCAST_ASSIGN(const double revision, finite_number(value, "revision"));
  if (revision != kLookupModelRevision) {
    return Error{
        fmt::format("made for revision {} of the model of lookups (this is {}): run `stepcast calibrate "
                    "kernels` again on its lookups",
                    revision, kLookupModelRevision)};
  }
  const JsonValue* dtype = value.find("dtype");
  const JsonValue* direction = value.find("direction");
  p.dtype = dtype != nullptr && dtype->is_text() ? parse_dtype(dtype->text()) : DType::unknown;
  if (element_size(p.dtype).value() <= 0) return Error{"`dtype` names no type of elements"};
  const std::string_view way =
      direction != nullptr && direction->is_text() ? std::string_view{direction->text()} : std::string_view{};
  if (way != "forward" && way != "backward") return Error{"`direction` must be forward or backward"};
  p.direction = way == "forward" ? Direction::forward : Direction::backward;
  STEPCAST_ASSIGN(p.least, bounds(value, "least"));
  STEPCAST_ASSIGN(p.most, bounds(value, "most"));
  for (std::size_t f = 0; f < kLookupFeatures; ++f)
    if (p.least[f] > p.most[f]) return Error{"`least` must not be above `most`"};
  STEPCAST_ASSIGN(p.start_us, positive_number(value, "start_us"));
  STEPCAST_ASSIGN(p.sharpness, positive_number(value, "sharpness"));
  STEPCAST_ASSIGN(p.log_p10, finite_number(value, "log_p10"));
  STEPCAST_ASSIGN(p.log_p90, finite_number(value, "log_p90"));
  const JsonValue* corrections = value.find("corrections");
  if (corrections == nullptr || !corrections->is_array()) return Error{"`corrections` must be a list"};
  for (const JsonValue& correction : corrections->items()) {
    STEPCAST_ASSIGN(GaussianProcess process, GaussianProcess::read(correction, kLookupFeatures));
    p.corrections.push_back(std::move(process));
  }
  return make(std::move(p));
}

JsonValue LearnedLookup::write() const {
  const Parameters& p = parameters_;
  JsonValue value = JsonValue::object();
  value.add("revision", JsonValue{static_cast<double>(kLookupModelRevision)});
  value.add("dtype", JsonValue{to_string(p.dtype)});
  value.add("direction", JsonValue{to_string(p.direction)});
  value.add("least", number_array(p.least));
  value.add("most", number_array(p.most));
  value.add("start_us", JsonValue{p.start_us});
  value.add("sharpness", JsonValue{p.sharpness});
  value.add("log_p10", JsonValue{p.log_p10});
  value.add("log_p90", JsonValue{p.log_p90});
  JsonValue corrections = JsonValue::array();
  for (const GaussianProcess& process : p.corrections) corrections.add(process.write());
  value.add("corrections", std::move(corrections));
  return value;
}

std::string LearnedLookup::record_name(DType dtype, Direction direction) {
  return fmt::format("embedding_lookup_tables/{}/{}", to_string(dtype), to_string(direction));
}

void LearnedLookup::correct(const LookupFeatures& features, LookupCost& cost) const {
  const Parameters& p = parameters_;
  // Features outside of the training data are clamped to its range.
  LookupFeatures held = features;
  for (std::size_t f = 0; f < kLookupFeatures; ++f) held[f] = std::clamp(held[f], p.least[f], p.most[f]);
  const auto factor = [&](std::size_t work) {
    double ln = 0;
    p.corrections[work].add(held, kLookupFeatures, 1, std::span{&ln, 1});
    return std::exp(std::clamp(ln, -kMostCorrection, kMostCorrection));
  };
  if (p.direction == Direction::backward) {
    const double by = factor(0);
    cost.backward_us *= by;
    cost.sort_us *= by;
    return;
  }
  cost.missed_us *= factor(0);
  cost.gather_us *= factor(1);
  cost.forward_us = norm(cost.missed_us, cost.gather_us, p.sharpness);
}

double LearnedLookup::kernel_us(const LookupCost& tables) const {
  const Parameters& p = parameters_;
  if (p.direction == Direction::backward) return tables.lookups > 0 ? p.start_us + tables.backward_us : 0;
  if (tables.forward_us <= 0) return 0;
  return p.start_us + norm(tables.missed_us, tables.gather_us, p.sharpness);
}

bool LearnedLookups::holds(const TableLookup& table) const {
  const auto has_its_type = [&](const std::optional<LearnedLookup>& learned) {
    return !learned || element_size(learned->parameters().dtype).value() == table.weight_bytes;
  };
  return table.placement == TablePlacement::hbm && !table.weighted && has_its_type(forward) &&
         has_its_type(backward);
}

Result<LearnedLookups> learned_lookups(std::span<const ModelRecord> records, const Device& device,
                                       DType dtype) {
  LearnedLookups out;
  for (const ModelRecord& record : records) {
    if (record.kind != LearnedLookup::kRecordKind) continue;
    if (!record.device.empty() && !device.matches_name(record.device)) continue;
    Result<LearnedLookup> learned = LearnedLookup::read(record.parameters);
    if (!learned.ok())
      return Error::at("", fmt::format("model `{}`", record.name), learned.error().message());
    if (learned->parameters().dtype != dtype) continue;
    auto& place = learned->parameters().direction == Direction::forward ? out.forward : out.backward;
    place = std::move(*learned);
  }
  return out;
}

}  // namespace stepcast
