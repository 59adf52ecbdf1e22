// Prices the steps of a recommendation model. The Program is built and the dense part priced once. A sharding
// then changes only the durations of lookups and exchanges; the search evaluates it on a reduced model
// (detail/dlrm_skeleton.h), and predict() simulates the whole Program.
#include "stepcast/recommend/dlrm_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/device_time.h"
#include "stepcast/cost/learned_lookup.h"
#include "stepcast/cost/shortest_kernel.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/recommend/detail/dlrm_dense.h"
#include "stepcast/recommend/detail/dlrm_exchange.h"
#include "stepcast/recommend/detail/dlrm_loads.h"
#include "stepcast/recommend/detail/dlrm_skeleton.h"

namespace stepcast {
namespace {

// GPU memory for context, libraries and fragmentation
constexpr double kReserveBytes = 1.5 * 1024 * 1024 * 1024;
constexpr double kHostMemoryBytes = 256 * kGiB;  // assumed host memory of a node per GPU
constexpr double kStructureBand = 0.14;          // half-width in ln of the error of a stack's model itself
constexpr double kSharedShare = 0.6;             // share of the bands of parts that is correlated
// Factor on the bands for jobs on several nodes. Source: systems left out of the calibration in turn
// (docs/constants.md).
constexpr double kSeveralNodes = 0.65;
constexpr double kLeftOut = 0.05;  // in ln, upwards only: omitted work makes steps longer

const double kEndless = std::numeric_limits<double>::infinity();
using detail::RankLookups;

bool one_hot(const Dlrm& model) {
  return std::ranges::all_of(model.tables, [](const EmbeddingTable& t) { return t.pooling <= 1; });
}

// Bytes of activations of one rank: an estimate from the widths of all layers.
double activation_bytes(const Dlrm& model, const DlrmTraining& training, double batch) {
  double elements =
      2.0 * static_cast<double>(model.interaction_width()) + 3.0 * static_cast<double>(model.sum_of_dims());
  for (const auto* mlp : {&model.bottom_mlp, &model.top_mlp}) {
    for (const std::int64_t width : *mlp) elements += 3.0 * static_cast<double>(width);
  }
  const bool half = training.dtype == DType::fp16 || training.dtype == DType::bf16;
  return batch * elements * (half ? 2 : 4);
}

// Scales an estimate so that its time is at least `us`.
void no_shorter_than(double us, Estimate& e) {
  const double factor = us / e.time.value();
  if (!(factor > 1)) return;
  for (Microseconds* edge : {&e.time, &e.p10, &e.p90}) *edge = *edge * factor;
}

}  // namespace

struct DlrmStepModel::Impl {
  Dlrm model;
  DlrmTraining training;
  DlrmBehavior habits;
  Platform platform;
  std::unique_ptr<const Platform> links;  // links to use instead of those of the platform; may be null
  std::unique_ptr<StepPricer> link_prices;
  DlrmWhatIf what_if;
  std::int64_t n_ranks = 1, gpus_per_node = 1;
  StepPricer prices;
  DlrmProgram built;  // the Program of all ranks
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Costs> costs;
  Timeline timeline;
  detail::DlrmSkeleton skeleton;
  std::vector<PricedWork> works;
  detail::DlrmGroupsOnNodes groups;
  LookupConstants lookup_constants;
  std::unique_ptr<detail::DlrmLoads> loads;
  std::vector<RankLookups> rank_lookups;  // of the last sharding evaluated
  EstimateSource lookup_source = EstimateSource::analytic, exchange_source = EstimateSource::assumed;
  double exchange_band = 0, dense_band = 0;
  // Kernels that copy or cast one column of a rank's samples, around the exchange.
  double passes_us_per_column = 0;
  detail::PlanLoads predicted;     // of the last predict()
  detail::PlanLoads hybrid_loads;  // of the view used last
  double dense_memory = 0;
  bool uses_host_memory = false;

