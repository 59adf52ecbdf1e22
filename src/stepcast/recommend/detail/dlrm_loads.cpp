// The work of each rank under a sharding plan. Costs of shards are cached, and a plan that differs from the
// previous one in a few tables updates the loads of the ranks that changed, so that a search can evaluate
// thousands of plans.
#include "stepcast/recommend/detail/dlrm_loads.h"

#include <algorithm>
#include <optional>

#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {
namespace {

// Start of a backward pass with atomic updates, in microseconds.
constexpr double kBackwardWithoutSortUs = 20;

// How often rows of the table are looked up: measured reuse factors if there are any, else Zipf's law.
AccessPattern pattern_of(const EmbeddingTable& table) {
  const auto rows = static_cast<double>(table.rows);
  if (!table.reuse) return AccessPattern::zipf(rows, table.skew);
  if (!table.reuse_of_lookups) return AccessPattern::from_reuse(*table.reuse, table.reuse_lookups, rows);
  const ReuseFactors batch{
      *table.reuse, *table.reuse_of_lookups, static_cast<std::uint64_t>(table.reuse_lookups),
      static_cast<std::uint64_t>(table.reuse_distinct_rows), static_cast<std::uint64_t>(table.reuse_hottest)};
  return AccessPattern::from_reuse(batch, rows);
}

// True for kinds that split a table by rows.
bool is_by_row(ShardingKind kind) {
  return kind == ShardingKind::row_wise || kind == ShardingKind::table_row_wise ||
         kind == ShardingKind::grid_shard;
}

// The key under which the cost of a shard is cached: everything that the cost depends on. The rank does not
// matter.
auto key_of(const TableShard& shard) {
  return std::tuple{shard.table, shard.parts,  shard.column_parts,
                    shard.kind,  shard.memory, shard.cached_share};
}

// A whole table in GPU memory, which is the most frequent shard. Its costs are cached in a list instead of a
// map.
bool is_whole(const TableShard& shard) {
  return shard.parts == 1 && shard.kind == ShardingKind::table_wise && shard.memory == TableMemory::hbm;
}

}  // namespace

DlrmLoads::DlrmLoads(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits,
                     const Device& device, const LookupConstants& constants, std::int64_t n_ranks,
                     std::int64_t gpus_per_node, const std::shared_ptr<const LearnedLookups>& learned)
    : model_(model), training_(training), habits_(habits), n_ranks_(n_ranks), gpus_per_node_(gpus_per_node) {
  const DType own = habits.exchanged(training.dtype);
  gradient_bytes_ = element_size(own).value();
  vector_bytes_ = training.exchange_dtype == DType::unknown ? gradient_bytes_
                                                            : element_size(training.exchange_dtype).value();
  for (const EmbeddingTable& table : model.tables) patterns_.push_back(pattern_of(table));
  const bool measured = learned != nullptr && learned->forward && learned->backward;
  views_.push_back({LookupModel{device, constants, learned}, {}, {}});
  for (const LookupConstants& plausible : plausible_lookups(constants))
    views_.push_back({LookupModel{device, measured ? constants : plausible, learned}, {}, {}});
  forget_costs();
}

void DlrmLoads::forget_costs() {
  counts_.clear();
  for (View& view : views_) {
    view.shard_costs.clear();
    view.whole_costs.assign(model_.tables.size(), nullptr);
    view.summed.clear();
  }
  plausible_us_.clear();
  whole_plausible_us_.assign(model_.tables.size(), -1.0);
}

// Measured reuse factors of a batch replace the patterns of the tables.
void DlrmLoads::set_reuse(const std::vector<ReuseFactors>& reuse) {
  for (std::size_t t = 0; t < patterns_.size() && t < reuse.size(); ++t)
    patterns_[t] = AccessPattern::from_reuse(reuse[t], static_cast<double>(model_.tables[t].rows));
  forget_costs();
}

void DlrmLoads::set_reused(double times) {
  for (std::size_t t = 0; t < patterns_.size(); ++t)
    patterns_[t] = pattern_of(model_.tables[t]).reused(times);
  forget_costs();
}

