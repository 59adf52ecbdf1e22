// stepcast platforms: which platforms there are, and what a platform says with the source of every figure.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/text.h"
#include "stepcast/base/version.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/text_table.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

using Align = TextTable::Align;

struct Options {
  std::string platform;
  bool json = false, names = false;
};

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

std::string_view role_word(PlatformListing::Role role) {
  switch (role) {
    case PlatformListing::Role::device: return "device";
    case PlatformListing::Role::node: return "node";
    case PlatformListing::Role::benchmark: return "benchmark";
  }
  return "node";
}

std::string listing_json(const PlatformListings& all) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.platforms/1").field("version", version());
  json.key("platforms").begin_array();
  for (const PlatformListing& p : all.platforms) {
    json.begin_object();
    json.field("name", p.name);
    json.field("role", role_word(p.role));
    json.field("description", p.description);
    write_texts(json, "aliases", p.aliases);
    json.field("device", p.device);
    json.field("gpus_per_node", p.gpus_per_node);
    json.field("n_curves", p.n_curves).field("n_models", p.n_models).field("n_overheads", p.n_overheads);
    json.field("file", p.file.string());
    json.end_object();
  }
  json.end_array();
  write_texts(json, "unreadable", all.unreadable);
  json.end_object();
  return std::move(json).text();
}

std::string listing_text(const PlatformListings& all) {
  constexpr std::pair<PlatformListing::Role, std::string_view> kGroups[] = {
      {PlatformListing::Role::node, "Nodes, of which any number can be asked for"},
      {PlatformListing::Role::device, "GPUs alone; several GPUs are placed in the default node of the GPU"},
      {PlatformListing::Role::benchmark, "Machines of published measurements, as they were described"}};
  std::string out;
  for (const auto& [role, title] : kGroups) {
    TextTable table{{{"platform", Align::left},
                     {"device", Align::left},
                     {"GPUs\nper node"},
                     {"curves"},
                     {"models"},
                     {"over-\nheads"},
                     {"description", Align::left}}};
    for (const PlatformListing& p : all.platforms) {
      if (p.role != role) continue;
      table.row({p.name, p.device, std::to_string(p.gpus_per_node),
                 table_number_or_blank(static_cast<double>(p.n_curves), 0),
                 table_number_or_blank(static_cast<double>(p.n_models), 0),
                 table_number_or_blank(static_cast<double>(p.n_overheads), 0), p.description});
    }
    out += fmt::format("{}\n\n{}\n", title, table.text());
  }
  for (const std::string& problem : all.unreadable) out += fmt::format("left out: {}\n", problem);
  return out + "`stepcast platforms NAME` shows one with the source of every figure.\n";
}

std::string listing_names(const PlatformListings& all) {
  std::string out;
  for (const PlatformListing& p : all.platforms) out += p.name + "\n";
  return out;
}

// Each source once, with a number that the figures refer to.
class SourceList {
 public:
  std::string refer(const Provenance& p) {
    if (p.document.empty() && p.n_rows == 0) return std::string{to_string(p.source)};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i] == p) return label(i);
    }
    sources_.push_back(p);
    return label(sources_.size() - 1);
  }
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
    return lines.empty() ? lines : "\nSources\n" + lines;
  }

 private:
  [[nodiscard]] std::string label(std::size_t i) const {
    return fmt::format("{} [{}]", to_string(sources_[i].source), i + 1);
  }
  std::vector<Provenance> sources_;
};

std::string error_of(const Provenance& p) {
  for (const char* key : {"mape_pct", "gmae_pct", "median_ape_pct"}) {
    if (const auto found = p.error.find(key); found != p.error.end()) return table_number(found->second, 2);
  }
  return "";
}

std::string shown_bytes(const CollectiveCurve& curve) {
  const NamedNumbers& range = curve.provenance.range;
  const auto low = range.find("message_bytes_min");
  const auto high = range.find("message_bytes_max");
  if (low != range.end() && high != range.end()) {
    return fmt::format("{} to {}", table_bytes(low->second), table_bytes(high->second));
  }
  if (curve.knots.empty()) return "";
  return fmt::format("{} to {}", table_bytes(curve.knots.front().message_bytes),
                     table_bytes(curve.knots.back().message_bytes));
}

