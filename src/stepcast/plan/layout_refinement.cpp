#include "stepcast/plan/layout_refinement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_refiner.h"
#include "stepcast/workload/framework_rule.h"

// Refinement in three passes: the first layouts of the ranking, then layouts beyond it in the order of their lower bounds,
// then sets of choices for the best of both. The fastest step so far prunes the later passes.
namespace stepcast {

namespace {

// True if the framework uses the flags of Megatron-LM, which express every refinement.
bool has_all_flags(Framework framework) { return rule_of(framework).search.has_megatron_flags; }

// Forward plus backward time of a layer, in us.
double passes_us(const PricedLayer& layer) {
  return layer.forward.time_us + layer.backward.time_us + layer.held_back.time_us;
}

// The fastest step that may be chosen: of a measured kind, with flags and enough headroom.
class FastestChoice {
 public:
  explicit FastestChoice(const LayoutPrototypes& prototypes) : prototypes_(prototypes) {}
  void add(const RankedLayout& ranked) { add(ranked, ranked.step, ranked.memory); }
  void add(const RankedLayout& ranked, const StepPrediction& step, const MemoryForecast& memory) {
    const bool may_be = ranked.unmeasured.empty() && memory.verdict != MemoryVerdict::tight;
    if (may_be && step.step.time.value() < us_ && has_flags(ranked, prototypes_))
      us_ = step.step.time.value();
  }
  [[nodiscard]] double us() const { return us_; }

 private:
  const LayoutPrototypes& prototypes_;
  double us_ = std::numeric_limits<double>::infinity();
};

// A layout and its refinement.
struct Found {
  RankedLayout ranked;
  RefinedLayout refined;
};

class Refinement {
 public:
  Refinement(LayoutRanking& ranking, const std::vector<PricedLayout>& priced,
             const LayoutPrototypes& prototypes, const Platform& platform, const RefinementOptions& options)
      : ranking_(ranking),
        priced_(priced),
        prototypes_(prototypes),
        n_threads_(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())),
        fastest_(prototypes) {
    const StepModel steps = options.steps != nullptr ? options.steps->with(options.assumptions)
                                                     : StepModel{platform, options.assumptions};
    for (unsigned i = 0; i < n_threads_; ++i) refiners_.emplace_back(prototypes, steps, options);
  }

  // Runs all passes.
  Result<RefinedLayouts> all() {
    RefinedLayouts result;
    const std::size_t n = std::min(kAlwaysRefined, ranking_.layouts.size());
    std::vector<Found> found(n);
    STEPCAST_TRY(each(n, [&](LayoutRefiner& refiner, std::size_t i) -> Status {
      found[i].ranked = ranking_.layouts[i];
      STEPCAST_ASSIGN(found[i].refined, refiner.refined(found[i].ranked));
      found[i].refined.of = i;
      return Ok{};
    }));
    for (const RankedLayout& ranked : ranking_.layouts) fastest_.add(ranked);
    for (const Found& one : found) note(one);
    result.n_tried = n;
    std::vector<Found> better;
    if (has_all_flags(prototypes_.framework())) {
      STEPCAST_TRY(beyond(n, better, result.n_tried));
      STEPCAST_TRY(search_sets(found, better));
    }
    for (Found& one : found)
      if (!one.refined.changes.empty()) result.faster.push_back(std::move(one.refined));
    add_best(std::move(better), result.faster);
    std::ranges::stable_sort(result.faster, [](const RefinedLayout& a, const RefinedLayout& b) {
      return a.step.step.time < b.step.step.time;
    });
    return result;
  }

 private:
  // Calls work(refiner, i) for all i < n. Each thread has one refiner.
  template <class Work>
  Status each(std::size_t n, const Work& work) {
    return parallel_for(n_threads_, n_threads_, [&](std::size_t thread) -> Status {
      for (std::size_t i = thread; i < n; i += n_threads_) {
        STEPCAST_TRY(not_stopped());
        STEPCAST_TRY(work(refiners_[thread], i));
      }
      return Ok{};
    });
  }

  // Updates the fastest step.
  void note(const Found& one) {
    if (!one.refined.changes.empty()) fastest_.add(one.ranked, one.refined.step, one.refined.memory);
  }

