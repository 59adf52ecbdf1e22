// What a Session keeps: platforms that were loaded, and what was priced on them.
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

// Errors: other jobs on links that nobody described; a power limit that the GPU does not have. The assumptions of a question
// on a platform; `limit_W`: of each GPU.
[[nodiscard]] Result<StepAssumptions> assumptions_on(const Platform& platform, const PredictRequest& request,
                                                     const std::vector<std::string>& what_if,
                                                     std::optional<double> limit_W);
// What measured steps say of the forecast of a job; nothing where there are none, or none is of the job itself.
struct OnMeasured {
  std::optional<ForecastAnchor> anchor;
  std::optional<MeasuredCheck> check;
  std::vector<std::string> notes;  // steps that are not used, as they are the time of something else
};
// `asked` become the assumptions of the anchored forecast. Errors: words or logs that cannot be read, steps that cannot be
// forecast.
[[nodiscard]] Result<OnMeasured> anchor_on_measured(const PredictRequest& request, const ResolvedJob& job,
                                                    const StepModel& machine, StepAssumptions& asked);
// What a note says of it.
[[nodiscard]] std::string anchor_text(const ForecastAnchor& anchor);
// With settings that act and have no price.
[[nodiscard]] StepAssumptions widened_for(std::size_t n_unpriced, StepAssumptions assumptions);
// More are a mistake: batches count sequences.
[[nodiscard]] Status check_micro_batches(const Layout& layout);
// With the price of a GPU-hour that the zones of its pools say. Errors: another price.
[[nodiscard]] Result<TrainingBudget> with_prices_of_zones(TrainingBudget budget, const Cluster& cluster);

}  // namespace detail

// A platform with the prices of its operations.
struct PricedPlatform {
  std::shared_ptr<const Platform> platform;
  StepModel steps;  // refers to *platform
  ShortSteps short_steps{};
};

// What the layout of an open job depends on.
struct LayoutQuestion {
  Job job;  // without a file or command line of a framework
  // What it comes to with the usual layout: files that it names may change.
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

// Where GPUs are named: "h100" and several of them are those of its usual node.
struct MeantPlatform {
  std::string name, note;  // the note is empty where the platform is the one that was named
  std::shared_ptr<const Platform> platform;
};

// ShortSteps serve one call at a time: every call leases some that are free, or makes some.
struct Session::Impl {
  using Key =
      std::pair<std::string, std::optional<std::int64_t>>;  // platform, GPUs of a node if not as it has

  // Gives back what it has when it ends, also where the call fails.
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

  Result<std::shared_ptr<const Platform>> platform(const std::string& name) {
    const std::scoped_lock lock{mutex};
    if (const auto found = platforms.find(name); found != platforms.end()) return found->second;
    STEPCAST_ASSIGN(Platform loaded, load_platform(name));
    auto shared = std::make_shared<const Platform>(std::move(loaded));
    platforms.emplace(name, shared);
    return shared;
  }

  // The shipped one with the GPU that recorded traces.
  Result<std::shared_ptr<const Platform>> platform_with(const std::string& gpu) {
    const std::scoped_lock lock{mutex};
    std::shared_ptr<const Platform>& of_gpu = recorded_on[gpu];
    if (of_gpu == nullptr) {
      STEPCAST_ASSIGN(Platform loaded, detail::platform_with(gpu));
      of_gpu = std::make_shared<const Platform>(std::move(loaded));
    }
    return of_gpu;
  }

  Result<MeantPlatform> meant_platform(const std::string& name, std::int64_t n_gpus) {
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> as_named, platform(name));
    const std::optional<std::string> node = default_node_for(*as_named, n_gpus);
    if (!node) return MeantPlatform{name, {}, std::move(as_named)};
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_node, platform(*node));
    return MeantPlatform{*node, node_note(name, *node), std::move(of_node)};
  }

  // With nodes of so many GPUs; nothing: as the platform has.
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

  // Shares what searches of layouts on a platform have priced.
  std::shared_ptr<const StepModel> searched_steps(const std::shared_ptr<const Platform>& platform) {
    const std::scoped_lock lock{mutex};
    std::shared_ptr<const StepModel>& of_platform = searched[platform];
    if (of_platform == nullptr) of_platform = std::make_shared<const StepModel>(*platform);
    return of_platform;
  }

  // A step whose layout is chosen, on the platform or the pools of GPUs of a question.
  struct LaidOut {
    ResolvedJob job;           // with the layout that was chosen
    Layout layout;             // of the pool that decides: with its layers, or its micro-batches
    StepModel steps;           // of that pool
    std::vector<Lease> sites;  // [pool]
    std::size_t base = 0;      // the pool that decides
    StepForecastOptions options{};
    std::string layout_source{};
    LayoutOrigin layout_origin = LayoutOrigin::given;
    std::vector<std::string> notes{}, site_notes{};  // before and behind those of the job
    std::optional<OutputFile> timeline{};
    TrainingBudget budget{};
    std::optional<ForecastAnchor> anchor{};
    std::optional<MeasuredCheck> measured_check{};
    // Of several pools: how they are said, and the layouts that were found, the first of which was chosen.
    Cluster cluster{};
    std::vector<PooledLayout> found{};
    std::vector<RunPool> run_pools{};
    [[nodiscard]] const Platform& platform() const { return *sites[base]->platform; }
    [[nodiscard]] bool on_several_pools() const { return !found.empty(); }
  };
  Result<LaidOut> lay_out(const PredictRequest& request, const Extras& extras);
  Result<LaidOut> lay_out_on_pools(const PredictRequest& request, const Cluster& cluster);
  // What a forecast says of several pools besides the step.
  static Status add_pools(const LaidOut& step, const PredictRequest& request, Forecast& forecast);
  Result<Forecast> forecast(const PredictRequest& request, LaidOut step, const Extras& extras);

  // `faster`: one more what-if ("gemm=2"), which the layout is not chosen for; empty: none.
  Result<RlForecast> predict(const PredictRlRequest& request, const std::string& faster);

  // detail::planned_layout(), once for every question of late.
  std::optional<LayoutChoice> planned_layout(LayoutQuestion question, const ResolvedJob& usual);

  std::mutex mutex;
  std::deque<std::pair<LayoutQuestion, std::optional<LayoutChoice>>> layouts;  // the latest in front
  std::map<std::shared_ptr<const Platform>, std::shared_ptr<const StepModel>> searched;
  std::map<std::string, std::shared_ptr<const Platform>> platforms;
  std::map<std::string, std::shared_ptr<const Platform>> recorded_on;  // by the GPU
  std::map<Key, std::vector<std::unique_ptr<PricedPlatform>>> free;
};

// A forecast with its sensitivities, and with what a page shows.
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
