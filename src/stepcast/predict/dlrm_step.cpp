#include "stepcast/predict/dlrm_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/device_time.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/step_prices.h"

namespace stepcast {
namespace {

constexpr double kReserveBytes = 1.5 * 1024 * 1024 * 1024;  // context, libraries, fragments
constexpr double kHostMemoryBytes = 256 * kGiB;             // of a node, for each of its GPUs
constexpr double kIndexBytes = 8;
constexpr double kBackwardWithoutSortUs = 20;  // start of a backward with atomic updates
constexpr double kStructureBand = 0.14;        // half-width in ln of what the model of a stack leaves out
constexpr double kSharedShare = 0.6;           // of the bands of parts that goes the same way
constexpr double kLeftOut = 0.05;              // in ln, upwards alone: what it leaves out makes steps longer

std::size_t index(EstimateSource source) { return static_cast<std::size_t>(source); }

double activation_bytes(const Dlrm& model, const DlrmTraining& training, double batch) {
  double elements =
      2.0 * static_cast<double>(model.interaction_width()) + 3.0 * static_cast<double>(model.sum_of_dims());
  for (const auto* mlp : {&model.bottom_mlp, &model.top_mlp}) {
    for (const std::int64_t width : *mlp) elements += 3.0 * static_cast<double>(width);
  }
  const bool half = training.dtype == DType::fp16 || training.dtype == DType::bf16;
  return batch * elements * (half ? 2 : 4);
}

// Optimizer state beside a table: row-wise Adagrad keeps one number per row.
struct TableState {
  double bytes_per_row = 0, bytes_per_element = 0;
};
TableState table_state(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return {};
    case OptimizerKind::adagrad: return {4, 0};
    case OptimizerKind::momentum_sgd: return {0, 4};
    default: return {0, 8};
  }
}

AccessPattern pattern_of(const EmbeddingTable& table) {
  const auto rows = static_cast<double>(table.rows);
  if (!table.reuse) return AccessPattern::zipf(rows, table.skew);
  if (!table.reuse_of_lookups) return AccessPattern::from_reuse(*table.reuse, table.reuse_lookups, rows);
  const ReuseFactors batch{
      *table.reuse, *table.reuse_of_lookups, static_cast<std::uint64_t>(table.reuse_lookups),
      static_cast<std::uint64_t>(table.reuse_distinct_rows), static_cast<std::uint64_t>(table.reuse_hottest)};
  return AccessPattern::from_reuse(batch, rows);
}

}  // namespace

struct DlrmStepModel::Impl {
  Dlrm model;
  DlrmTraining training;
  DlrmHabits habits;
  Platform platform;
  std::unique_ptr<const Platform> links;  // instead of those of the platform
  std::unique_ptr<StepPricer> link_prices;
  DlrmWhatIf what_if;
  std::int64_t n_ranks = 1, gpus_per_node = 1;
  LookupModel lookups;
  StepPricer prices;
  DlrmProgram built;
  std::unique_ptr<Plan> plan;
  std::vector<PricedWork> works;
  std::unique_ptr<Costs> costs;
  Timeline timeline;
  GroupPlacement world, node;
  std::vector<AccessPattern> patterns;  // [table]
  std::map<std::tuple<std::uint32_t, std::uint32_t, ShardingKind, TableMemory>, LookupCost> shard_costs;
  std::vector<const LookupCost*> whole_costs;  // [table] of these, on one rank; null: not asked yet
  EstimateSource lookup_source = EstimateSource::analytic, exchange_source = EstimateSource::assumed;
  double lookup_band = 0, exchange_band = 0, dense_band = 0;
  double dense_memory = 0;
  double vector_bytes = 4;
  bool uses_host_memory = false;

