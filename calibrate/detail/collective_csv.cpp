// Columns, in any order: collective, n_ranks, message_bytes, time_us; if there: platform, gpu, interconnect,
// n_nodes, gpus_per_node, dtype, source. Other columns are not read. Cells may be quoted.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/platform/provenance.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast::detail {
namespace {

constexpr const char* kColumns = "collective, n_ranks, message_bytes, time_us and more (docs/collectives.md)";

Result<std::uint32_t> count_of(const CsvRows& rows, std::string_view column,
                               std::optional<std::int64_t> otherwise = std::nullopt) {
  constexpr std::int64_t kMost = 10'000'000;
  STEPCAST_ASSIGN(const std::int64_t value, rows.extent(column, 1, otherwise));
  if (value > kMost) return rows.error(column).expected(fmt::format("at most {}", kMost));
  return static_cast<std::uint32_t>(value);
}

// The platform, collective and ranks of the current row, without samples.
Result<CollectiveMeasurements> group_of(const CsvRows& rows, const MeasurementContext& context) {
  CollectiveMeasurements group{
      .platform = context.platform.empty() ? std::string{rows.cell("platform")} : context.platform,
      .gpu = std::string{rows.cell("gpu")},
      .interconnect = std::string{rows.cell("interconnect")},
      .collective = measured_collective(rows.cell("collective"))};
  if (group.collective == CollectiveOp::unknown) {
    return rows.error("collective")
        .expected("all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv or p2p");
  }
  STEPCAST_ASSIGN(group.n_ranks, count_of(rows, "n_ranks"));
  STEPCAST_ASSIGN(group.n_nodes, count_of(rows, "n_nodes", 1));
  STEPCAST_ASSIGN(group.gpus_per_node,
                  count_of(rows, "gpus_per_node", std::max(1U, group.n_ranks / group.n_nodes)));
  if (group.n_nodes * static_cast<std::uint64_t>(group.gpus_per_node) != group.n_ranks) {
    return Error::at(rows.name(), fmt::format("line {}", rows.line()), "n_nodes x gpus_per_node")
        .found(fmt::format("{} x {}", group.n_nodes, group.gpus_per_node))
        .expected(fmt::format("n_ranks, which is {}", group.n_ranks));
  }
  return group;
}

Result<CollectiveSample> sample_of(const CsvRows& rows, const CollectiveMeasurements& group) {
  CollectiveSample sample;
  STEPCAST_ASSIGN(sample.message_bytes, rows.number("message_bytes", 0));
  STEPCAST_ASSIGN(sample.time_us, rows.number("time_us", 0));
  STEPCAST_TRY(check_sample(sample, rows.name(), fmt::format("line {}", rows.line())));
  sample.dtype = parse_dtype(rows.cell("dtype"));
  if (sample.dtype == DType::unknown && !rows.cell("dtype").empty())
    return rows.error("dtype").expected(
        "fp32, fp16, bf16, fp8, int8 or another type of elements, or nothing");
  sample.hash =
      row_hash({rows.cell("platform"), to_string(group.collective), fmt::format("{}", group.n_nodes),
                fmt::format("{}", group.gpus_per_node), rows.cell("dtype"), rows.cell("message_bytes"),
                rows.cell("time_us"), rows.cell("source")});
  return sample;
}

}  // namespace

Result<MeasuredCollectives> parse_collective_csv(std::string_view text, const std::string& name,
                                                 const MeasurementContext& context) {
  Result<CsvRows> opened = CsvRows::open(text, name);
  if (!opened) return std::move(opened).error().expected(kColumns);
  CsvRows& rows = *opened;
  STEPCAST_TRY(rows.check_names());
  for (const char* needed : {"collective", "n_ranks", "message_bytes", "time_us"})
    if (!rows.has(needed))
      return Error::at(name, "the header", fmt::format("lacks the column {}", needed)).expected(kColumns);
  MeasuredCollectives result{.format = "CSV"};
  using Key = std::tuple<std::string, CollectiveOp, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::size_t> index;
  std::uint64_t one_rank = 0;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    STEPCAST_ASSIGN(CollectiveMeasurements group, group_of(rows, context));
    STEPCAST_ASSIGN(const CollectiveSample sample, sample_of(rows, group));
    if (group.n_ranks < 2) {
      ++one_rank;
      continue;
    }
    const auto [at, is_new] = index.emplace(
        Key{group.platform, group.collective, group.n_nodes, group.gpus_per_node, group.n_ranks},
        result.curves.size());
    if (is_new) result.curves.push_back(std::move(group));
    CollectiveMeasurements& curve = result.curves[at->second];
    curve.samples.push_back(sample);
    if (const std::string source{rows.cell("source")};
        !source.empty() && std::ranges::find(curve.sources, source) == curve.sources.end())
      curve.sources.push_back(source);
  }
  if (one_rank > 0) result.unused.push_back({name, "one rank has no other to communicate with", one_rank});
  if (result.curves.empty()) return Error::at(name, "the file", "has no row of two ranks or more");
  MeasuredCollectives sorted;
  sorted.add(std::move(result));
  return sorted;
}

}  // namespace stepcast::detail
