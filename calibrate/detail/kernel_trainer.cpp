#include "calibrate/detail/kernel_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "stepcast/base/statistics.h"
#include "stepcast/base/stop.h"
#include "stepcast/cost/families/record_numbers.h"

#include "calibrate/detail/family_fit.h"
#include "calibrate/detail/gaussian_process_training.h"
#include "calibrate/detail/tree_training.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kFolds = 3;
// Least numbers of shapes: below the first, only the constants of the reference are fitted; the others enable processes over
// sizes and trees.
constexpr std::size_t kLeastForProcess = 4, kLeastForLearning = 12, kLeastForTrees = 40,
                      kLeastForManyTrees = 2000;
// Below this number of shapes, larger sets of trees with a lower learning rate are candidates, too.
constexpr std::size_t kFewForTrees = 500;
// A costlier correction must reduce the error to this share. A candidate that also knows the measured shapes may be worse by
// up to kNoWorse, because held-out errors do not show that advantage.
constexpr double kWorthIt = 0.97, kNoWorse = 1.1;
constexpr double kLeafScale = 1e-4;
constexpr std::size_t kMostKnotsOfBand = 6, kLeastRowsPerKnot = 60;
// Share of rows with the largest shapes. They are held out to measure errors outside of the measured sizes.
constexpr double kOuterShell = 0.2;
constexpr double kErrorFloor = 4e-4;  // of the geometric mean error, as in the publication

// Rows with the same shape form one point, weighted by their number.
struct Points {
  std::vector<const Operation*> operations;
  std::vector<double> log_us;       // median
  std::vector<float> weight;        // number of rows
  std::vector<double> model_size;   // the minimum of the rows
  std::vector<std::size_t> of_row;  // index of the point of each row
};

Points join_shapes(const KernelRows& rows) {
  struct Hash {
    std::size_t operator()(const Operation* o) const { return hash_of(*o); }
  };
  struct Equal {
    bool operator()(const Operation* a, const Operation* b) const { return *a == *b; }
  };
  Points points;
  std::unordered_map<const Operation*, std::size_t, Hash, Equal> index;
  std::vector<std::vector<double>> times;
  for (std::size_t i = 0; i < rows.operations.size(); ++i) {
    const auto [entry, is_new] = index.try_emplace(rows.operations[i], points.operations.size());
    if (is_new) {
      points.operations.push_back(rows.operations[i]);
      points.model_size.push_back(rows.model_size[i]);
      times.emplace_back();
    }
    times[entry->second].push_back(rows.log_us[i]);
    points.model_size[entry->second] = std::min(points.model_size[entry->second], rows.model_size[i]);
    points.of_row.push_back(entry->second);
  }
  for (std::vector<double>& t : times) {
    points.weight.push_back(static_cast<float>(t.size()));
    points.log_us.push_back(median(std::move(t)));
  }
  return points;
}

// Features of all points and the targets to learn.
struct Table {
  std::size_t n_features = 0;
  std::vector<float> x;  // point by point
  std::vector<float> target;
  std::vector<float> weight;

  [[nodiscard]] Table rows(std::span<const std::size_t> chosen) const {
    Table out{.n_features = n_features};
    for (const std::size_t i : chosen) {
      out.x.insert(out.x.end(), x.begin() + static_cast<std::ptrdiff_t>(i * n_features),
                   x.begin() + static_cast<std::ptrdiff_t>((i + 1) * n_features));
      out.target.push_back(target[i]);
      out.weight.push_back(weight[i]);
    }
    return out;
  }
};

using Learner = std::function<Result<std::vector<Correction>>(const Table&)>;
struct Candidate {
  std::string name;
  Learner learn;
  // Earlier candidates that this one averages. Its error follows from theirs without any training.
  std::vector<std::size_t> mean_of = {};
  bool knows_its_points = false;
};

