// Groups steps by the shapes of their tensors. The size of a step is a single number per rank; steps are in
// one group if their sizes agree within 1 % on all ranks.
#include "stepcast/trace/step_shapes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepcast {
namespace {

// Sizes with a smaller relative difference are equal, as in retrace/other_shapes.cpp. Assumed
// (docs/constants.md).
constexpr double kSameSize = 0.01;

// True for GEMMs, convolutions and attention operators, by name: "aten::addmm",
// "aten::_scaled_dot_product_flash_attention".
bool has_a_size(std::string_view op) {
  constexpr std::array<std::string_view, 3> kAnywhere{"conv", "attention", "attn"};
  if (op.starts_with("aten::") && op.find("mm") != std::string_view::npos) return true;
  return std::ranges::any_of(kAnywhere,
                             [&](std::string_view word) { return op.find(word) != std::string_view::npos; });
}

// Drops special steps, unless all are special.
void keep_ordinary(std::vector<StepLength>& steps) {
  if (!std::ranges::all_of(steps, &StepLength::is_special)) std::erase_if(steps, &StepLength::is_special);
}

// True if the size is known on some rank.
bool is_known(const StepLength& step) {
  return std::ranges::any_of(step.size, [](double size) { return size > 0; });
}

// The step of median length. With an even number, the later of the two middle ones.
const StepLength& median_of(std::vector<StepLength>& steps) {
  std::ranges::sort(steps, [](const StepLength& a, const StepLength& b) {
    return a.us != b.us ? a.us < b.us : a.number < b.number;
  });
  const std::size_t middle = steps.size() / 2;
  if (steps.size() % 2 == 1 || steps[middle].number > steps[middle - 1].number) return steps[middle];
  return steps[middle - 1];
}

// Assigns numbers to sizes of a rank: sizes within kSameSize of the smallest remaining one are equal. O(n log
// n).
std::vector<std::uint32_t> kinds_of(const std::vector<double>& sizes) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sizes[i]; });
  std::vector<std::uint32_t> kinds(sizes.size(), 0);
  std::uint32_t kind = 0;
  double least = order.empty() ? 0 : sizes[order.front()];
  for (const std::size_t i : order) {
    if (sizes[i] > (1 + kSameSize) * least) {
      least = sizes[i];
      ++kind;
    }
    kinds[i] = kind;
  }
  return kinds;
}

// The steps of each shape, the largest group first. Steps of unknown size form a separate group.
std::vector<std::vector<StepLength>> by_shape(std::vector<StepLength> steps) {
  keep_ordinary(steps);
  std::vector<std::vector<std::uint32_t>> kinds(steps.size());
  const std::size_t ranks = steps.empty() ? 0 : steps.front().size.size();
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<double> sizes;
    for (const StepLength& step : steps) sizes.push_back(r < step.size.size() ? step.size[r] : 0);
    const std::vector<std::uint32_t> of_rank = kinds_of(sizes);
    for (std::size_t i = 0; i < steps.size(); ++i) kinds[i].push_back(of_rank[i]);
  }
  std::map<std::vector<std::uint32_t>, std::vector<StepLength>> groups;
  for (std::size_t i = 0; i < steps.size(); ++i) groups[kinds[i]].push_back(std::move(steps[i]));
  std::vector<std::vector<StepLength>> lists;
  for (auto& [kind, list] : groups) lists.push_back(std::move(list));
  const auto first = [](const std::vector<StepLength>& list) {
    return std::ranges::min(list, {}, &StepLength::number).number;
  };
  std::ranges::sort(lists, [&](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : first(a) < first(b);
  });
  return lists;
}

}  // namespace

// Parses the text without building lists: digits form extents, a closing bracket ends a tensor. The geometric
// mean is computed with logarithms.
double size_by_shapes(std::string_view op, std::string_view input_dims) {
  if (!has_a_size(op)) return 0;
  double sum = 0, elements = 1;  // `sum` is a sum of logarithms
  int tensors = 0, extents = 0;
  for (std::size_t i = 0; i < input_dims.size();) {
    const char c = input_dims[i];
    if (c >= '0' && c <= '9') {
      double extent = 0;
      for (; i < input_dims.size() && input_dims[i] >= '0' && input_dims[i] <= '9'; ++i)
        extent = 10 * extent + (input_dims[i] - '0');
      elements *= extent;
      ++extents;
      continue;
    }
    if (c == ']' && extents > 0 && elements > 0) {
      sum += std::log(elements);
      ++tensors;
    }
    if (c == '[' || c == ']') {
      elements = 1;
      extents = 0;
    }
    ++i;
  }
  const double size = tensors > 0 ? std::exp(sum / tensors) : 0;
  return std::isfinite(size) ? size : 0;
}

double size_of(std::span<const StepSize> work, std::int64_t step) {
  const auto found = std::ranges::find(work, step, &StepSize::number);
  return found == work.end() ? 0 : found->size;
}

std::vector<ShapeGroup> shape_groups(std::vector<StepLength> steps) {
  std::vector<ShapeGroup> groups;
  for (std::vector<StepLength>& list : by_shape(std::move(steps))) {
    if (!is_known(list.front())) continue;
    const StepLength& median = median_of(list);
    ShapeGroup& group = groups.emplace_back(
        ShapeGroup{.steps = {}, .median_step = median.number, .median_ms = median.us * 1e-3});
    for (const StepLength& step : list) group.steps.push_back(step.number);
    std::ranges::sort(group.steps);
  }
  return groups;
}

// Groups are sorted by size, so candidates are the groups with as many steps as the first one.
std::optional<std::int64_t> typical_step(std::vector<StepLength> steps) {
  std::vector<StepLength> candidates;
  std::size_t most = 0;
  for (std::vector<StepLength>& list : by_shape(std::move(steps))) {
    if (list.size() < most) break;
    most = list.size();
    candidates.insert(candidates.end(), list.begin(), list.end());
  }
  if (candidates.empty()) return std::nullopt;
  return median_of(candidates).number;
}

std::string describe(std::span<const ShapeGroup> groups, std::optional<std::int64_t> replayed) {
  constexpr std::size_t kMostNamed = 4;
  if (groups.size() < 2) return {};
  std::vector<std::string> named;
  for (const ShapeGroup& group : groups.first(std::min(groups.size(), kMostNamed))) {
    const bool is_taken = replayed && std::ranges::binary_search(group.steps, *replayed);
    named.push_back(fmt::format("{} as step {} (median {:.3f} ms{})", group.steps.size(), group.median_step,
                                group.median_ms,
                                replayed && !is_taken ? fmt::format("; --step {}", group.median_step) : ""));
  }
  if (groups.size() > kMostNamed) named.push_back(fmt::format("{} more", groups.size() - kMostNamed));
  return fmt::format("the steps are of {} shapes: {}", groups.size(), fmt::join(named, ", "));
}

}  // namespace stepcast