// Looks in the caches first: whole tables by position, parts by key.
const LookupCost& DlrmLoads::cost_of(const TableShard& shard, std::size_t view) {
  View& v = views_[view];
  const bool whole = is_whole(shard);
  if (whole && v.whole_costs[shard.table] != nullptr) return *v.whole_costs[shard.table];
  const ShardKey key = key_of(shard);
  if (const auto found = v.shard_costs.find(key); found != v.shard_costs.end()) return found->second;
  const EmbeddingTable& table = model_.tables[shard.table];
  const TableState state = rule_of(training_.table_optimizer).table_state();
  TableLookup lookup{.rows = static_cast<double>(table.rows),
                     .dim = static_cast<double>(table.dim),
                     .bags = batch(),
                     .pooling = table.pooling,
                     .weight_bytes = table.row_bytes() / static_cast<double>(table.dim),
                     .gradient_bytes = gradient_bytes_,
                     .state_bytes_per_row = state.bytes_per_row,
                     .state_bytes_per_element = state.bytes_per_element,
                     .one_to_one = table.pooling == 1,
                     .longest_bag = table.longest_bag,
                     .placement = static_cast<TablePlacement>(shard.memory),
                     .cached_share = shard.cached_share,
                     .pattern = &patterns_[shard.table]};
  AccessPattern part;
  lookup.dim /= shard.columns_split();
  if (shard.kind == ShardingKind::data_parallel) lookup.bags /= static_cast<double>(n_ranks_);
  if (is_by_row(shard.kind)) {
    // A part has the same share of popular and of other rows, and gets the lookups of its rows.
    const double parts = shard.rows_split();
    lookup.rows /= parts;
    lookup.pooling /= parts;
    lookup.longest_bag /= parts;
    part = patterns_[shard.table].share_of_rows(parts);
    lookup.pattern = &part;
  }
  // The views differ in constants only, so the row counts of a shard are computed once for all views.
  const auto [known, is_new] = counts_.try_emplace(key);
  if (is_new) known->second = v.lookups.counts(lookup);
  LookupCost cost = v.lookups.cost(lookup, known->second);
  if (!habits_.sorted_backward) {
    cost.backward_us -= cost.sort_us;
    cost.sort_us = 0;
    cost.hottest_row_us = 0;
  }
  const LookupCost& kept = v.shard_costs.emplace(key, cost).first->second;
  if (whole) v.whole_costs[shard.table] = &kept;
  return kept;
}

double DlrmLoads::bytes_of(const TableShard& shard) const {
  const EmbeddingTable& table = model_.tables[shard.table];
  const TableState state = rule_of(training_.table_optimizer).table_state();
  const auto rows = static_cast<double>(table.rows), dim = static_cast<double>(table.dim);
  const double all = table.bytes() + rows * (state.bytes_per_row + dim * state.bytes_per_element);
  return all / static_cast<double>(shard.parts);
}

double DlrmLoads::plausible_us(const TableShard& shard) {
  double& whole_us = whole_plausible_us_[shard.table];
  if (is_whole(shard) && whole_us >= 0) return whole_us;
  const auto [known, is_new] = plausible_us_.try_emplace(key_of(shard), 0.0);
  if (is_new) {
    for (std::size_t view = kNominal + 1; view < kViews; ++view) {
      const LookupCost& cost = cost_of(shard, view);
      known->second += cost.forward_us + cost.backward_us;
    }
    known->second /= static_cast<double>(kPlausibleLookups);
  }
  if (is_whole(shard)) whole_us = known->second;
  return known->second;
}

// Adds the shards of a table to their ranks.
void DlrmLoads::hold(std::uint32_t table, const TablePlan& plan) {
  const auto node_of = [&](std::int32_t rank) { return static_cast<std::size_t>(rank / gpus_per_node_); };
  std::vector<double> in_node(node_of(static_cast<std::int32_t>(n_ranks_)) + 1, 0.0);
  for (const std::int32_t rank : plan.ranks) in_node[node_of(rank)] += 1;
  for (const TableShard& shard : shards_of(table, plan, n_ranks_)) {
    const bool summed =
        is_by_row(shard.kind) && (habits_.reduces_in_node || shard.kind == ShardingKind::table_row_wise);
    const double beside = shard.kind == ShardingKind::grid_shard ? shard.rows_split()
                          : summed                               ? in_node[node_of(shard.rank)]
                                                                 : 1;
    std::vector<Held>& held = held_[static_cast<std::size_t>(shard.rank)];
    held.insert(std::ranges::upper_bound(held, table, {}, [](const Held& h) { return h.shard.table; }),
                {shard, beside});
    changed_[static_cast<std::size_t>(shard.rank)] = changes_;
  }
}

// Brings the loads up to date with `plan`: removes and adds the shards of all tables that changed since the
// previous plan.
void DlrmLoads::follow(const ShardingPlan& plan) {
  const std::size_t n_tables = std::min(model_.tables.size(), plan.tables.size());
  ++changes_;
  bool differs = followed_.size() != n_tables;
  if (differs || held_.empty()) {
    held_.assign(static_cast<std::size_t>(n_ranks_), {});
    changed_.assign(held_.size(), changes_);
    followed_.assign(n_tables, TablePlan{});
  }
  for (std::uint32_t t = 0; t < n_tables; ++t) {
    if (followed_[t] == plan.tables[t]) continue;
    differs = true;
    for (const TableShard& shard : shards_of(t, followed_[t], n_ranks_)) {
      std::erase_if(held_[static_cast<std::size_t>(shard.rank)],
                    [&](const Held& h) { return h.shard.table == t; });
      changed_[static_cast<std::size_t>(shard.rank)] = changes_;
    }
    followed_[t] = plan.tables[t];
    hold(t, followed_[t]);
  }
  if (!differs) return;
  reduced_bytes_ = 0;
  host_memory_ = false;
  for (std::size_t t = 0; t < n_tables; ++t) {
    const TablePlan& p = followed_[t];
    const bool everywhere = p.kind == ShardingKind::data_parallel;
    if (everywhere) reduced_bytes_ += model_.tables[t].bytes();
    if (everywhere || !p.ranks.empty()) host_memory_ = host_memory_ || p.memory != TableMemory::hbm;
  }
}

