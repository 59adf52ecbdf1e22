#include "stepcast/predict/step_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/device_generation.h"
#include "stepcast/predict/slowest_gpu.h"
#include "stepcast/predict/step_transfers.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/optimizer_work.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

// SMs that libraries take for dispatch and combine by default.
constexpr double kSmsOfDeepEp = 20, kSmsOfHybridEp = 32;

ScheduleUnit unit_of(const PricedLayer& layer, double factor) {
  return {factor * layer.forward.time_us, factor * layer.backward.time_us, factor * layer.held_back.time_us,
          0, 0};
}

// What the chunks of the schedule compute; their transfers come later.
void fill_units(PricedStep& step) {
  StepSchedule& schedule = step.schedule;
  // A step that is filled again keeps its memory.
  schedule.chunks.resize(step.work.chunks.size());
  for (std::size_t c = 0; c < step.work.chunks.size(); ++c) {
    const ChunkWork& chunk = step.work.chunks[c];
    ScheduleChunk& priced = schedule.chunks[c];
    priced.units.clear();
    if (chunk.has_embedding) {
      priced.units.push_back(unit_of(step.embedding, step.slowest_gpu_factor));
    }
    for (const ChunkWork::Run& run : chunk.runs) {
      priced.units.insert(priced.units.end(), run.count,
                          unit_of(step.layers[run.kind], step.slowest_gpu_factor));
    }
    if (chunk.has_head) {
      priced.units.push_back(unit_of(step.head, step.slowest_gpu_factor));
    }
  }
}

// Products in a narrow type need units that multiply it.
Status check_units(const Device& device, DType compute) {
  if ((compute != DType::fp8 && compute != DType::fp4) || device.peak(compute)) return Ok{};
  return Error::at(device.name, "the type of matrix products")
      .found(fmt::format("{}, for which this device has no units", to_string(compute)))
      .expected("a type of which the platform states a peak")
      .advice(
          fmt::format("choose bf16 or fp16, another platform, or state peak_{}_TFLOPs", to_string(compute)));
}

// How tokens go to their experts: nothing where collectives take them.
std::optional<TokenExchange> exchange_of(const Transformer& model, const Layout& layout) {
  const TokenDispatcher dispatcher = layout.layer.dispatcher;
  if (!model.moe || (dispatcher != TokenDispatcher::deepep && dispatcher != TokenDispatcher::hybridep))
    return std::nullopt;
  TokenExchange exchange;
  // Latent experts read and write narrower vectors than the layers.
  const std::int64_t width = model.moe->latent_size > 0 ? model.moe->latent_size : model.hidden_size;
  exchange.hidden_size = static_cast<double>(width);
  exchange.element_bytes = 2;
  // A scale of 4 bytes goes with 128 elements.
  constexpr double kNarrowBytes = 1 + 4.0 / 128;
  if (layout.layer.narrow_dispatch) exchange.dispatch_bytes = kNarrowBytes;
  exchange.top_k = model.moe->experts_per_token;
  exchange.n_experts = model.moe->n_experts;
  exchange.n_groups = model.moe->n_groups;
  exchange.groups_per_token = model.moe->groups_per_token;
  exchange.sms = dispatcher == TokenDispatcher::deepep ? kSmsOfDeepEp : kSmsOfHybridEp;
  return exchange;
}

}  // namespace

Layout with_software_choices(Layout layout, const Device& device) {
  AttentionKernel& kernel = layout.layer.attention_kernel;
  if (kernel == AttentionKernel::any)
    kernel = usual_attention_kernel(layout.software, generation_of(device).asynchronous_products);
  return layout;
}

struct StepModel::Impl {
  Impl(const Platform& platform, const StepAssumptions& assumptions) : pricer(platform, assumptions) {}

  // Fill a `step`: it is large, and a search asks for thousands.
  Status begin(const Transformer& model, const Layout& layout, PricedStep& step);
  Status finish(const Transformer& model, const Layout& layout, PricedStep& step);
  Status price(const Transformer& model, const Layout& layout, PricedStep& step) {
    STEPCAST_TRY(begin(model, layout, step));
    return finish(model, layout, step);
  }

  // Where the ranks of a layout lie: as before while the degrees are the same. Sharding alternates in a search, so one
  // placement is kept for every size of its groups.
  Status place_ranks(const Layout& layout, Placement& placement) {
    Degrees degrees = layout.degrees;
    degrees.virtual_stages = 1;  // a rank has all of them
    if (degrees != placed_degrees || layout.rank_order != placed_order) {
      placed.clear();
      placed_degrees = degrees;
      placed_order = layout.rank_order;
    }
    const std::int64_t shard_group = layout.shard_group();
    auto known =
        std::find_if(placed.begin(), placed.end(), [&](const auto& one) { return one.first == shard_group; });
    if (known == placed.end()) {
      const Node& node = pricer.platform().node;
      STEPCAST_ASSIGN(Placement fresh, place(layout, node.gpus_per_node, node.segment));
      known = placed.insert(placed.end(), {shard_group, std::move(fresh)});
    }
    placement = known->second;
    return Ok{};
  }

