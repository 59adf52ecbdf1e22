// State of a Session: loaded platforms, and cached prices and layouts.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/api/detail/trace_request.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/plan/pool_layouts.h"
#include "stepcast/plan/promise.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast {
namespace detail {

// The assumptions of a request on a platform. `what_if`: changes such as "gemm=2x". `limit_W`: power limit per GPU in
// watts. Errors: an invalid what-if, background load on a platform without network tiers, a power limit out of range.
[[nodiscard]] Result<StepAssumptions> assumptions_on(const Platform& platform, const PredictRequest& request,
                                                     const std::vector<std::string>& what_if,
                                                     std::optional<double> limit_W);
// What measured steps contribute to a forecast. All are empty if there are none. `check` is set if a step of
// the requested job itself was measured.
struct OnMeasured {
  std::optional<ForecastAnchor> anchor;
  std::optional<MeasuredCheck> check;
  std::vector<std::string> notes;  // about measurements that were not used
};
// Anchors the forecast of `job` on the measurements of `request`, and replaces `asked` by the assumptions of
// the anchored forecast. Errors: measurements that cannot be read or forecast.
[[nodiscard]] Result<OnMeasured> anchor_on_measured(const PredictRequest& request, const ResolvedJob& job,
                                                    const StepModel& machine, StepAssumptions& asked);
// The note about an anchor in a forecast.
[[nodiscard]] std::string anchor_text(const ForecastAnchor& anchor);
// Widens the band for `n_unpriced` settings that have an effect and no model.
[[nodiscard]] StepAssumptions widened_for(std::size_t n_unpriced, StepAssumptions assumptions);
// Errors: more than 65,536 micro-batches per step, which is usually a batch given in tokens.
[[nodiscard]] Status check_micro_batches(const Layout& layout);
// The budget with the price per GPU-hour of the zones, averaged over the GPUs if zones differ. Errors: the
// budget has a price too.
[[nodiscard]] Result<TrainingBudget> with_prices_of_zones(TrainingBudget budget, const Cluster& cluster);

}  // namespace detail

// A platform with its priced operations. Not thread-safe because of `short_steps`.
struct PricedPlatform {
  std::shared_ptr<const Platform> platform;
  StepModel steps;  // refers to *platform
  ShortSteps short_steps{};
};

// Key of the cache of planned layouts: all inputs of the layout search.
struct LayoutQuestion {
  Job job;  // has no file or command line of a framework
  // The job with its default layout. Compared too, because files that the job names may have changed.
  Transformer model;
  Layout usual;
  std::shared_ptr<const Platform> platform;
  StepAssumptions assumptions;
  friend bool operator==(const LayoutQuestion& a, const LayoutQuestion& b) {
    const auto all = [](const LayoutQuestion& q) {
      return std::tie(q.job.model, q.job.ignored_model_keys, q.job.transformer, q.job.vision, q.job.n_gpus,
                      q.job.gpus_per_node, q.job.framework, q.job.settings, q.model, q.usual, q.platform,
                      q.assumptions);
    };
    return all(a) == all(b);
  }
};

// The platform for a name. Names of GPUs ("h100") with several GPUs mean the usual node of that GPU.
struct MeantPlatform {
  std::string name, note;  // empty if the platform is the named one
  std::shared_ptr<const Platform> platform;
};

// PricedPlatform serves one call at a time. Each call leases a free one, or creates one if all are in use.
// The mutex protects all containers; it is not held during predictions.
struct Session::Impl {
  // Name of a platform, and GPUs per node if they differ from the platform's.
  using Key = std::pair<std::string, std::optional<std::int64_t>>;

  // Ownership of a PricedPlatform for one call. The destructor returns it, also after errors.
  class Lease {
   public:
    Lease(Impl& of, Key key, std::unique_ptr<PricedPlatform> priced)
        : of_(&of), key_(std::move(key)), priced_(std::move(priced)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (priced_ == nullptr) return;
      const std::scoped_lock lock{of_->mutex};
      of_->free[key_].push_back(std::move(priced_));
    }
    PricedPlatform* operator->() const { return priced_.get(); }

   private:
    Impl* of_;
    Key key_;
    std::unique_ptr<PricedPlatform> priced_;
  };

  // The platform with this name or file, loaded once.
  Result<std::shared_ptr<const Platform>> platform(const std::string& name) {
    const std::scoped_lock lock{mutex};
    if (const auto found = platforms.find(name); found != platforms.end()) return found->second;
    STEPCAST_ASSIGN(Platform loaded, load_platform(name));
    auto shared = std::make_shared<const Platform>(std::move(loaded));
    platforms.emplace(name, shared);
    return shared;
  }

  // The built-in platform for a GPU name found in traces, loaded once.
  Result<std::shared_ptr<const Platform>> platform_with(const std::string& gpu) {
    const std::scoped_lock lock{mutex};
    std::shared_ptr<const Platform>& of_gpu = recorded_on[gpu];
    if (of_gpu == nullptr) {
      STEPCAST_ASSIGN(Platform loaded, detail::platform_with(gpu));
      of_gpu = std::make_shared<const Platform>(std::move(loaded));
    }
    return of_gpu;
  }

