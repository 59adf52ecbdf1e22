// Closed forms with a few rates per device, stored in platform records: reading, writing, and the rates of
// unmeasured devices.
//
// A struct of rates has `device`, `architecture`, `log_p10`, `log_p90`, and a table of its numbers:
//
//   constexpr std::array<RateField<ExpertRates>, 9> kFields{{{"startup_us", &ExpertRates::startup_us}, ...}};
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/families/record_numbers.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

// Name and member of a rate; `positive`: must be above 0, and is averaged geometrically.
template <class Rates>
struct RateField {
  std::string_view name;
  double Rates::*member;
  bool positive = true;
};

// Combination of two overlapping times by a norm: (a^s + b^s)^(1/s). Near the larger one where they differ
// much, above it where they are similar. Neither may be negative.
inline double sharp_sum(double a, double b, double sharpness) {
  const double most = std::max(a, b);
  if (a <= 0 || b <= 0) return most;
  return most * std::pow(std::pow(a / most, sharpness) + std::pow(b / most, sharpness), 1 / sharpness);
}

// Mean of several devices: geometric for positive rates, arithmetic for the band, which is widened by `wider`
// on each side, in ln. `of` must not be empty.
template <class Rates>
Rates mean_of(std::span<const Rates* const> of, std::span<const RateField<Rates>> fields, double wider) {
  Rates mean = *of.front();
  const auto n = static_cast<double>(of.size());
  for (const RateField<Rates>& field : fields) {
    double sum = 0;
    for (const Rates* r : of) sum += field.positive ? std::log(r->*field.member) : r->*field.member;
    mean.*field.member = field.positive ? std::exp(sum / n) : sum / n;
  }
  mean.log_p10 -= wider;
  mean.log_p90 += wider;
  return mean;
}

// Widening of the band for rates of other devices, each side, in ln. Assumed.
inline constexpr double kRatesOfArchitecture = 0.10, kRatesOfAnyDevice = 0.25;

// The rates of the device; else the mean of its architecture, else of all `candidates`, with a wider band.
// None without candidates.
template <class Rates>
std::optional<Rates> rates_for(const Device& device, std::span<const Rates* const> candidates,
                               std::span<const RateField<Rates>> fields, double wider = 0) {
  std::vector<const Rates*> own, of_architecture;
  for (const Rates* r : candidates) {
    if (same_name(r->architecture, device.architecture)) of_architecture.push_back(r);
    if (device.matches_name(r->device)) own.push_back(r);
  }
  if (!own.empty()) return mean_of<Rates>(own, fields, wider);
  if (!of_architecture.empty()) return mean_of<Rates>(of_architecture, fields, wider + kRatesOfArchitecture);
  if (!candidates.empty()) return mean_of<Rates>(candidates, fields, wider + kRatesOfAnyDevice);
  return std::nullopt;
}

// Reads `parameters.rates`, an array of objects. `read_names(text_of, rates)` reads the fields that are not
// numbers and returns a Status; text_of(key) is "" for a missing key. Errors: a missing list or number.
template <class Rates, class ReadNames>
Result<std::vector<Rates>> read_rates(const JsonValue& parameters, std::span<const RateField<Rates>> fields,
                                      ReadNames&& read_names) {
  const JsonValue* list = parameters.find("rates");
  if (list == nullptr || !list->is_array()) return Error{"`rates` is missing (an array)"};
  std::vector<Rates> all;
  for (const JsonValue& item : list->items()) {
    if (!item.is_object()) return Error{"`rates` must hold objects"};
    Rates rates;
    const auto text = [&](std::string_view key) {
      const JsonValue* value = item.find(key);
      return value != nullptr && value->is_text() ? std::string{value->text()} : std::string{};
    };
    rates.device = text("device");
    rates.architecture = text("architecture");
    STEPCAST_TRY(read_names(text, rates));
    for (const RateField<Rates>& field : fields) {
      STEPCAST_ASSIGN(rates.*field.member,
                      field.positive ? positive_number(item, field.name) : finite_number(item, field.name));
    }
    all.push_back(std::move(rates));
  }
  return all;
}

// Inverse of read_rates(). `add_names(item, rates)` writes the fields that read_names reads.
template <class Rates, class AddNames>
JsonValue write_rates(const std::vector<Rates>& all, std::span<const RateField<Rates>> fields,
                      AddNames&& add_names) {
  constexpr int kDigits = 4;
  JsonValue list = JsonValue::array();
  for (const Rates& rates : all) {
    JsonValue item = JsonValue::object();
    item.add("device", JsonValue{rates.device});
    item.add("architecture", JsonValue{rates.architecture});
    add_names(item, rates);
    for (const RateField<Rates>& field : fields)
      item.add(field.name, JsonValue{rounded(rates.*field.member, kDigits)});
    list.add(std::move(item));
  }
  JsonValue value = JsonValue::object();
  value.add("rates", std::move(list));
  return value;
}

}  // namespace stepcast::detail
