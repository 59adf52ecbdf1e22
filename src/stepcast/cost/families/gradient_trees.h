// An ensemble of regression trees on flat arrays. Trained elsewhere (calibrate/boosting); here it is parsed,
// checked and evaluated.
//
// A record has the trees one after another, each as its nodes in preorder. An even node 2 c splits at cut c
// (feature < value: the left child follows, then the right one); an odd node 2 v + 1 is a leaf with the value
// v times `leaf_scale`. There are no child pointers that could be wrong; a list that ends early or late is an
// error.
//
//   "cut_feature": "0 3", "cut_value": "7.5 2.25", "nodes": "2 -23 0 11 81", "leaf_scale": 1e-4
//   x[3] < 2.25 ? -0.0012 : x[0] < 7.5 ? 0.0005 : 0.004
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Trees as they are stored.
struct EncodedTrees {
  std::vector<std::uint8_t> cut_feature;  // of each cut
  std::vector<float> cut_value;           // of each cut
  std::vector<std::int32_t> splits;       // index of the cut, over all trees; -1: a leaf
  std::vector<std::int32_t> leaves;       // values in parts of leaf_scale, in the same order
  double leaf_scale = 1e-4;
};

// Trees as they are evaluated.
class GradientTrees {
 public:
  static constexpr int kMostDepth = 10;
  static constexpr std::size_t kMostTrees = 2000;

  // Errors: a tree without an end, a cut that does not exist, surplus leaves, a feature >= n_features, a tree
  // deeper than kMostDepth, more than kMostTrees trees.
  [[nodiscard]] static Result<GradientTrees> decode(EncodedTrees encoded, std::size_t n_features);
  [[nodiscard]] static Result<GradientTrees> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * (sum of all trees at row i). Row i starts at rows[i * stride]. O(trees * depth) per
  // row.
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

  [[nodiscard]] std::size_t size() const { return trees_.size(); }

 private:
  // Padded to a complete binary tree: 2^depth - 1 nodes, 2^depth leaves. Padding nodes send every row to the
  // left.
  struct Tree {
    int depth = 0;
    std::size_t first_node = 0, first_leaf = 0;
  };
  // Goes right if the feature is at least `cut`.
  struct Node {
    float cut;
    std::uint32_t feature;
  };
  // The sum of all trees for one row.
  [[nodiscard]] float sum_of(const float* row) const;
  // Workspace of decode_tree(): the nodes of one tree are collected first, since their places depend on the
  // depth.
  struct Shape {
    struct Placed {
      std::int32_t cut;  // -1: leaf
      std::int32_t leaf;
      std::uint32_t position;  // 1 is the root, children of p are 2p and 2p + 1
    };
    std::vector<Placed> placed;
    std::vector<std::uint32_t> open;  // positions with a missing node, next one last
  };
  // Decodes the next tree and advances both positions. Errors as of decode().
  Status decode_tree(std::size_t& next_split, std::size_t& next_leaf, std::size_t n_features, Shape& shape);

  EncodedTrees encoded_;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::vector<float> leaves_;
};

}  // namespace stepcast