Learner tree_learner(BoosterOptions options) {
  return [options](const Table& t) -> Result<std::vector<Correction>> {
    STEPCAST_ASSIGN(EncodedTrees trees, train_trees(t.x, t.n_features, t.target, t.weight, options));
    STEPCAST_ASSIGN(
        GradientTrees decoded,
        GradientTrees::decode(shortened(std::move(trees), t.x, t.n_features, kLeafScale), t.n_features));
    std::vector<Correction> out;
    out.push_back({1, std::move(decoded)});
    return out;
  };
}

Learner process_learner(KernelFeatureSet set, ProcessOver over) {
  return [set, over](const Table& t) -> Result<std::vector<Correction>> {
    std::vector<Correction> out;
    STEPCAST_ASSIGN(
        GaussianProcess process,
        GaussianProcess::make(train_gaussian_process(set, over, t.x, t.target, t.weight), t.n_features));
    out.push_back({1, std::move(process)});
    return out;
  };
}

// The mean of two learners.
Learner blend(Learner a, Learner b) {
  return [a = std::move(a), b = std::move(b)](const Table& t) -> Result<std::vector<Correction>> {
    STEPCAST_ASSIGN(std::vector<Correction> out, a(t));
    STEPCAST_ASSIGN(std::vector<Correction> second, b(t));
    for (Correction& correction : second) out.push_back(std::move(correction));
    for (Correction& correction : out) correction.weight *= 0.5;
    return out;
  };
}

std::vector<Candidate> candidates_for(KernelFeatureSet set, std::size_t n_points, std::uint64_t seed) {
  std::vector<Candidate> all;
  all.push_back({"reference",
                 [](const Table&) -> Result<std::vector<Correction>> { return std::vector<Correction>{}; }});
  if (n_points < kLeastForProcess) return all;
  const auto add_process = [&](std::string name, ProcessOver over, bool knows_its_points) {
    all.push_back({std::move(name), process_learner(set, over), {}, knows_its_points});
  };
  if (n_points <= kMostForProcess) add_process("gaussian process", ProcessOver::shapes, true);
  if (n_points < kLeastForLearning) return all;
  const bool by_sizes = set == KernelFeatureSet::rows || set == KernelFeatureSet::elements;
  if (by_sizes && n_points <= kMostForSizes) add_process("process over sizes", ProcessOver::sizes, false);
  if (n_points < kLeastForTrees || !why_no_trees().empty()) return all;
  const auto tree_seed = static_cast<std::uint32_t>(seed & 0x7fffffffU);
  const Learner small = tree_learner({.rounds = 60, .depth = 4, .learning_rate = 0.15, .seed = tree_seed});
  // Attention times vary more between shapes than GEMM times, and similarly on all devices of a generation.
  const bool attention = set == KernelFeatureSet::attention && n_points >= kLeastForManyTrees;
  const Learner large = tree_learner({.rounds = attention ? 160 : 64,
                                      .depth = 6,
                                      .learning_rate = attention ? 0.16 : 0.18,
                                      .seed = tree_seed});
  const std::size_t process = all.size() - 1;  // or the reference
  const bool few = n_points <= kFewForTrees;
  const Learner slow = tree_learner({.rounds = 150, .depth = 4, .learning_rate = 0.08, .seed = tree_seed});
  if (few) all.push_back({"trees on ratio, slow", slow, {}});
  all.push_back({"trees on ratio, small", small, {}});
  all.push_back({"trees on ratio", large, {}});
  if (few && process > 0)
    all.push_back({"process and trees", blend(all[process].learn, slow), {process, process + 1}});
  return all;
}

std::vector<double> predictions(const std::vector<Correction>& corrections, const Table& t) {
  std::vector<double> out(t.target.size(), 0.0);
  for (const Correction& c : corrections)
    std::visit([&](const auto& learned) { learned.add(t.x, t.n_features, c.weight, out); }, c.learned);
  return out;
}

struct Errors {
  double mape = 0, gmae = 0;
};

