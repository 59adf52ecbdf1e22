#include "lab/kernel_folds.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "calibrate/kernel_rows.h"

namespace stepcast {
namespace {

constexpr double kLargestHiddenShare = 0.8;
constexpr double kLargestTenth = 0.9;

// Fisher-Yates with bits that do not depend on the standard library.
std::vector<int> shuffled_folds(std::size_t n, int n_folds, std::uint64_t seed) {
  std::vector<int> folds(n);
  for (std::size_t i = 0; i < n; ++i) folds[i] = static_cast<int>(i % static_cast<std::size_t>(n_folds));
  std::mt19937_64 random{seed};
  for (std::size_t i = n; i > 1; --i) std::swap(folds[i - 1], folds[random() % i]);
  return folds;
}

struct OperationHash {
  std::size_t operator()(const Operation& o) const { return hash_of(o); }
};

struct RowKey {
  Operation operation;
  std::string_view label;
  std::int64_t hidden_size = 0, sequence_length = 0;
  friend bool operator==(const RowKey&, const RowKey&) = default;
};
struct RowKeyHash {
  std::size_t operator()(const RowKey& k) const {
    std::size_t hash = hash_of(k.operation);
    for (const std::size_t part :
         {std::hash<std::string_view>{}(k.label), static_cast<std::size_t>(k.hidden_size),
          static_cast<std::size_t>(k.sequence_length)}) {
      hash = hash * 0x9e3779b97f4a7c15ULL + part;
    }
    return hash;
  }
};

// Rows of equal keys are one group; groups are numbered as they appear and dealt to the folds.
template <class Key, class Hash, class KeyOf>
KernelSplit split_groups(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed,
                         KeyOf key_of) {
  std::unordered_map<Key, std::size_t, Hash> groups;
  std::vector<std::size_t> group(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    group[i] = groups.emplace(key_of(rows[i]), groups.size()).first->second;
  const std::vector<int> folds = shuffled_folds(groups.size(), n_folds, seed);
  KernelSplit split{.n_folds = n_folds};
  for (const std::size_t g : group) split.fold.push_back(folds[g]);
  return split;
}

Operation without_direction(const KernelMeasurement& m) {
  Operation operation = m.operation;
  operation.direction = Direction::forward;
  return operation;
}

std::int64_t value_of(const KernelMeasurement& m, HeldOutValue value) {
  return value == HeldOutValue::hidden_size ? m.hidden_size : m.sequence_length;
}

}  // namespace

KernelSplit split_by_shape(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed) {
  return split_groups<Operation, OperationHash>(rows, n_folds, seed, without_direction);
}

KernelSplit split_by_row(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed) {
  return split_groups<RowKey, RowKeyHash>(rows, n_folds, seed, [](const KernelMeasurement& m) {
    return RowKey{without_direction(m), m.label, m.hidden_size, m.sequence_length};
  });
}

KernelSplit split_by_value(std::span<const KernelMeasurement> rows, HeldOutValue value, int n_folds,
                           std::uint64_t seed) {
  std::map<std::int64_t, int> fold_of;
  for (const KernelMeasurement& m : rows)
    if (value_of(m, value) > 0) fold_of.emplace(value_of(m, value), 0);
  const std::vector<int> folds = shuffled_folds(fold_of.size(), n_folds, seed);
  std::size_t i = 0;
  for (auto& [unused, fold] : fold_of) fold = folds[i++];
  KernelSplit split{.n_folds = n_folds};
  for (const KernelMeasurement& m : rows) {
    const auto found = fold_of.find(value_of(m, value));
    // With one value only there is nothing to fit to.
    split.fold.push_back(found == fold_of.end() || fold_of.size() < 2 ? kNotTested : found->second);
  }
  return split;
}

KernelSplit split_largest(std::span<const KernelMeasurement> rows) {
  using Set = std::tuple<std::string_view, std::string_view, Direction>;
  std::map<Set, std::int64_t> largest_hidden;
  const auto set_of = [](const KernelMeasurement& m) { return Set{m.gpu, m.label, m.operation.direction}; };
  for (const KernelMeasurement& m : rows) {
    std::int64_t& largest = largest_hidden[set_of(m)];
    largest = std::max(largest, m.hidden_size);
  }
  std::map<std::string, std::vector<double>> amounts;
  std::vector<std::string> key(rows.size());
  std::vector<double> amount(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (largest_hidden.at(set_of(rows[i])) > 0) continue;
    const Work work = work_of(rows[i].operation);
    amount[i] = work.matrix ? work.flops.value() : work.bytes().value();
    key[i] = kernel_record_key(rows[i].operation);
    amounts[key[i]].push_back(amount[i]);
  }
  std::map<std::string, double> limit;
  for (auto& [name, values] : amounts) {
    const auto at = static_cast<std::size_t>(kLargestTenth * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    limit[name] = values[at];
  }
  KernelSplit split{.n_folds = 1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t hidden = largest_hidden.at(set_of(rows[i]));
    const bool tested = hidden > 0 ? static_cast<double>(rows[i].hidden_size) >
                                         kLargestHiddenShare * static_cast<double>(hidden)
                                   : amount[i] > limit.at(key[i]);
    split.fold.push_back(tested ? 0 : kNotTested);
  }
  return split;
}

}  // namespace stepcast
