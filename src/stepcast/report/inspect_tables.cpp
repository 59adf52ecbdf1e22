#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/report/detail/inspect_text.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

std::string pooling_table(const Pooling& p) {
  TextTable table{{{"lookups per sample", TextTable::Align::left}, {"tables"}, {"% of lookups"}}};
  for (const PoolingBin& bin : p.bins) {
    if (bin.tables == 0) continue;
    table.row({std::string{bin.name}, table_count(bin.tables),
               table_number(p.lookups > 0 ? 100 * bin.lookups / p.lookups : 0, 1)});
  }
  return table.text(2);
}
std::string heavy_text(const Pooling& p) {
  return fmt::format(
      "{} of {} tables have {:.0f} lookups per sample and more ({:.1f} %), with {:.1f} % of "
      "the lookups",
      p.heavy_tables, p.tables, kHeavyPooling, 100 * p.heavy_share(), 100 * p.heavy_lookup_share());
}

std::string bin_name(std::size_t bin) {
  if (bin == 0) return "1";
  if (bin == 1) return "2";
  if (bin + 1 == kReuseBins) return fmt::format("above {}", 1U << (bin - 1));
  return fmt::format("{} to {}", (1U << (bin - 1)) + 1, 1U << bin);
}

// Distinct rows of a batch of so many samples, table by table, as the reuse factors of `seen` say.
double expected_distinct_rows(const MeasuredIndices& seen, double samples) {
  double rows = 0;
  for (const MeasuredTable& t : seen.tables) {
    if (t.reuse.lookups == 0) continue;
    const auto table_rows = static_cast<double>(t.highest_index + 1);
    rows += AccessPattern::from_reuse(t.reuse, table_rows).distinct_rows(samples * t.lookups_per_sample);
  }
  return rows;
}

// Share of the rows and of the lookups by how often a row is looked up.
std::string reuse_table(const InspectedIndices& i) {
  const MeasuredIndices& m = i.measured;
  std::vector<std::pair<std::string, const ReuseFactors*>> columns;
  if (m.batches > 0) columns.emplace_back(fmt::format("{} samples", i.batch_samples), &m.mean_batch);
  columns.emplace_back("file", &m.all);
  if (i.data_set) columns.emplace_back("data set", &*i.data_set);
  std::vector<TextTable::Column> headings{{"reuse factor", TextTable::Align::left}};
  for (const auto& [name, reuse] : columns) {
    headings.push_back({name + "\n% of rows"});
    headings.push_back({"\n% of lookups"});
  }
  TextTable table{headings};
  for (std::size_t k = 0; k < kReuseBins; ++k) {
    if (std::all_of(columns.begin(), columns.end(), [&](const auto& c) { return c.second->of_rows[k] <= 0; }))
      continue;
    std::vector<std::string> cells{bin_name(k)};
    for (const auto& [name, reuse] : columns) {
      cells.push_back(table_number(100 * reuse->of_rows[k], 2));
      cells.push_back(table_number(100 * reuse->of_lookups[k], 2));
    }
    table.row(std::move(cells));
  }
  return table.text(2);
}

}  // namespace

void Pooling::add(double pooling) {
  std::size_t bin = 0;
  while (bin + 1 < bins.size() && pooling >= bins[bin + 1].from) ++bin;
  ++bins[bin].tables;
  bins[bin].lookups += pooling;
  ++tables;
  lookups += pooling;
  if (pooling < kHeavyPooling) return;
  ++heavy_tables;
  heavy_lookups += pooling;
}

double Pooling::heavy_share() const {
  return tables > 0 ? static_cast<double>(heavy_tables) / static_cast<double>(tables) : 0;
}

InspectedTables inspected(const std::string& file, const std::vector<EmbeddingTable>& tables) {
  InspectedTables all{.file = file, .tables = tables.size()};
  for (const EmbeddingTable& t : tables) {
    all.pooling.add(t.pooling);
    all.rows += static_cast<double>(t.rows);
    all.bytes += t.bytes();
    all.widths.insert(t.dim);
    if (t.reuse) ++all.with_reuse;
  }
  return all;
}