  Impl(Dlrm m, const DlrmTraining& t, const Platform& p, std::int64_t n, const StepAssumptions& assumptions,
       const LookupConstants& constants, const Platform* other_links)
      : model(std::move(m)),
        training(t),
        habits(habits_of(t, assumptions, one_hot(model))),
        platform(p),
        n_ranks(n),
        prices(platform, assumptions) {
    if (other_links != nullptr) {
      links = std::make_unique<const Platform>(*other_links);
      link_prices = std::make_unique<StepPricer>(*links, assumptions);
    }
    gpus_per_node = std::max<std::int64_t>(1, node_of_links().gpus_per_node);
    lookup_constants = constants;
    groups = detail::DlrmGroupsOnNodes::of(n, gpus_per_node);
    habits.processors = figures_of(platform.device).sm_count;
    // Inside a node, exchanges are kernels that leave no room for others. NICs transfer without the GPU, so
    // overlap is possible on several nodes only.
    habits.indices_beside = habits.indices_beside && groups.n_nodes > 1;
    const double batch = static_cast<double>(training.global_batch) / static_cast<double>(n);
    const double states = 3 + rule_of(training.dense_optimizer).moments;
    dense_memory =
        kReserveBytes + model.dense_parameters() * 4 * states + activation_bytes(model, training, batch);
  }

  [[nodiscard]] const Node& node_of_links() const { return links ? links->node : platform.node; }
  [[nodiscard]] StepPricer& transfers() { return link_prices ? *link_prices : prices; }

  // Error if a table exceeds the GPU and host memory of all ranks, so that no sharding can fit.
  [[nodiscard]] Status check_sizes() const {
    const double most =
        static_cast<double>(n_ranks) * (platform.device.memory_size.value() + kHostMemoryBytes);
    for (const EmbeddingTable& table : model.tables) {
      if (table.bytes() <= most) continue;
      return Error::at("", fmt::format("table `{}`", table.name))
          .found(fmt::format("{:.0f} GiB of weights", table.bytes() / kGiB))
          .expected(fmt::format("at most the {:.0f} GiB of {} GPUs and their hosts", most / kGiB, n_ranks));
    }
    return Ok{};
  }

  // Builds and prices everything that all shardings share.
  Status prepare() {
    STEPCAST_TRY(check_sizes());
    LearnedLookups learned;
    // Measured lookups are those of FBGEMM, for one dtype: that of the first table.
    if (habits.sorted_backward && !model.tables.empty()) {
      STEPCAST_ASSIGN(learned, learned_lookups(platform.models, platform.device, model.tables.front().dtype));
    }
    loads = std::make_unique<detail::DlrmLoads>(
        model, training, habits, platform.device, lookup_constants, n_ranks, gpus_per_node,
        learned.empty() ? nullptr : std::make_shared<const LearnedLookups>(std::move(learned)));
    STEPCAST_ASSIGN(built, dlrm_program(model, training, habits, n_ranks));
    STEPCAST_ASSIGN(Plan compiled, Plan::compile(built.program));
    plan = std::make_unique<Plan>(std::move(compiled));
    costs = std::make_unique<Costs>(built.program);
    STEPCAST_TRY(price_dense());
    fill();
    const BlockId block = built.blocks.front();
    skeleton = {built.program.block(block), costs->duration_us(block), costs->delay_us(block), built.tasks};
    return Ok{};
  }

