// Documents and JSON of `stepcast models` and `stepcast platforms`. The first screen shows the most important
// columns of the first rows; the documents contain all.
#include "stepcast/report/catalog_document.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"
#include "stepcast/formats/presets.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"

namespace stepcast {

// Active parameters are those that one token uses: equal to all parameters unless the model has experts.
ModelsAnswer models_answer(const std::vector<const Preset*>& presets) {
  ModelsAnswer answer;
  for (const Preset* preset : presets) {
    const Transformer& m = preset->model;
    answer.models.push_back({.name = m.name,
                             .aliases = preset->aliases,
                             .parameters = parameter_count(m).total(),
                             .active_parameters = active_parameter_count(m),
                             .n_layers = m.n_layers,
                             .hidden_size = m.hidden_size,
                             .n_heads = m.n_heads,
                             .n_kv_heads = m.kv_heads(),
                             .vocab_size = m.vocab_size,
                             .n_experts = m.moe ? m.moe->n_experts : 0,
                             .experts_per_token = m.moe ? m.moe->experts_per_token : 0,
                             .longest_sequence = m.longest_sequence()});
  }
  return answer;
}

static std::string_view to_string(PlatformListing::Role role) {
  return name_of<PlatformListing::Role::benchmark>(role, {"device", "node", "benchmark"}, "node");
}

// The columns and JSON keys of a platform's listing.
void fields(auto& a, Is<PlatformListing> auto& p) {
  a("name", p.name, "", {"platform<"});
  a("role", p.role, "kind of platform: GPU, node, or machine of a published benchmark");
  a("description", p.description, "", TableColumn{"description<"}.at(1));
  a("aliases", p.aliases);
  a("device", p.device, "", {"device<"});
  a("gpus_per_node", p.gpus_per_node, "", TableColumn::plain("GPUs\nper node"));
  a("n_curves", p.n_curves, "of collectives", TableColumn::or_blank("curves"));
  a("n_models", p.n_models, "of kernels", TableColumn::or_blank("models"));
  a("n_overheads", p.n_overheads, "CPU of the host", TableColumn::or_blank("over-\nheads"));
  a("file", p.file.string());
}

void fields(auto& a, Is<PlatformListings> auto& all) {
  a("platforms", all.platforms);
  a("unreadable", all.unreadable, "files that cannot be read, with errors");
}

STEPCAST_ANSWER(models, ModelsAnswer, "stepcast.models/1", "stepcast models --json")
STEPCAST_ANSWER(platforms, PlatformListings, "stepcast.platforms/1", "stepcast platforms --json")

ReportDocument models_document(const ModelsAnswer& models, const std::vector<std::string>& others) {
  ReportTable table = table_of(models.models);
  table.indent = 0;
  ReportDocument document{.title = "Models with a preset"};
  ReportTable first = table;
  constexpr std::size_t kMostModels = 15;
  first.most = kMostModels;
  first.on_first_screen = {"model", "parameters\nin billions", "layers", "hidden", "experts", "positions"};
  document.first_screen = FirstScreen{
      .blocks = {std::move(first),
                 TerminalText{"`stepcast models WORD` lists those with WORD in their name.\n"
                              "Any other: --model config.json of Hugging Face, or Megatron's flags.\n"}}};
  document.add("", {std::move(table),
                    TerminalText{fmt::format("\n{}\nAny other: `--model config.json` of Hugging Face, or "
                                             "Megatron's flags from --num-layers on.\n",
                                             fmt::join(others, "\n"))}});
  return document;
}

ReportDocument platforms_document(const PlatformListings& platforms) {
  using Role = PlatformListing::Role;
  // One section per role of a platform, in this order.
  constexpr std::pair<Role, std::string_view> kGroups[] = {
      {Role::node, "Nodes (any number of them)"},
      {Role::device, "GPUs; several GPUs are placed in the default node of the GPU"},
      {Role::benchmark, "Machines of published measurements, as they were described"}};
  ReportDocument document{.title = "Platforms"};
  FirstScreen& screen = document.first_screen.emplace();
  for (const auto& [role, title] : kGroups) {
    ReportTable table;
    table.indent = 0;
    for (const PlatformListing& p : platforms.platforms)
      if (p.role == role) add_row(table, {}, p);
    if (role == Role::node) {
      constexpr std::size_t kMostNodes = 15;
      ReportTable first = table;
      first.most = kMostNodes;
      first.on_first_screen = {"platform", "description", "GPUs\nper node"};
      screen.blocks.emplace_back(std::move(first));
    } else {
      screen.blocks.emplace_back(
          TerminalText{fmt::format("{}: {}\n", counted(table.rows.size(), "platform", "platforms"), title)});
    }
    document.add(std::string{title}, {std::move(table), TerminalText{"\n"}}).opening =
        fmt::format("{}\n\n", title);
  }
  document.add("", {ReportList{platforms.unreadable, "left out: "},
                    TerminalText{"`stepcast platforms NAME` shows one with the source of every figure.\n"}});
  return document;
}

namespace {

// Collects sources and numbers them, so that each source is printed once and figures refer to it by number.
class SourceList {
 public:
  // The text that a figure shows for its source: the kind, and the number of the document if there is one.
  std::string refer(const Provenance& p) {
    if (p.document.empty() && p.n_rows == 0) return std::string{to_string(p.source)};
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (sources_[i] == p) return label(i);
    sources_.push_back(p);
    return label(sources_.size() - 1);
  }
  // The list of sources, one per line.
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Provenance& p = sources_[i];
      std::string line = fmt::format("  [{}] {}", i + 1, p.document.empty() ? "no document" : p.document);
      if (!p.date.empty()) line += fmt::format(", {}", p.date);
      if (!p.software.empty()) line += fmt::format("; {}", p.software);
      if (p.n_rows > 0) line += fmt::format("; {} rows", table_count(p.n_rows));
      lines += line + "\n";
    }
    return lines;
  }