InspectedIndices inspected(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                           std::int64_t batch_samples) {
  InspectedIndices all{.measured = measured, .batch_samples = batch_samples};
  for (const MeasuredTable& t : measured.tables) all.pooling.add(t.lookups_per_sample);
  if (data_set != nullptr) all.data_set = data_set->all;
  const bool has_batches = measured.batches > 0;
  all.compared_samples = static_cast<double>(has_batches ? batch_samples : measured.samples);
  all.distinct_rows = static_cast<double>((has_batches ? measured.mean_batch : measured.all).distinct_rows);
  all.expected_distinct_rows =
      expected_distinct_rows(data_set != nullptr ? *data_set : measured, all.compared_samples);
  return all;
}

std::string detail::inspect_text(const InspectedTables& t) {
  std::string out = t.file + "\n";
  labelled_line(out, "format", "embedding tables");
  labelled_line(out, "tables", fmt::format("{}, of {} columns", t.tables, fmt::join(t.widths, ", ")));
  labelled_line(out, "rows", table_number(t.rows, 0));
  labelled_line(out, "weights", table_bytes(t.bytes));
  labelled_line(out, "lookups",
                fmt::format("{:.1f} per sample, {:.2f} per table", t.pooling.lookups,
                            t.pooling.lookups / static_cast<double>(t.tables)));
  labelled_line(out, "heavy", heavy_text(t.pooling));
  labelled_line(
      out, "pattern",
      t.with_reuse == t.tables ? "reuse factors of a batch for all tables"
      : t.with_reuse == 0
          ? "not known: a power law is assumed"
          : fmt::format("reuse factors of a batch for {} tables, a power law for the others", t.with_reuse));
  return out + "\n" + pooling_table(t.pooling);
}

std::string detail::inspect_text(const InspectedIndices& i) {
  const MeasuredIndices& m = i.measured;
  const MeasuredTable* longest = m.tables.data();
  double empty = 0;
  for (const MeasuredTable& t : m.tables) {
    empty += t.empty_share / static_cast<double>(m.tables.size());
    if (t.longest_bag > longest->longest_bag) longest = &t;
  }
  std::string out = m.file + "\n";
  labelled_line(out, "format", "indices of embedding tables");
  labelled_line(
      out, "samples",
      fmt::format("{} of {} tables", table_count(static_cast<std::uint64_t>(m.samples)), m.tables.size()));
  labelled_line(out, "lookups",
                fmt::format("{}, {:.2f} per sample and table", table_count(m.all.lookups),
                            i.pooling.lookups / static_cast<double>(m.tables.size())));
  labelled_line(out, "distinct rows",
                fmt::format("{}, each looked up {:.2f} times on average, the most popular {}",
                            table_count(m.all.distinct_rows), m.all.mean(), table_count(m.all.hottest)));
  labelled_line(out, "heavy", heavy_text(i.pooling));
  labelled_line(out, "bags",
                fmt::format("{:.1f} % empty; the longest holds {} lookups, of {}", 100 * empty,
                            table_count(static_cast<std::uint64_t>(longest->longest_bag)), longest->name));
  out += "\n" + pooling_table(i.pooling) + "\n" + reuse_table(i);
  if (m.batches == 0 && !i.data_set) return out;
  out += fmt::format(
      "\n  {:.0f} samples touch {} distinct rows; the reuse factors of the {} say {} ({:+.1f} %)\n",
      i.compared_samples, table_number(i.distinct_rows, 0), i.data_set ? "data set" : "file",
      table_number(i.expected_distinct_rows, 0),
      i.distinct_rows > 0 ? 100 * (i.expected_distinct_rows / i.distinct_rows - 1) : 0);
  return out;
}

}  // namespace stepcast
