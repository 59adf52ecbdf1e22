// What a Session keeps: platforms that were loaded, and step models that serve one call at a time.
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
#include "stepcast/api/stepcast.h"
#include "stepcast/describe/layout_choice.h"
#include "stepcast/plan/step_models.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {

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

// A StepModel serves one thread at a time: every call takes one that is free, or makes one, and leaves it for
// the next.
struct Session::Impl {
  Result<std::shared_ptr<const Platform>> platform(const std::string& name) {
    const std::scoped_lock lock{mutex};
    if (const auto found = platforms.find(name); found != platforms.end()) return found->second;
    STEPCAST_ASSIGN(Platform loaded, load_platform(name));
    auto shared = std::make_shared<const Platform>(std::move(loaded));
    platforms.emplace(name, shared);
    return shared;
  }

  // With nodes of so many GPUs; nothing: as the platform has.
  Result<std::unique_ptr<PricedPlatform>> take(const std::string& name,
                                               std::optional<std::int64_t> gpus_per_node) {
    {
      const std::scoped_lock lock{mutex};
      std::vector<std::unique_ptr<PricedPlatform>>& of_name = free[{name, gpus_per_node}];
      if (!of_name.empty()) {
        std::unique_ptr<PricedPlatform> taken = std::move(of_name.back());
        of_name.pop_back();
        return taken;
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
    return std::make_unique<PricedPlatform>(PricedPlatform{std::move(of_name), std::move(steps)});
  }

  void give_back(const std::string& name, std::optional<std::int64_t> gpus_per_node,
                 std::unique_ptr<PricedPlatform> priced) {
    const std::scoped_lock lock{mutex};
    free[{name, gpus_per_node}].push_back(std::move(priced));
  }

  // What searches of layouts on a platform have priced.
  std::shared_ptr<StepModels> models_of(const std::shared_ptr<const Platform>& platform) {
    const std::scoped_lock lock{mutex};
    std::shared_ptr<StepModels>& of_platform = searched[platform];
    if (of_platform == nullptr) of_platform = std::make_shared<StepModels>(*platform);
    return of_platform;
  }

  // detail::planned_layout(), once for every question of late.
  std::optional<LayoutChoice> planned_layout(LayoutQuestion question, const ResolvedJob& usual);

  std::mutex mutex;
  std::deque<std::pair<LayoutQuestion, std::optional<LayoutChoice>>> layouts;  // the latest in front
  std::map<std::shared_ptr<const Platform>, std::shared_ptr<StepModels>> searched;
  std::map<std::string, std::shared_ptr<const Platform>> platforms;
  std::map<std::pair<std::string, std::optional<std::int64_t>>, std::vector<std::unique_ptr<PricedPlatform>>>
      free;
};

}  // namespace stepcast
