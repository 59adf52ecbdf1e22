// Prices a step: work, placement, launches, layers, transfers, schedule. If transfers share network links,
// this is repeated until rates and schedule agree.
#include "stepcast/predict/step_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/device_generation.h"
#include "stepcast/predict/network_sharing.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_transfers.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/optimizer_work.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

// SMs used for dispatch and combine, defaults of the libraries.
constexpr double kSmsOfDeepEp = 20, kSmsOfHybridEp = 32;

// Host time per kernel of a description, in eager PyTorch under autocast, divided by the mean time per launch
// in the platform's host model. It is above 1 because casts and parts of norms, rotations and activations are
// separate kernels (2.1 launches per kernel in BERT, 2.2 in GPT-2, 2.4 in ResNet-50, 3.3 in Llama), and
// because models are Python code. In measured host-bound steps of BERT, GPT-2 and XLNet (data/measured) the
// ratio is 3.3. Casts are 0.4 of the launches.
constexpr double kLaunchesOfKernel = 3.3, kWithoutCasts = 0.6;

// The compute times of a unit, multiplied by the factor for the slowest GPU. Transfers are filled in later.
ScheduleUnit unit_of(const PricedLayer& layer, double factor) {
  return {factor * layer.forward.time_us, factor * layer.backward.time_us, factor * layer.held_back.time_us,
          0, 0};
}