  // The platform for this name and number of GPUs. See MeantPlatform.
  Result<MeantPlatform> meant_platform(const std::string& name, std::int64_t n_gpus) {
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> as_named, platform(name));
    const std::optional<std::string> node = default_node_for(*as_named, n_gpus);
    if (!node) return MeantPlatform{name, {}, std::move(as_named)};
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_node, platform(*node));
    return MeantPlatform{*node, node_note(name, *node), std::move(of_node)};
  }

  // A PricedPlatform with `gpus_per_node` GPUs per node; nothing: as in the platform. Errors: unknown
  // platforms, node sizes that the platform cannot have.
  Result<Lease> lease(const std::string& name, std::optional<std::int64_t> gpus_per_node) {
    Key key{name, gpus_per_node};
    {
      const std::scoped_lock lock{mutex};
      std::vector<std::unique_ptr<PricedPlatform>>& of_key = free[key];
      if (!of_key.empty()) {
        std::unique_ptr<PricedPlatform> taken = std::move(of_key.back());
        of_key.pop_back();
        return Lease{*this, std::move(key), std::move(taken)};
      }
    }
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_name, platform(name));
    if (gpus_per_node && of_name->node.gpus_per_node != *gpus_per_node) {
      Platform adapted = *of_name;
      std::string note;
      adapt_to({.gpus_per_node = *gpus_per_node}, adapted, note);
      STEPCAST_TRY(adapted.check());
      of_name = std::make_shared<const Platform>(std::move(adapted));
    }
    StepModel steps{*of_name};
    auto priced = std::make_unique<PricedPlatform>(PricedPlatform{std::move(of_name), std::move(steps)});
    return Lease{*this, std::move(key), std::move(priced)};
  }

  // The step model of a platform that all layout searches share, with its cached prices.
  std::shared_ptr<const StepModel> searched_steps(const std::shared_ptr<const Platform>& platform) {
    const std::scoped_lock lock{mutex};
    std::shared_ptr<const StepModel>& of_platform = searched[platform];
    if (of_platform == nullptr) of_platform = std::make_shared<const StepModel>(*platform);
    return of_platform;
  }

  // A request with all choices made: the layout, the platforms, the assumptions. lay_out() makes it,
  // forecast() evaluates it.
  struct LaidOut {
    ResolvedJob job;           // with the chosen layout
    Layout layout;             // of the deciding pool: with its layers or its micro-batches
    StepModel steps;           // of the deciding pool
    std::vector<Lease> sites;  // one for each pool
    std::size_t base = 0;      // index of the pool that determines the step time
    StepForecastOptions options{};
    std::string layout_source{};
    LayoutOrigin layout_origin = LayoutOrigin::given;
    std::vector<std::string> notes{}, site_notes{};  // notes before and after those of the job
    std::optional<OutputFile> timeline{};
    TrainingBudget budget{};
    std::optional<ForecastAnchor> anchor{};
    std::optional<MeasuredCheck> measured_check{};
    // Only with several pools: their description, and the layouts that were found. The first layout is the chosen one.
    Cluster cluster{};
    std::vector<PooledLayout> found{};
    std::vector<RunPool> run_pools{};
    [[nodiscard]] const Platform& platform() const { return *sites[base]->platform; }
    [[nodiscard]] bool on_several_pools() const { return !found.empty(); }
  };
  Result<LaidOut> lay_out(const PredictRequest& request, const Extras& extras);
  Result<LaidOut> lay_out_on_pools(const PredictRequest& request, const Cluster& cluster);
  // Adds the results for each pool to a forecast on several pools.
  static Status add_pools(const LaidOut& step, const PredictRequest& request, Forecast& forecast);
  Result<Forecast> forecast(const PredictRequest& request, LaidOut step, const Extras& extras);

  // `faster`: an additional what-if ("gemm=2") that does not affect the choice of the layout; empty: none.
  Result<RlForecast> predict(const PredictRlRequest& request, const std::string& faster);

  // detail::planned_layout() with a cache of the last questions.
  std::optional<LayoutChoice> planned_layout(LayoutQuestion question, const ResolvedJob& usual);

  std::mutex mutex;
  std::deque<std::pair<LayoutQuestion, std::optional<LayoutChoice>>> layouts;  // most recent first
  std::map<std::shared_ptr<const Platform>, std::shared_ptr<const StepModel>> searched;
  std::map<std::string, std::shared_ptr<const Platform>> platforms;
  std::map<std::string, std::shared_ptr<const Platform>> recorded_on;  // by GPU name
  std::map<Key, std::vector<std::unique_ptr<PricedPlatform>>> free;
};

// A forecast with its sensitivities and, if `with_pictures`, with the pictures and details of a report.
template <class Request>
Result<Report> Session::detailed(Request request, bool with_pictures) const {
  if constexpr (requires { request.explained; }) request.explained = request.explained || with_pictures;
  Report out;
  STEPCAST_ASSIGN(out.forecast,
                  predict(request, Extras{.sensitivity = &out.sensitivity,
                                          .pictures = with_pictures ? &out.pictures : nullptr}));
  return out;
}

}  // namespace stepcast