// `residual`: ln(measured / predicted)
Errors errors_of(const std::vector<double>& residual) {
  Errors out;
  for (const double r : residual) {
    const double ape = std::abs(std::exp(-r) - 1);
    out.mape += ape;
    out.gmae += std::log(ape + kErrorFloor);
  }
  const double n = static_cast<double>(std::max<std::size_t>(residual.size(), 1));
  out.mape = out.mape / n * 100;
  out.gmae = std::exp(out.gmae / n) * 100;
  return out;
}

void fit_band(ResidualBand& band, const std::vector<double>& log_predicted,
              const std::vector<double>& residual) {
  std::vector<std::size_t> order(residual.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return log_predicted[a] < log_predicted[b]; });
  const std::size_t n = order.size();
  const std::size_t knots = std::clamp<std::size_t>(n / kLeastRowsPerKnot, 1, kMostKnotsOfBand);
  for (std::size_t k = 0; k < knots; ++k) {
    const std::size_t begin = k * n / knots, end = (k + 1) * n / knots;
    std::vector<double> part;
    for (std::size_t i = begin; i < end; ++i) part.push_back(residual[order[i]]);
    std::ranges::sort(part);
    const double at = rounded(log_predicted[order[(begin + end) / 2]], 6);
    if (!band.log_time.empty() && at <= band.log_time.back()) continue;
    band.log_time.push_back(at);
    band.low.push_back(rounded(std::min(future_quantile(part, 0.1), -1e-4), 4));
    band.high.push_back(rounded(std::max(future_quantile(part, 0.9), 1e-4), 4));
  }
}

// Sets the range and the typical values of the features, and replaces unknown features by typical values.
void fit_range(FittedKernel& kernel, Table& t) {
  const std::size_t n = t.target.size();
  for (std::size_t f = 0; f < t.n_features; ++f) {
    std::vector<double> known;
    for (std::size_t i = 0; i < n; ++i) {
      const float x = t.x[i * t.n_features + f];
      if (!std::isnan(x)) known.push_back(static_cast<double>(x));
    }
    const auto typical = static_cast<float>(rounded(median(known), 5));
    float low = typical, high = typical;
    for (std::size_t i = 0; i < n; ++i) {
      float& x = t.x[i * t.n_features + f];
      if (std::isnan(x)) x = typical;
      low = std::min(low, x);
      high = std::max(high, x);
    }
    kernel.typical.push_back(typical);
    kernel.low.push_back(low);
    kernel.high.push_back(high);
  }
}

// Folds such that all points of one model size share a fold; empty if the rows do not state the model size.
std::vector<std::size_t> folds_of_model_sizes(const std::vector<double>& model_size) {
  std::vector<double> distinct = model_size;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() < 2 * kFolds || distinct.front() <= 0) return {};
  std::vector<std::size_t> folds;
  for (const double size : model_size) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), size) - distinct.begin();
    folds.push_back(static_cast<std::size_t>(at) % kFolds);
  }
  return folds;
}

