#include "calibrate/detail/tree_training.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"

namespace stepcast::detail {
namespace {

constexpr double kExactLeaf = 1e-8;

// Collects the trees of a dump.
class Collector {
 public:
  Status add(const JsonValue& node) {
    if (const JsonValue* leaf = node.find("leaf"); leaf != nullptr && leaf->is_number()) {
      out_.splits.push_back(-1);
      out_.leaves.push_back(static_cast<std::int32_t>(std::lround(leaf->number() / kExactLeaf)));
      return Ok{};
    }
    const JsonValue* split = node.find("split");
    const JsonValue* condition = node.find("split_condition");
    const JsonValue* yes = node.find("yes");
    const JsonValue* children = node.find("children");
    if (split == nullptr || !split->is_text() || condition == nullptr || !condition->is_number() ||
        yes == nullptr || !yes->is_number() || children == nullptr || !children->is_array() ||
        children->items().size() != 2)
      return Error{"XGBoost wrote a tree in a form that this program does not know"};
    int feature = -1;
    const std::string& name = split->text();  // "f12"
    std::from_chars(name.data() + 1, name.data() + name.size(), feature);
    if (feature < 0 || feature > 254) return Error{fmt::format("XGBoost wrote a split on `{}`", name)};
    out_.splits.push_back(cut(static_cast<std::uint8_t>(feature), static_cast<float>(condition->number())));
    const JsonValue* first = &children->items()[0];
    const JsonValue* second = &children->items()[1];
    const JsonValue* id = first->find("nodeid");
    if (id == nullptr || !id->is_number() || id->number() != yes->number()) std::swap(first, second);
    STEPCAST_TRY(add(*first));
    return add(*second);
  }
  EncodedTrees take() && {
    out_.leaf_scale = kExactLeaf;
    return std::move(out_);
  }

 private:
  std::int32_t cut(std::uint8_t feature, float value) {
    const auto [entry, is_new] =
        index_.try_emplace({feature, value}, static_cast<std::int32_t>(index_.size()));
    if (is_new) {
      out_.cut_feature.push_back(feature);
      out_.cut_value.push_back(value);
    }
    return entry->second;
  }

  EncodedTrees out_;
  std::map<std::pair<std::uint8_t, float>, std::int32_t> index_;
};

// The number with the fewest digits in (low, high], close to the middle.
float shortest_between(float low, float high) {
  const float middle = low + (high - low) / 2;
  for (int digits = 1; digits <= 9; ++digits) {
    const std::string text = fmt::format("{:.{}g}", static_cast<double>(middle), digits);
    float value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (value > low && value <= high) return value;
  }
  return high;
}

}  // namespace

Result<EncodedTrees> train_trees(std::span<const float> rows, std::size_t n_features,
                                 std::span<const float> targets, std::span<const float> weights,
                                 const BoosterOptions& options) {
  BoosterDump dump = train_booster(rows, n_features, targets, weights, options);
  if (!dump.problem.empty()) return Error{fmt::format("training of trees: {}", dump.problem)};
  Collector collector;
  for (const std::string& text : dump.trees) {
    STEPCAST_ASSIGN(const JsonValue tree, parse_json(text, "XGBoost"));
    STEPCAST_TRY(collector.add(tree));
  }
  return std::move(collector).take();
}

EncodedTrees shortened(EncodedTrees trees, std::span<const float> rows, std::size_t n_features,
                       double leaf_scale) {
  const std::size_t n = rows.size() / n_features;
  std::vector<std::vector<float>> sorted(n_features);
  std::map<std::pair<std::uint8_t, float>, std::int32_t> index;
  std::vector<std::int32_t> new_index;
  EncodedTrees out;
  for (std::size_t i = 0; i < trees.cut_value.size(); ++i) {
    const std::uint8_t feature = trees.cut_feature[i];
    std::vector<float>& values = sorted[feature];
    if (values.empty()) {
      for (std::size_t row = 0; row < n; ++row) values.push_back(rows[row * n_features + feature]);
      std::ranges::sort(values);
      values.erase(std::unique(values.begin(), values.end()), values.end());
    }
    const auto at = std::lower_bound(values.begin(), values.end(), trees.cut_value[i]);
    float cut = trees.cut_value[i];
    if (at != values.begin() && at != values.end()) cut = shortest_between(*(at - 1), *at);
    const auto [entry, is_new] = index.try_emplace({feature, cut}, static_cast<std::int32_t>(index.size()));
    if (is_new) {
      out.cut_feature.push_back(feature);
      out.cut_value.push_back(cut);
    }
    new_index.push_back(entry->second);
  }
  for (const std::int32_t split : trees.splits)
    out.splits.push_back(split < 0 ? split : new_index[static_cast<std::size_t>(split)]);
  for (const std::int32_t leaf : trees.leaves)
    out.leaves.push_back(static_cast<std::int32_t>(std::lround(leaf * trees.leaf_scale / leaf_scale)));
  out.leaf_scale = leaf_scale;
  return out;
}

}  // namespace stepcast::detail