  Impl(Dlrm m, const DlrmTraining& t, const Platform& p, std::int64_t n, const StepAssumptions& assumptions,
       const LookupConstants& constants, const Platform* other_links)
      : model(std::move(m)),
        training(t),
        habits(habits_of(t, assumptions)),
        platform(p),
        n_ranks(n),
        lookups(p.device, constants),
        prices(platform, assumptions) {
    if (other_links != nullptr) {
      links = std::make_unique<const Platform>(*other_links);
      link_prices = std::make_unique<StepPricer>(*links, assumptions);
    }
    gpus_per_node = std::max<std::int64_t>(1, node_of_links().gpus_per_node);
    for (const EmbeddingTable& table : model.tables) patterns.push_back(pattern_of(table));
    whole_costs.assign(model.tables.size(), nullptr);
    std::vector<std::uint32_t> ranks;
    for (std::int64_t r = 0; r < n; ++r) ranks.push_back(static_cast<std::uint32_t>(r));
    const RankSpan span{ranks};
    world = place_ranks(span, gpus_per_node, std::span{&span, 1});
    const RankSpan first{std::span{ranks}.first(static_cast<std::size_t>(std::min(n, gpus_per_node)))};
    node = place_ranks(first, gpus_per_node, std::span{&first, 1});
    const bool half = training.dtype == DType::fp16 || training.dtype == DType::bf16;
    vector_bytes = half && habits.half_exchange ? 2 : 4;
    const double batch = static_cast<double>(training.global_batch) / static_cast<double>(n);
    const double states = training.dense_optimizer == OptimizerKind::sgd ? 3 : 5;
    dense_memory =
        kReserveBytes + model.dense_parameters() * 4 * states + activation_bytes(model, training, batch);
  }

  [[nodiscard]] const Node& node_of_links() const { return links ? links->node : platform.node; }
  [[nodiscard]] StepPricer& transfers() { return link_prices ? *link_prices : prices; }

  // No sharding could hold it.
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

  Status prepare() {
    STEPCAST_TRY(check_sizes());
    STEPCAST_ASSIGN(built, dlrm_program(model, training, habits, n_ranks));
    STEPCAST_ASSIGN(Plan compiled, Plan::compile(built.program));
    plan = std::make_unique<Plan>(std::move(compiled));
    costs = std::make_unique<Costs>(built.program);
    return price_dense();
  }