  // Prices everything that does not depend on the sharding: dense kernels, all-reduces and host time.
  Status price_dense() {
    DeviceTime device{prices.kernels().model(), platform.device};
    const DeviceFigures figures = figures_of(platform.device);
    const WorkTable& table = built.program.works;
    double sum = 0, high = 0;
    for (std::size_t w = 0; w < table.size(); ++w) {
      PricedWork priced;
      if (const Operation* operation = table.operation(WorkId{w})) {
        priced = {true, device.of(*operation, prices.kernels().price(*operation)), {}};
        no_shorter_than(shortest_kernel_us(operation, {}, figures), priced.once);
        sum += priced.once.time.value();
        high += priced.once.p90.value();
      } else if (const CollectiveWork* work = table.collective(WorkId{w});
                 work != nullptr && work->message.value() > 0) {
        STEPCAST_ASSIGN(const Estimate once, transfers().price(work->op, work->message, groups.world));
        priced = {true, once, {}};
      } else if (table.host(WorkId{w}) != nullptr) {
        const Microseconds us{prices.assumptions().host_launch_us};
        priced = {true, {us, us, us, EstimateSource::assumed}, {}};
      }
      works.push_back(priced);
    }
    dense_band = sum > 0 && high > sum ? std::log(high / sum) : 0;
    price_passes(device);
    return Ok{};
  }
  // Prices the passes over vectors around the exchange: copies to and from buffers, and casts to the dtype on
  // the links.
  void price_passes(DeviceTime& device) {
    const std::int64_t columns = model.sum_of_dims();
    const std::int64_t elements = training.global_batch / n_ranks * columns;
    const auto add = [&](const Operation& pass, double times) {
      const Microseconds us = device.of(pass, prices.kernels().price(pass)).time;
      passes_us_per_column += times * us.value() / static_cast<double>(columns);
    };
    if (habits.places_vectors)
      add({MovementShape{.kind = MovementKind::scatter, .elements = elements}, training.dtype}, 1);
    const DType own = habits.exchanged(training.dtype);
    if (n_ranks == 1 || training.exchange_dtype == DType::unknown || training.exchange_dtype == own) return;
    // Cast before the exchange and back after it.
    const double bytes = element_size(own).value() + element_size(training.exchange_dtype).value();
    add({AmountShape{.bytes_read = bytes * static_cast<double>(elements),
                     .kernel_class = KernelClass::elementwise},
         own},
        2);
  }
  // Writes the priced works into the costs of all ranks.
  void fill() {
    for (const BlockId block : built.blocks) {
      const std::span<const TaskInfo> tasks = built.program.block(block).tasks();
      const std::span<double> durations = costs->duration_us(block);
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        if (!tasks[t].work.valid() || !works[tasks[t].work.index()].known) continue;
        durations[t] = works[tasks[t].work.index()].once.time.value() * tasks[t].work_times;
      }
    }
  }

  [[nodiscard]] double batch() const { return static_cast<double>(training.global_batch); }

  [[nodiscard]] bool hybrid() const { return habits.hybrid && one_hot(model); }

  [[nodiscard]] double available() const { return platform.device.memory_size.value(); }

  // Host memory of one node in bytes, and the most that the tables of the ranks of one node need.
  [[nodiscard]] double host_memory() const {
    return kHostMemoryBytes * static_cast<double>(std::min(gpus_per_node, n_ranks));
  }
  [[nodiscard]] double fullest_host(const std::vector<detail::RankLoad>& all) const {
    std::vector<double> nodes(all.size() / static_cast<std::size_t>(gpus_per_node) + 1, 0.0);
    for (std::size_t r = 0; r < all.size(); ++r)
      nodes[r / static_cast<std::size_t>(gpus_per_node)] += all[r].host_bytes;
    return *std::max_element(nodes.begin(), nodes.end());
  }

  // The loads of a plan; an empty plan means hybrid embedding.
  [[nodiscard]] const detail::PlanLoads& loads_of(const ShardingPlan& sharding,
                                                  std::size_t view = detail::DlrmLoads::kNominal) {
    if (!sharding.tables.empty()) return loads->of_plan(sharding, view);
    return hybrid_loads = loads->hybrid(view);
  }

  // Optimizer time of tables on every rank: they are parameters of the dense optimizer, which updates all
  // rows.
  double update_us(double bytes) {
    if (!habits.replicated_apart || bytes <= 0) return 0;
    DeviceTime device{prices.kernels().model(), platform.device};
    const std::vector<detail::DenseOp> ops =
        detail::dense_update(training, bytes / element_size(DType::fp32).value());
    const Operation& one = ops.front().operation;
    return static_cast<double>(ops.size()) * device.of(one, prices.kernels().price(one)).time.value();
  }
  // Durations of the exchanges under these loads. Also keeps source and band of the vectors' all-to-all.
  Result<detail::DlrmExchanges> exchanges_of(const detail::PlanLoads& all) {
    detail::DlrmExchanges us;
    if (n_ranks <= 1) return us;
    STEPCAST_ASSIGN(const Estimate vectors,
                    detail::price_vectors(all.ranks, batch(), loads->vector_bytes(), habits.reduces_in_node,
                                          groups, transfers()));
    double columns = 0;
    for (const detail::RankLoad& load : all.ranks) columns += load.vector_dims;
    us.vectors = vectors.time.value() + passes_us_per_column * columns;
    exchange_source = vectors.source;
    exchange_band =
        vectors.time.value() > 0 ? std::log(std::max(1.0, vectors.p90.value() / vectors.time.value())) : 0;
    std::vector<Bytes> inputs;
    for (const detail::RankLoad& load : all.ranks)
      inputs.push_back(Bytes{load.input_bytes / static_cast<double>(n_ranks)});
    STEPCAST_ASSIGN(const Estimate indices, transfers().price(CollectiveOp::all_to_all,
                                                              uneven_all_to_all_size(inputs), groups.world));
    us.indices = indices.time.value();
    STEPCAST_ASSIGN(const Estimate reduce,
                    transfers().price(CollectiveOp::all_reduce, Bytes{all.reduced_bytes}, groups.world));
    us.reduction = reduce.time.value();
    us.update = update_us(all.reduced_bytes);
    return us;
  }

