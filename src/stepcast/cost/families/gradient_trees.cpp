#include "stepcast/cost/families/gradient_trees.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// Rows that pass a tree together: their features stay in the first-level cache, and their chains of dependent
// loads overlap.
constexpr std::size_t kRowsAtOnce = 64;

}  // namespace

Result<GradientTrees> GradientTrees::decode(EncodedTrees encoded, std::size_t n_features) {
  GradientTrees trees;
  trees.encoded_ = std::move(encoded);
  const EncodedTrees& e = trees.encoded_;
  if (e.cut_feature.size() != e.cut_value.size())
    return Error{"cut_feature and cut_value have different lengths"};
  trees.nodes_.push_back({0, 0});  // dummy: positions within a tree start at 1
  trees.nodes_.reserve(e.splits.size());
  trees.leaves_.reserve(e.splits.size());
  std::size_t next_split = 0, next_leaf = 0;
  Shape shape;
  while (next_split < e.splits.size()) {
    if (trees.trees_.size() == kMostTrees) return Error{fmt::format("more than {} trees", kMostTrees)};
    STEPCAST_TRY(trees.decode_tree(next_split, next_leaf, n_features, shape));
  }
  if (next_leaf != e.leaves.size())
    return Error{fmt::format("{} leaves are left over after the last tree", e.leaves.size() - next_leaf)};
  return trees;
}

Status GradientTrees::decode_tree(std::size_t& next_split, std::size_t& next_leaf, std::size_t n_features,
                                  Shape& shape) {
  const EncodedTrees& e = encoded_;
  auto& [placed, open] = shape;
  placed.clear();
  open.assign(1, 1);
  std::uint32_t deepest = 1;
  while (!open.empty()) {
    if (next_split >= e.splits.size()) return Error{"the last tree ends early"};
    const std::uint32_t position = open.back();
    open.pop_back();
    const std::int32_t cut = e.splits[next_split++];
    deepest = std::max(deepest, position);
    if (cut == -1) {
      if (next_leaf >= e.leaves.size()) return Error{"there are fewer leaves than the trees need"};
      placed.push_back({-1, e.leaves[next_leaf++], position});
      continue;
    }
    if (cut < 0 || static_cast<std::size_t>(cut) >= e.cut_value.size())
      return Error{fmt::format("cut {} is not in the list of {} cuts", cut, e.cut_value.size())};
    if (e.cut_feature[static_cast<std::size_t>(cut)] >= n_features) {
      return Error{
          fmt::format("a cut on feature {} of {}", e.cut_feature[static_cast<std::size_t>(cut)], n_features)};
    }
    if (position >= (1U << kMostDepth)) return Error{fmt::format("a tree is deeper than {}", kMostDepth)};
    placed.push_back({cut, 0, position});
    open.push_back(2 * position + 1);
    open.push_back(2 * position);
  }

  Tree tree;
  while ((2U << tree.depth) <= deepest) ++tree.depth;
  tree.first_node = nodes_.size();
  tree.first_leaf = leaves_.size();
  const std::size_t inner = (std::size_t{1} << tree.depth) - 1;
  nodes_.resize(nodes_.size() + inner, {std::numeric_limits<float>::infinity(), 0});
  leaves_.resize(leaves_.size() + inner + 1, 0.0F);
  for (const Shape::Placed& p : placed) {
    if (p.cut >= 0) {
      const auto cut = static_cast<std::size_t>(p.cut);
      nodes_[tree.first_node + p.position - 1] = {e.cut_value[cut], e.cut_feature[cut]};
      continue;
    }
    // All places below a leaf get its value.
    std::size_t first = p.position, count = 1;
    while (first <= inner) {
      first *= 2;
      count *= 2;
    }
    const auto value = static_cast<float>(p.leaf * e.leaf_scale);
    for (std::size_t i = 0; i < count; ++i) leaves_[tree.first_leaf + first - inner - 1 + i] = value;
  }
  trees_.push_back(tree);
  return Ok{};
}