 private:
  [[nodiscard]] std::string label(std::size_t i) const {
    return fmt::format("{} [{}]", to_string(sources_[i].source), i + 1);
  }
  std::vector<Provenance> sources_;
};

// The error of a fitted model in percent, by whichever measure its provenance has; empty without one.
std::string error_of(const Provenance& p) {
  for (const char* key : {"mape_pct", "gmae_pct", "median_ape_pct"})
    if (const auto found = p.error.find(key); found != p.error.end()) return table_number(found->second, 2);
  return "";
}

// The range of message sizes that a curve covers; empty if unknown.
std::string shown_bytes(const CollectiveCurve& curve) {
  const NamedNumbers& range = curve.fit->provenance.range;
  const auto low = range.find("message_bytes_min");
  const auto high = range.find("message_bytes_max");
  if (low != range.end() && high != range.end())
    return fmt::format("{} to {}", table_bytes(low->second), table_bytes(high->second));
  const std::vector<CurveKnot>& knots = curve.fit->knots;
  if (knots.empty()) return "";
  return fmt::format("{} to {}", table_bytes(knots.front().message_bytes),
                     table_bytes(knots.back().message_bytes));
}

// The table of collective curves. Sources that differ only in range, error or number of rows share a number.
ReportTable curves_table(const Platform& platform, SourceList& sources) {
  ReportTable table{
      "collective< | dtype< | nodes | GPUs\nper node | ranks | knots | message size< | error % | source<"};
  for (const CollectiveCurve& c : platform.curves) {
    std::string name{to_string(c.collective)};
    if (!c.variant.empty()) name += " " + c.variant;
    Provenance shown = c.fit->provenance;  // without members that differ between curves
    shown.row_hashes = {};
    shown.error.clear();
    shown.range.clear();
    shown.n_rows = 0;
    table.row({std::move(name),
               c.dtype == DType::unknown ? std::string{"any"} : std::string{to_string(c.dtype)},
               std::to_string(c.n_nodes), std::to_string(c.gpus_per_node), std::to_string(c.n_ranks),
               table_count(c.fit->knots.size()), shown_bytes(c), error_of(c.fit->provenance),
               sources.refer(shown)});
  }
  return table;
}

// The table of fitted kernel models, with the rows they were fitted to and their error.
ReportTable models_table(const Platform& platform) {
  ReportTable table{"model< | kind< | device< | rows | error %"};
  for (const ModelRecord& m : platform.models)
    table.row({m.name, m.kind, m.device, table_count(m.provenance.n_rows), error_of(m.provenance)});
  return table;
}

// The table of CPU overheads by operator; the row without an operator applies to all others.
ReportTable overheads_table(const Platform& platform) {
  ReportTable table{"overhead< | op< | mean us | n"};
  for (const OverheadRecord& o : *platform.overheads) {
    table.row({std::string{to_string(o.type)}, o.op.empty() ? "(every other)" : o.op,
               table_number(o.mean_us, 2), table_count(o.n)});
  }
  return table;
}

}  // namespace

// First all figures of the platform with their sources, then the tables of curves and models. Sources are
// numbered while the tables are made, so their list comes last.
ReportDocument platform_document(const Platform& platform) {
  ReportDocument document{.title = platform.name};
  std::string head = platform.name + "\n";
  if (!platform.description.empty()) head += platform.description + "\n";
  if (!platform.aliases.empty()) head += fmt::format("also called: {}\n", join(platform.aliases));
  head += fmt::format("device: {}\n", platform.device.name);
  std::string files;
  for (const auto& file : platform.files) files += (files.empty() ? "" : ", extends ") + file.string();
  head += fmt::format("file: {}\n\n", files);

  SourceList sources;
  ReportTable figures{"figure< | value | source<"};
  figures.indent = 0;
  for (const PlatformFigure& figure : platform_figures(platform))
    figures.row({figure.path, figure.value, sources.refer(figure.provenance)});
  ReportTable first = figures;
  constexpr std::size_t kMostFigures = 15;
  first.most = kMostFigures;
  first.on_first_screen = {"figure", "value"};
  document.first_screen = FirstScreen{.why = platform.description, .blocks = {std::move(first)}};
  document.add("", {TerminalText{std::move(head)}, std::move(figures)});
  for (auto& [title, table] : {std::pair{"Collective curves", curves_table(platform, sources)},
                               {"Fitted models", models_table(platform)},
                               {"CPU overheads", overheads_table(platform)}}) {
    if (!table.rows.empty()) document.add(title, {table});
  }
  if (const std::string text = sources.text(); !text.empty()) document.add("Sources", {TerminalText{text}});
  return document;
}

}  // namespace stepcast
