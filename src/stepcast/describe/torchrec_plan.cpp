#include "stepcast/describe/torchrec_plan.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"

namespace stepcast {
namespace {

std::string_view kernel_of(const TablePlan& plan) {
  if (plan.kind == ShardingKind::data_parallel) return "dense";
  switch (plan.memory) {
    case TableMemory::hbm: return "fused";
    case TableMemory::uvm: return "fused_uvm";
    case TableMemory::uvm_cached: return "fused_uvm_caching";
  }
  return "fused";
}

struct ReadTable {
  const JsonValue* value = nullptr;
  std::string path;
};

// The member of that name in any module.
std::optional<ReadTable> find_table(const JsonValue& plan, const std::string& table) {
  for (const JsonValue::Member& module : plan.members()) {
    if (const JsonValue* value = module.value.find(table))
      return ReadTable{value, fmt::format("plan.{}.{}", module.key, table)};
  }
  return std::nullopt;
}

Result<TablePlan> read_table(const ReadTable& table, const std::string& name) {
  const auto at = [&](std::string_view key) {
    return Error::at(name, fmt::format("line {}: {}.{}", table.value->line(), table.path, key));
  };
  TablePlan plan;
  const JsonValue* kind = table.value->find("sharding_type");
  if (kind == nullptr || !kind->is_text())
    return at("sharding_type").expected("table_wise, row_wise, column_wise, table_row_wise or data_parallel");
  const std::optional<ShardingKind> parsed = parse_sharding_kind(kind->text());
  if (!parsed) {
    return at("sharding_type")
        .found(fmt::format("`{}`", kind->text().substr(0, 60)))
        .expected("table_wise, row_wise, column_wise, table_row_wise or data_parallel");
  }
  plan.kind = *parsed;
  if (const JsonValue* kernel = table.value->find("compute_kernel")) {
    if (!kernel->is_text()) return at("compute_kernel").expected("a text");
    if (kernel->text().find("uvm") != std::string::npos) {
      plan.memory =
          kernel->text().find("caching") != std::string::npos ? TableMemory::uvm_cached : TableMemory::uvm;
    }
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
    std::vector<std::int32_t> ranks = p.ranks;
    if (p.kind == ShardingKind::data_parallel) {
      for (std::int64_t r = 0; r < n_ranks; ++r) ranks.push_back(static_cast<std::int32_t>(r));
    }
    json.key("ranks").begin_array();
    for (const std::int32_t rank : ranks) json.value(rank);
    json.end_array();
    if (p.kind != ShardingKind::data_parallel) {
      const auto parts = static_cast<std::int64_t>(ranks.size());
      const bool by_column = p.kind == ShardingKind::column_wise;
      const std::int64_t all = by_column ? table.dim : table.rows;
      const std::int64_t size = (all + parts - 1) / parts;
      json.key("sharding_spec").begin_object();
      json.key("shards").begin_array();
      for (std::int64_t k = 0; k < parts; ++k) {
        const std::int64_t begin = std::min(k * size, all), length = std::min(size, all - begin);
        json.begin_object();
        json.key("shard_offsets")
            .begin_array()
            .value(by_column ? 0 : begin)
            .value(by_column ? begin : 0)
            .end_array();
        json.key("shard_sizes")
            .begin_array()
            .value(by_column ? table.rows : length)
            .value(by_column ? length : table.dim)
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