  // [rank] lookup times, valid until the next call. The what-if factor applies to the last rank.
  [[nodiscard]] std::span<const RankLookups> lookups_us(const detail::PlanLoads& all, std::size_t view) {
    rank_lookups.clear();
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
      const double skew = r + 1 == all.ranks.size() ? what_if.rank_skew : 1;
      rank_lookups.push_back(
          {skew * loads->forward_us(all.ranks[r], view), skew * loads->backward_us(all.ranks[r], view)});
    }
    return rank_lookups;
  }

  // Writes the times of a sharding into the costs of the Program.
  void apply(std::span<const RankLookups> lookups, const detail::DlrmExchanges& us) {
    const DlrmTasks& tasks = built.tasks;
    for (std::size_t r = 0; r < built.blocks.size(); ++r) {
      const std::span<double> durations = costs->duration_us(built.blocks[r]);
      durations[tasks.lookup.index()] = lookups[r].forward_us;
      durations[tasks.lookup_backward.index()] = lookups[r].backward_us + us.update;
      if (n_ranks <= 1) continue;
      durations[tasks.exchange.index()] = us.vectors;
      durations[tasks.gradient_exchange.index()] = us.vectors;
      durations[tasks.table_reduction.index()] = us.reduction;
      if (tasks.input_exchange.valid()) durations[tasks.input_exchange.index()] = us.indices;
    }
  }

  // The step time in microseconds on the reduced model.
  [[nodiscard]] double end_us(const detail::PlanLoads& all, const detail::DlrmExchanges& us,
                              std::size_t view) {
    return skeleton.end_us(lookups_us(all, view), us);
  }

  // Bytes that a task moves on a rank in the last prediction, for tasks that depend on the sharding.
  [[nodiscard]] double moved_bytes(std::size_t task, std::size_t rank) const {
    if (rank >= predicted.ranks.size()) return 0;
    const DlrmTasks& tasks = built.tasks;
    const detail::RankLoad& load = predicted.ranks[rank];
    LookupCost lookups = load.lookups;
    lookups += load.replicated;
    if (task == tasks.lookup.index()) return lookups.gathered_bytes;
    if (task == tasks.lookup_backward.index()) {
      // One gradient per lookup; distinct rows are read and written.
      const double row = lookups.lookups > 0 ? lookups.gathered_bytes / lookups.lookups : 0;
      return lookups.gathered_bytes + 2 * lookups.distinct_rows * row;
    }
    if (n_ranks <= 1) return 0;
    if (task == tasks.exchange.index() || task == tasks.gradient_exchange.index())
      return batch() * load.vector_dims * loads->vector_bytes();
    if (task == tasks.table_reduction.index()) return predicted.reduced_bytes;
    return tasks.input_exchange.valid() && task == tasks.input_exchange.index() ? load.input_bytes : 0;
  }

  // Simulates the full Program under these loads.
  Status simulate(const detail::PlanLoads& all) {
    STEPCAST_ASSIGN(const detail::DlrmExchanges us, exchanges_of(all));
    uses_host_memory = all.host_memory;
    apply(lookups_us(all, detail::DlrmLoads::kNominal), us);
    return plan->simulate(*costs, {}, timeline);
  }
  [[nodiscard]] double step_us(const detail::PlanLoads& all) {
    const Result<detail::DlrmExchanges> us = exchanges_of(all);
    return us ? end_us(all, *us, detail::DlrmLoads::kNominal) : kEndless;
  }

  // Mean step time over the plausible views. `loads_of_view(view)` returns the loads of one view.
  template <class LoadsOfView>
  double expected_us(const detail::PlanLoads& nominal, const LoadsOfView& loads_of_view) {
    const Result<detail::DlrmExchanges> us = exchanges_of(nominal);
    if (!us) return kEndless;
    double sum = 0;
    for (std::size_t view = detail::DlrmLoads::kNominal + 1; view < detail::DlrmLoads::kViews; ++view) {
      sum += end_us(loads_of_view(view), *us, view);
    }
    return sum / static_cast<double>(kPlausibleLookups);
  }

  // True if the loads fit the memory of all GPUs and hosts.
  [[nodiscard]] bool holds(const detail::PlanLoads& all) const {
    const double most = std::max(0.0, available() - dense_memory);
    return std::none_of(all.ranks.begin(), all.ranks.end(),
                        [&](const detail::RankLoad& load) { return load.table_bytes > most; }) &&
           fullest_host(all.ranks) <= host_memory();
  }
};

