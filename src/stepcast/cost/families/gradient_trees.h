// An ensemble of regression trees on flat arrays. Trained elsewhere (calibrate/boosting); here it is read,
// checked and evaluated.
//
// In a record the trees stand one after another, each as its nodes in preorder. An even node 2 c splits at
// cut c (feature < value: the left child follows, then the right one), an odd one 2 v + 1 is a leaf of value
// v times `leaf_scale`. So there are no child pointers that could be wrong; a list that ends early or late is
// an error.
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

struct EncodedTrees {
  std::vector<std::uint8_t> cut_feature;
  std::vector<float> cut_value;
  std::vector<std::int32_t> splits;  // of all trees; -1: a leaf
  std::vector<std::int32_t> leaves;  // in the same order
  double leaf_scale = 1e-4;
};

class GradientTrees {
 public:
  static constexpr int kMostDepth = 10;
  static constexpr std::size_t kMostTrees = 2000;

  // Errors: a tree without end, a cut that is not there, leaves left over, a feature >= n_features.
  [[nodiscard]] static Result<GradientTrees> decode(EncodedTrees encoded, std::size_t n_features);
  [[nodiscard]] static Result<GradientTrees> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * (sum of all trees at row i). Row i starts at rows[i * stride].
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

  [[nodiscard]] std::size_t size() const { return trees_.size(); }

 private:
  // Filled up to a complete binary tree: 2^depth - 1 nodes, 2^depth leaves. Missing nodes send every row to
  // the left.
  struct Tree {
    int depth = 0;
    std::size_t first_node = 0, first_leaf = 0;
  };
  struct Node {
    float cut;
    std::uint32_t feature;
  };
  // The sum for one row.
  [[nodiscard]] float sum_of(const float* row) const;
  // Of the tree that is decoded: first its shape, to know the depth; then the nodes go to their places.
  struct Shape {
    struct Placed {
      std::int32_t cut;  // -1: leaf
      std::int32_t leaf;
      std::uint32_t position;  // 1 is the root, children of p are 2p and 2p + 1
    };
    std::vector<Placed> placed;
    std::vector<std::uint32_t> open;  // positions whose node comes next, last first
  };
  Status decode_tree(std::size_t& next_split, std::size_t& next_leaf, std::size_t n_features, Shape& shape);

  EncodedTrees encoded_;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::vector<float> leaves_;
};

}  // namespace stepcast