  std::vector<std::pair<std::int64_t, Placement>> placed;  // ranks that share, where all lie
  Degrees placed_degrees;
  std::string placed_order;
  LayerWorkCache layers;
  StepPricer pricer;
  ScheduleEvaluator evaluator;
};

// `layout` with its software's choices.
Status StepModel::Impl::begin(const Transformer& model, const Layout& layout, PricedStep& step) {
  STEPCAST_TRY(check_units(pricer.platform().device, layout.layer.precision.compute));
  STEPCAST_ASSIGN(step.work, step_work(model, layout, layers));
  return place_ranks(layout, step.placement);
}

Status StepModel::Impl::finish(const Transformer& model, const Layout& layout, PricedStep& step) {
  const StepAssumptions& assume = pricer.assumptions();
  pricer.set_exchange(exchange_of(model, layout));
  pricer.set_on_device(model.network != nullptr);
  step.slowest_gpu_factor = 1 + slowest_gpu_excess(layout.world_size(), assume.gpu_speed_spread);
  step.compiled = layout.layer.fused.compiled;
  const std::optional<double>& eager = layout.layer.operator_launches;
  step.operator_launches = eager ? *eager * generation_of(pricer.platform().device).host_time : 1;
  step.launch_us =
      step.operator_launches * (step.compiled ? assume.compiled_host_launch_us : assume.host_launch_us);
  const auto price_layer = [&](PricedLayer& priced, const std::shared_ptr<const LayerWork>& work) -> Status {
    STEPCAST_ASSIGN(priced, pricer.price(work, step.placement, step.launch_us));
    return Ok{};
  };
  step.layers.resize(step.work.layer_kinds.size());
  for (std::size_t kind = 0; kind < step.layers.size(); ++kind) {
    STEPCAST_TRY(price_layer(step.layers[kind], step.work.layer_kinds[kind]));
  }
  STEPCAST_TRY(price_layer(step.embedding, step.work.embedding));
  STEPCAST_TRY(price_layer(step.head, step.work.head));

  StepSchedule& schedule = step.schedule;
  schedule.shape = {layout.pipeline.schedule, step.work.stages, step.work.virtual_stages,
                    step.work.micro_batches, runs_one_more_forward(layout)};
  STEPCAST_TRY(check(schedule.shape));
  schedule.fixed_us =
      assume.step_fixed_us + (eager ? step.launch_us * update_operators(model, layout, step.work) : 0);
  schedule.optimizer_waits_for_all = layout.optimizer.gradient_clip;
  fill_units(step);
  return price_transfers(model, layout, pricer, step);
}

StepModel::StepModel(const Platform& platform, const StepAssumptions& assumptions)
    : impl_(std::make_unique<Impl>(platform, assumptions)) {}
StepModel::StepModel(StepModel&&) noexcept = default;
StepModel& StepModel::operator=(StepModel&&) noexcept = default;
StepModel::~StepModel() = default;

StepPricer& StepModel::pricer() { return impl_->pricer; }

void StepModel::set_assumptions(const StepAssumptions& assumptions) {
  impl_->pricer.set_assumptions(assumptions);
}

Result<PricedStep> StepModel::price(const Transformer& model, const Layout& layout) {
  PricedStep step;
  STEPCAST_TRY(impl_->price(model, with_software_choices(layout, impl_->pricer.platform().device), step));
  return step;
}

Status StepModel::begin(const Transformer& model, const Layout& layout, PricedStep& step) {
  return impl_->begin(model, layout, step);
}

Status StepModel::finish(const Transformer& model, const Layout& layout, PricedStep& step) {
  return impl_->finish(model, layout, step);
}

Status StepModel::share_differently(const Transformer& model, const Layout& layout, PricedStep& step) {
  if (step.placement.shard.n_ranks != layout.shard_group()) {
    STEPCAST_TRY(impl_->place_ranks(layout, step.placement));
  }
  return price_transfers(model, layout, impl_->pricer, step);
}

const StepTimes& StepModel::times(const PricedStep& step) { return impl_->evaluator.evaluate(step.schedule); }

Result<StepPrediction> StepModel::predict(const Transformer& model, const Layout& layout) {
  PricedStep step;
  STEPCAST_TRY(impl_->price(model, with_software_choices(layout, impl_->pricer.platform().device), step));
  return step_prediction(step, impl_->evaluator.evaluate(step.schedule), layout, impl_->pricer);
}

StepPrediction StepModel::predict(const PricedStep& step, const Layout& layout) {
  return step_prediction(step, impl_->evaluator.evaluate(step.schedule), layout, impl_->pricer);
}

}  // namespace stepcast