const PlanLoads& DlrmLoads::of_plan(const ShardingPlan& plan, std::size_t view) {
  follow(plan);
  return of_last_plan(view);
}

const PlanLoads& DlrmLoads::of_last_plan(std::size_t view) {
  View& v = views_[view];
  v.loads.ranks.resize(held_.size());
  v.summed.resize(held_.size(), 0);
  for (std::size_t r = 0; r < held_.size(); ++r) {
    if (v.summed[r] == changed_[r]) continue;
    v.loads.ranks[r] = load_of(held_[r], view);
    v.summed[r] = changed_[r];
  }
  v.loads.reduced_bytes = reduced_bytes_;
  v.loads.host_memory = host_memory_;
  return v.loads;
}

// Sums the shards of one rank.
RankLoad DlrmLoads::load_of(const std::vector<Held>& held, std::size_t view) {
  RankLoad load;
  for (const auto& [shard, beside] : held) {
    const EmbeddingTable& table = model_.tables[shard.table];
    const LookupCost& cost = cost_of(shard, view);
    const bool apart = shard.kind == ShardingKind::data_parallel && habits_.replicated_apart;
    (apart ? load.replicated : load.lookups) += cost;
    const double bytes = bytes_of(shard);
    switch (shard.memory) {
      case TableMemory::hbm: load.table_bytes += bytes; break;
      case TableMemory::uvm: load.host_bytes += bytes; break;
      case TableMemory::uvm_cached:
        load.table_bytes += shard.cached_share * bytes;
        load.host_bytes += bytes;
        break;
    }
    if (shard.kind == ShardingKind::data_parallel) continue;
    const double columns = static_cast<double>(table.dim) / shard.columns_split();
    load.vector_dims += columns / beside;
    load.node_dims += columns * (beside - 1) / beside;
    load.input_bytes += kIndexBytes * (cost.lookups + (table.pooling == 1 ? 0.0 : batch()));
  }
  return load;
}

// A plan without tables: hybrid embedding. Popular rows are copied to all ranks, the others are spread by
// row; every rank has the same load.
PlanLoads DlrmLoads::hybrid(std::size_t view) {
  PlanLoads loads;
  RankLoad load;
  const auto n = static_cast<double>(n_ranks_);
  for (std::size_t t = 0; t < model_.tables.size(); ++t) {
    const EmbeddingTable& table = model_.tables[t];
    const TableShard spread{static_cast<std::uint32_t>(t), 0, static_cast<std::uint32_t>(n_ranks_),
                            ShardingKind::row_wise};
    const double lookups_of_batch = batch() * table.pooling;
    // A row is popular if each rank looks it up at least once per batch on average.
    const AccessPattern::Popular popular = patterns_[t].popular(n / std::max(1.0, lookups_of_batch));
    // The cost of lookups for the rank's samples: as many as they have, and one bag per sample.
    TableShard own = spread;
    own.kind = ShardingKind::data_parallel;
    own.parts = 1;
    load.lookups += cost_of(own, view);
    const double row = static_cast<double>(table.dim);
    load.table_bytes += bytes_of(spread) + popular.rows * table.row_bytes();
    load.vector_dims += row * (1 - popular.share) * table.pooling / n;
    loads.reduced_bytes += popular.rows * row * gradient_bytes_;
  }
  loads.ranks.assign(static_cast<std::size_t>(n_ranks_), load);
  return loads;
}

PlanLoads DlrmLoads::even(std::size_t view) {
  const double share = 1 / static_cast<double>(n_ranks_);
  RankLoad mean;
  for (std::uint32_t t = 0; t < model_.tables.size(); ++t) {
    const LookupCost& cost = cost_of({.table = t}, view);
    mean.lookups += cost;
    mean.vector_dims += static_cast<double>(model_.tables[t].dim) * share;
    mean.input_bytes +=
        share * kIndexBytes * (cost.lookups + (model_.tables[t].pooling == 1 ? 0.0 : batch()));
  }
  LookupCost& l = mean.lookups;
  for (double* part :
       {&l.forward_us, &l.backward_us, &l.sort_us, &l.longest_bag_us, &l.hottest_row_us, &l.lookups,
        &l.distinct_rows, &l.hits, &l.gathered_bytes, &l.missed_us, &l.gather_us}) {
    *part *= share;
  }
  PlanLoads loads;
  loads.ranks.assign(static_cast<std::size_t>(n_ranks_), mean);
  return loads;
}

double DlrmLoads::forward_us(const RankLoad& load, std::size_t view) const {
  const LookupModel& lookups = views_[view].lookups;
  return lookups.forward_us(load.lookups) + lookups.forward_us(load.replicated);
}

double DlrmLoads::backward_us(const RankLoad& load, std::size_t view) const {
  const LookupModel& lookups = views_[view].lookups;
  if (habits_.sorted_backward)
    return lookups.backward_us(load.lookups) + lookups.backward_us(load.replicated);
  return load.lookups.lookups > 0 ? kBackwardWithoutSortUs + load.lookups.backward_us : 0;
}

}  // namespace stepcast::detail