// Holds out the points of the largest models, or the longest if models are not known, to measure the error of the chosen
// learner outside of the measured range.
Status fit_outside(ResidualBand& band, KernelFeatureSet kernel_features, const Learner& learn, const Table& t,
                   const Points& points) {
  const std::size_t n = t.target.size();
  std::vector<double> size = points.model_size;
  std::vector<double> distinct = size;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() < 4 || distinct.front() <= 0) size = points.log_us;
  std::vector<double> sorted = size;
  std::ranges::sort(sorted);
  const double limit = sorted[static_cast<std::size_t>((1 - kOuterShell) * static_cast<double>(n))];
  std::vector<std::size_t> train, test;
  for (std::size_t i = 0; i < n; ++i) (size[i] >= limit ? test : train).push_back(i);
  const double in_low = *std::ranges::min_element(band.low);
  const double in_high = *std::ranges::max_element(band.high);
  band.outside_low = in_low;
  band.outside_high = in_high;
  band.outside_distance = 0.3;
  if (train.size() < kLeastForLearning || test.size() < kLeastForLearning) {
    // Without points outside, the band is twice as wide.
    band.outside_low *= 2;
    band.outside_high *= 2;
    return Ok{};
  }
  STEPCAST_ASSIGN(const std::vector<Correction> corrections, learn(t.rows(train)));
  // Features are clamped as in later use.
  Table outer = t.rows(test);
  const Table inner = t.rows(train);
  const std::span<const KernelFeature> names = kernel_features_of(kernel_features);
  std::vector<float> distance(test.size(), 0.0F);
  for (std::size_t f = 0; f < t.n_features; ++f) {
    float low = inner.x[f], high = inner.x[f];
    for (std::size_t i = 0; i < train.size(); ++i) {
      low = std::min(low, inner.x[i * t.n_features + f]);
      high = std::max(high, inner.x[i * t.n_features + f]);
    }
    for (std::size_t i = 0; i < test.size(); ++i) {
      float& x = outer.x[i * t.n_features + f];
      const float clamped = std::clamp(x, low, high);
      if (names[f].is_size) distance[i] = std::max(distance[i], std::abs(x - clamped));
      x = clamped;
    }
  }
  std::erase_if(distance, [](float d) { return d <= 0; });
  if (!distance.empty()) {
    std::ranges::sort(distance);
    band.outside_distance =
        std::clamp(rounded(static_cast<double>(distance[distance.size() / 4]), 3), 0.03, 0.5);
  }
  const std::vector<double> predicted = predictions(corrections, outer);
  std::vector<double> residual;
  for (std::size_t i = 0; i < test.size(); ++i)
    residual.push_back(static_cast<double>(t.target[test[i]]) - predicted[i]);
  std::ranges::sort(residual);
  band.outside_low = rounded(std::min(future_quantile(residual, 0.1), in_low), 4);
  band.outside_high = rounded(std::max(future_quantile(residual, 0.9), in_high), 4);
  return Ok{};
}

// The closed form to correct, and the rows that it describes.
FittedKernel uncorrected(const KernelRows& rows, const Points& points, const Device& device,
                         std::uint64_t seed) {
  const Operation& example = *points.operations.front();
  FittedKernel kernel;
  kernel.family = rows.family;
  kernel.dtype = example.dtype;
  kernel.direction = example.direction;
  kernel.sustained = rows.sustained;
  kernel.cold = rows.cold;
  kernel.features = kernel_feature_set_of(example);
  const bool matrix = kernel.features == KernelFeatureSet::matrix ||
                      kernel.features == KernelFeatureSet::attention ||
                      kernel.features == KernelFeatureSet::convolution;
  kernel.reference = fit_reference(points.operations, points.log_us,
                                   reference_of_device(device, example.dtype, matrix), seed);
  for (double* constant :
       {&kernel.reference.compute_factor, &kernel.reference.memory_factor, &kernel.reference.floor_us,
        &kernel.reference.sharpness, &kernel.reference.tile_cost, &kernel.reference.depth_cost,
        &kernel.reference.unit_us, &kernel.reference.chain_us})
    *constant = rounded(*constant, 6);
  for (const Operation* operation : points.operations) {
    const auto* attention = std::get_if<AttentionShape>(&operation->shape);
    if (attention == nullptr) break;
    auto& known = kernel.attention_kernels;
    if (std::ranges::find(known, attention->kernel) == known.end()) known.push_back(attention->kernel);
  }
  return kernel;
}

// Input of the corrections: features, and the error of the closed form.
struct Task {
  const KernelRows& rows;
  Points points;
  Table table{};
  std::vector<double> log_form{};  // [point] the closed form with the kernel's offset
};

// If all rows have one kind of mask, the number of queries repeats the length. With another mask the two differ, so the
// feature is not used.
void forget_queries(KernelFeatureSet set, Table& table) {
  if (set != KernelFeatureSet::attention) return;
  const std::span<const KernelFeature> names = kernel_features_of(set);
  const auto place = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(names, name, &KernelFeature::name) - names.begin());
  };
  const std::size_t queries = place("log_queries"), causal = place("causal"), window = place("log_window");
  const std::size_t n = table.x.size() / table.n_features;
  const auto at = [&](std::size_t row, std::size_t f) -> float& {
    return table.x[row * table.n_features + f];
  };
  for (std::size_t row = 1; row < n; ++row)
    if (at(row, causal) != at(0, causal) || at(row, window) != at(0, window)) return;
  for (std::size_t row = 1; row < n; ++row) at(row, queries) = at(0, queries);
}

