// Sizes and checks of recommendation models and sharding plans.
#include "stepcast/recommend/dlrm.h"

#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/base/number.h"

namespace stepcast {
namespace {

// The value with this name; empty if there is none.
template <class T, std::size_t kCount>
std::optional<T> find_name(const std::array<T, kCount>& all, std::string_view text) {
  for (const T value : all)
    if (to_string(value) == text) return value;
  return std::nullopt;
}

// Weights and biases of an MLP.
double mlp_parameters(std::int64_t input, const std::vector<std::int64_t>& layers) {
  double parameters = 0;
  for (const std::int64_t width : layers) {
    parameters += as_double(input) * as_double(width) + as_double(width);
    input = width;
  }
  return parameters;
}

// An error that names the table.
Error of_table(const Dlrm& model, std::size_t table) {
  return Error::at("", fmt::format("table `{}`", model.tables[table].name));
}

}  // namespace

std::string_view to_string(Interaction interaction) {
  return name_of<Interaction::concatenate>(interaction, {"dot", "cross", "concatenate"});
}

std::string_view to_string(ShardingKind kind) {
  return name_of<ShardingKind::grid_shard>(
      kind, {"table_wise", "row_wise", "column_wise", "table_row_wise", "data_parallel", "grid_shard"});
}
std::optional<ShardingKind> parse_sharding_kind(std::string_view text) {
  return find_name(
      std::array{ShardingKind::table_wise, ShardingKind::row_wise, ShardingKind::column_wise,
                 ShardingKind::table_row_wise, ShardingKind::data_parallel, ShardingKind::grid_shard},
      text);
}

std::string_view to_string(TableMemory memory) {
  return name_of<TableMemory::uvm_cached>(memory, {"hbm", "uvm", "uvm_cached"});
}

std::string_view to_string(DlrmStack stack) {
  return name_of<DlrmStack::hugectr_2>(stack, {"pytorch", "nvidia", "torchrec", "hugectr", "hugectr-2"});
}
std::optional<DlrmStack> parse_dlrm_stack(std::string_view text) {
  return find_name(std::array{DlrmStack::pytorch, DlrmStack::nvidia, DlrmStack::torchrec, DlrmStack::hugectr,
                              DlrmStack::hugectr_2},
                   text);
}

std::optional<std::int32_t> parse_dlrm_release(std::string_view text) {
  // Rounds of MLPerf Training, and the year and month of the containers of their submissions.
  constexpr std::array<std::pair<std::string_view, std::int32_t>, 9> kRounds{{{"v0.7", 2006},
                                                                              {"v1.0", 2105},
                                                                              {"v1.1", 2109},
                                                                              {"v2.0", 2204},
                                                                              {"v2.1", 2209},
                                                                              {"v3.0", 2304},
                                                                              {"v3.1", 2309},
                                                                              {"v4.0", 2404},
                                                                              {"v4.1", 2409}}};
  for (const auto& [round, release] : kRounds)
    if (text == round) return release;
  if (text.size() != 5 || text[2] != '.') return std::nullopt;
  std::int32_t digits = 0;
  for (const std::size_t at : {0U, 1U, 3U, 4U}) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
    digits = 10 * digits + (text[at] - '0');
  }
  const std::int32_t month = digits % 100;
  if (month < 1 || month > 12) return std::nullopt;
  return digits;
}

std::int64_t Dlrm::sum_of_dims() const {
  std::int64_t sum = 0;
  for (const EmbeddingTable& table : tables) sum += table.dim;
  return sum;
}

std::int64_t Dlrm::interaction_width() const {
  const std::int64_t bottom = bottom_mlp.empty() ? dense_features : bottom_mlp.back();
  if (interaction != Interaction::dot) return sum_of_dims() + bottom;
  const auto vectors = static_cast<std::int64_t>(tables.size()) + 1;
  return vectors * (vectors - 1) / 2 + bottom;
}

double Dlrm::dense_parameters() const {
  double parameters =
      mlp_parameters(dense_features, bottom_mlp) + mlp_parameters(interaction_width(), top_mlp);
  if (interaction == Interaction::cross) {
    const double width = as_double(interaction_width());
    parameters += as_double(cross_layers) * (2 * width * as_double(cross_rank) + width);
  }
  return parameters;
}

double Dlrm::flops_per_sample() const {
  // 6 FLOPs per parameter and sample: multiply and add, forward and twice backward. The dot interaction is
  // added.
  double flops = 6 * dense_parameters();
  if (interaction == Interaction::dot && !tables.empty()) {
    const double vectors = static_cast<double>(tables.size()) + 1;
    flops += 6 * vectors * vectors * as_double(tables.front().dim);
  }
  return flops;
}

double Dlrm::table_bytes() const {
  double bytes = 0;
  for (const EmbeddingTable& table : tables) bytes += table.bytes();
  return bytes;
}

