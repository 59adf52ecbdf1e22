#include "stepcast/cost/families/perceptron.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {

std::size_t Perceptron::Parameters::weight_count(std::span<const std::size_t> widths) {
  std::size_t count = 0;
  for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer)
    count += (widths[layer] + 1) * widths[layer + 1];
  return count;
}

Result<Perceptron> Perceptron::make(Parameters p, std::size_t n_features) {
  if (p.widths.size() < 2 || p.widths.size() > kMostLayers)
    return Error{fmt::format("{} layers (must be 2 to {})", p.widths.size(), kMostLayers)};
  for (const std::size_t width : p.widths)
    if (width < 1 || width > kMostWidth)
      return Error{fmt::format("a layer of {} units (must be 1 to {})", width, kMostWidth)};
  if (p.widths.front() != n_features || p.widths.back() != 1) {
    return Error{fmt::format("layers from {} to {} units (must be from {} to 1)", p.widths.front(),
                             p.widths.back(), n_features)};
  }
  if (p.input_mean.size() != n_features || p.input_scale.size() != n_features)
    return Error{fmt::format("input_mean and input_scale must have {} numbers", n_features)};
  if (p.weights.size() != Parameters::weight_count(p.widths)) {
    return Error{fmt::format("`weights` has {} numbers (must be {})", p.weights.size(),
                             Parameters::weight_count(p.widths))};
  }
  Perceptron out;
  out.transposed_.reserve(p.weights.size());
  std::size_t first = 0;
  for (std::size_t layer = 0; layer + 1 < p.widths.size(); ++layer) {
    const std::size_t inputs = p.widths[layer], units = p.widths[layer + 1];
    for (std::size_t input = 0; input < inputs; ++input)
      for (std::size_t unit = 0; unit < units; ++unit)
        out.transposed_.push_back(p.weights[first + unit * inputs + input]);
    for (std::size_t unit = 0; unit < units; ++unit)
      out.transposed_.push_back(p.weights[first + inputs * units + unit]);
    first += (inputs + 1) * units;
  }
  out.parameters_ = std::move(p);
  return out;
}

void Perceptron::add(std::span<const float> rows, std::size_t stride, double weight,
                     std::span<double> sums) const {
  const Parameters& p = parameters_;
  std::array<float, kMostWidth> from{}, to{};
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const float* x = rows.data() + row * stride;
    for (std::size_t i = 0; i < p.widths.front(); ++i) from[i] = (x[i] - p.input_mean[i]) * p.input_scale[i];
    const float* weights = transposed_.data();
    for (std::size_t layer = 0; layer + 1 < p.widths.size(); ++layer) {
      const std::size_t inputs = p.widths[layer], units = p.widths[layer + 1];
      std::copy_n(weights + inputs * units, units, to.begin());
      for (std::size_t input = 0; input < inputs; ++input) {
        const float value = from[input];
        const float* column = weights + input * units;
        for (std::size_t unit = 0; unit < units; ++unit) to[unit] += value * column[unit];
      }
      weights += (inputs + 1) * units;
      if (layer + 2 < p.widths.size())
        for (std::size_t unit = 0; unit < units; ++unit) from[unit] = to[unit] / (1 + std::abs(to[unit]));
    }
    sums[row] += weight * static_cast<double>(to[0]);
  }
}

Result<Perceptron> Perceptron::read(const JsonValue& value, std::size_t n_features) {
  Parameters p;
  STEPCAST_ASSIGN(const std::vector<std::int32_t> widths, whole_numbers(value, "widths"));
  for (const std::int32_t width : widths) {
    if (width < 1) return Error{fmt::format("`widths` holds {}", width)};
    p.widths.push_back(static_cast<std::size_t>(width));
  }
  const auto floats = [](const std::vector<double>& numbers) {
    std::vector<float> out;
    for (const double number : numbers) out.push_back(static_cast<float>(number));
    return out;
  };
  STEPCAST_ASSIGN(const std::vector<double> mean, finite_numbers(value, "input_mean"));
  STEPCAST_ASSIGN(const std::vector<double> scale, finite_numbers(value, "input_scale"));
  STEPCAST_ASSIGN(const std::vector<double> weights, finite_numbers(value, "weights"));
  p.input_mean = floats(mean);
  p.input_scale = floats(scale);
  p.weights = floats(weights);
  return make(std::move(p), n_features);
}

JsonValue Perceptron::write() const {
  JsonValue value = JsonValue::object();
  value.add("widths", number_array(parameters_.widths));
  value.add("input_mean", number_array(parameters_.input_mean));
  value.add("input_scale", number_array(parameters_.input_scale));
  value.add("weights", number_text(parameters_.weights));
  return value;
}

}  // namespace stepcast
