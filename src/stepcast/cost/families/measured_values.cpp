#include "stepcast/cost/families/measured_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// A value measured to within this distance (ln 4) of the edge of all rows also answers beyond it.
constexpr double kSameEdge = 1.386;
constexpr std::size_t kMostValues = 256;

// Index of the feature that is the amount of work.
std::size_t amount_of(KernelFeatureSet set) {
  const std::span<const KernelFeature> features = kernel_features_of(set);
  const auto found = std::ranges::find_if(features, &KernelFeature::is_amount);
  return static_cast<std::size_t>(found - features.begin());
}

// Whether the set has a discrete feature.
bool is_discrete(KernelFeatureSet set) {
  return std::ranges::any_of(kernel_features_of(set), &KernelFeature::is_discrete);
}

}  // namespace

MeasuredValues MeasuredValues::of_rows(KernelFeatureSet set, std::span<const float> rows,
                                       std::span<const float> weight) {
  MeasuredValues out;
  out.set_ = set;
  const std::span<const KernelFeature> names = kernel_features_of(set);
  if (!is_discrete(set)) return out;
  const std::size_t amount = amount_of(set);
  for (std::size_t f = 0; f < names.size(); ++f) {
    if (!names[f].is_discrete) continue;
    std::map<float, MeasuredValue> counted;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const float value = rows[i * names.size() + f];
      const auto work = static_cast<double>(rows[i * names.size() + amount]);
      MeasuredValue& seen = counted.try_emplace(value, MeasuredValue{f, value, 0, work, work}).first->second;
      seen.n_rows += static_cast<std::size_t>(weight[i]);
      seen.log_least_work = std::min(seen.log_least_work, work);
      seen.log_most_work = std::max(seen.log_most_work, work);
    }
    for (auto& [unused, seen] : counted) {
      seen.log_least_work = rounded(seen.log_least_work, 5);
      seen.log_most_work = rounded(seen.log_most_work, 5);
      out.values_.push_back(seen);
    }
  }
  out.prepare();
  return out;
}

Result<MeasuredValues> MeasuredValues::read(KernelFeatureSet set, const JsonValue& array) {
  if (!array.is_array()) return Error{"`measured_values` must be an array"};
  if (array.items().size() > kMostValues) return Error{"`measured_values` has more than 256 entries"};
  const std::span<const KernelFeature> names = kernel_features_of(set);
  MeasuredValues out;
  out.set_ = set;
  for (const JsonValue& item : array.items()) {
    if (!item.is_object()) return Error{"`measured_values` must hold objects"};
    const JsonValue* feature = item.find("feature");
    if (feature == nullptr || !feature->is_text())
      return Error{"`measured_values`: `feature` is missing (a text)"};
    const auto known = std::ranges::find(names, feature->text(), &KernelFeature::name);
    if (known == names.end() || !known->is_discrete)
      return Error{fmt::format("`measured_values`: `{}` is not a discrete feature", feature->text())};
    MeasuredValue value;
    value.feature = static_cast<std::size_t>(known - names.begin());
    STEPCAST_ASSIGN(const double number, finite_number(item, "value"));
    value.value = static_cast<float>(number);
    STEPCAST_ASSIGN(const double n_rows, finite_number(item, "n_rows"));
    if (!(n_rows >= 0 && n_rows <= 1e12))
      return Error{fmt::format("`measured_values`: `n_rows` is {:g} (must be from 0 to 1e12)", n_rows)};
    value.n_rows = static_cast<std::size_t>(n_rows);
    STEPCAST_ASSIGN(value.log_least_work, finite_number(item, "log_least_work"));
    STEPCAST_ASSIGN(value.log_most_work, finite_number(item, "log_most_work"));
    if (!(value.log_least_work <= value.log_most_work))
      return Error{"`measured_values`: `log_least_work` is above `log_most_work`"};
    out.values_.push_back(value);
  }
  out.prepare();
  return out;
}

JsonValue MeasuredValues::write() const {
  const std::span<const KernelFeature> names = kernel_features_of(set_);
  JsonValue array = JsonValue::array();
  for (const MeasuredValue& value : values_) {
    JsonValue item = JsonValue::object();
    item.add("feature", JsonValue{names[value.feature].name});
    item.add("value", JsonValue{short_double(value.value)});
    item.add("n_rows", JsonValue{static_cast<double>(value.n_rows)});
    item.add("log_least_work", JsonValue{value.log_least_work});
    item.add("log_most_work", JsonValue{value.log_most_work});
    array.add(std::move(item));
  }
  return array;
}

void MeasuredValues::answer_for_each() {
  for_each_ = true;
  prepare();
}

void MeasuredValues::prepare() {
  features_.clear();
  amount_ = values_.empty() ? kNone : amount_of(set_);
  for (const MeasuredValue& value : values_) {
    if (std::ranges::find(features_, value.feature, &Feature::index) != features_.end()) continue;
    Feature feature;
    feature.index = value.feature;
    // Range over all rows, since every row has a value of each feature.
    double least = value.log_least_work, most = value.log_most_work;
    const MeasuredValue* usual = &value;
    for (const MeasuredValue& other : values_) {
      if (other.feature != value.feature) continue;
      least = std::min(least, other.log_least_work);
      most = std::max(most, other.log_most_work);
      if (other.n_rows > usual->n_rows) usual = &other;
    }
    feature.usual = usual->value;
    for (const MeasuredValue& other : values_) {
      if (other.feature != value.feature || &other == usual) continue;
      const double everywhere = std::numeric_limits<double>::infinity();
      if (for_each_) {
        feature.answered.push_back({other.value, -everywhere, everywhere});
        continue;
      }
      const bool from_the_least = other.log_least_work <= least + kSameEdge;
      const bool to_the_most = other.log_most_work >= most - kSameEdge;
      const bool wide = other.log_most_work - other.log_least_work >= kLeastDecadesOfWork * std::log(10.0);
      if (other.n_rows < kLeastRowsOfValue || !(wide || (from_the_least && to_the_most))) continue;
      feature.answered.push_back({other.value, from_the_least ? -everywhere : other.log_least_work,
                                  to_the_most ? everywhere : other.log_most_work});
    }
    features_.push_back(std::move(feature));
  }
}

bool MeasuredValues::answers(const MeasuredValue& value) const {
  return answers(value.feature, value.value, (value.log_least_work + value.log_most_work) / 2);
}

bool MeasuredValues::answers(std::size_t feature, float value, double log_work) const {
  const auto found = std::ranges::find(features_, feature, &Feature::index);
  if (found == features_.end() || value == found->usual) return true;
  return std::ranges::any_of(found->answered, [&](const Feature::Range& range) {
    return range.value == value && log_work >= range.log_least && log_work <= range.log_most;
  });
}

bool MeasuredValues::replace(std::span<float> row) const {
  bool replaced = false;
  for (const Feature& feature : features_) {
    float& value = row[feature.index];
    if (value == feature.usual || answers(feature.index, value, static_cast<double>(row[amount_]))) continue;
    value = feature.usual;
    replaced = true;
  }
  return replaced;
}

}  // namespace stepcast