  // Everything that no sharding changes.
  Status price_dense() {
    DeviceTime device{prices.kernels().model(), platform.device};
    const WorkTable& table = built.program.works;
    double sum = 0, high = 0;
    for (std::size_t w = 0; w < table.size(); ++w) {
      PricedWork priced;
      if (const Operation* operation = table.operation(WorkId{w})) {
        priced = {true, device.of(*operation, prices.kernels().price(*operation)), {}};
        sum += priced.once.time.value();
        high += priced.once.p90.value();
      } else if (const CollectiveWork* work = table.collective(WorkId{w});
                 work != nullptr && work->message.value() > 0) {
        STEPCAST_ASSIGN(const Estimate once, transfers().price(work->op, work->message, world));
        priced = {true, once, {}};
      } else if (table.host(WorkId{w}) != nullptr) {
        const Microseconds us{prices.assumptions().host_launch_us};
        priced = {true, {us, us, us, EstimateSource::assumed}, {}};
      }
      works.push_back(priced);
    }
    dense_band = sum > 0 && high > sum ? std::log(high / sum) : 0;
    for (const BlockId block : built.blocks) {
      const std::span<const TaskInfo> tasks = built.program.block(block).tasks();
      const std::span<double> durations = costs->duration_us(block);
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        if (!tasks[t].work.valid() || !works[tasks[t].work.index()].known) continue;
        durations[t] = works[tasks[t].work.index()].once.time.value() * tasks[t].work_times;
      }
    }
    return Ok{};
  }

  [[nodiscard]] double batch() const { return static_cast<double>(training.global_batch); }

  const LookupCost& cost_of(const TableShard& shard) {
    const bool whole =
        shard.parts == 1 && shard.kind == ShardingKind::table_wise && shard.memory == TableMemory::hbm;
    if (whole && whole_costs[shard.table] != nullptr) return *whole_costs[shard.table];
    const auto key = std::tuple{shard.table, shard.parts, shard.kind, shard.memory};
    if (const auto found = shard_costs.find(key); found != shard_costs.end()) return found->second;
    const EmbeddingTable& table = model.tables[shard.table];
    const TableState state = table_state(training.table_optimizer);
    const auto parts = static_cast<double>(shard.parts);
    TableLookup lookup{.rows = static_cast<double>(table.rows),
                       .dim = static_cast<double>(table.dim),
                       .bags = batch(),
                       .pooling = table.pooling,
                       .weight_bytes = element_size(table.dtype).value(),
                       .gradient_bytes = vector_bytes,
                       .state_bytes_per_row = state.bytes_per_row,
                       .state_bytes_per_element = state.bytes_per_element,
                       .one_to_one = table.pooling == 1,
                       .longest_bag = table.longest_bag,
                       .placement = static_cast<TablePlacement>(shard.memory),
                       .pattern = &patterns[shard.table]};
    AccessPattern part = patterns[shard.table];
    if (shard.kind == ShardingKind::column_wise) lookup.dim /= parts;
    if (shard.kind == ShardingKind::data_parallel) lookup.bags /= static_cast<double>(n_ranks);
    const bool by_row = shard.kind == ShardingKind::row_wise || shard.kind == ShardingKind::table_row_wise;
    LookupCost cost;
    if (by_row) {
      // Each part has a share of the rows, popular and not, and the lookups that go to them.
      lookup.rows /= parts;
      lookup.pooling /= parts;
      lookup.longest_bag /= parts;
      part = part.share_of_rows(parts);
      lookup.pattern = &part;
    }
    cost = lookups.cost(lookup);
    if (!habits.sorted_backward) {
      cost.backward_us -= cost.sort_us;
      cost.sort_us = 0;
      cost.hottest_row_us = 0;
    }
    const LookupCost& kept = shard_costs.emplace(key, cost).first->second;
    if (whole) whole_costs[shard.table] = &kept;
    return kept;
  }

  [[nodiscard]] double bytes_of(const TableShard& shard) const {
    const EmbeddingTable& table = model.tables[shard.table];
    const TableState state = table_state(training.table_optimizer);
    const auto rows = static_cast<double>(table.rows), dim = static_cast<double>(table.dim);
    const double all = table.bytes() + rows * (state.bytes_per_row + dim * state.bytes_per_element);
    return all / static_cast<double>(shard.parts);
  }

  // Sum over tables of one rank, and what it exchanges.
  struct RankLoad {
    LookupCost lookups;
    double table_bytes = 0, host_bytes = 0;
    double vector_dims = 0;  // columns that it sends to every other rank, per sample
    double input_bytes = 0;  // of indices that it receives
    double node_dims = 0;    // columns that it sends inside its node to be summed there, per sample
  };

  std::vector<RankLoad> loads(const ShardingPlan& sharding, double& reduced_bytes) {
    std::vector<RankLoad> all(static_cast<std::size_t>(n_ranks));
    reduced_bytes = 0;
    uses_host_memory = false;
    for (const TableShard& shard : shards_of(model, sharding, n_ranks)) {
      RankLoad& load = all[static_cast<std::size_t>(shard.rank)];
      const EmbeddingTable& table = model.tables[shard.table];
      const LookupCost& cost = cost_of(shard);
      load.lookups += cost;
      const double bytes = bytes_of(shard);
      switch (shard.memory) {
        case TableMemory::hbm: load.table_bytes += bytes; break;
        case TableMemory::uvm: load.host_bytes += bytes; break;
        case TableMemory::uvm_cached:
          load.table_bytes += 0.2 * bytes;
          load.host_bytes += bytes;
          break;
      }
      uses_host_memory = uses_host_memory || shard.memory != TableMemory::hbm;
      if (shard.kind == ShardingKind::data_parallel) {
        if (shard.rank == 0) reduced_bytes += table.bytes();
        continue;
      }
      const double columns = shard.kind == ShardingKind::column_wise
                                 ? static_cast<double>(table.dim) / static_cast<double>(shard.parts)
                                 : static_cast<double>(table.dim);
      const bool by_row = shard.kind == ShardingKind::row_wise || shard.kind == ShardingKind::table_row_wise;
      if (by_row && (habits.reduces_in_node || shard.kind == ShardingKind::table_row_wise)) {
        const double beside = parts_in_node(sharding.tables[shard.table], shard.rank);
        load.vector_dims += columns / beside;
        load.node_dims += columns * (beside - 1) / beside;
      } else {
        load.vector_dims += columns;
      }
      load.input_bytes += kIndexBytes * (cost.lookups + (table.pooling == 1 ? 0.0 : batch()));
    }
    return all;
  }

  // Ranks of the node of `rank` that hold parts of a table.
  [[nodiscard]] double parts_in_node(const TablePlan& table, std::int32_t rank) const {
    return static_cast<double>(std::count_if(table.ranks.begin(), table.ranks.end(), [&](std::int32_t r) {
      return r / gpus_per_node == rank / gpus_per_node;
    }));
  }

  // Popular rows on every rank, the others spread by row: every rank looks up its own samples' popular rows and
  // its share of all others, and exchanges the latter alone.
  std::vector<RankLoad> hybrid_loads(double& reduced_bytes) {
    RankLoad load;
    reduced_bytes = 0;
    const auto n = static_cast<double>(n_ranks);
    for (std::size_t t = 0; t < model.tables.size(); ++t) {
      const EmbeddingTable& table = model.tables[t];
      TableShard spread{static_cast<std::uint32_t>(t), 0, static_cast<std::uint32_t>(n_ranks),
                        ShardingKind::row_wise};
      const double lookups_of_batch = batch() * table.pooling;
      // Looked up by every rank once per batch and more.
      const AccessPattern::Popular popular = patterns[t].popular(n / std::max(1.0, lookups_of_batch));
      // As many lookups as its own samples have, and one bag for each.
      TableShard own = spread;
      own.kind = ShardingKind::data_parallel;
      own.parts = 1;
      load.lookups += cost_of(own);
      const double row = static_cast<double>(table.dim);
      load.table_bytes += bytes_of(spread) + popular.rows * row * element_size(table.dtype).value();
      load.vector_dims += row * (1 - popular.share) * table.pooling / n;
      reduced_bytes += popular.rows * row * vector_bytes;
    }
    return std::vector<RankLoad>(static_cast<std::size_t>(n_ranks), load);
  }

  [[nodiscard]] bool hybrid() const {
    return habits.hybrid && std::all_of(model.tables.begin(), model.tables.end(),
                                        [](const EmbeddingTable& t) { return t.pooling <= 1; });
  }

  [[nodiscard]] double available() const { return platform.device.memory_size.value(); }

  // Of one node, and what the tables of its ranks take of it.
  [[nodiscard]] double host_memory() const {
    return kHostMemoryBytes * static_cast<double>(std::min(gpus_per_node, n_ranks));
  }
  [[nodiscard]] double fullest_host(const std::vector<RankLoad>& all) const {
    std::vector<double> nodes(all.size() / static_cast<std::size_t>(gpus_per_node) + 1, 0.0);
    for (std::size_t r = 0; r < all.size(); ++r)
      nodes[r / static_cast<std::size_t>(gpus_per_node)] += all[r].host_bytes;
    return *std::max_element(nodes.begin(), nodes.end());
  }

  double forward_us(const RankLoad& load) const { return lookups.forward_us(load.lookups); }
  double backward_us(const RankLoad& load) const {
    if (habits.sorted_backward) return lookups.backward_us(load.lookups);
    return load.lookups.lookups > 0 ? kBackwardWithoutSortUs + load.lookups.backward_us : 0;
  }

  // Writes the times of a sharding into the costs.
  Status apply(const std::vector<RankLoad>& all, double reduced_bytes) {
    const DlrmTasks& tasks = built.tasks;
    double exchange = 0, gradients = 0, input = 0, reduction = 0;
    if (n_ranks > 1) {
      std::vector<Bytes> shares, inputs;
      const double own_batch = batch() / static_cast<double>(n_ranks);
      for (const RankLoad& load : all) {
        shares.push_back(Bytes{own_batch * load.vector_dims * vector_bytes});
        inputs.push_back(Bytes{load.input_bytes / static_cast<double>(n_ranks)});
      }
      const Bytes size = uneven_all_to_all_size(shares);
      STEPCAST_ASSIGN(const Estimate once, transfers().price(CollectiveOp::all_to_all, size, world));
      // Sums of a node by reduce-scatter, and gradients to all parts by all-gather.
      double node_dims = 0;
      for (const RankLoad& load : all) node_dims = std::max(node_dims, load.node_dims);
      double in_node = 0;
      if (node_dims > 0) {
        STEPCAST_ASSIGN(
            const Estimate sums,
            transfers().price(CollectiveOp::reduce_scatter, Bytes{batch() * node_dims * vector_bytes}, node));
        in_node = sums.time.value();
      }
      exchange = gradients = once.time.value() + in_node;
      exchange_source = once.source;
      exchange_band = exchange > 0 ? std::log(std::max(1.0, once.p90.value() / exchange)) : 0;
      STEPCAST_ASSIGN(const Estimate indices,
                      transfers().price(CollectiveOp::all_to_all, uneven_all_to_all_size(inputs), world));
      input = indices.time.value();
      STEPCAST_ASSIGN(const Estimate reduce,
                      transfers().price(CollectiveOp::all_reduce, Bytes{reduced_bytes}, world));
      reduction = reduce.time.value();
    }
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::span<double> durations = costs->duration_us(built.blocks[r]);
      const double skew = r + 1 == all.size() ? what_if.rank_skew : 1;
      durations[tasks.lookup.index()] = skew * forward_us(all[r]);
      durations[tasks.lookup_backward.index()] = skew * backward_us(all[r]);
      if (n_ranks <= 1) continue;
      durations[tasks.exchange.index()] = exchange;
      durations[tasks.gradient_exchange.index()] = gradients;
      durations[tasks.table_reduction.index()] = reduction;
      if (tasks.input_exchange.valid()) durations[tasks.input_exchange.index()] = input;
    }
    return Ok{};
  }

  Status simulate(const std::vector<RankLoad>& all, double reduced_bytes) {
    STEPCAST_TRY(apply(all, reduced_bytes));
    return plan->simulate(*costs, {}, timeline);
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
const LookupCost& DlrmStepModel::shard_cost(const TableShard& shard) { return impl_->cost_of(shard); }
double DlrmStepModel::shard_bytes(const TableShard& shard) const { return impl_->bytes_of(shard); }

void DlrmStepModel::set_reuse(const std::vector<ReuseFactors>& reuse) {
  for (std::size_t t = 0; t < impl_->patterns.size() && t < reuse.size(); ++t) {
    impl_->patterns[t] =
        AccessPattern::from_reuse(reuse[t], static_cast<double>(impl_->model.tables[t].rows));
  }
  impl_->shard_costs.clear();
  std::fill(impl_->whole_costs.begin(), impl_->whole_costs.end(), nullptr);
}

void DlrmStepModel::set_what_if(const DlrmWhatIf& what_if) {
  impl_->what_if = what_if;
  for (std::size_t t = 0; t < impl_->patterns.size(); ++t)
    impl_->patterns[t] = pattern_of(impl_->model.tables[t]).reused(what_if.reuse);
  impl_->shard_costs.clear();
  std::fill(impl_->whole_costs.begin(), impl_->whole_costs.end(), nullptr);
}

double DlrmStepModel::step_us(const ShardingPlan& plan, bool over_memory) {
  const double never = std::numeric_limits<double>::infinity();
  double reduced = 0;
  const std::vector<Impl::RankLoad> loads =
      plan.tables.empty() ? impl_->hybrid_loads(reduced) : impl_->loads(plan, reduced);
  for (const Impl::RankLoad& load : loads) {
    if (!over_memory && load.table_bytes > table_memory_bytes()) return never;
  }
  if (!over_memory && impl_->fullest_host(loads) > impl_->host_memory()) return never;
  if (!impl_->simulate(loads, reduced).ok()) return never;
  return impl_->timeline.end_us();
}

double DlrmStepModel::least_step_us() {
  Impl& m = *impl_;
  // The step is convex in the ranks' loads and treats ranks alike: no loads with this mean give a shorter one.
  const double share = 1 / static_cast<double>(m.n_ranks);
  Impl::RankLoad even;
  for (std::uint32_t t = 0; t < m.model.tables.size(); ++t) {
    const LookupCost& cost = m.cost_of({.table = t});
    even.lookups += cost;
    even.vector_dims += static_cast<double>(m.model.tables[t].dim) * share;
    even.input_bytes +=
        share * kIndexBytes * (cost.lookups + (m.model.tables[t].pooling == 1 ? 0.0 : m.batch()));
  }
  LookupCost& l = even.lookups;
  for (double* part : {&l.forward_us, &l.backward_us, &l.sort_us, &l.longest_bag_us, &l.hottest_row_us,
                       &l.lookups, &l.distinct_rows, &l.hits, &l.gathered_bytes}) {
    *part *= share;
  }
  const std::vector<Impl::RankLoad> loads(static_cast<std::size_t>(m.n_ranks), even);
  return m.simulate(loads, 0).ok() ? m.timeline.end_us() : 0;
}

Result<DlrmStep> DlrmStepModel::predict(const ShardingPlan& plan) {
  Impl& m = *impl_;
  double reduced = 0;
  std::vector<Impl::RankLoad> loads;
  if (plan.tables.empty() && m.hybrid()) {
    loads = m.hybrid_loads(reduced);
  } else {
    STEPCAST_TRY(check(m.model, plan, m.n_ranks));
    loads = m.loads(plan, reduced);
  }
  STEPCAST_TRY(m.simulate(loads, reduced));
  DlrmStep step;
  const auto others = static_cast<double>(m.n_ranks - 1) / static_cast<double>(m.n_ranks);
  double sum = 0, most = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const Impl::RankLoad& load = loads[r];
    DlrmRank rank{.lookup_us = m.forward_us(load),
                  .lookup_backward_us = m.backward_us(load),
                  .table_bytes = load.table_bytes,
                  .memory_bytes = load.table_bytes + m.dense_memory,
                  .host_bytes = load.host_bytes,
                  .sent_bytes = others * m.batch() * load.vector_dims * m.vector_bytes};
    const double lookups = rank.lookup_us + rank.lookup_backward_us;
    sum += lookups;
    most = std::max(most, lookups);
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
  // Parts err partly together; the weights are their times.
  const Estimate lookup_band = m.lookups.estimate(1, m.uses_host_memory);
  m.lookup_source = lookup_band.source;
  const double lookup_share = std::min(1.0, most / us);
  const double exchange_share = std::min(1.0 - lookup_share, 2 * step.exchange_us / us);
  const double dense_share = std::max(0.0, 1 - lookup_share - exchange_share);
  const double parts = kSharedShare * (lookup_share * std::log(lookup_band.p90.value()) +
                                       exchange_share * m.exchange_band + dense_share * m.dense_band);
  const double band = std::exp(std::hypot(parts, kStructureBand));
  EstimateSource source = EstimateSource::analytic;
  if (m.uses_host_memory) source = EstimateSource::assumed;
  step.time = {Microseconds{us}, Microseconds{us / band}, Microseconds{us * band * std::exp(kLeftOut)},
               source};

  const DeviceFigures figures = figures_of(m.platform.device);
  const double batch = m.batch() / static_cast<double>(m.n_ranks);
  double gathered = 0, sent = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const LookupCost& l = loads[r].lookups;
    const double row = l.lookups > 0 ? l.gathered_bytes / l.lookups : 0;
    gathered = std::max(gathered, 3 * l.distinct_rows * row);
    sent = std::max(sent, step.ranks[r].sent_bytes);
  }
  const double links = m.node_of_links().intra.bandwidth_per_gpu.value() * 1e-6;
  step.bound_us = std::max({m.model.flops_per_sample() * batch / figures.matrix_of(m.training.dtype).per_us,
                            gathered / figures.memory.per_us, links > 0 ? 2 * sent / links : 0.0});
  return step;
}

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
        coverage.host_us[index(source)] += us;
      } else {
        coverage.gpu_us[static_cast<std::size_t>(tasks[t].kernel_class)][index(source)] += us;
      }
    }
  }
  return coverage;
}

}  // namespace stepcast
