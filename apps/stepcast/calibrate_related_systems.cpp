// `stepcast calibrate related-systems`: collectives measured on one node of several machines in, the record for nodes
// that nobody measured out (platforms/curves/related-systems.json, which platforms of devices extend).
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/collective_measurements.h"
#include "calibrate/related_systems_fit.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateRelatedSystemsOptions {
  std::vector<std::string> files;
  std::string output, document;
};

Result<int> run_calibrate_related_systems(const CalibrateRelatedSystemsOptions& options) {
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
    STEPCAST_ASSIGN(output, OutputFile::at(options.output, input_files(files)));
  }
  MeasuredCollectives all;
  for (const std::string& file : options.files) {
    STEPCAST_ASSIGN(MeasuredCollectives one, read_collective_measurements(file));
    all.add(std::move(one));
  }
  std::map<std::string, MeasuredSystem> systems;
  std::set<std::string> unknown;
  std::uint64_t n_rows = 0;
  for (const CollectiveMeasurements& m : all.curves) {
    if (!spans_start_up_to_bandwidth(m) || unknown.contains(m.platform)) continue;
    auto at = systems.find(m.platform);
    if (at == systems.end()) {
      auto platform = load_platform(m.platform, m.gpu);
      if (!platform) {
        unknown.insert(m.platform);
        continue;
      }
      at =
          systems.emplace(m.platform, MeasuredSystem{m.platform, platform->device, platform->node, {}}).first;
    }
    at->second.curves.push_back(&m);
    n_rows += m.samples.size();
  }
  std::vector<MeasuredSystem> measured;
  for (auto& [name, system] : systems) measured.push_back(std::move(system));
  STEPCAST_ASSIGN(const RelatedSystems related, fit_related_systems(measured));

  ReportTable table{"machine< | architecture | links | curves"};
  table.indent = 0;
  for (const MeasuredSystem& s : measured) {
    table.row({s.name, s.device.architecture, std::string{to_string(s.node.intra.kind)},
               table_count(s.curves.size())});
  }
  ReportDocument document{.title = "Collectives of measured nodes"};
  ReportSection& section = document.add("", {std::move(table)});
  for (const std::string& name : unknown)
    section.add(ReportText{name + ": no shipped platform has this name", 0});
  print("{}", report_text(document));
  if (!output) return kSuccess;
  Platform part;
  part.name = "related-systems";
  part.description = "Collectives of measured nodes, for platform files of unmeasured nodes";
  ModelRecord record;
  record.name = RelatedSystems::kRecordName;
  record.kind = RelatedSystems::kRecordKind;
  record.parameters = related.write();
  record.provenance.source = FigureSource::fitted;
  record.provenance.document = options.document;
  record.provenance.n_rows = n_rows;
  part.set(std::move(record));
  STEPCAST_TRY(output->write(platform_extension_json(part, Platform{}, {})));
  print("\nWritten to {}\n", options.output);
  return kSuccess;
}

}  // namespace

Calibration related_systems_calibration() {
  return {"related-systems", "collectives of unmeasured nodes, from measured nodes of all machines",
          [](CLI::App& app) -> Action {
            auto options = std::make_shared<CalibrateRelatedSystemsOptions>();
            app.add_option("FILES", options->files, "CSV files or logs of collectives, of several machines")
                ->required();
            add_output_option(app, "-o,--output", options->output,
                              "the platform file to write; without it nothing is written");
            app.add_option("--document", options->document,
                           "where the measurements are from, for the provenance");
            return [options] { return run_calibrate_related_systems(*options); };
          }};
}

}  // namespace stepcast::cli