// Fills the table and the predictions in `kernel` for all points; its middle excludes points with `fold_of` equal to `left_out`.
void fill_table(FittedKernel& kernel, Task& task, const std::vector<std::size_t>& fold_of = {},
                std::size_t left_out = kFolds) {
  const Points& points = task.points;
  const std::size_t n = points.operations.size();
  Table& table = task.table;
  table.n_features = kernel_features_of(kernel.features).size();
  task.log_form.resize(n);
  std::vector<double> residual(n), of_middle;
  for (std::size_t i = 0; i < n; ++i) {
    std::array<float, kMostKernelFeatures> features{};
    kernel.prepare(*points.operations[i], features, task.log_form[i]);
    table.x.insert(table.x.end(), features.begin(),
                   features.begin() + static_cast<std::ptrdiff_t>(table.n_features));
    residual[i] = points.log_us[i] - task.log_form[i];
    if (left_out == kFolds || fold_of[i] != left_out) of_middle.push_back(residual[i]);
  }
  // The middle of few points is uncertain.
  const auto n_middle = static_cast<double>(of_middle.size());
  kernel.log_offset = rounded(median(std::move(of_middle)) * n_middle / (n_middle + 2), 6);
  for (std::size_t i = 0; i < n; ++i) {
    table.target.push_back(static_cast<float>(residual[i] - kernel.log_offset));
    task.log_form[i] += kernel.log_offset;
  }
  table.weight = points.weight;
  forget_queries(kernel.features, table);
  fit_range(kernel, table);
  if (kernel.features == KernelFeatureSet::matrix) {
    for (std::size_t i = 0; i < n; ++i) {
      const double rate = work_of(*points.operations[i]).flops.value() / std::exp(points.log_us[i]);
      kernel.fastest_flops_per_us = std::max(kernel.fastest_flops_per_us, rate);
    }
  }
  kernel.measured_values = MeasuredValues::of_rows(kernel.features, table.x, table.weight);
}

std::vector<std::size_t> random_folds(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> fold_of(n);
  std::mt19937_64 random{seed};
  std::iota(fold_of.begin(), fold_of.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(fold_of[i - 1], fold_of[random() % i]);
  for (std::size_t& fold : fold_of) fold %= kFolds;
  return fold_of;
}

// The targets with each fold left out. Few points are closer to constants fitted to them than to constants fitted without
// them. Many points are not, and use the same fit for all folds.
std::vector<Task> tasks_without(const Task& task, const Device& device, std::uint64_t seed,
                                const std::vector<std::size_t>& fold_of) {
  std::vector<Task> out;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    Points others;
    for (std::size_t i = 0; i < fold_of.size(); ++i) {
      if (fold_of[i] == fold) continue;
      others.operations.push_back(task.points.operations[i]);
      others.log_us.push_back(task.points.log_us[i]);
    }
    if (fold_of.size() > kMostForProcess || others.log_us.empty()) {
      out.push_back(task);
      continue;
    }
    Task& part = out.emplace_back(Task{task.rows, task.points});
    FittedKernel kernel = uncorrected(task.rows, others, device, seed);
    fill_table(kernel, part, fold_of, fold);
  }
  return out;
}

// ln(predicted us) of all points, each by a model trained without it.
Result<std::vector<double>> held_out(const Learner& learn, const std::vector<Task>& without,
                                     const std::vector<std::size_t>& fold_of) {
  std::vector<double> out(fold_of.size(), 0.0);
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    STEPCAST_TRY(not_stopped());
    std::vector<std::size_t> train, test;
    for (std::size_t i = 0; i < fold_of.size(); ++i) (fold_of[i] == fold ? test : train).push_back(i);
    const Task& task = without[fold];
    STEPCAST_ASSIGN(const std::vector<Correction> corrections, learn(task.table.rows(train)));
    const std::vector<double> predicted = predictions(corrections, task.table.rows(test));
    for (std::size_t i = 0; i < test.size(); ++i) out[test[i]] = task.log_form[test[i]] + predicted[i];
  }
  return out;
}