float GradientTrees::sum_of(const float* row) const {
  // Several trees at once, so that their chains of loads overlap.
  constexpr std::size_t kTogether = 8;
  std::array<std::uint32_t, kTogether> at;
  float sum = 0;
  for (std::size_t first = 0; first < trees_.size(); first += kTogether) {
    const std::size_t n = std::min(kTogether, trees_.size() - first);
    const Tree* trees = trees_.data() + first;
    int depth = 0;
    for (std::size_t i = 0; i < n; ++i) depth = std::max(depth, trees[i].depth);
    std::fill_n(at.begin(), n, 1U);
    for (int level = 0; level < depth; ++level) {
      for (std::size_t i = 0; i < n; ++i) {
        if (level >= trees[i].depth) continue;
        const Node node = nodes_[trees[i].first_node - 1 + at[i]];
        at[i] = 2 * at[i] + static_cast<std::uint32_t>(row[node.feature] >= node.cut);
      }
    }
    for (std::size_t i = 0; i < n; ++i)
      sum += leaves_[trees[i].first_leaf + at[i] - (1U << static_cast<unsigned>(trees[i].depth))];
  }
  return sum;
}

void GradientTrees::add(std::span<const float> rows, std::size_t stride, double weight,
                        std::span<double> sums) const {
  std::array<std::uint32_t, kRowsAtOnce> at;
  std::array<float, kRowsAtOnce> block_sums;
  for (std::size_t begin = 0; begin < sums.size(); begin += kRowsAtOnce) {
    const std::size_t n = std::min(kRowsAtOnce, sums.size() - begin);
    const float* block = rows.data() + begin * stride;
    if (n == 1) {
      sums[begin] += weight * static_cast<double>(sum_of(block));
      continue;
    }
    std::fill_n(block_sums.begin(), n, 0.0F);
    for (const Tree& tree : trees_) {
      // Positions start at 1, so that no addition is needed on the way down.
      const Node* nodes = nodes_.data() + tree.first_node - 1;
      const float* leaves = leaves_.data() + tree.first_leaf;
      const std::uint32_t first_leaf = 1U << static_cast<unsigned>(tree.depth);
      std::fill_n(at.begin(), n, 1U);
      for (int level = 0; level < tree.depth; ++level) {
        for (std::size_t i = 0; i < n; ++i) {
          const Node node = nodes[at[i]];
          at[i] = 2 * at[i] + static_cast<std::uint32_t>(block[i * stride + node.feature] >= node.cut);
        }
      }
      for (std::size_t i = 0; i < n; ++i) block_sums[i] += leaves[at[i] - first_leaf];
    }
    for (std::size_t i = 0; i < n; ++i) sums[begin + i] += weight * static_cast<double>(block_sums[i]);
  }
}

Result<GradientTrees> GradientTrees::read(const JsonValue& value, std::size_t n_features) {
  EncodedTrees encoded;
  STEPCAST_ASSIGN(const std::vector<std::int32_t> features, whole_numbers(value, "cut_feature"));
  STEPCAST_ASSIGN(const std::vector<double> cuts, finite_numbers(value, "cut_value"));
  STEPCAST_ASSIGN(const std::vector<std::int32_t> nodes, whole_numbers(value, "nodes"));
  for (const std::int32_t node : nodes) {
    const bool is_leaf = node % 2 != 0;
    if (!is_leaf && node < 0) return Error{fmt::format("`nodes` holds {}", node)};
    encoded.splits.push_back(is_leaf ? -1 : node / 2);
    if (is_leaf) encoded.leaves.push_back((node - 1) / 2);
  }
  STEPCAST_ASSIGN(encoded.leaf_scale, finite_number(value, "leaf_scale"));
  for (const std::int32_t feature : features) {
    if (feature < 0 || feature >= 255) return Error{fmt::format("cut_feature holds {}", feature)};
    encoded.cut_feature.push_back(static_cast<std::uint8_t>(feature));
  }
  for (const double cut : cuts) encoded.cut_value.push_back(static_cast<float>(cut));
  return decode(std::move(encoded), n_features);
}

JsonValue GradientTrees::write() const {
  JsonValue value = JsonValue::object();
  value.add("leaf_scale", JsonValue{encoded_.leaf_scale});
  value.add("cut_feature",
            number_text(std::vector<std::int32_t>(encoded_.cut_feature.begin(), encoded_.cut_feature.end())));
  value.add("cut_value", number_text(encoded_.cut_value));
  std::vector<std::int32_t> nodes;
  std::size_t next_leaf = 0;
  for (const std::int32_t split : encoded_.splits)
    nodes.push_back(split >= 0 ? 2 * split : 2 * encoded_.leaves[next_leaf++] + 1);
  value.add("nodes", number_text(nodes));
  return value;
}

}  // namespace stepcast