DlrmStepModel::DlrmStepModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DlrmStepModel::DlrmStepModel(DlrmStepModel&&) noexcept = default;
DlrmStepModel& DlrmStepModel::operator=(DlrmStepModel&&) noexcept = default;
DlrmStepModel::~DlrmStepModel() = default;

Result<DlrmStepModel> DlrmStepModel::create(const Dlrm& model, const DlrmTraining& training,
                                            const Platform& platform, std::int64_t n_ranks,
                                            const StepAssumptions& assumptions,
                                            const LookupConstants& lookups, const Platform* links) {
  STEPCAST_TRY(check_dlrm_ranks(n_ranks));  // before a list of ranks is allocated
  auto impl = std::make_unique<Impl>(model, training, platform, n_ranks, assumptions, lookups, links);
  STEPCAST_TRY(impl->prepare());
  return DlrmStepModel{std::move(impl)};
}

const Dlrm& DlrmStepModel::model() const { return impl_->model; }
const DlrmTraining& DlrmStepModel::training() const { return impl_->training; }
bool DlrmStepModel::is_hybrid() const { return impl_->hybrid(); }
std::int64_t DlrmStepModel::n_ranks() const { return impl_->n_ranks; }
std::int64_t DlrmStepModel::gpus_per_node() const { return impl_->gpus_per_node; }
const Program& DlrmStepModel::program() const { return impl_->built.program; }
const Costs& DlrmStepModel::costs() const { return *impl_->costs; }
const Timeline& DlrmStepModel::timeline() const { return impl_->timeline; }
double DlrmStepModel::table_memory_bytes() const {
  return std::max(0.0, impl_->available() - impl_->dense_memory);
}
const LookupCost& DlrmStepModel::shard_cost(const TableShard& shard) { return impl_->loads->cost_of(shard); }
double DlrmStepModel::expected_lookup_us(const TableShard& shard) {
  return impl_->loads->plausible_us(shard);
}
double DlrmStepModel::shard_bytes(const TableShard& shard) const { return impl_->loads->bytes_of(shard); }

void DlrmStepModel::set_reuse(const std::vector<ReuseFactors>& reuse) { impl_->loads->set_reuse(reuse); }

void DlrmStepModel::set_what_if(const DlrmWhatIf& what_if) {
  impl_->what_if = what_if;
  impl_->loads->set_reused(what_if.reuse);
}

double DlrmStepModel::step_us(const ShardingPlan& plan, bool over_memory) {
  const detail::PlanLoads& all = impl_->loads_of(plan);
  return over_memory || impl_->holds(all) ? impl_->step_us(all) : kEndless;
}

double DlrmStepModel::expected_us(const ShardingPlan& plan, bool over_memory) {
  const detail::PlanLoads& nominal = impl_->loads_of(plan);
  if (!over_memory && !impl_->holds(nominal)) return kEndless;
  return impl_->expected_us(nominal, [&](std::size_t view) -> const detail::PlanLoads& {
    return plan.tables.empty() ? impl_->loads_of(plan, view) : impl_->loads->of_last_plan(view);
  });
}

// The step time is convex in the loads of the ranks and symmetric in the ranks. Therefore no loads with the
// same mean give a shorter step.
double DlrmStepModel::least_step_us() {
  const double us = impl_->step_us(impl_->loads->even());
  return us < kEndless ? us : 0;
}

double DlrmStepModel::least_expected_us() {
  const double us =
      impl_->expected_us(impl_->loads->even(), [&](std::size_t view) { return impl_->loads->even(view); });
  return us < kEndless ? us : 0;
}

