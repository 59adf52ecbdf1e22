// Reads and writes sharding plans of TorchRec as JSON.
#include "stepcast/recommend/torchrec_plan.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"

namespace stepcast {
namespace {

// The compute kernel of TorchRec for the memory of a table.
std::string_view kernel_of(const TablePlan& plan) {
  if (plan.kind == ShardingKind::data_parallel) return "dense";
  switch (plan.memory) {
    case TableMemory::hbm: return "fused";
    case TableMemory::uvm: return "fused_uvm";
    case TableMemory::uvm_cached: return "fused_uvm_caching";
  }
  return "fused";
}

// A table found in a plan, and its path for errors.
struct ReadTable {
  const JsonValue* value = nullptr;
  std::string path;
};

// The table with this name in any module of the plan.
std::optional<ReadTable> find_table(const JsonValue& plan, const std::string& table) {
  for (const JsonValue::Member& module : plan.members()) {
    if (const JsonValue* value = module.value.find(table))
      return ReadTable{value, fmt::format("plan.{}.{}", module.key, table)};
  }
  return std::nullopt;
}

constexpr std::string_view kKinds =
    "table_wise, row_wise, column_wise, table_row_wise, grid_shard or data_parallel";

// The memory that a compute kernel of TorchRec uses; empty for kernels that are not modelled.
std::optional<TableMemory> memory_of(std::string_view kernel) {
  if (kernel == "dense" || kernel == "fused" || kernel == "batched_dense" || kernel == "batched_fused")
    return TableMemory::hbm;
  if (kernel == "fused_uvm" || kernel == "batched_fused_uvm") return TableMemory::uvm;
  if (kernel == "fused_uvm_caching" || kernel == "batched_fused_uvm_caching") return TableMemory::uvm_cached;
  return std::nullopt;
}

// Number of column shares of a grid_shard: distinct column offsets of its shards. 0 if the shards are missing
// or malformed.
std::size_t column_shares(const JsonValue& table) {
  std::set<double> columns;
  const JsonValue* spec = table.find("sharding_spec");
  const JsonValue* shards = spec != nullptr ? spec->find("shards") : nullptr;
  if (shards == nullptr || !shards->is_array()) return 0;
  for (const JsonValue& shard : shards->items()) {
    if (!shard.is_object()) return 0;
    const JsonValue* offsets = shard.find("shard_offsets");
    const auto numbers = offsets != nullptr ? offsets->numbers() : std::nullopt;
    if (!numbers || numbers->size() != 2) return 0;
    columns.insert((*numbers)[1]);
  }
  return columns.size();
}

// Reads the placement of one table. Errors name the line of the file and the key.
Result<TablePlan> read_table(const ReadTable& table, const std::string& name) {
  const auto at = [&](std::string_view key) {
    return Error::at(name, fmt::format("line {}: {}.{}", table.value->line(), table.path, key));
  };
  TablePlan plan;
  const JsonValue* kind = table.value->find("sharding_type");
  if (kind == nullptr || !kind->is_text()) return at("sharding_type").expected(std::string{kKinds});
  const std::optional<ShardingKind> parsed = parse_sharding_kind(kind->text());
  if (!parsed) {
    return at("sharding_type")
        .found(fmt::format("`{}`", kind->text().substr(0, 60)))
        .expected(std::string{kKinds});
  }
  plan.kind = *parsed;
  if (const JsonValue* kernel = table.value->find("compute_kernel")) {
    if (!kernel->is_text()) return at("compute_kernel").expected("a text");
    const std::optional<TableMemory> memory = memory_of(kernel->text());
    if (!memory) {
      return at("compute_kernel")
          .found(fmt::format("`{}`", kernel->text().substr(0, 60)))
          .expected("dense, fused, fused_uvm or fused_uvm_caching")
          .advice("tables on an SSD or in a key-value store are not modelled");
    }
    plan.memory = *memory;
  }
  if (const JsonValue* cache = table.value->find("cache_params");
      cache != nullptr && cache->is_object() && cache->find("load_factor") != nullptr) {
    const JsonValue& share = *cache->find("load_factor");
    if (!share.is_number() || !(share.number() > 0 && share.number() <= 1))
      return at("cache_params.load_factor").expected("a share above 0, up to 1");
    plan.cached_share = share.number();
  }
  if (plan.kind == ShardingKind::grid_shard) {
    const std::size_t shares = column_shares(*table.value);
    if (shares == 0) return at("sharding_spec").expected("shards with their shard_offsets, of a grid_shard");
    plan.column_parts = static_cast<std::uint32_t>(shares);
  }
  if (plan.kind == ShardingKind::data_parallel) return plan;
  const JsonValue* ranks = table.value->find("ranks");
  const auto numbers = ranks == nullptr ? std::nullopt : ranks->numbers();
  if (!numbers) return at("ranks").expected("a list of ranks");
  for (const double rank : *numbers) {
    if (!(rank >= 0 && rank < 1 << 20 && rank == std::floor(rank)))
      return at("ranks").found(fmt::format("{}", rank)).expected("ranks from 0");
    plan.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return plan;
}

}  // namespace

// Shards are listed in the order of the ranks: the row shares of the first column share, then those of the
// second.
std::string torchrec_plan_json(const Dlrm& model, const ShardingPlan& plan, std::int64_t n_ranks,
                               std::int64_t gpus_per_node) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.key("plan").begin_object();
  json.key("embedding_bag_collection").begin_object();
  for (std::size_t t = 0; t < model.tables.size() && t < plan.tables.size(); ++t) {
    const EmbeddingTable& table = model.tables[t];
    const TablePlan& p = plan.tables[t];
    json.key(table.name).begin_object();
    json.field("sharding_type", to_string(p.kind)).field("compute_kernel", kernel_of(p));
    if (p.memory == TableMemory::uvm_cached && p.cached_share != kCachedShare)
      json.key("cache_params").begin_object().field("load_factor", p.cached_share).end_object();
    std::vector<std::int32_t> ranks = p.ranks;
    if (p.kind == ShardingKind::data_parallel) {
      for (std::int64_t r = 0; r < n_ranks; ++r) ranks.push_back(static_cast<std::int32_t>(r));
    }
    json.key("ranks").begin_array();
    for (const std::int32_t rank : ranks) json.value(rank);
    json.end_array();
    if (p.kind != ShardingKind::data_parallel) {
      const auto parts = static_cast<std::int64_t>(ranks.size());
      const std::int64_t columns = p.kind == ShardingKind::column_wise  ? parts
                                   : p.kind == ShardingKind::grid_shard ? std::int64_t{p.column_parts}
                                                                        : 1;
      const std::int64_t rows = parts / columns;
      const std::int64_t wide = (table.dim + columns - 1) / columns, deep = (table.rows + rows - 1) / rows;
      json.key("sharding_spec").begin_object();
      json.key("shards").begin_array();
      for (std::int64_t k = 0; k < parts; ++k) {
        const std::int64_t row = std::min(k % rows * deep, table.rows),
                           column = std::min(k / rows * wide, table.dim);
        json.begin_object();
        json.key("shard_offsets").begin_array().value(row).value(column).end_array();
        json.key("shard_sizes")
            .begin_array()
            .value(std::min(deep, table.rows - row))
            .value(std::min(wide, table.dim - column))
            .end_array();
        const std::int32_t rank = ranks[static_cast<std::size_t>(k)];
        json.field("placement",
                   fmt::format("rank:{}/cuda:{}", rank, rank % std::max<std::int64_t>(1, gpus_per_node)));
        json.end_object();
      }
      json.end_array();
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
  json.end_object();
  json.end_object();
  return std::move(json).text();
}

Result<ShardingPlan> parse_torchrec_plan(std::string_view text, const std::string& name, const Dlrm& model,
                                         std::int64_t n_ranks) {
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name));
  const JsonValue* modules = root.find("plan");
  if (modules == nullptr || !modules->is_object())
    return Error::at(name, "plan").expected("an object of modules, as TorchRec's ShardingPlan has");
  ShardingPlan plan{.name = name};
  std::size_t known = 0, all = 0;
  for (const JsonValue::Member& module : modules->members()) {
    if (!module.value.is_object())
      return Error::at(name, fmt::format("plan.{}", module.key)).expected("an object of tables");
    all += module.value.members().size();
  }
  for (const EmbeddingTable& table : model.tables) {
    const std::optional<ReadTable> found = find_table(*modules, table.name);
    if (!found)
      return Error::at(name, "plan")
          .found(fmt::format("no table `{}`", table.name))
          .expected("every table of the model");
    ++known;
    STEPCAST_ASSIGN(TablePlan one, read_table(*found, name));
    plan.tables.push_back(std::move(one));
  }
  if (all > known)
    return Error::at(name, "plan")
        .found(fmt::format("{} tables", all))
        .expected(fmt::format("the {} tables of the model", known));
  Status sound = check(model, plan, n_ranks);
  if (!sound.ok()) return std::move(sound).error().in_file(name);
  return plan;
}

}  // namespace stepcast
