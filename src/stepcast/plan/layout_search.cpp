#include "stepcast/plan/layout_search.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/duration_text.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"
#include "stepcast/plan/layout_rules.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
// Search: units of one choice of type, tensor, context and expert degrees run in parallel. Each thread has its own Searcher,
// which keeps its priced layers. Loops nest from the degrees to the sharding, and a rule that rejects a point counts all
// layouts below it at once. Times of schedules are evaluated in batches.
namespace {

// Reasons of rejected layouts with their counts.
class Tally {
 public:
  void add(LayoutVerdict verdict, std::uint64_t count) {
    // The first layout with a reason provides its example and cure.
    const auto [place, fresh] = reasons_.try_emplace(verdict.reason);
    if (fresh) {
      place->second.reason = std::move(verdict.reason);
      place->second.example = std::move(verdict.example);
      place->second.cure = std::move(verdict.cure);
      place->second.is_of_degrees = verdict.is_of_degrees;
    }
    place->second.count += count;
  }
  void add(const Tally& other) {
    for (const auto& [key, rejection] : other.reasons_) {
      const auto [place, fresh] = reasons_.try_emplace(key, rejection);
      if (!fresh) place->second.count += rejection.count;
    }
  }
  [[nodiscard]] std::vector<LayoutRejection> sorted() const {
    std::vector<LayoutRejection> all;
    for (const auto& [key, rejection] : reasons_) all.push_back(rejection);
    std::ranges::stable_sort(all, std::greater{}, &LayoutRejection::count);
    return all;
  }

 private:
  std::map<std::string, LayoutRejection> reasons_;
};

// Layouts that exceed the memory by the largest part of their memory, with the one that exceeds it least.
struct Excess {
  std::uint64_t count = 0;
  double over_bytes = 0, part_bytes = 0;
  std::uint32_t stage = 0;
  LayoutPoint point;
};
// Names of the parts of memory, in the order of the array in add_excess().
constexpr std::array<std::string_view, 6> kParts = {"weights",     "gradients",      "optimizer states",
                                                    "activations", "working memory", "communication buffers"};
using Excesses = std::array<Excess, kParts.size()>;

// Adds the count and keeps the layout with the smaller excess. Ties are broken by the point, so the order of threads has no
// effect.
void add(Excess& to, const Excess& excess) {
  // The example is the layout that exceeds the memory least.
  const bool is_nearer =
      to.count == 0 || std::tie(excess.over_bytes, excess.point) < std::tie(to.over_bytes, to.point);
  const std::uint64_t count = to.count + excess.count;
  if (excess.count > 0 && is_nearer) to = excess;
  to.count = count;
}

void add_excess(Excesses& excesses, const MemoryForecast& memory, const LayoutPoint& point) {
  const StageMemory& m = memory.stages[memory.worst_stage];
  const std::array<double, kParts.size()> parts = {m.weights.value(),   m.gradients.value(),
                                                   m.optimizer.value(), m.activations.value(),
                                                   m.working.value(),   m.communication.value()};
  const auto largest = static_cast<std::size_t>(std::ranges::max_element(parts) - parts.begin());
  add(excesses[largest], {1, -memory.margin().value(), parts[largest], memory.worst_stage, point});
}

// The result of one unit of work.
struct Part {
  std::vector<PricedLayout> priced;
  Tally rejections, same;
  std::uint64_t n_rejected = 0, n_same = 0;
  Excesses excesses;
};

// Searches all layouts of one choice of type, tensor, context and expert degrees. They have few distinct layers, and each
// layer is priced once.
class Searcher {
 public:
  Searcher(const LayoutSpace& space, const LayoutPrototypes& prototypes, StepWorker steps, Bytes memory)
      : space_(space), prototypes_(prototypes), memory_(memory), steps_(std::move(steps)) {}

  void search(LayoutPoint point, Part& part) {
    part_ = &part;
    for (const std::int32_t pipeline : space_.pipeline) {
      point.pipeline = pipeline;
      // A rejection here counts all layouts with these degrees.
      if (!counted(check_degrees(point, space_, prototypes_), space_.below_degrees())) below_degrees(point);
    }
  }