// Simulates the Program, then derives memory, imbalance, the uncertainty of the step and its lower bound.
Result<DlrmStep> DlrmStepModel::predict(const ShardingPlan& plan) {
  Impl& m = *impl_;
  if (!plan.tables.empty() || !m.hybrid()) STEPCAST_TRY(check(m.model, plan, m.n_ranks));
  m.predicted = m.loads_of(plan);
  STEPCAST_TRY(m.simulate(m.predicted));
  const std::vector<detail::RankLoad>& loads = m.predicted.ranks;
  DlrmStep step;
  const auto others = static_cast<double>(m.n_ranks - 1) / static_cast<double>(m.n_ranks);
  double sum = 0, most = 0, most_forward = 0;  // lookups of the slowest rank, and their forward part
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const detail::RankLoad& load = loads[r];
    DlrmRank rank{.lookup_us = m.loads->forward_us(load),
                  .lookup_backward_us = m.loads->backward_us(load),
                  .table_bytes = load.table_bytes,
                  .memory_bytes = load.table_bytes + m.dense_memory,
                  .host_bytes = load.host_bytes,
                  .sent_bytes = others * m.batch() * load.vector_dims * m.loads->vector_bytes()};
    const double lookups = rank.lookup_us + rank.lookup_backward_us;
    sum += lookups;
    if (lookups > most) {
      most = lookups;
      most_forward = rank.lookup_us;
    }
    if (rank.memory_bytes >
        (step.ranks.empty() ? -1.0 : step.ranks[static_cast<std::size_t>(step.worst_rank)].memory_bytes)) {
      step.worst_rank = static_cast<std::int32_t>(r);
    }
    step.ranks.push_back(rank);
  }
  step.available_bytes = m.available();
  step.host_available_bytes = m.host_memory();
  step.fits = step.ranks[static_cast<std::size_t>(step.worst_rank)].memory_bytes <= step.available_bytes &&
              m.fullest_host(loads) <= step.host_available_bytes;
  step.lookup_imbalance = sum > 0 ? most * static_cast<double>(loads.size()) / sum : 1;
  if (m.n_ranks > 1) {
    const std::span<const double> durations = std::as_const(*m.costs).duration_us(m.built.blocks[0]);
    step.exchange_us = durations[m.built.tasks.exchange.index()];
    step.gradient_exchange_us = durations[m.built.tasks.gradient_exchange.index()];
  }
  const double us = m.timeline.end_us();
  // Errors of the parts are partly correlated. Each band is weighted by the share of its part in the step
  // time.
  const auto lookups_of = [&](double us_of_way, Direction way) {
    return m.loads->lookups().estimate(std::max(us_of_way, 1.0), m.uses_host_memory, way);
  };
  const Estimate forward = lookups_of(most_forward, Direction::forward),
                 backward = lookups_of(most - most_forward, Direction::backward);
  m.lookup_source = weaker(forward.source, backward.source);
  const auto ln_high = [](const Estimate& e) { return std::log(e.p90.value() / e.time.value()); };
  const double forward_part = most > 0 ? most_forward / most : 1;
  const double lookup_band = forward_part * ln_high(forward) + (1 - forward_part) * ln_high(backward);
  const double lookup_share = std::min(1.0, most / us);
  const double exchange_share = std::min(1.0 - lookup_share, 2 * step.exchange_us / us);
  const double dense_share = std::max(0.0, 1 - lookup_share - exchange_share);
  const double parts = kSharedShare * (lookup_share * lookup_band + exchange_share * m.exchange_band +
                                       dense_share * m.dense_band);
  // This factor was measured for HugeCTR only.
  const bool over_nodes = m.groups.n_nodes > 1 && m.training.stack == DlrmStack::hugectr;
  const double narrower = over_nodes ? kSeveralNodes : 1;
  const double band = std::exp(narrower * std::hypot(parts, kStructureBand));
  EstimateSource source = EstimateSource::analytic;
  if (m.uses_host_memory) source = EstimateSource::assumed;
  step.time = {Microseconds{us}, Microseconds{us / band},
               Microseconds{us * band * std::exp(narrower * kLeftOut)}, source};

  const DeviceFigures figures = figures_of(m.platform.device);
  const double batch = m.batch() / static_cast<double>(m.n_ranks);
  double gathered = 0, sent = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    LookupCost l = loads[r].lookups;
    l += loads[r].replicated;
    const double row = l.lookups > 0 ? l.gathered_bytes / l.lookups : 0;
    gathered = std::max(gathered, 3 * l.distinct_rows * row);
    sent = std::max(sent, step.ranks[r].sent_bytes);
  }
  const double links = m.node_of_links().intra.bandwidth_per_gpu.value() * 1e-6;
  step.bound_us = std::max({m.model.flops_per_sample() * batch / figures.matrix_of(m.training.dtype).per_us,
                            gathered / figures.memory.per_us, links > 0 ? 2 * sent / links : 0.0});
  return step;
}