// The bounds keep later arithmetic in range.
Status Dlrm::check() const {
  if (tables.empty()) {
    return Error::at("", "tables")
        .found("none")
        .expected("at least one embedding table")
        .advice("give a file with --tables; `stepcast shard --generate` makes random ones");
  }
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const EmbeddingTable& table = tables[t];
    if (table.rows < 1 || table.rows > std::int64_t{1} << 42)
      return of_table(*this, t).found(fmt::format("{} rows", table.rows)).expected("1 to 4e12 rows");
    if (table.dim < 1 || table.dim > 65536)
      return of_table(*this, t).found(fmt::format("dim {}", table.dim)).expected("1 to 65536 columns");
    if (!(table.pooling >= 0) || table.pooling > 1e6) {
      return of_table(*this, t)
          .found(fmt::format("a pooling factor of {}", table.pooling))
          .expected("0 to 1e6 lookups per sample");
    }
    if (!(table.skew >= 0) || table.skew > 4)
      return of_table(*this, t).found(fmt::format("skew {}", table.skew)).expected("an exponent from 0 to 4");
    if (element_size(table.dtype).value() <= 0)
      return of_table(*this, t).found("an unknown dtype").expected("fp32, fp16 or bf16");
    // The dot product needs equal widths. A projection for unequal widths is not modelled.
    if (interaction == Interaction::dot && (table.dim != tables.front().dim)) {
      return of_table(*this, t)
          .found(fmt::format("dim {}", table.dim))
          .expected(fmt::format("{}, the width of table `{}`, for dot products", tables.front().dim,
                                tables.front().name))
          .advice("choose the interaction `concatenate` or `cross`");
    }
  }
  for (const auto* mlp : {&bottom_mlp, &top_mlp}) {
    for (const std::int64_t width : *mlp) {
      if (width < 1 || width > 1 << 20) {
        return Error::at("", mlp == &top_mlp ? "top_mlp" : "bottom_mlp")
            .found(fmt::format("a layer of width {}", width))
            .expected("1 to 1048576");
      }
    }
  }
  if (top_mlp.empty()) return Error::at("", "top_mlp").found("no layer").expected("at least one");
  if (dense_features < 1 || dense_features > 1 << 20)
    return Error::at("", "dense_features").found(fmt::format("{}", dense_features)).expected("1 to 1048576");
  return Ok{};
}

Status check(const Dlrm& model, const ShardingPlan& plan, std::int64_t n_ranks) {
  if (plan.tables.size() != model.tables.size()) {
    return Error::at("", "plan")
        .found(fmt::format("{} tables", plan.tables.size()))
        .expected(fmt::format("the {} tables of the model", model.tables.size()));
  }
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    const TablePlan& p = plan.tables[t];
    if (p.kind == ShardingKind::data_parallel) continue;
    if (p.ranks.empty()) return of_table(model, t).found("no rank").expected("at least one");
    if (p.kind == ShardingKind::table_wise && p.ranks.size() != 1)
      return of_table(model, t).found(fmt::format("{} ranks", p.ranks.size())).expected("one, table_wise");
    std::set<std::int32_t> seen;
    for (const std::int32_t rank : p.ranks) {
      if (rank < 0 || rank >= n_ranks) {
        return of_table(model, t)
            .found(fmt::format("rank {}", rank))
            .expected(fmt::format("a rank from 0 to {}", n_ranks - 1));
      }
      // In TorchRec a rank may have several column shards of a table. Here such a rank has to have one wider
      // shard.
      if (!seen.insert(rank).second)
        return of_table(model, t).found(fmt::format("rank {} twice", rank)).expected("every rank once");
    }
    if (p.kind == ShardingKind::grid_shard &&
        (p.column_parts < 1 || p.ranks.size() % p.column_parts != 0 ||
         model.tables[t].dim < static_cast<std::int64_t>(p.column_parts))) {
      return of_table(model, t)
          .found(fmt::format("{} shares of {} columns on {} ranks", p.column_parts, model.tables[t].dim,
                             p.ranks.size()))
          .expected("for each share of grid_shard the same number of ranks, and a column");
    }
    if (p.kind == ShardingKind::column_wise &&
        model.tables[t].dim < static_cast<std::int64_t>(p.ranks.size())) {
      return of_table(model, t)
          .found(fmt::format("{} columns for {} ranks", model.tables[t].dim, p.ranks.size()))
          .expected("at least one column per rank");
    }
  }
  return Ok{};
}

// Every rank of `plan.ranks` has one shard; data_parallel has one copy on each of the `n_ranks` ranks.
std::vector<TableShard> shards_of(std::uint32_t table, const TablePlan& plan, std::int64_t n_ranks) {
  std::vector<TableShard> shards;
  if (plan.kind == ShardingKind::data_parallel) {
    for (std::int64_t r = 0; r < n_ranks; ++r)
      shards.push_back({table, static_cast<std::int32_t>(r), 1, plan.kind, plan.memory, plan.cached_share});
    return shards;
  }
  for (const std::int32_t rank : plan.ranks)
    shards.push_back({table, rank, static_cast<std::uint32_t>(plan.ranks.size()), plan.kind, plan.memory,
                      plan.cached_share, plan.column_parts});
  return shards;
}

std::vector<TableShard> shards_of(const Dlrm& model, const ShardingPlan& plan, std::int64_t n_ranks) {
  std::vector<TableShard> shards;
  for (std::uint32_t t = 0; t < model.tables.size() && t < plan.tables.size(); ++t) {
    const std::vector<TableShard> of_table = shards_of(t, plan.tables[t], n_ranks);
    shards.insert(shards.end(), of_table.begin(), of_table.end());
  }
  return shards;
}

}  // namespace stepcast