  // Computes the times of all waiting layouts in one batch, so that it contains several schedules of each pipeline shape.
  void evaluate() {
    std::vector<const StepSchedule*> schedules;
    for (const Waiting& one : waiting_) schedules.push_back(one.schedule.get());
    std::vector<double> step_us(waiting_.size());
    steps_.evaluator().evaluate(schedules, step_us);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      Waiting& one = waiting_[i];
      one.part->priced[one.place].step_us = step_us[i];
      free_[one.schedule->chunks.size()].push_back(std::move(one.schedule));
    }
    waiting_.clear();
  }

 private:
  // Records a rejection or duplicate of `count` layouts. Returns false for layouts that must be priced.
  bool counted(LayoutVerdict verdict, std::uint64_t count) {
    if (verdict.kind == LayoutVerdict::Kind::runs) return false;
    const bool is_same = verdict.kind == LayoutVerdict::Kind::same;
    (is_same ? part_->n_same : part_->n_rejected) += count;
    (is_same ? part_->same : part_->rejections).add(std::move(verdict), count);
    return true;
  }

  // Loops over micro-batches and schedules for fixed degrees.
  void below_degrees(LayoutPoint point) {
    const std::uint64_t below_batch = space_.below_degrees() / space_.micro_batch.size();
    const std::uint64_t below_form = below_batch / space_.forms.size();
    for (const std::int32_t micro_batch : space_.micro_batch) {
      point.micro_batch = micro_batch;
      if (counted(check_batch(point, prototypes_), below_batch)) continue;
      for (const PipelineForm& form : space_.forms) {
        point.schedule = form.schedule;
        point.virtual_stages = form.virtual_stages;
        if (!counted(check_stages(point, prototypes_), below_form)) below_form_of(point);
      }
    }
  }

  // Loops over recomputation, sequence parallelism and sharding for a fixed schedule.
  void below_form_of(LayoutPoint point) {
    if (is_stop_requested()) return;  // parallel_for reports it
    for (const Recompute recompute : space_.recomputations) {
      for (const bool sequence_parallel : space_.sequence_parallel) {
        point.recompute = recompute;
        point.sequence_parallel = sequence_parallel;
        if (counted(check_layers(point, space_, prototypes_), space_.shardings.size())) continue;
        // Sharded weights change gradient accumulation in the layers, so there are two kinds of steps to price.
        is_begun_ = is_finished_ = false;
        for (const bool shards_weights : {false, true}) {
          is_begun_ = is_finished_ = false;
          for (const DataSharding& sharding : space_.shardings) {
            if ((sharding.kind == Sharding::zero3) != shards_weights) continue;
            point.sharding = sharding;
            if (!counted(check_sharding(point, space_, prototypes_), 1)) one(point);
          }
        }
      }
    }
  }

  // Prices one layout; errors count as rejections.
  void one(const LayoutPoint& point) {
    if (is_stop_requested()) return;
    if (const Status status = price(point); !status.ok())
      counted({LayoutVerdict::Kind::refused, status.error().message(), {}, {}}, 1);
  }

  // Prices a layout if it fits. Consecutive layouts that differ only in sharding share the priced step: begin() runs once, and
  // finish() once for the first layout that fits.
  Status price(const LayoutPoint& point) {
    const Transformer& model = prototypes_.model();
    prototypes_.layout(point, layout_);
    layout_ = with_software_choices(std::move(layout_), steps_.pricer().platform().device);
    if (!is_begun_) {
      STEPCAST_TRY(steps_.begin(model, layout_, step_));
      STEPCAST_TRY(count_activations(step_.work, model, layout_, kept_));
      is_begun_ = true;
      begun_for_ = point.sharding;
    }
    // Memory first: layouts that do not fit are not priced further.
    const MemoryForecast memory = even_memory_forecast(step_.work, model, layout_, memory_, kept_);
    if (memory.verdict == MemoryVerdict::does_not_fit) {
      add_excess(part_->excesses, memory, point);
      return Ok{};
    }
    if (!is_finished_) {
      STEPCAST_TRY(steps_.finish(model, layout_, step_));
      is_finished_ = true;
      // The step was begun for another sharding, which did not fit.
      if (begun_for_ != point.sharding) STEPCAST_TRY(steps_.share_differently(model, layout_, step_));
    } else {
      STEPCAST_TRY(steps_.share_differently(model, layout_, step_));
    }
    constexpr std::size_t kMostWaiting = 128;  // some 10 kB each
    if (waiting_.size() == kMostWaiting) evaluate();
    std::vector<std::unique_ptr<StepSchedule>>& free = free_[step_.schedule.chunks.size()];
    if (free.empty()) free.push_back(std::make_unique<StepSchedule>());
    *free.back() = step_.schedule;
    waiting_.push_back({part_, part_->priced.size(), std::move(free.back())});
    free.pop_back();
    part_->priced.push_back({point, 0, memory.peak().value()});
    return Ok{};
  }

