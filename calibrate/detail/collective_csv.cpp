// Columns, in any order: collective, n_ranks, message_bytes, time_us; if there: platform, gpu, interconnect,
// n_nodes, gpus_per_node, dtype, source. Others are not read. A cell may stand in double quotes.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/platform/provenance.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast::detail {
namespace {

// Cells of a line; "" inside quotes is one quote.
void split(std::string_view line, std::vector<std::string>& cells) {
  std::size_t n = 0;
  const auto next = [&]() -> std::string& {
    if (n == cells.size()) cells.emplace_back();
    cells[n].clear();
    return cells[n++];
  };
  std::string* cell = &next();
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        *cell += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        *cell += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cell = &next();
    } else {
      *cell += c;
    }
  }
  cells.resize(n);
}

}  // namespace

Result<MeasuredCollectives> parse_collective_csv(std::string_view text, const std::string& name,
                                                 const MeasurementContext& context) {
  const std::vector<std::string_view> all = lines(text);
  std::size_t header_line = 0;
  while (header_line < all.size() && words(all[header_line]).empty()) ++header_line;
  if (header_line == all.size()) {
    return Error::at(name, "the header", "the file is empty")
        .expected("collective, n_ranks, message_bytes, time_us and more (docs/collectives.md)");
  }
  std::vector<std::string> cells;
  split(all[header_line], cells);
  std::map<std::string, std::size_t, std::less<>> column;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!column.emplace(cells[i], i).second) {
      return Error::at(name, "line 1", fmt::format("the column {} stands there twice", cells[i]));
    }
  }
  const std::size_t n_columns = cells.size();
  for (const char* needed : {"collective", "n_ranks", "message_bytes", "time_us"}) {
    if (column.contains(needed)) continue;
    return Error::at(name, "the header", fmt::format("lacks the column {}", needed))
        .expected("collective, n_ranks, message_bytes, time_us and more (docs/collectives.md)");
  }
  const auto optional_column = [&](const char* key) {
    const auto it = column.find(key);
    return it == column.end() ? n_columns : it->second;
  };
  const std::size_t c_op = column.at("collective"), c_ranks = column.at("n_ranks"),
                    c_bytes = column.at("message_bytes"), c_time = column.at("time_us"),
                    c_platform = optional_column("platform"), c_gpu = optional_column("gpu"),
                    c_link = optional_column("interconnect"), c_nodes = optional_column("n_nodes"),
                    c_per_node = optional_column("gpus_per_node"), c_dtype = optional_column("dtype"),
                    c_source = optional_column("source");

  MeasuredCollectives result;
  result.format = "CSV";
  using Key = std::tuple<std::string, CollectiveOp, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::size_t> index;
  std::uint64_t one_rank = 0;
  const std::string nothing;
  for (std::size_t i = header_line + 1; i < all.size(); ++i) {
    if (words(all[i]).empty()) continue;
    const std::string place = fmt::format("line {}", i + 1);
    split(all[i], cells);
    if (cells.size() != n_columns) {
      return Error::at(name, place, "a row")
          .found(fmt::format("{} cells", cells.size()))
          .expected(fmt::format("{}, as in the header", n_columns));
    }
    const auto cell = [&](std::size_t c) -> const std::string& { return c < n_columns ? cells[c] : nothing; };
    const auto count = [&](std::size_t c, std::string_view what,
                           std::uint32_t otherwise) -> Result<std::uint32_t> {
      if (cell(c).empty() && otherwise > 0) return otherwise;
      const auto value = whole_number(cell(c));
      if (!value || *value == 0 || *value > 10'000'000) {
        return Error::at(name, place, fmt::format("the column {}", what))
            .found(cell(c).substr(0, 40))
            .expected("a whole number above 0");
      }
      return static_cast<std::uint32_t>(*value);
    };
    const auto number = [&](std::size_t c, std::string_view what) -> Result<double> {
      const auto value = finite_number(cell(c));
      if (!value) {
        return Error::at(name, place, fmt::format("the column {}", what))
            .found(cell(c).empty() ? "nothing" : cell(c).substr(0, 40))
            .expected("a number");
      }
      return *value;
    };
    const CollectiveOp op = measured_collective(cell(c_op));
    if (op == CollectiveOp::unknown) {
      return Error::at(name, place, "the column collective")
          .found(cell(c_op).substr(0, 40))
          .expected("all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv or p2p");
    }
    STEPCAST_ASSIGN(const std::uint32_t n_ranks, count(c_ranks, "n_ranks", 0));
    STEPCAST_ASSIGN(const std::uint32_t n_nodes, count(c_nodes, "n_nodes", 1));
    STEPCAST_ASSIGN(const std::uint32_t per_node,
                    count(c_per_node, "gpus_per_node", std::max(1U, n_ranks / n_nodes)));
    if (n_nodes * static_cast<std::uint64_t>(per_node) != n_ranks) {
      return Error::at(name, place, "n_nodes x gpus_per_node")
          .found(fmt::format("{} x {}", n_nodes, per_node))
          .expected(fmt::format("n_ranks, which is {}", n_ranks));
    }
    CollectiveSample sample;
    STEPCAST_ASSIGN(sample.message_bytes, number(c_bytes, "message_bytes"));
    STEPCAST_ASSIGN(sample.time_us, number(c_time, "time_us"));
    STEPCAST_TRY(check_sample(sample, name, place));
    sample.dtype = parse_dtype(cell(c_dtype));
    if (n_ranks < 2) {
      ++one_rank;
      continue;
    }
    const std::string& platform = context.platform.empty() ? cell(c_platform) : context.platform;
    sample.hash =
        row_hash({cell(c_platform), to_string(op), fmt::format("{}", n_nodes), fmt::format("{}", per_node),
                  cell(c_dtype), cell(c_bytes), cell(c_time), cell(c_source)});
    const auto [at, is_new] =
        index.emplace(Key{platform, op, n_nodes, per_node, n_ranks}, result.curves.size());
    if (is_new) {
      CollectiveMeasurements curve;
      curve.platform = platform;
      curve.gpu = cell(c_gpu);
      curve.interconnect = cell(c_link);
      curve.collective = op;
      curve.n_nodes = n_nodes;
      curve.gpus_per_node = per_node;
      curve.n_ranks = n_ranks;
      result.curves.push_back(std::move(curve));
    }
    CollectiveMeasurements& curve = result.curves[at->second];
    curve.samples.push_back(sample);
    if (const std::string& source = cell(c_source);
        !source.empty() &&
        std::find(curve.sources.begin(), curve.sources.end(), source) == curve.sources.end()) {
      curve.sources.push_back(source);
    }
  }
  if (one_rank > 0) result.unused.push_back({name, "one rank has no other to communicate with", one_rank});
  if (result.curves.empty()) return Error::at(name, "the file", "has no row of two ranks or more");
  MeasuredCollectives sorted;
  sorted.add(std::move(result));
  return sorted;
}

}  // namespace stepcast::detail