// Fills the compute times of the chunks of the schedule. price_transfers() adds the transfers.
void fill_units(PricedStep& step) {
  StepSchedule& schedule = step.schedule;
  // Units are cleared but keep their memory, since searches fill the same step many times.
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

// Error if the device has no matrix units for an fp8 or fp4 type.
Status check_units(const Device& device, DType compute) {
  if ((compute != DType::fp8 && compute != DType::fp4) || device.peak(compute)) return Ok{};
  return Error::at(device.name, "the type of GEMMs")
      .found(fmt::format("{}, which this device does not support", to_string(compute)))
      .expected("a type with a peak in the platform file")
      .advice(
          fmt::format("choose bf16 or fp16, another platform, or set peak_{}_TFLOPs", to_string(compute)));
}

// How a library such as DeepEP exchanges tokens between experts; nullopt if collectives do it.
std::optional<TokenExchange> exchange_of(const Transformer& model, const Layout& layout) {
  const TokenDispatcher dispatcher = layout.layer.dispatcher;
  if (!model.moe || (dispatcher != TokenDispatcher::deepep && dispatcher != TokenDispatcher::hybridep))
    return std::nullopt;
  TokenExchange exchange;
  // With latent experts, the exchanged vectors are narrower than the hidden size.
  const std::int64_t width = model.moe->latent_size > 0 ? model.moe->latent_size : model.hidden_size;
  exchange.hidden_size = static_cast<double>(width);
  exchange.element_bytes = 2;
  // fp8 with one 4-byte scale per 128 elements, in bytes per element.
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
  if (kernel != AttentionKernel::any) return layout;
  kernel = usual_attention_kernel(layout.software, generation_of(device).asynchronous_products);
  // FlashAttention does not support fp32.
  if (layout.layer.precision.compute == DType::fp32) kernel = AttentionKernel::efficient;
  return layout;
}

// The caches of one worker, and the computation of a step with them.
struct StepWorker::Impl {
  explicit Impl(const Platform& platform) : pricer(platform, {}) {}

  // Switches to a model with these assumptions and links, and drops caches that are invalid or too large.
  void take_on(const StepAssumptions& assumptions, const std::optional<PoolLinks>& links) {
    constexpr std::size_t kMostLayers = 4096;  // about 50 kB each
    constexpr unsigned kLooksEvery = 256;      // counting the layers takes as long as pricing a cached layout
    if (++n_taken_on % kLooksEvery == 0 && layers.size() > kMostLayers) layers = {};
    const bool is_same = assumptions == said;
    if (!is_same || links != pool_links) placed.clear();
    if (!is_same || pricer.layers_priced() > kMostLayers) pricer.assume(assumptions);
    if (!is_same) said = assumptions;
    pool_links = links;
    pricer.price_as(std::nullopt, false, false, 1);
  }

  // These fill a given `step`: it is large, and a search prices thousands.
  Status begin(const Transformer& model, const Layout& layout, PricedStep& step);
  Status finish(const Transformer& model, const Layout& layout, PricedStep& step);
  Status price(const Transformer& model, const Layout& layout, PricedStep& step) {
    STEPCAST_TRY(begin(model, layout, step));
    return finish(model, layout, step);
  }

  // Prices the step with the network slowdowns that its placement currently has.
  Status price_with_slowdowns(const Transformer& model, const Layout& layout, PricedStep& step);
  // Repeats schedule and prices until the network slowdowns agree with the overlaps. Does nothing without
  // shared links.
  Status share_network(const Transformer& model, const Layout& layout, PricedStep& step);
  // Whether the platform states tiers of its fabric, or the job has several pools.
  [[nodiscard]] bool shares_network() const {
    const auto& network = pricer.platform().node.network;
    return pool_links || (network && !network->tiers.empty());
  }

  // Placement of the ranks of a layout, cached while the degrees are equal. One placement is kept for every
  // size of the shard groups, because searches alternate between them.
  Status place_ranks(const Layout& layout, PricedStep& step) {
    STEPCAST_ASSIGN(const Placed* found, placed_ranks(layout));
    step.placement = found->placement;
    return Ok{};
  }

  struct Placed {
    std::int64_t shard_group = 0;  // ranks per shard group
    Placement placement;           // of all groups
    // Only if transfers share links.
    std::optional<NetworkSharing> sharing;
  };
  Result<const Placed*> placed_ranks(const Layout& layout) {
    Degrees degrees = layout.degrees;
    degrees.virtual_stages = 1;  // all virtual stages of a stage are on one rank
    // The dispatcher and the kind of context parallelism decide whether groups use rings or all-to-all, and
    // so how transfers share links.
    if (degrees != placed_degrees || layout.rank_order != placed_order ||
        layout.layer.dispatcher != placed_dispatcher ||
        layout.layer.context_parallel_kind != placed_context) {
      placed.clear();
      placed_degrees = degrees;
      placed_order = layout.rank_order;
      placed_dispatcher = layout.layer.dispatcher;
      placed_context = layout.layer.context_parallel_kind;
    }
    const std::int64_t shard_group = layout.shard_group();
    auto known = std::find_if(placed.begin(), placed.end(),
                              [&](const auto& one) { return one.shard_group == shard_group; });
    if (known == placed.end()) {
      const Node& node = pricer.platform().node;
      Placed fresh{shard_group, {}, {}};
      STEPCAST_ASSIGN(fresh.placement, place(layout, node.gpus_per_node, node.segment));
      if (shares_network() && node.network) {
        STEPCAST_ASSIGN(fresh.sharing, NetworkSharing::of(*node.network, layout, fresh.placement,
                                                          pricer.assumptions().background_load, pool_links));
        set_slowdowns(fresh.sharing->alone(), fresh.placement);
      }
      if (pool_links) set_latencies(*pool_links, fresh.placement);
      known = placed.insert(placed.end(), std::move(fresh));
    }
    return &*known;
  }

  std::deque<Placed> placed;
  unsigned n_taken_on = 0;
  StepAssumptions said;
  std::optional<PoolLinks> pool_links;
  Degrees placed_degrees;
  std::string placed_order;
  decltype(LayerChoices::dispatcher) placed_dispatcher{};
  decltype(LayerChoices::context_parallel_kind) placed_context{};
  LayerWorkCache layers;
  StepPricer pricer;
  ScheduleEvaluator evaluator;
};

// `layout` must be complete (with_software_choices()).
Status StepWorker::Impl::begin(const Transformer& model, const Layout& layout, PricedStep& step) {
  STEPCAST_TRY(check_units(pricer.platform().device, layout.layer.precision.compute));
  STEPCAST_TRY(step_work(model, layout, layers, step.work));
  return place_ranks(layout, step);
}

Status StepWorker::Impl::finish(const Transformer& model, const Layout& layout, PricedStep& step) {
  STEPCAST_TRY(price_with_slowdowns(model, layout, step));
  return share_network(model, layout, step);
}

Status StepWorker::Impl::share_network(const Transformer& model, const Layout& layout, PricedStep& step) {
  step.network = {};
  if (!shares_network()) return Ok{};
  STEPCAST_ASSIGN(const Placed* found, placed_ranks(layout));
  if (!found->sharing) return Ok{};
  const NetworkSharing* const sharing = &*found->sharing;
  constexpr double kAgreed = 0.005;  // relative difference of slowdowns that is accepted
  SlowdownOfKind now = sharing->alone();
  step.network.alone = now;
  step.network.tier_loads = sharing->tier_loads();
  for (step.network.sweeps = 1;; ++step.network.sweeps) {
    const StepTimes& times = evaluator.evaluate(step.schedule);
    const SlowdownOfKind wanted = shared_slowdown(*sharing, overlaps_of(step, times, layout));
    step.network.residual = 0;
    for (std::size_t k = 0; k < now.size(); ++k)
      step.network.residual = std::max(step.network.residual, std::abs(wanted[k] / now[k] - 1));
    if (step.network.residual <= kAgreed || step.network.sweeps == kMostSweeps) break;
    now = wanted;
    set_slowdowns(now, step.placement);
    STEPCAST_TRY(price_with_slowdowns(model, layout, step));
  }
  step.network.slowdown = now;
  return Ok{};
}

Status StepWorker::Impl::price_with_slowdowns(const Transformer& model, const Layout& layout,
                                              PricedStep& step) {
  const StepAssumptions& assume = pricer.assumptions();
  step.exchange = exchange_of(model, layout);
  step.on_device = model.network != nullptr;
  step.fp32_convolutions = layout.layer.precision.fp32_convolutions;
  step.slowest_gpu_factor = 1 + slowest_gpu_excess(layout.world_size(), assume.gpu_speed_spread);
  step.compiled = layout.layer.fused.compiled;
  const std::optional<double>& eager = layout.layer.operator_launches;
  step.operator_launches = eager ? *eager * generation_of(pricer.platform().device).host_time : 1;
  if (!eager && !step.compiled && rule_of(layout).layers.launches_operators) {
    // Blocks of networks have few operators and no biases. They use the ratio without casts.
    const bool casts =
        rule_of(layout).layers.autocasts && layout.layer.precision.master_weights && !model.network;
    const double us = kLaunchesOfKernel * (casts ? 1 : kWithoutCasts) * pricer.operator_us();
    // Expressed as a number of launches, so that a faster host speeds up both.
    step.operator_launches = std::max(1.0, us / StepAssumptions{}.host_launch_us);
  }
  step.host_share = eager ? 1 : 1 / step.operator_launches;
  pricer.price_as(step.exchange, step.on_device, step.fp32_convolutions, step.host_share);
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

// Caches shared by all models of one platform: the workers that no thread uses at the moment.
struct StepWorker::Shared {
  explicit Shared(const Platform& on) : platform(on) { free.push_back(std::make_unique<Impl>(on)); }

  // A free worker, or a new one.
  std::unique_ptr<Impl> take() {
    {
      const std::scoped_lock lock{mutex};
      // Drops all caches after 2^20 calls, to bound the memory of long-running processes. A search needs only
      // thousands of calls, so it keeps its caches.
      constexpr std::size_t kMostTakes = std::size_t{1} << 20U;
      if (++n_taken % kMostTakes == 0) free.clear();
      if (!free.empty()) {
        std::unique_ptr<Impl> taken = std::move(free.back());
        free.pop_back();
        return taken;
      }
    }
    return std::make_unique<Impl>(platform);
  }
  void give_back(std::unique_ptr<Impl> impl) {
    const std::scoped_lock lock{mutex};
    free.push_back(std::move(impl));  // last in, first out: a single thread always gets the same worker
  }

  const Platform& platform;
  std::mutex mutex;
  std::vector<std::unique_ptr<Impl>> free;
  std::size_t n_taken = 0;
};

StepWorker::StepWorker(std::shared_ptr<Shared> of, std::unique_ptr<Impl> impl)
    : of_(std::move(of)), impl_(std::move(impl)) {}
StepWorker::StepWorker(StepWorker&&) noexcept = default;
StepWorker::~StepWorker() {
  if (impl_ != nullptr) of_->give_back(std::move(impl_));
}

StepPricer& StepWorker::pricer() { return impl_->pricer; }

ScheduleEvaluator& StepWorker::evaluator() { return impl_->evaluator; }

Status StepWorker::begin(const Transformer& model, const Layout& layout, PricedStep& step) {
  return impl_->begin(model, layout, step);
}

Status StepWorker::finish(const Transformer& model, const Layout& layout, PricedStep& step) {
  return impl_->finish(model, layout, step);
}

Status StepWorker::share_differently(const Transformer& model, const Layout& layout, PricedStep& step) {
  const bool shares = impl_->shares_network();
  if (shares || step.placement.shard.n_ranks != layout.shard_group()) {
    STEPCAST_TRY(impl_->place_ranks(layout, step));
  }
  if (shares) return impl_->finish(model, layout, step);
  return price_transfers(model, layout, impl_->pricer, step);
}

StepModel::StepModel(const Platform& platform, const StepAssumptions& assumptions,
                     const std::optional<PoolLinks>& links)
    : shared_(std::make_shared<StepWorker::Shared>(platform)), assumptions_(assumptions), links_(links) {}

StepModel StepModel::with(const StepAssumptions& assumptions) const {
  StepModel other = *this;
  other.assumptions_ = assumptions;
  return other;
}

StepModel StepModel::with(const PoolLinks& links) const {
  StepModel other = *this;
  other.links_ = links;
  return other;
}

const Platform& StepModel::platform() const { return shared_->platform; }

StepWorker StepModel::worker() const {
  StepWorker worker{shared_, shared_->take()};
  worker.impl_->take_on(assumptions_, links_);
  return worker;
}

StepWorker StepModel::worker(const PricedStep& step) const {
  StepWorker of_step = worker();
  of_step.pricer().price_as(step.exchange, step.on_device, step.fp32_convolutions, step.host_share);
  return of_step;
}

Result<PricedStep> StepModel::price(const Transformer& model, const Layout& layout) const {
  const StepWorker own = worker();
  PricedStep step;
  STEPCAST_TRY(own.impl_->price(model, with_software_choices(layout, platform().device), step));
  return step;
}

Result<StepPrediction> StepModel::predict(const Transformer& model, const Layout& layout) const {
  const StepWorker own = worker();
  PricedStep step;
  STEPCAST_TRY(own.impl_->price(model, with_software_choices(layout, platform().device), step));
  return step_prediction(step, own.impl_->evaluator.evaluate(step.schedule), layout, own.impl_->pricer);
}

StepPrediction StepModel::predict(const PricedStep& step, const Layout& layout) const {
  const StepWorker own = worker();
  return step_prediction(step, own.impl_->evaluator.evaluate(step.schedule), layout, own.impl_->pricer);
}

std::uint32_t StepModel::critical_stage(const PricedStep& step) const {
  return worker().evaluator().evaluate(step.schedule).critical_stage;
}

}  // namespace stepcast