  // Tries sets of choices on layouts close to the fastest, restricted to those that may be chosen if there are any. Layouts that
  // differ only in recomputation count once, as full recomputation, because its alternatives are tried anyway.
  Status search_sets(std::vector<Found>& found, std::vector<Found>& better) {
    const auto us = [](const Found* one) { return one->refined.step.step.time.value(); };
    // If no refined layout may be chosen, all of them are candidates.
    const bool any = fastest_.us() < std::numeric_limits<double>::infinity();
    std::vector<Found*> close;
    for (std::vector<Found>* list : {&found, &better}) {
      for (Found& one : *list) {
        const bool may_be = one.ranked.unmeasured.empty() && has_flags(one.ranked, prototypes_);
        if (!any || (may_be && us(&one) < kClose * fastest_.us())) close.push_back(&one);
      }
    }
    std::ranges::stable_sort(close, {}, us);
    std::vector<Found*> searched;
    std::map<LayoutPoint, std::size_t> places;
    for (Found* one : close) {
      LayoutPoint alike = one->ranked.point;
      alike.recompute = Recompute::none;
      const auto [place, is_new] = places.try_emplace(alike, searched.size());
      if (is_new)
        searched.push_back(one);
      else if (one->ranked.point.recompute == Recompute::full)
        searched[place->second] = one;
    }
    searched.resize(std::min(searched.size(), kMostSearched));
    return each(searched.size(), [&](LayoutRefiner& refiner, std::size_t i) -> Status {
      STEPCAST_ASSIGN(searched[i]->refined, refiner.searched(searched[i]->ranked, searched[i]->refined));
      return Ok{};
    });
  }

  // Refines layouts after the first `n` in the order of their lower bounds, until no bound is below the fastest step.
  Status beyond(std::size_t n, std::vector<Found>& better, std::size_t& n_tried) {
    struct Candidate {
      std::size_t rank = 0;
      double bound_us = 0;
    };
    std::vector<Candidate> candidates;
    for (std::size_t rank = n; rank < priced_.size(); ++rank) {
      // Layouts ascend in time; beyond kReach even the best refinement cannot win.
      if (priced_[rank].step_us > kReach * fastest_.us()) break;
      candidates.push_back({rank, 0});
    }
    STEPCAST_TRY(each(candidates.size(), [&](LayoutRefiner& refiner, std::size_t i) -> Status {
      STEPCAST_ASSIGN(candidates[i].bound_us, refiner.bound_us(priced_[candidates[i].rank].point));
      return Ok{};
    }));
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      return std::tie(a.bound_us, a.rank) < std::tie(b.bound_us, b.rank);
    });
    // Refine in groups of kAtOnce, so that the result does not depend on the number of threads.
    for (std::size_t from = 0; from < candidates.size(); from += kAtOnce) {
      if (!(candidates[from].bound_us < fastest_.us())) break;
      std::vector<Found> found(std::min(kAtOnce, candidates.size() - from));
      STEPCAST_TRY(each(found.size(), [&](LayoutRefiner& refiner, std::size_t i) -> Status {
        STEPCAST_ASSIGN(found[i].ranked, refiner.look_at(priced_, candidates[from + i].rank));
        STEPCAST_ASSIGN(found[i].refined, refiner.refined(found[i].ranked));
        return Ok{};
      }));
      n_tried += found.size();
      for (Found& one : found) {
        if (one.refined.changes.empty()) continue;
        note(one);
        better.push_back(std::move(one));
      }
    }
    return Ok{};
  }

  // Adds the best refinements beyond the ranking to `faster`, and their layouts to the ranking.
  void add_best(std::vector<Found>&& better, std::vector<RefinedLayout>& faster) {
    // Layouts that may be chosen come first.
    const auto order = [](const Found& one) {
      const bool may_be = one.ranked.unmeasured.empty() && one.refined.memory.verdict != MemoryVerdict::tight;
      return std::pair{!may_be, one.refined.step.step.time.value()};
    };
    std::ranges::stable_sort(better, {}, order);
    better.resize(std::min(better.size(), kMostAdded));
    std::ranges::sort(better, {}, [](const Found& one) { return one.ranked.rank; });
    for (Found& one : better) {
      // Layouts of the ranking outside the first kAlwaysRefined keep their position.
      const bool is_shown = one.ranked.rank < ranking_.layouts.size() &&
                            ranking_.layouts[one.ranked.rank].rank == one.ranked.rank;
      one.refined.of = is_shown ? one.ranked.rank : ranking_.layouts.size();
      if (!is_shown) {
        one.ranked.behind_us =
            one.ranked.step.step.time.value() - ranking_.layouts.front().step.step.time.value();
        ranking_.layouts.push_back(std::move(one.ranked));
      }
      faster.push_back(std::move(one.refined));
    }
  }

  // Layouts that are always refined; refined in parallel; added to the ranking at most.
  static constexpr std::size_t kAlwaysRefined = 200, kAtOnce = 64, kMostAdded = 20;
  // Sets of choices gain up to a few percent over single choices. Each searched layout takes about 10 ms.
  static constexpr double kClose = 1.06;
  static constexpr std::size_t kMostSearched = 32;
  // Refinement makes no step four times faster (at most 3.3 times, with tokens sent across many nodes).
  static constexpr double kReach = 4;

  LayoutRanking& ranking_;
  const std::vector<PricedLayout>& priced_;
  const LayoutPrototypes& prototypes_;
  unsigned n_threads_;
  std::vector<LayoutRefiner> refiners_;
  FastestChoice fastest_;
};

}  // namespace

