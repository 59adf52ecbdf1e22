#include "stepcast/report/tables_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/plan/table_sets.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

// Tables by lookups per sample: from this on, to the next. The first bin is exactly 0.
struct PoolingBin {
  std::string_view name;
  double from = 0;
  std::size_t tables = 0;
  double lookups = 0;
};

struct Pooling {
  std::array<PoolingBin, 7> bins{{{"none", 0},
                                  {"to 1", 1e-300},
                                  {"to 5", 1.0000001},
                                  {"to 20", 5.0000001},
                                  {"20 to 50", kHeavyPooling},
                                  {"to 100", 50},
                                  {"100 and more", 100}}};
  std::size_t tables = 0, heavy_tables = 0;
  double lookups = 0, heavy_lookups = 0;

  void add(double pooling) {
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
  [[nodiscard]] double heavy_share() const {
    return tables > 0 ? static_cast<double>(heavy_tables) / static_cast<double>(tables) : 0;
  }
  [[nodiscard]] double heavy_lookup_share() const { return lookups > 0 ? heavy_lookups / lookups : 0; }

  [[nodiscard]] std::string text() const {
    TextTable table{{{"lookups per sample", TextTable::Align::left}, {"tables"}, {"% of lookups"}}};
    for (const PoolingBin& bin : bins) {
      if (bin.tables == 0) continue;
      table.row({std::string{bin.name}, table_count(bin.tables),
                 table_number(lookups > 0 ? 100 * bin.lookups / lookups : 0, 1)});
    }
    return table.text(2);
  }
  [[nodiscard]] std::string heavy_text() const {
    return fmt::format(
        "{} of {} tables have {:.0f} lookups per sample and more ({:.1f} %), with {:.1f} % of "
        "the lookups",
        heavy_tables, tables, kHeavyPooling, 100 * heavy_share(), 100 * heavy_lookup_share());
  }
  void write(JsonWriter& json) const {
    json.field("heavy_tables", heavy_tables).field("heavy_share", heavy_share());
    json.field("heavy_share_of_lookups", heavy_lookup_share());
    json.key("pooling").begin_array();
    for (const PoolingBin& bin : bins) {
      json.begin_object().field("lookups_per_sample", bin.name).field("tables", bin.tables);
      json.field("share_of_lookups", lookups > 0 ? bin.lookups / lookups : 0).end_object();
    }
    json.end_array();
  }
};

void line(std::string& out, std::string_view label, const std::string& text) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
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

// A batch whose distinct rows the whole, file or data set, foretells.
struct Comparison {
  double samples = 0, measured = 0, expected = 0;
};
Comparison comparison(const MeasuredIndices& m, const MeasuredIndices* data_set, std::int64_t batch_samples) {
  const bool batches = m.batches > 0;
  const auto samples = static_cast<double>(batches ? batch_samples : m.samples);
  const ReuseFactors& batch = batches ? m.mean_batch : m.all;
  return {samples, static_cast<double>(batch.distinct_rows),
          expected_distinct_rows(data_set != nullptr ? *data_set : m, samples)};
}

double total_pooling(const MeasuredIndices& m) {
  double sum = 0;
  for (const MeasuredTable& t : m.tables) sum += t.lookups_per_sample;
  return sum;
}

void reuse_json(std::string_view name, const ReuseFactors& reuse, JsonWriter& json) {
  json.key(name).begin_object();
  json.field("lookups", reuse.lookups).field("distinct_rows", reuse.distinct_rows);
  json.field("mean_reuse_factor", reuse.mean()).field("hottest_row_lookups", reuse.hottest);
  for (const auto& [key, shares] :
       {std::pair{"share_of_distinct_rows", &reuse.of_rows}, {"share_of_lookups", &reuse.of_lookups}}) {
    json.key(key).begin_array();
    for (const double share : *shares) json.value(share);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string tables_text(const std::string& file, const std::vector<EmbeddingTable>& tables) {
  Pooling pooling;
  double rows = 0, bytes = 0;
  std::size_t with_reuse = 0;
  std::set<std::int64_t> widths;
  for (const EmbeddingTable& t : tables) {
    pooling.add(t.pooling);
    rows += static_cast<double>(t.rows);
    bytes += t.bytes();
    widths.insert(t.dim);
    if (t.reuse) ++with_reuse;
  }
  std::string out = file + "\n";
  line(out, "format", "embedding tables");
  line(out, "tables", fmt::format("{}, of {} columns", tables.size(), fmt::join(widths, ", ")));
  line(out, "rows", table_number(rows, 0));
  line(out, "weights", table_bytes(bytes));
  line(out, "lookups",
       fmt::format("{:.1f} per sample, {:.2f} per table", pooling.lookups,
                   pooling.lookups / static_cast<double>(tables.size())));
  line(out, "heavy", pooling.heavy_text());
  line(out, "pattern",
       with_reuse == tables.size() ? "reuse factors of a batch for all tables"
       : with_reuse == 0
           ? "not known: a power law is assumed"
           : fmt::format("reuse factors of a batch for {} tables, a power law for the others", with_reuse));
  return out + "\n" + pooling.text();
}

std::string indices_text(const MeasuredIndices& m, const MeasuredIndices* data_set,
                         std::int64_t batch_samples) {
  Pooling pooling;
  const MeasuredTable* longest = m.tables.data();
  double empty = 0;
  for (const MeasuredTable& t : m.tables) {
    pooling.add(t.lookups_per_sample);
    empty += t.empty_share / static_cast<double>(m.tables.size());
    if (t.longest_bag > longest->longest_bag) longest = &t;
  }
  std::string out = m.file + "\n";
  line(out, "format", "indices of embedding tables");
  line(out, "samples",
       fmt::format("{} of {} tables", table_count(static_cast<std::uint64_t>(m.samples)), m.tables.size()));
  line(out, "lookups",
       fmt::format("{}, {:.2f} per sample and table", table_count(m.all.lookups),
                   total_pooling(m) / static_cast<double>(m.tables.size())));
  line(out, "distinct rows",
       fmt::format("{}, each looked up {:.2f} times on average, the most popular {}",
                   table_count(m.all.distinct_rows), m.all.mean(), table_count(m.all.hottest)));
  line(out, "heavy", pooling.heavy_text());
  line(out, "bags",
       fmt::format("{:.1f} % empty; the longest holds {} lookups, of {}", 100 * empty,
                   table_count(static_cast<std::uint64_t>(longest->longest_bag)), longest->name));
  out += "\n" + pooling.text() + "\n";

  std::vector<std::pair<std::string, const ReuseFactors*>> columns;
  if (m.batches > 0) columns.emplace_back(fmt::format("{} samples", batch_samples), &m.mean_batch);
  columns.emplace_back("file", &m.all);
  if (data_set != nullptr) columns.emplace_back("data set", &data_set->all);
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
  out += table.text(2);
  if (m.batches == 0 && data_set == nullptr) return out;
  const Comparison c = comparison(m, data_set, batch_samples);
  out += fmt::format(
      "\n  {:.0f} samples touch {} distinct rows; the reuse factors of the {} say {} ({:+.1f} %)\n",
      c.samples, table_number(c.measured, 0), data_set != nullptr ? "data set" : "file",
      table_number(c.expected, 0), c.measured > 0 ? 100 * (c.expected / c.measured - 1) : 0);
  return out;
}

void tables_json(const std::string& file, const std::vector<EmbeddingTable>& tables, JsonWriter& json) {
  Pooling pooling;
  double rows = 0, bytes = 0;
  for (const EmbeddingTable& t : tables) {
    pooling.add(t.pooling);
    rows += static_cast<double>(t.rows);
    bytes += t.bytes();
  }
  json.begin_object().field("file", file).field("format", "embedding_tables");
  json.field("tables", tables.size()).field("rows", rows).field("weight_bytes", bytes);
  json.field("lookups_per_sample", pooling.lookups);
  pooling.write(json);
  json.end_object();
}

void indices_json(const MeasuredIndices& m, const MeasuredIndices* data_set, std::int64_t batch_samples,
                  JsonWriter& json) {
  Pooling pooling;
  for (const MeasuredTable& t : m.tables) pooling.add(t.lookups_per_sample);
  json.begin_object().field("file", m.file).field("format", "table_indices");
  json.field("samples", m.samples).field("tables", m.tables.size());
  json.field("lookups_per_sample", pooling.lookups);
  pooling.write(json);
  reuse_json("file_reuse", m.all, json);
  if (m.batches > 0) {
    json.field("batch_samples", batch_samples).field("batches", m.batches);
    reuse_json("batch_reuse", m.mean_batch, json);
  }
  if (data_set != nullptr) reuse_json("data_set_reuse", data_set->all, json);
  const Comparison c = comparison(m, data_set, batch_samples);
  json.field("expected_distinct_rows", c.expected);
  json.key("by_table").begin_array();
  for (const MeasuredTable& t : m.tables) {
    json.begin_object().field("name", t.name).field("lookups_per_sample", t.lookups_per_sample);
    json.field("empty_share", t.empty_share).field("longest_bag", t.longest_bag);
    json.field("highest_index", t.highest_index);
    reuse_json("reuse", t.reuse, json);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace stepcast