std::string curves_text(const Platform& platform, SourceList& sources) {
  if (platform.curves.empty()) return "";
  TextTable table{{{"collective", Align::left},
                   {"dtype", Align::left},
                   {"nodes"},
                   {"GPUs\nper node"},
                   {"ranks"},
                   {"knots"},
                   {"message size", Align::left},
                   {"error %"},
                   {"source", Align::left}}};
  for (const CollectiveCurve& c : platform.curves) {
    std::string name{to_string(c.collective)};
    if (!c.variant.empty()) name += " " + c.variant;
    Provenance shown = c.provenance;  // without what differs from curve to curve
    shown.row_hashes.clear();
    shown.error.clear();
    shown.range.clear();
    shown.n_rows = 0;
    table.row({std::move(name), c.dtype == DType::unknown ? "any" : std::string{to_string(c.dtype)},
               std::to_string(c.n_nodes), std::to_string(c.gpus_per_node), std::to_string(c.n_ranks),
               table_count(c.knots.size()), shown_bytes(c), error_of(c.provenance), sources.refer(shown)});
  }
  return "\nCollective curves\n" + table.text(2);
}

std::string models_text(const Platform& platform) {
  if (platform.models.empty()) return "";
  TextTable table{
      {{"model", Align::left}, {"kind", Align::left}, {"device", Align::left}, {"rows"}, {"error %"}}};
  for (const ModelRecord& m : platform.models) {
    table.row({m.name, m.kind, m.device, table_count(m.provenance.n_rows), error_of(m.provenance)});
  }
  return "\nFitted models\n" + table.text(2);
}

std::string overheads_text(const Platform& platform) {
  if (platform.overheads.empty()) return "";
  TextTable table{{{"overhead", Align::left}, {"op", Align::left}, {"mean us"}, {"n"}}};
  for (const OverheadRecord& o : platform.overheads) {
    table.row({std::string{to_string(o.type)}, o.op.empty() ? "(every other)" : o.op,
               table_number(o.mean_us, 2), table_count(o.n)});
  }
  return "\nCPU overheads\n" + table.text(2);
}

std::string platform_text(const Platform& platform) {
  std::string text = platform.name + "\n";
  if (!platform.description.empty()) text += platform.description + "\n";
  if (!platform.aliases.empty()) text += fmt::format("also called: {}\n", join(platform.aliases));
  text += fmt::format("device: {}\n", platform.device.name);
  std::string files;
  for (const auto& file : platform.files) files += (files.empty() ? "" : ", extends ") + file.string();
  text += fmt::format("file: {}\n\n", files);

  SourceList sources;
  TextTable table{{{"figure", Align::left}, {"value"}, {"source", Align::left}}};
  for (const PlatformFigure& figure : platform_figures(platform)) {
    table.row({figure.path, figure.value, sources.refer(figure.provenance)});
  }
  text += table.text();
  text += curves_text(platform, sources) + models_text(platform) + overheads_text(platform);
  return text + sources.text();
}

Result<int> run(const Options& options) {
  if (options.platform.empty()) {
    const std::vector<std::filesystem::path> dirs = platform_search_dirs();
    const PlatformListings all = list_platforms(dirs);
    if (all.platforms.empty() && all.unreadable.empty()) {
      return Error{"no platforms were found"}.advice(
          "set STEPCAST_PLATFORMS to the folder `platforms` of the checkout, or to share/stepcast/platforms "
          "of the "
          "installation");
    }
    print("{}", options.json ? listing_json(all) : options.names ? listing_names(all) : listing_text(all));
    return kSuccess;
  }
  STEPCAST_ASSIGN(const Platform platform, load_platform(options.platform));
  print("{}", options.json ? platform_json(platform) : platform_text(platform));
  return kSuccess;
}

}  // namespace

Verb platforms_verb() {
  return {
      "platforms", "list the shipped platforms, or show one", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        app.add_option("NAME|FILE", options->platform,
                       "a platform to show: a name or alias, or a file; without it all are listed");
        app.add_flag("--names", options->names, "print names alone, one a line");
        app.add_flag(
            "--json", options->json,
            "print JSON: the list, or the platform file with all that it extends (docs/platform-file.md)");
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
