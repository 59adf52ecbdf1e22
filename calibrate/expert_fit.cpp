#include "calibrate/expert_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "calibrate/detail/minimization.h"
#include "calibrate/detail/tree_training.h"

namespace stepcast {
namespace {

// More rows than this add no information; they are thinned evenly.
constexpr std::size_t kMostRows = 400;
// Weights of the prior of parameters that rows do not determine: per squared distance in ln.
constexpr double kPrior = 0.001, kNetworkPrior = 0.02;
// Learned corrections: least rows for any correction, largest learned error, resolution of leaves, and number of parts of the
// models; one part is held out for the band.
constexpr std::size_t kLeastLayers = 200;
constexpr double kMostLearned = 1, kLayerLeafScale = 4e-3;
constexpr std::size_t kLayerFolds = 4;
// Rows over several nodes are few and get this weight.
constexpr double kWeightOfNodes = 3;
// Tokens per expert. Layers with fewer are ignored for the band.
constexpr double kTokensOfTraining = 128;
// Dispatch was measured with tokens in fp8, combine in 16 bit.
constexpr double kDispatchBytes = 1, kCombineBytes = 2;
constexpr std::int64_t kGpusOfNode = 8;
// Copies by an SM for data to another node, in addition to its copies inside nodes: once for dispatch, twice for combine, which
// sums up on both sides (DeepEP, internode.cu). Assumed for rows without this value.
constexpr double kCopiesOfDispatch = 1, kCopiesOfCombine = 2;

template <class Row>
std::vector<const Row*> thinned(std::vector<const Row*> rows) {
  if (rows.size() <= kMostRows) return rows;
  const std::size_t stride = (rows.size() + kMostRows - 1) / kMostRows;
  std::vector<const Row*> out;
  for (std::size_t i = 0; i < rows.size(); i += stride) out.push_back(rows[i]);
  return out;
}

// A parameter of the search: its logarithm, within bounds, from `start`.
template <class Rates>
struct Searched {
  double Rates::*member;
  double start, low, high;
};

constexpr Searched<ExpertRates> kLayerSearch[] = {
    {&ExpertRates::startup_us, 30, 0.5, 400},    {&ExpertRates::arithmetic_share, 0.8, 0.1, 2},
    {&ExpertRates::memory_share, 0.8, 0.2, 1.2}, {&ExpertRates::fill_depth, 300, 4, 4000},
    {&ExpertRates::tile_rows, 30, 1e-3, 400},    {&ExpertRates::movement_factor, 1.3, 0.3, 10},
    {&ExpertRates::per_expert_us, 0.1, 1e-3, 5},
};

constexpr Searched<ExchangeRates> kExchangeSearch[] = {
    {&ExchangeRates::startup_us, 35, 5, 200},       {&ExchangeRates::token_us, 0.1, 1e-3, 3},
    {&ExchangeRates::own_copies, 0.5, 0.01, 5},     {&ExchangeRates::sm_GBps, 33, 2, 200},
    {&ExchangeRates::link_share, 0.7, 0.2, 1.1},    {&ExchangeRates::sharpness, 3, 2, 8},
    {&ExchangeRates::network_share, 0.9, 0.3, 1.1}, {&ExchangeRates::far_congestion, 1.3, 1, 4},
    {&ExchangeRates::network_sm_GBps, 33, 2, 1000}, {&ExchangeRates::startup_per_node, 0.8, 0.01, 4},
};

template <class Rates>
Rates to_rates(std::span<const Searched<Rates>> searched, std::span<const double> logs, Rates rates) {
  for (std::size_t i = 0; i < searched.size(); ++i) rates.*searched[i].member = std::exp(logs[i]);
  return rates;
}

// The rates with the least `loss`, a function of the logarithms of the parameters.
template <class Rates>
Rates search(std::span<const Searched<Rates>> searched, const Rates& rates,
             const std::function<double(std::span<const double>)>& loss) {
  std::vector<double> logs;
  detail::SimplexSearch simplex;
  for (const Searched<Rates>& one : searched) {
    logs.push_back(std::log(one.start));
    simplex.low.push_back(std::log(one.low));
    simplex.high.push_back(std::log(one.high));
  }
  simplex.max_evaluations = 700;
  simplex.value = loss;
  for (const double step : {0.5, -0.4, 0.3}) {
    simplex.step.assign(logs.size(), step);
    simplex.minimise(logs);
  }
  return to_rates(searched, logs, rates);
}

std::pair<double, double> band_of(std::vector<double> log_errors) {
  if (log_errors.size() < 5) return {-0.2, 0.2};
  std::ranges::sort(log_errors);
  const auto at = [&](double q) {
    return log_errors[static_cast<std::size_t>(q * static_cast<double>(log_errors.size() - 1))];
  };
  return {std::min(at(0.1), 0.0), std::max(at(0.9), 0.0)};
}

double squared(double x) { return x * x; }

ExpertLayer work_of(const MeasuredExpertLayer& layer) {
  const auto tokens = static_cast<double>(layer.tokens), ranks = static_cast<double>(layer.expert_parallel);
  ExpertLayer work{.tokens = tokens,
                   .hidden_size = static_cast<double>(layer.hidden_size),
                   .expert_ffn_size = std::ceil(static_cast<double>(layer.expert_ffn_size) /
                                                static_cast<double>(layer.expert_tensor_parallel)),
                   .experts_per_token = static_cast<double>(layer.top_k),
                   .local_experts = static_cast<double>(layer.n_experts) / ranks};
  work.visits = tokens * work.experts_per_token / ranks * layer.busiest;
  work.gated = layer.gated;
  work.uneven = !layer.load.balanced();
  return work;
}

// The fold of a layer. All sizes of one model share a fold.
std::size_t fold_of(const MeasuredExpertLayer& m) {
  const auto sizes = static_cast<std::uint64_t>(m.hidden_size * 131 + m.expert_ffn_size * 31 + m.n_experts);
  return (sizes * 0x9e3779b97f4a7c15ULL >> 33U) % kLayerFolds;
}

// ln(measured / form) of layers, and their features.
struct LayerTable {
  std::vector<float> features, targets, weights;