// Lists the slowest rank (longest lookups) of the last prediction.
std::vector<ExplainedList> DlrmStepModel::explain() const {
  Impl& m = *impl_;
  const auto lookups_of = [&](std::size_t r) {
    const std::span<const double> us = std::as_const(*m.costs).duration_us(m.built.blocks[r]);
    return us[m.built.tasks.lookup.index()] + us[m.built.tasks.lookup_backward.index()];
  };
  std::size_t rank = 0;
  for (std::size_t r = 1; r < m.built.blocks.size(); ++r)
    if (lookups_of(r) > lookups_of(rank)) rank = r;
  const Program& program = m.built.program;
  const std::span<const TaskInfo> tasks = program.block(m.built.blocks[rank]).tasks();
  const std::span<const double> durations = std::as_const(*m.costs).duration_us(m.built.blocks[rank]);
  ExplainedList list{.title = fmt::format("step of rank {}, which has the longest lookups", rank)};
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const TaskInfo& task = tasks[t];
    const Microseconds us{durations[t]};
    if (task.kind == TaskKind::cpu_call || task.kind == TaskKind::cpu_segment) {
      list.host_us += us.value();
      continue;
    }
    ExplainedItem item{.name = std::string{program.names.text(task.name)},
                       .kernel_class = task.kernel_class,
                       .duration_us = us.value()};
    item.alone = {us, us, us, m.exchange_source};
    item.bytes = m.moved_bytes(t, rank);
    const bool priced = task.work.valid() && m.works[task.work.index()].known;
    if (priced) item.alone = m.works[task.work.index()].once;
    if (const Operation* operation = program.works.operation(task.work)) {
      const Work work = work_of(*operation);
      item.what = describe(*operation);
      item.flops = task.work_times * work.flops.value();
      item.bytes = task.work_times * work.bytes().value();
      item.record = m.prices.kernels().price(*operation).record;
    } else if (const CollectiveWork* transfer = program.works.collective(task.work)) {
      item.what = item.collective = std::string{to_string(transfer->op)};
      if (transfer->message.value() > 0) item.bytes = transfer->message.value();
      item.beside = true;
    } else if (task.kernel_class == KernelClass::embedding) {
      const bool forward = t == m.built.tasks.lookup.index();
      item.what = forward ? "all tables of the rank" : "all tables of the rank, with sort and update";
      item.alone = m.loads->lookups().estimate(us.value(), m.uses_host_memory,
                                               forward ? Direction::forward : Direction::backward);
    }
    if (!item.beside) list.gpu_us += us.value();
    list.items.push_back(std::move(item));
  }
  return {std::move(list)};
}

// Time by source of its estimate, averaged over the ranks.
Coverage DlrmStepModel::coverage() const {
  Coverage coverage;
  const Impl& m = *impl_;
  for (const BlockId block : m.built.blocks) {
    const std::span<const TaskInfo> tasks = m.built.program.block(block).tasks();
    const std::span<const double> durations = std::as_const(*m.costs).duration_us(block);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      EstimateSource source = EstimateSource::assumed;
      if (tasks[t].work.valid() && m.works[tasks[t].work.index()].known) {
        source = m.works[tasks[t].work.index()].once.source;
      } else if (tasks[t].kernel_class == KernelClass::embedding) {
        source = m.lookup_source;
      } else if (tasks[t].kernel_class == KernelClass::communication) {
        source = m.exchange_source;
      }
      const double us = durations[t] / static_cast<double>(m.built.blocks.size());
      if (tasks[t].kind == TaskKind::cpu_call || tasks[t].kind == TaskKind::cpu_segment) {
        coverage.host_us[index_of(source)] += us;
      } else {
        coverage.gpu_us[static_cast<std::size_t>(tasks[t].kernel_class)][index_of(source)] += us;
      }
    }
  }
  return coverage;
}

}  // namespace stepcast