  const LayoutSpace& space_;
  const LayoutPrototypes& prototypes_;
  Bytes memory_;
  StepWorker steps_;
  Part* part_ = nullptr;
  Layout layout_;
  PricedStep step_;
  std::vector<ChunkActivations> kept_;  // of step_
  // A layout without a computed time, at part->priced[place].
  struct Waiting {
    Part* part = nullptr;
    std::size_t place = 0;
    std::unique_ptr<StepSchedule> schedule;  // its schedule
  };
  std::vector<Waiting> waiting_;
  std::map<std::size_t, std::vector<std::unique_ptr<StepSchedule>>>
      free_;  // [number of chunks] unused schedules, kept for their memory
  bool is_begun_ = false, is_finished_ = false;
  DataSharding begun_for_;
};

// Lends one searcher to each thread at a time, together with everything it has priced.
class Searchers {
 public:
  Searchers(const LayoutSpace& space, const LayoutPrototypes& prototypes, const StepModel& steps,
            const LayoutSearchOptions& options)
      : space_(space), prototypes_(prototypes), steps_(steps), options_(options) {}

  void search(const LayoutPoint& point, Part& part) {
    // A thread takes a searcher, or creates one, and returns it with its cached prices.
    std::unique_ptr<Searcher> searcher = take();
    searcher->search(point, part);
    const std::scoped_lock lock{mutex_};
    free_.push_back(std::move(searcher));
  }
  // Evaluates the remaining layouts. Call after all searches.
  Status finish() {
    return parallel_for(free_.size(), options_.threads, [&](std::size_t i) -> Status {
      free_[i]->evaluate();
      return Ok{};
    });
  }

 private:
  std::unique_ptr<Searcher> take() {
    {
      const std::scoped_lock lock{mutex_};
      if (!free_.empty()) {
        std::unique_ptr<Searcher> taken = std::move(free_.back());
        free_.pop_back();
        return taken;
      }
    }
    return std::make_unique<Searcher>(space_, prototypes_, steps_.worker(), options_.memory);
  }

  const LayoutSpace& space_;
  const LayoutPrototypes& prototypes_;
  const StepModel& steps_;
  const LayoutSearchOptions& options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Searcher>> free_;
};

// Units of work: all combinations of type, tensor, context and expert degrees.
std::vector<LayoutPoint> units_of(const LayoutSpace& space) {
  std::vector<LayoutPoint> units;
  LayoutPoint point;
  for (const DType dtype : space.dtypes) {
    point.dtype = dtype;
    for (const std::int32_t tensor : space.tensor) {
      point.tensor = tensor;
      for (const std::int32_t context : space.context) {
        point.context = context;
        for (const std::int32_t expert : space.expert) {
          point.expert = expert;
          for (const std::int32_t expert_tensor : space.expert_tensor) {
            point.expert_tensor = expert_tensor;
            units.push_back(point);
          }
        }
      }
    }
  }
  return units;
}