bool has_flags(const RankedLayout& ranked, const LayoutPrototypes& prototypes) {
  return has_all_flags(prototypes.framework()) &&
         megatron_text(ranked.point, ranked.layout, prototypes).has_value();
}

std::vector<std::int64_t> best_stages(const PricedStep& step, const Transformer& model) {
  std::vector<double> layers;
  for (const ChunkWork& chunk : step.work.chunks)
    for (const ChunkWork::Run& run : chunk.runs)
      layers.insert(layers.end(), run.count, passes_us(step.layers[run.kind]));
  // Layers for further predicted tokens follow the last layer and stay in the last stage.
  double back_us = passes_us(step.head);
  const std::size_t further = static_cast<std::size_t>(model.n_multi_token_prediction_layers) *
                              layers_of_further_prediction(model).size();
  for (std::size_t i = 0; i < further && !layers.empty(); ++i) {
    back_us += layers.back();
    layers.pop_back();
  }
  return balanced_stages(layers, passes_us(step.embedding), back_us, step.work.chunks.size());
}

Result<RefinedLayouts> refine_layouts(LayoutRanking& ranking, const std::vector<PricedLayout>& priced,
                                      const LayoutPrototypes& prototypes, const Platform& platform,
                                      const RefinementOptions& options) {
  if (ranking.layouts.empty()) return RefinedLayouts{};
  return Refinement{ranking, priced, prototypes, platform, options}.all();
}

std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us, double back_us,
                                          std::size_t n_chunks) {
  const std::size_t n = layer_us.size();
  if (n_chunks < 2 || n + 2 < n_chunks) return {};
  std::vector<double> before(n + 1, 0);  // prefix sums of the layer times
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + layer_us[i];

  // Division of the first i layers: time of the slowest chunk and the sum of squared chunk times.
  struct Best {
    double slowest = std::numeric_limits<double>::infinity(), squares = 0;
    std::size_t from = 0;  // first layer of the last chunk
  };
  // best[c][i]: the first i layers in the first c + 1 chunks.
  std::vector<std::vector<Best>> best(n_chunks, std::vector<Best>(n + 1));
  for (std::size_t i = 0; i <= n; ++i) {
    const double load = front_us + before[i];
    best[0][i] = {load, load * load, 0};
  }
  for (std::size_t c = 1; c < n_chunks; ++c) {
    const bool is_last = c + 1 == n_chunks;
    for (std::size_t i = is_last ? n : c; i <= n; ++i) {  // fewer layers leave a chunk without one
      Best& here = best[c][i];
      const std::size_t end = is_last ? i + 1 : i;  // an inner chunk has at least one layer
      // Extend the last chunk backwards. Once it alone is slower than the best, longer ones are slower, too.
      for (std::size_t j = end; j-- > c - 1;) {
        const double load = before[i] - before[j] + (is_last ? back_us : 0);
        if (load > here.slowest) break;
        const Best& front = best[c - 1][j];
        const double slowest = std::max(front.slowest, load), squares = front.squares + load * load;
        if (slowest < here.slowest || (slowest == here.slowest && squares < here.squares))
          here = {slowest, squares, j};
      }
    }
  }
  if (best[n_chunks - 1][n].slowest == std::numeric_limits<double>::infinity()) return {};
  // Follow the best divisions back from the last chunk.
  std::vector<std::int64_t> layers(n_chunks, 0);
  std::size_t end = n;
  for (std::size_t c = n_chunks; c-- > 0;) {
    const std::size_t from = best[c][end].from;
    layers[c] = static_cast<std::int64_t>(end - from);
    end = from;
  }
  return layers;
}

}  // namespace stepcast