  void add(const ExpertLayer& work, double log_error) {
    for (const float x : features_of(work)) features.push_back(x);
    targets.push_back(static_cast<float>(std::clamp(log_error, -kMostLearned, kMostLearned)));
    weights.push_back(1);
  }
  // Returns null without XGBoost.
  [[nodiscard]] std::shared_ptr<const GradientTrees> learn() const {
    constexpr std::size_t kFeatures = ExpertFeatures{}.size();
    if (targets.size() < kLeastLayers) return nullptr;
    const detail::BoosterOptions options{.rounds = 32,
                                         .depth = 8,
                                         .leaves = 48,
                                         .learning_rate = 0.3,
                                         .row_sample = 0.8,
                                         .column_sample = 1,
                                         .min_child_weight = 2};
    auto trees = detail::train_trees(features, kFeatures, targets, weights, options);
    if (!trees) return nullptr;
    auto decoded = GradientTrees::decode(
        detail::shortened(std::move(*trees), features, kFeatures, kLayerLeafScale), kFeatures);
    return decoded ? std::make_shared<const GradientTrees>(std::move(*decoded)) : nullptr;
  }
};

double learned_ln(const GradientTrees& trees, const ExpertLayer& work) {
  const ExpertFeatures x = features_of(work);
  double sum = 0;
  trees.add(x, x.size(), 1, {&sum, 1});
  return sum;
}

// Learns the residual of the form over all layers, and sets the bands of layers of held-out models and of single layers.
void learn_rest(ExpertRates& rates, std::span<const MeasuredExpertLayer* const> rows,
                const DeviceFigures& figures) {
  struct Layer {
    ExpertLayer work;
    double log_error = 0, per_expert = 0;
    std::array<std::size_t, 2> fold{};  // of its model, of the layer
  };
  std::vector<Layer> layers;
  LayerTable all;
  for (const MeasuredExpertLayer* row : rows) {
    const ExpertLayer work = work_of(*row);
    layers.push_back({work,
                      std::log(row->time_us / expert_layer_us(rates, figures, work)),
                      work.visits / work.local_experts,
                      {fold_of(*row), layers.size() % kLayerFolds}});
    all.add(work, layers.back().log_error);
  }
  const auto band_held_out = [&](std::size_t by) {
    std::vector<double> errors;
    for (std::size_t fold = 0; fold < kLayerFolds; ++fold) {
      LayerTable others;
      for (const Layer& layer : layers)
        if (layer.fold[by] != fold) others.add(layer.work, layer.log_error);
      const auto trees = others.learn();
      // Only sizes of training: with few tokens per expert, libraries sometimes choose kernels that are several times too
      // slow.
      for (const Layer& layer : layers)
        if (layer.fold[by] == fold && layer.per_expert >= kTokensOfTraining)
          errors.push_back(layer.log_error - (trees ? learned_ln(*trees, layer.work) : 0));
    }
    return band_of(std::move(errors));
  };
  std::tie(rates.log_p10, rates.log_p90) = band_held_out(0);
  rates.learned = all.learn();
  if (!rates.learned) return;
  std::tie(rates.known_log_p10, rates.known_log_p90) = band_held_out(1);
  std::set<double> weights;
  for (const Layer& layer : layers)
    weights.insert(std::log(layer.work.hidden_size * layer.work.expert_ffn_size));
  rates.known_weights.assign(weights.begin(), weights.end());
}

}  // namespace

double predicted_layer_us(const ExpertRates& rates, const DeviceFigures& device,
                          const MeasuredExpertLayer& layer) {
  return expert_layer_us(rates, device, work_of(layer));
}

ExpertBand layer_band(const ExpertRates& rates, const MeasuredExpertLayer& layer) {
  const ExpertLayer work = work_of(layer);
  return expert_band(rates, work.hidden_size * work.expert_ffn_size);
}

ExpertRates fit_expert_rates(std::span<const MeasuredExpertLayer* const> rows, const Device& device,
                             DType dtype) {
  ExpertRates rates{
      .device = device.name, .architecture = device.architecture, .dtype = dtype, .n_rows = rows.size()};
  std::vector<const MeasuredExpertLayer*> chosen;
  for (const MeasuredExpertLayer* row : rows)
    if (row->load.balanced()) chosen.push_back(row);
  if (chosen.empty()) chosen.assign(rows.begin(), rows.end());
  chosen = thinned(std::move(chosen));
  const DeviceFigures figures = figures_of(device);
  const auto log_error = [&](const ExpertRates& r, const MeasuredExpertLayer& row) {
    return std::log(row.time_us / predicted_layer_us(r, figures, row));
  };
  const auto loss = [&](std::span<const double> p) {
    const ExpertRates at = to_rates<ExpertRates>(kLayerSearch, p, rates);
    double sum = 0;
    for (const MeasuredExpertLayer* row : chosen) sum += std::abs(log_error(at, *row));
    return sum / static_cast<double>(chosen.size()) +
           kPrior * (squared(p[6] - std::log(0.05)) + squared(p[1]) + squared(p[5] - std::log(1.5)));
  };
  rates = search<ExpertRates>(kLayerSearch, rates, loss);
  learn_rest(rates, rows, figures);
  return rates;
}

double predicted_exchange_us(const ExchangeRates& rates, const Node& node, const MeasuredExchange& exchange) {
  TokenExchange tokens;
  tokens.tokens = static_cast<double>(exchange.tokens);
  tokens.hidden_size = static_cast<double>(exchange.hidden_size);
  tokens.element_bytes = rates.combine ? kCombineBytes : kDispatchBytes;
  tokens.top_k = exchange.top_k;
  tokens.n_experts = exchange.n_experts;
  tokens.sms = static_cast<double>(exchange.sms);
  ExchangePlace place{exchange.n_nodes * kGpusOfNode, exchange.n_nodes, node.intra.bandwidth_per_gpu, {}};
  if (node.network)
    place.network = node.network->bandwidth_per_node() * (1.0 / static_cast<double>(kGpusOfNode));
  return exchange_us(rates, tokens, place);
}

ExchangeRates fit_exchange_rates(std::span<const MeasuredExchange* const> rows, const Device& device,
                                 const Node& node, bool combine) {
  ExchangeRates rates{
      .device = device.name, .architecture = device.architecture, .combine = combine, .n_rows = rows.size()};
  std::vector<const MeasuredExchange*> inside, across;
  for (const MeasuredExchange* row : rows) (row->n_nodes > 1 ? across : inside).push_back(row);
  std::vector<const MeasuredExchange*> chosen = thinned(std::move(inside));
  chosen.insert(chosen.end(), across.begin(), across.end());
  const auto log_error = [&](const ExchangeRates& r, const MeasuredExchange& row) {
    return std::log((combine ? row.combine_us : row.dispatch_us) / predicted_exchange_us(r, node, row));
  };
  rates.over_nodes = !across.empty();
  const double copies = combine ? kCopiesOfCombine : kCopiesOfDispatch;
  auto searched = std::to_array(kExchangeSearch);
  for (Searched<ExchangeRates>& one : searched)
    if (one.member == &ExchangeRates::network_sm_GBps) one.start /= copies;
  const auto loss = [&](std::span<const double> p) {
    const ExchangeRates at = to_rates<ExchangeRates>(searched, p, rates);
    double sum = 0, weights = 0;
    for (const MeasuredExchange* row : chosen) {
      const double weight = row->n_nodes > 1 ? kWeightOfNodes : 1;
      sum += weight * std::abs(log_error(at, *row));
      weights += weight;
    }
    return sum / weights +
           kNetworkPrior * (squared(p[6] - std::log(0.9)) + squared(p[8] - p[3] + std::log(copies))) +
           kPrior * (2 * squared(p[7]) + squared(p[9] - std::log(0.8)) + squared(p[1] - std::log(0.1)) +
                     squared(p[2] - std::log(0.5)));
  };
  rates = search<ExchangeRates>(searched, rates, loss);
  std::vector<double> errors;
  for (const MeasuredExchange* row : chosen) errors.push_back(log_error(rates, *row));
  std::tie(rates.log_p10, rates.log_p90) = band_of(std::move(errors));
  return rates;
}

void borrow_network_rates(std::span<ExchangeRates> measured) {
  for (ExchangeRates& rates : measured) {
    if (rates.over_nodes) continue;
    // Geometric means. handed_on: rate at which an SM forwards tokens relative to its copies inside a node.
    double n = 0, share = 0, congestion = 0, handed_on = 0, startup = 0;
    for (const ExchangeRates& other : measured) {
      if (!other.over_nodes || other.combine != rates.combine) continue;
      ++n;
      share += std::log(other.network_share);
      congestion += std::log(other.far_congestion);
      handed_on += std::log(other.network_sm_GBps / other.sm_GBps);
      startup += std::log(other.startup_per_node);
    }
    if (n == 0) continue;
    rates.network_share = std::exp(share / n);
    rates.far_congestion = std::exp(congestion / n);
    rates.network_sm_GBps = rates.sm_GBps * std::exp(handed_on / n);
    rates.startup_per_node = std::exp(startup / n);
  }
}

}  // namespace stepcast