// Changes of a layout that reduce its memory, smallest change first.
std::vector<LayoutPoint> with_less_memory(const LayoutPoint& point, const LayoutSpace& space) {
  std::vector<LayoutPoint> all;
  const auto add = [&](auto change) {
    LayoutPoint changed = point;
    change(changed);
    all.push_back(changed);
  };
  add([](LayoutPoint& p) { p.sequence_parallel = true; });
  for (const DataSharding& sharding : space.shardings)
    if (sharding.kind > point.sharding.kind) add([&](LayoutPoint& p) { p.sharding = sharding; });
  for (const Recompute recompute : {Recompute::selective, Recompute::full})
    if (recompute > point.recompute) add([&](LayoutPoint& p) { p.recompute = recompute; });
  add([](LayoutPoint& p) { p.micro_batch = std::max(1, p.micro_batch / 2); });
  for (const std::int32_t more : {2, 4, 8}) {
    if (point.data % more != 0) continue;
    add([&](LayoutPoint& p) { p.tensor *= more, p.data /= more, p.sequence_parallel = true; });
    add([&](LayoutPoint& p) { p.pipeline *= more, p.data /= more; });
    add([&](LayoutPoint& p) { p.context *= more, p.data /= more; });
    add([&](LayoutPoint& p) { p.expert *= more; });
  }
  return all;
}

// Bytes for messages, in MiB or GiB.
std::string gib(double bytes) {
  return bytes < 0.1 * kGiB ? fmt::format("{:.0f} MiB", bytes / kMiB)
                            : fmt::format("{:.1f} GiB", bytes / kGiB);
}

// One rejection per largest part of memory, with the smallest change to a layout that fits.
std::vector<LayoutRejection> too_large(const Excesses& excesses, const LayoutSpace& space,
                                       const std::vector<PricedLayout>& priced) {
  std::map<LayoutPoint, double> known;
  for (const PricedLayout& layout : priced) known.emplace(layout.point, layout.step_us);
  std::vector<LayoutRejection> all;
  for (std::size_t i = 0; i < excesses.size(); ++i) {
    const Excess& excess = excesses[i];
    if (excess.count == 0) continue;
    LayoutRejection& rejection = all.emplace_back();
    rejection.count = excess.count;
    rejection.reason = fmt::format("memory; the largest part is {}", kParts[i]);
    rejection.example = fmt::format("{}: stage {} over by {}: {} {}", to_string(excess.point), excess.stage,
                                    gib(excess.over_bytes), kParts[i], gib(excess.part_bytes));
    for (const LayoutPoint& changed : with_less_memory(excess.point, space)) {
      const auto found = known.find(changed);
      if (found == known.end()) continue;
      rejection.cure =
          fmt::format("{}: {}", difference(excess.point, changed), duration_text(found->second * 1e-3));
      break;
    }
  }
  std::ranges::stable_sort(all, std::greater{}, &LayoutRejection::count);
  return all;
}

}  // namespace

Result<SearchedLayouts> search_layouts(const LayoutSpace& space, const LayoutPrototypes& prototypes,
                                       const Platform& platform, const LayoutSearchOptions& options) {
  // Units run in parallel; their results are merged in the order of the units, so the output is deterministic.
  const std::vector<LayoutPoint> units = units_of(space);
  std::vector<Part> parts(units.size());
  const StepModel steps = options.steps != nullptr ? options.steps->with(options.assumptions)
                                                   : StepModel{platform, options.assumptions};
  Searchers searchers{space, prototypes, steps, options};
  STEPCAST_TRY(parallel_for(units.size(), options.threads, [&](std::size_t i) -> Status {
    searchers.search(units[i], parts[i]);
    return Ok{};
  }));
  STEPCAST_TRY(searchers.finish());

  SearchedLayouts result;
  Tally rejections, same;
  Excesses excesses;
  for (Part& part : parts) {
    result.priced.insert(result.priced.end(), part.priced.begin(), part.priced.end());
    part.priced = {};
    rejections.add(part.rejections);
    same.add(part.same);
    result.n_rejected += part.n_rejected;
    result.n_same += part.n_same;
    for (std::size_t i = 0; i < excesses.size(); ++i) add(excesses[i], part.excesses[i]);
  }
  for (const Excess& excess : excesses) result.n_too_large += excess.count;
  std::ranges::sort(result.priced, [](const PricedLayout& a, const PricedLayout& b) {
    return std::tie(a.step_us, a.point) < std::tie(b.step_us, b.point);
  });
  result.rejections = rejections.sorted();
  result.same = same.sorted();
  result.too_large = too_large(excesses, space, result.priced);
  return result;
}

}  // namespace stepcast
