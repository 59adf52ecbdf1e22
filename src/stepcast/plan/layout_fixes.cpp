#include "stepcast/plan/layout_fixes.h"

#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/duration_text.h"
#include "stepcast/base/text.h"
#include "stepcast/plan/plan_alternatives.h"

namespace stepcast {
namespace {

using S = JobSettings;

// A restriction given by the user: its flag, and a function that removes it from a request.
struct Restriction {
  std::string_view flag;
  std::function<void(PlanRequest&)> lift;
};

// All restrictions of a request, in the order in which they are tried.
std::vector<Restriction> restrictions_of(const PlanRequest& request) {
  std::vector<Restriction> all;
  const LayoutRestrictions& lists = request.restrictions;
  const S& settings = request.job.settings;
  // Given as a list of the search, or as flags of a single layout.
  const auto add = [&](auto list, std::string_view list_flag, std::string_view setting_flag, auto... fields) {
    // A restriction is named by the flag through which it was given.
    const bool listed = (lists.*list).has_value();
    const bool set = ((settings.*fields).has_value() || ... || false);
    if (!listed && !set) return;
    all.push_back({listed ? list_flag : setting_flag, [=](PlanRequest& r) {
                     (r.restrictions.*list).reset();
                     ((r.job.settings.*fields).reset(), ...);
                   }});
  };
  using L = LayoutRestrictions;
  add(&L::tensor, "--tp", "--tp", &S::tensor);
  add(&L::pipeline, "--pp", "--pp", &S::pipeline);
  add(&L::context, "--cp", "--cp", &S::context);
  add(&L::expert, "--ep", "--ep", &S::expert);
  add(&L::expert_tensor, "--etp", "--etp", &S::expert_tensor);
  add(&L::micro_batch, "--mbs", "--mbs", &S::micro_batch_sequences);
  add(&L::virtual_stages, "--vp", "--vp", &S::virtual_stages);
  add(&L::schedules, "--schedules", "--schedules");
  add(&L::sequence_parallel, "--sp", "--sequence-parallel", &S::sequence_parallel);
  add(&L::recomputations, "--recompute", "the flags of recomputation", &S::recompute, &S::recompute_by_block,
      &S::recompute_modules, &S::recompute_attention, &S::checkpoint_layers);
  add(&L::shardings, "--sharding", "the flags of sharding", &S::sharding, &S::fully_sharded, &S::zero_stage,
      &S::distributed_optimizer);
  if (request.memory_bytes)
    all.push_back({"--max-memory-GiB", [](PlanRequest& r) { r.memory_bytes.reset(); }});
  return all;
}

// Batches near the requested one that are divisible by more data-parallel ranks.
std::vector<std::int64_t> batches_near(std::int64_t batch, std::int64_t n_gpus, std::int64_t gpus_per_node) {
  std::vector<std::int64_t> all = dividing_batches(n_gpus, batch, gpus_per_node);
  for (std::int64_t step = 1; all.empty() && step <= n_gpus; ++step) {
    if (n_gpus % step != 0 || batch % step == 0) continue;
    if (batch / step > 0) all.push_back(batch / step * step);
    all.push_back((batch / step + 1) * step);
  }
  if (batch < n_gpus && all.back() != n_gpus) all.push_back(n_gpus);  // one sequence per GPU
  return all;
}

// Searches changed requests and collects those with a layout. Searches run without refinement and jitter to save time.
class Cures {
 public:
  Cures(const PlanRequest& request, const Platform& platform) : request_(request), platform_(platform) {
    // Only the existence and the fastest layout matter for a fix.
    request_.top = 1;
    request_.refines = false;
    request_.jitter = {};
    request_.objective = PlanObjective::step_time;
  }

  // Tries restrictions one by one, then batches, then more GPUs, then all restrictions together.
  std::vector<LayoutFix> all() {
    const std::vector<Restriction> restrictions = restrictions_of(request_);
    for (const Restriction& one : restrictions) try_with(fmt::format("without {}", one.flag), one.lift);
    if (!cures_.empty()) return std::move(cures_);
    if (const auto batch = request_.job.settings.global_batch_sequences) {
      for (const std::int64_t other : batches_near(*batch, request_.n_gpus, platform_.node.gpus_per_node)) {
        try_with(fmt::format("with --gbs {}", other),
                 [&](PlanRequest& r) { r.job.settings.global_batch_sequences = other; });
      }
    }
    // Doubling the number of GPUs keeps common degrees divisible.
    constexpr std::int64_t kMostTimes = 64, kMostGpus = 1 << 16;
    for (std::int64_t times = 2; times <= kMostTimes && cures_.empty(); times *= 2) {
      const std::int64_t gpus = request_.n_gpus * times;
      if (gpus > kMostGpus) break;
      try_with(fmt::format("on {} GPUs", gpus), [&](PlanRequest& r) { r.n_gpus = gpus; });
    }
    if (cures_.empty() && restrictions.size() > 1) {
      std::vector<std::string> flags;
      for (const Restriction& one : restrictions) flags.emplace_back(one.flag);
      try_with("without " + join(flags), [&](PlanRequest& r) {
        for (const Restriction& one : restrictions) one.lift(r);
      });
    }
    return std::move(cures_);
  }

 private:
  // Plans the changed request and records it if a layout runs and fits.
  void try_with(std::string change, const std::function<void(PlanRequest&)>& apply) {
    PlanRequest changed = request_;
    apply(changed);
    // Changes that fail with an error are skipped.
    const Result<LayoutPlan> plan = plan_layouts(changed, platform_);
    if (!plan || plan->found.priced.empty()) return;
    cures_.push_back({std::move(change), plan->found.priced.size(), plan->found.priced.front()});
  }

  PlanRequest request_;
  const Platform& platform_;
  std::vector<LayoutFix> cures_;
};

}  // namespace

std::vector<LayoutFix> layout_fixes(const PlanRequest& request, const Platform& platform) {
  return Cures{request, platform}.all();
}

Error why_none(const LayoutPlan& plan, const std::vector<LayoutFix>& cures) {
  if (cures.empty()) return why_none(plan);
  std::string text;
  for (const LayoutFix& cure : cures) {
    text += fmt::format("{}{} {} layout{}, the fastest {} ({})", text.empty() ? "" : "; ", cure.change,
                        cure.n_layouts, cure.n_layouts == 1 ? " runs" : "s run",
                        to_string(cure.fastest.point), duration_text(cure.fastest.step_us * 1e-3));
  }
  return why_none(plan).advice(std::move(text));
}

}  // namespace stepcast
