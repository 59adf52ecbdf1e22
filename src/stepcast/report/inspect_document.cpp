// The documents of `stepcast inspect`: for each kind of file, facts as rows of a label and a text, then
// tables.

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/names.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/inspect_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/log_document.h"

namespace stepcast {
namespace {

// A document with the facts about a file. The first screen shows the first of them, and no figures.
ReportDocument document_of(const std::string& file, ReportTable facts, std::vector<KeyFigure> figures) {
  ReportDocument document{.title = in_one_line(file), .figures = std::move(figures)};
  constexpr std::size_t kMostFacts = 20;
  ReportTable first = facts;
  first.most = kMostFacts;
  document.first_screen = FirstScreen{.blocks = {std::move(first)}, .most_figures = 0};
  document.add(file, {std::move(facts)}).opening = in_one_line(file) + "\n";
  return document;
}

// Adds a table as a section, unless it is empty.
void add_table(ReportDocument& document, std::string title, ReportTable table) {
  if (!table.rows.empty()) document.add(std::move(title), {std::move(table)}).opening = "\n";
}

// Texts for missing values.
std::string or_not_told(const std::optional<std::int32_t>& number) {
  return number ? std::to_string(*number) : "not told";
}
std::string or_none(const std::vector<std::string>& parts) { return parts.empty() ? "none" : join(parts); }
std::string milliseconds(Microseconds time) { return table_number(time.value() * 1e-3, 3); }

// The format of a file with its schema: "profiler trace (kineto), schema 1".
std::string format_text(std::string_view format, const std::string& schema) {
  return fmt::format("{}{}{}", format, schema.empty() ? "" : ", schema ", schema);
}

// Counts with their names, without zeros: "3 all_reduce, 1 all_to_all". "none" if all are 0.
std::string counts_text(const auto& counts) {
  std::vector<std::string> parts;
  for (const auto& [what, n] : counts) {
    if (n == 0) continue;
    parts.push_back(table_count(n) + " ");
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(what)>>)
      parts.back() += to_string(what);
    else
      parts.back() += what;
  }
  return or_none(parts);
}

// The device of a trace, with the number of devices if there are several.
std::string device_names(const std::vector<DeviceProperties>& devices) {
  if (devices.empty() || devices.front().name.empty()) return "not told";
  const std::string& name = devices.front().name;
  if (devices.size() == 1) return name;
  const bool alike = std::ranges::all_of(devices, [&](const auto& device) { return device.name == name; });
  return alike ? fmt::format("{} x {}", devices.size(), name) : name + " and others";
}

// What was read from a profiler trace: numbers of events by kind.
std::string kept_text(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  std::vector<std::string> parts;
  const auto add = [&](std::size_t n, std::string_view one, std::string_view many) {
    if (n > 0) parts.push_back(counted(n, one, many));
  };
  add(s.ops, "operator", "operators");
  add(s.annotations, "annotation", "annotations");
  add(s.steps.size(), "step", "steps");
  add(p.summary.runtime_calls, "runtime call", "runtime calls");
  add(s.kernels, "kernel", "kernels");
  add(s.copies, "copy", "copies");
  add(s.fills, "fill", "fills");
  add(p.summary.stream_syncs, "synchronisation record", "synchronisation records");
  add(p.summary.allocator_totals, "total of the allocator", "totals of the allocator");
  return or_none(parts);
}

// How the "External id" of the file's events is used; it decides how GPU work is linked to operators.
std::string_view link_text(ExternalIdMeaning meaning) {
  return name_of<ExternalIdMeaning::unclear>(
      meaning, {"no external ids", "\"External id\" names the operator",
                "\"External id\" repeats the correlation", "\"External id\" follows no rule"});
}

// The facts about a profiler trace.
ReportTable facts_of(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  ReportTable facts = ReportTable::facts();
  const std::string_view read_as =
      p.format == ProfileFormat::xplane ? "XLA profile (xplane)" : "profiler trace (kineto)";
  facts.row({"format", format_text(p.is_rank_file ? "rank file of a profiler trace" : read_as, p.schema)});
  facts.row(
      {"rank", fmt::format("{}{}, world size {}", or_not_told(s.rank),
                           p.rank_is_by_name ? " (from the file name)" : "", or_not_told(p.world_size))});
  if (p.is_rank_file) {
    facts.row({"execution trace", p.execution_trace_nodes
                                      ? counted(*p.execution_trace_nodes, "node", "nodes") + ", read with it"
                                      : "none"});
  }
  facts.row({"device", device_names(p.devices)});
  facts.row({"events", fmt::format("{} over {} ms", table_count(p.events), milliseconds(s.span))});
  facts.row({"kept", kept_text(p)});
  facts.row({"skipped", counts_text(p.skipped)});
  facts.row({"GPU links", fmt::format("{} of {} GPU events have their launch in the file; {}",
                                      table_count(s.gpu_events_with_launch),
                                      table_count(p.summary.gpu_events), link_text(s.external_id))});
  facts.row(
      {"collectives",
       fmt::format("{} kernels, {} with sizes; {} record_param_comms, {} with sizes",
                   table_count(s.communication_kernels), table_count(s.communication_kernels_with_metadata),
                   table_count(s.collective_records), table_count(s.collective_records_with_metadata))});
  if (s.memory) {
    facts.row({"memory", fmt::format("at most {} GiB allocated, {} GiB reserved by the caching allocator",
                                     table_number(static_cast<double>(s.memory->allocated_bytes) / kGiB, 2),
                                     table_number(static_cast<double>(s.memory->reserved_bytes) / kGiB, 2))});
  }
  facts.row({"usable", s.usable_for_replay ? "yes, for replay" : "not for replay"});
  for (const std::string& note : s.notes) facts.row({"", "- " + note});
  return facts;
}

// The figures of a profiler trace: its median ordinary step, kernels and events.
std::vector<KeyFigure> figures_of(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  std::vector<KeyFigure> figures;
  std::vector<double> steps_ms;
  for (const RankSummary::Step& step : s.steps)
    if (step.kind == StepKind::ordinary) steps_ms.push_back(step.duration.value() * 1e-3);
  const std::string steps = counted(steps_ms.size(), "step", "steps");
  if (!steps_ms.empty())
    figures.push_back(
        {"Step time", duration_text(median(std::move(steps_ms))), "median of " + steps, "measured"});
  const Microseconds kernels = std::accumulate(s.kernel_time.begin(), s.kernel_time.end(), Microseconds{});
  figures.push_back({"Kernels", table_count(s.kernels), milliseconds(kernels) + " ms"});
  figures.push_back({"Events", table_count(p.events), fmt::format("over {} ms", milliseconds(s.span))});
  return figures;
}

// The facts and tables of a profiler trace. Columns that would be empty are left out.
ReportDocument document_of(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  ReportDocument document = document_of(p.file, facts_of(p), figures_of(p));
  const auto is_special = [](const RankSummary::Step& step) { return step.kind != StepKind::ordinary; };
  const bool any_special = std::ranges::any_of(s.steps, is_special);
  const bool any_shapes =
      std::ranges::any_of(s.steps, [](const RankSummary::Step& step) { return step.like_step.has_value(); });
  ReportTable steps{fmt::format("step | start ms | step_time_ms{}{}", any_shapes ? " | shapes of" : "",
                                any_special ? " | what it does<" : "")};
  for (const RankSummary::Step& step : s.steps) {
    ReportRow row{{fmt::format("#{}", step.number), milliseconds(step.start), milliseconds(step.duration)}};
    if (any_shapes) row.cell(step.like_step ? fmt::format("#{}", *step.like_step) : std::string{});
    if (any_special) row.cell(is_special(step) ? std::string{describe(step.kind)} : std::string{});
    steps.rows.push_back(std::move(row));
  }
  ReportTable threads;
  for (std::size_t i = 0; i < p.threads.size(); ++i) add_row(threads, {}, p.threads[i], s.threads[i]);
  ReportTable kernels{"kernels< | ms"};
  for (std::size_t i = 0; i < s.kernel_time.size(); ++i)
    if (s.kernel_time[i].value() > 0)
      kernels.row({std::string{to_string(static_cast<KernelClass>(i))}, milliseconds(s.kernel_time[i])});
  add_table(document, "Steps", std::move(steps));
  add_table(document, "Threads", std::move(threads));
  add_table(document, "Streams", table_of(s.streams));
  add_table(document, "Kernels", std::move(kernels));
  return document;
}

// The facts about a PyTorch execution trace.
ReportDocument document_of(const InspectedExecutionTrace& trace) {
  const ExecutionTraceSummary& s = trace.summary;
  ReportTable facts = ReportTable::facts();
  facts.row({"format", format_text("PyTorch execution trace", trace.schema)});
  facts.row({"rank", or_not_told(trace.rank)});
  facts.row({"nodes", fmt::format("{}, {} with tensors, on {} threads", table_count(trace.nodes),
                                  table_count(s.nodes_with_tensors), s.threads)});
  facts.row({"tensors", table_count(trace.tensor_uses) + " uses"});
  facts.row({"skipped", counts_text(trace.skipped)});
  std::string collectives = counts_text(s.collectives);
  if (!s.collectives.empty())
    collectives += fmt::format("; {} with sizes, {} waits", s.collectives_with_size, s.waits);
  facts.row({"collectives", std::move(collectives)});
  facts.row({"usable", "yes, with the profiler trace of the same rank: it has no times"});
  return document_of(
      trace.file, std::move(facts),
      {{"Nodes", table_count(trace.nodes), table_count(s.nodes_with_tensors) + " with tensors"}});
}

// The facts about a Chakra trace. "usable" says whether it can be simulated without a platform.
ReportDocument document_of(const InspectedChakra& graph) {
  const OperationGraphSummary& s = graph.summary;
  ReportTable facts = ReportTable::facts();
  facts.row({"format", format_text("Chakra execution trace", graph.schema)});
  facts.row({"rank", or_not_told(graph.rank)});
  facts.row({"nodes", fmt::format("{}: {}", table_count(graph.nodes), counts_text(s.nodes_by_kind))});
  facts.row({"dependencies", table_count(graph.dependencies)});
  using Counts = std::pair<std::string_view, std::uint64_t>;
  facts.row({"skipped",
             counts_text(std::array{Counts{"control dependencies on callers", graph.callers},
                                    Counts{"dependencies on nodes that are not in the file", graph.dangling},
                                    Counts{"metadata nodes", graph.metadata_nodes}})});
  facts.row({"durations", fmt::format("{} of {} nodes, {} ms of GPU work", table_count(s.with_duration),
                                      table_count(graph.nodes), table_number(s.recorded_gpu_ms, 3))});
  facts.row({"collectives", counts_text(s.collectives)});
  facts.row({"transfers", table_number(s.transfer_bytes / (1024 * 1024), 1) + " MiB"});
  const std::size_t unknown = graph.nodes - s.with_duration - s.with_amounts;
  std::string usable = s.with_amounts > 0    ? "yes, with a platform: some nodes have a size and no duration"
                       : s.with_duration > 0 ? "yes"
                                             : "only its order: no node has a duration or a size";
  if (unknown > 0 && s.with_duration + s.with_amounts > 0)
    usable += fmt::format("; {} nodes have neither duration nor size", table_count(unknown));
  facts.row({"usable", std::move(usable)});
  return document_of(graph.file, std::move(facts),
                     {{"Nodes", table_count(graph.nodes), table_count(s.with_duration) + " with a duration"},
                      {"GPU work", duration_text(s.recorded_gpu_ms), {}, "measured"}});
}

// The facts and operators of a pipeline timeline.
ReportDocument document_of(const InspectedTimeline& timeline) {
  ReportTable operators{"operator< | count | mean ms"};
  std::size_t n = 0;
  for (const auto& [name, of_name] : timeline.operators) {
    n += of_name.count;
    operators.row({name, table_count(of_name.count),
                   table_number(of_name.sum_us * 1e-3 / static_cast<double>(of_name.count), 3)});
  }
  ReportTable facts = ReportTable::facts();
  facts.row({"format", "operator-level timeline of a pipeline"});
  facts.row({"ranks", table_count(timeline.ranks.size())});
  facts.row({"steps", fmt::format("{}: {} to {}", table_count(timeline.steps.size()), timeline.steps.front(),
                                  timeline.steps.back())});
  facts.row({"operators", table_count(n)});
  ReportDocument document = document_of(
      timeline.file, std::move(facts),
      {{"Ranks", table_count(timeline.ranks.size())}, {"Steps", table_count(timeline.steps.size())}});
  add_table(document, "Operators", std::move(operators));
  return document;
}

// The operators of a trace with a sum in the last row; empty without operators.
ReportTable operators_table(const InspectedOperations& o) {
  ReportTable table = table_of(o.operators, o.times.has_value());
  InspectedOperations::Operator sum{.name = "all"};
  for (const InspectedOperations::Operator& row : o.operators) {
    sum.count += row.count;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
    sum.time += row.time;
  }
  if (sum.count == 0) return {};
  table.rule();
  add_row(table, {}, sum, o.times.has_value());
  return table;
}

// The operations of an execution trace, and the kernels and operators without a known operation.
ReportDocument document_of(const InspectedOperations& o) {
  ReportTable facts = ReportTable::facts();
  facts.row({"operators", fmt::format("{} of {} operators that launch GPU work have a model ({} %)",
                                      table_count(o.modelled_operators), table_count(o.launching_operators),
                                      table_number(o.modelled_operators_percent(), 2))});
  if (o.times) {
    facts.row({"kernel time", fmt::format("{} of {} ms of computation belong to them ({} %)",
                                          milliseconds(o.times->modelled), milliseconds(o.times->computation),
                                          table_number(o.modelled_time_percent(), 2))});
    facts.row(
        {"", fmt::format("{} ms communication and {} ms outside of the traced operators are not counted",
                         milliseconds(o.times->communication), milliseconds(o.times->unlinked))});
  }
  std::vector<KeyFigure> figures{
      {"Operators with a model", table_number(o.modelled_operators_percent(), 2) + " %"}};
  if (o.times)
    figures.push_back({"Computation with a model", table_number(o.modelled_time_percent(), 2) + " %",
                       "of the kernel time"});
  ReportDocument document = document_of(o.file, std::move(facts), std::move(figures));
  add_table(document, "Operations", operators_table(o));
  add_table(document, "Without operations", table_of(o.unmodelled));
  if (o.times) add_table(document, "Kernels without operations", table_of(o.times->unmodelled));
  return document;
}

// A sentence about heavy tables.
std::string heavy_text(const Pooling& p) {
  return fmt::format(
      "{} of {} tables have at least {:.0f} lookups per sample ({:.1f} %), with {:.1f} % of the lookups",
      p.heavy_tables, p.tables, kHeavyPooling, 100 * p.heavy_share(), 100 * p.heavy_lookup_share());
}

// The distribution of lookups per sample; empty intervals are left out.
ReportTable pooling_table(const Pooling& p) {
  ReportTable table;
  for (const PoolingBin& bin : p.bins)
    if (bin.tables > 0) add_row(table, {}, bin, p.lookups);
  return table;
}

// The facts about a file of embedding tables.
ReportDocument document_of(const InspectedTables& t) {
  ReportTable facts = ReportTable::facts();
  facts.row({"format", "embedding tables"});
  facts.row({"tables", fmt::format("{}, of {} columns", t.tables, fmt::join(t.widths, ", "))});
  facts.row({"rows", table_number(t.rows, 0)});
  facts.row({"weights", table_bytes(t.bytes)});
  facts.row({"lookups", fmt::format("{:.1f} per sample, {:.2f} per table", t.pooling.lookups,
                                    t.pooling.lookups / static_cast<double>(t.tables))});
  facts.row({"heavy", heavy_text(t.pooling)});
  facts.row(
      {"pattern", t.with_reuse == t.tables ? "reuse factors of a batch for all tables"
                  : t.with_reuse == 0
                      ? "unknown: a power law is assumed"
                      : fmt::format("reuse factors of a batch for {} tables, a power law for the others",
                                    t.with_reuse)});
  ReportDocument document = document_of(t.file, std::move(facts),
                                        {{"Tables", table_count(t.tables), table_number(t.rows, 0) + " rows"},
                                         {"Weights", table_bytes(t.bytes)},
                                         {"Lookups per sample", table_number(t.pooling.lookups, 1)}});
  add_table(document, "Lookups per sample", pooling_table(t.pooling));
  return document;
}

// The interval of reuse factors of a bin: 1, 2, then powers of two ("3 to 4"), and the open last one.
std::string bin_name(std::size_t bin) {
  if (bin < 2) return std::to_string(bin + 1);
  if (bin + 1 == kReuseBins) return fmt::format("above {}", 1U << (bin - 1));
  return fmt::format("{} to {}", (1U << (bin - 1)) + 1, 1U << bin);
}

// The shares of rows and of lookups by the number of times that a row is looked up. One pair of columns for
// the mean batch, the file and the data set, as far as they exist.
ReportTable reuse_table(const InspectedIndices& i) {
  const MeasuredIndices& m = i.measured;
  std::vector<std::pair<std::string, const ReuseFactors*>> sets;
  if (m.batches > 0) sets.emplace_back(fmt::format("{} samples", i.batch_samples), &m.mean_batch);
  sets.emplace_back("file", &m.all);
  if (i.data_set) sets.emplace_back("data set", &*i.data_set);
  ReportTable table{"reuse factor<"};
  for (const auto& [name, reuse] : sets) {
    table.columns.push_back({name + "\n% of rows"});
    table.columns.push_back({"\n% of lookups"});
  }
  for (std::size_t k = 0; k < kReuseBins; ++k) {
    if (std::ranges::all_of(sets, [&](const auto& set) { return set.second->of_rows[k] <= 0; })) continue;
    ReportRow& row = table.row({bin_name(k)});
    for (const auto& [name, reuse] : sets)
      row.numbers({100 * reuse->of_rows[k], 100 * reuse->of_lookups[k]}, 2);
  }
  return table;
}

// The facts about a file of indices, and how well its reuse factors predict distinct rows.
ReportDocument document_of(const InspectedIndices& i) {
  const MeasuredIndices& m = i.measured;
  const MeasuredTable& longest = *std::ranges::max_element(m.tables, {}, &MeasuredTable::longest_bag);
  const auto n_tables = static_cast<double>(m.tables.size());
  double empty = 0;
  for (const MeasuredTable& t : m.tables) empty += t.empty_share / n_tables;
  ReportTable facts = ReportTable::facts();
  facts.row({"format", "indices of embedding tables"});
  facts.row({"samples", fmt::format("{} of {} tables", table_count(m.samples), m.tables.size())});
  facts.row({"lookups", fmt::format("{}, {:.2f} per sample and table", table_count(m.all.lookups),
                                    i.pooling.lookups / n_tables)});
  facts.row({"distinct rows",
             fmt::format("{}, each looked up {:.2f} times on average, the most popular {}",
                         table_count(m.all.distinct_rows), m.all.mean(), table_count(m.all.hottest))});
  facts.row({"heavy", heavy_text(i.pooling)});
  facts.row({"bags", fmt::format("{:.1f} % empty; the longest has {} lookups, in {}", 100 * empty,
                                 table_count(longest.longest_bag), longest.name)});
  ReportDocument document = document_of(
      m.file, std::move(facts),
      {{"Lookups", table_count(m.all.lookups), fmt::format("by {} samples", table_count(m.samples))},
       {"Distinct rows", table_count(m.all.distinct_rows)}});
  add_table(document, "Lookups per sample", pooling_table(i.pooling));
  add_table(document, "Reuse factors", reuse_table(i));
  // Without batches or a data set, the comparison would be of the file with itself.
  if (m.batches == 0 && !i.data_set) return document;
  document.sections.back().add(TerminalText{"\n"});
  document.sections.back().add(ReportText{
      fmt::format("{:.0f} samples use {} distinct rows; the reuse factors of the {} give {} ({:+.1f} %)",
                  i.compared_samples, table_number(i.distinct_rows, 0), i.data_set ? "data set" : "file",
                  table_number(i.expected_distinct_rows, 0),
                  i.distinct_rows > 0 ? 100 * (i.expected_distinct_rows / i.distinct_rows - 1) : 0)});
  return document;
}

ReportDocument document_of(const LoggedRun& run) { return log_document(run); }

ReportDocument document_of(const UnreadableFile& file) {
  ReportDocument document{.title = file.file};
  document.add("", {ReportText{in_one_line(file.error), 0}});
  return document;
}

// The verdict about a file: its first fact, and what the file can be used for or tells.
std::string verdict_of(const ReportTable& facts) {
  std::string verdict = sentence(facts.rows.front().cells.back().text) + ".";
  for (const auto& [cells] : facts.rows) {
    const std::string& label = cells.front().text;
    if (label == "usable" || label == "step time" || label == "kernel time")
      verdict += fmt::format(" {}: {}.", sentence(label), cells.back().text);
  }
  return verdict;
}

// The page of one file.
ReportDocument page_of(const InspectedFile& file) {
  ReportDocument page = inspect_document(file);
  ReportSection& section = page.sections.front();
  section.title = "Facts";
  if (const auto* facts = std::get_if<ReportTable>(&section.blocks.front().content))
    page.verdict = verdict_of(*facts);
  return page;
}

// The page of several files: a table of all, and the folded sections of the first ones.
ReportDocument page_of(const std::vector<InspectedFile>& files) {
  constexpr std::size_t kMostFiles = 20;
  ReportDocument page;
  // An XLA profile has an entry for each device.
  std::set<std::string> profiles;
  std::size_t n_files = files.size();
  ReportTable all{"file< | content<"};
  page.add("Files");
  std::size_t unreadable = 0;
  for (const InspectedFile& file : files) {
    ReportDocument one = page_of(file);
    const auto* failure = std::get_if<UnreadableFile>(&file);
    if (failure != nullptr) ++unreadable;
    if (const auto* profile = std::get_if<InspectedProfile>(&file);
        profile != nullptr && profile->format == ProfileFormat::xplane && profile->summary.rank) {
      if (!profiles.insert(one.title).second) --n_files;
      one.title += fmt::format(", rank {}", *profile->summary.rank);
    }
    all.row({one.title, failure != nullptr ? failure->error : one.verdict});
    if (failure != nullptr || all.rows.size() > kMostFiles) continue;
    for (ReportSection& section : one.sections) {
      section.title = fmt::format("{}: {}", one.title, section.title);
      section.folded = true;
      page.sections.push_back(std::move(section));
    }
  }
  if (files.size() > kMostFiles)
    all.caption = fmt::format("Sections exist for the first {} files; the JSON has all.", kMostFiles);
  page.title = counted(n_files, "inspected file", "inspected files");
  page.verdict = unreadable == 0
                     ? "All files are readable."
                     : fmt::format("{} of {} files cannot be read.", unreadable, table_count(n_files));
  page.figures = {{"Files", table_count(n_files)}, {"Readable", table_count(n_files - unreadable)}};
  page.sections.front().add(std::move(all));
  return page;
}

}  // namespace

ReportDocument inspect_document(const InspectedFile& file) {
  return std::visit([](const auto& one) { return document_of(one); }, file);
}

ReportDocument inspect_page(const InspectAnswer& answer) {
  ReportDocument page = answer.files.size() == 1 ? page_of(answer.files.front()) : page_of(answer.files);
  page.json = inspect_json(answer);
  return page;
}

}  // namespace stepcast