// Forecasts of held-out rows.
struct HeldOutRows {
  std::vector<double> log_predicted, residual;

  // `log_us`: [point].
  void add(const Task& task, const std::vector<double>& log_us) {
    for (std::size_t row = 0; row < task.points.of_row.size(); ++row) {
      const std::size_t i = task.points.of_row[row];
      log_predicted.push_back(log_us[i]);
      residual.push_back(task.rows.log_us[row] - log_predicted.back());
    }
  }
};

// The candidate with the least error on held-out rows, these rows, and the errors of all candidates.
struct Choice {
  Candidate candidate;
  HeldOutRows rows;
};
Result<Choice> best_candidate(const std::vector<Candidate>& candidates, const Task& task,
                              const Device& device, std::uint64_t seed, KernelFitNote& note) {
  const std::size_t n = task.points.operations.size();
  const std::vector<std::size_t> fold_of = random_folds(n, seed);
  const std::vector<Task> without = tasks_without(task, device, seed, fold_of);
  Choice best{candidates.front(), {}};
  Errors best_errors;
  std::vector<std::vector<double>> forecasts;  // of held-out points, by candidate
  for (const Candidate& candidate : candidates) {
    std::vector<double> log_us(n, 0.0);
    if (candidate.mean_of.empty()) {
      STEPCAST_ASSIGN(log_us, held_out(candidate.learn, without, fold_of));
    }
    for (const std::size_t part : candidate.mean_of)
      for (std::size_t i = 0; i < n; ++i)
        log_us[i] += forecasts[part][i] / static_cast<double>(candidate.mean_of.size());
    HeldOutRows rows;
    rows.add(task, log_us);
    forecasts.push_back(std::move(log_us));
    const Errors errors = errors_of(rows.residual);
    note.candidates.push_back({candidate.name, errors.gmae, errors.mape});
    const double wanted = candidate.knows_its_points ? kNoWorse : kWorthIt;
    const bool better = errors.mape + errors.gmae < wanted * (best_errors.mape + best_errors.gmae);
    if (!best.rows.residual.empty() && !better) continue;
    best = {candidate, std::move(rows)};
    best_errors = errors;
  }
  return best;
}

}  // namespace

Result<TrainedKernel> train_kernel(const KernelRows& rows, const Device& device, std::uint64_t seed) {
  Task task{rows, join_shapes(rows)};
  const std::size_t n = task.points.operations.size();
  TrainedKernel out{.kernel = uncorrected(rows, task.points, device, seed)};
  FittedKernel& kernel = out.kernel;
  fill_table(kernel, task);
  STEPCAST_ASSIGN(Choice chosen,
                  best_candidate(candidates_for(kernel.features, n, seed), task, device, seed, out.note));
  const Learner& learn = chosen.candidate.learn;
  STEPCAST_ASSIGN(std::vector<Correction> corrections, learn(task.table));
  kernel.correct_with(std::move(corrections));
  // Shapes without measured neighbours have larger errors than shapes between neighbours: the band covers both.
  const std::vector<std::size_t> folds = folds_of_model_sizes(task.points.model_size);
  if (!folds.empty()) {
    STEPCAST_ASSIGN(const std::vector<double> log_us,
                    held_out(learn, tasks_without(task, device, seed, folds), folds));
    chosen.rows.add(task, log_us);
  }
  fit_band(kernel.band, chosen.rows.log_predicted, chosen.rows.residual);
  STEPCAST_TRY(fit_outside(kernel.band, kernel.features, learn, task.table, task.points));
  out.note.record = kernel_record_name(kernel.family, kernel.dtype, kernel.direction);
  out.note.n_rows = rows.operations.size();
  out.note.chosen = chosen.candidate.name;
  return out;
}

}  // namespace stepcast::detail
