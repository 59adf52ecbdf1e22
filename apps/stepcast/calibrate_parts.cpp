// The kinds of `stepcast calibrate` that write a part of platform files. Measurements of several machines go
// in, and the result is one record for machines without measurements.
//
//   experts           expert layers and token all-to-alls: platforms/kernels/experts.json
//   generic-kernels   kernels: platforms/kernels/generic.json
//   related-systems   collectives on one node: platforms/curves/related-systems.json
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/cost/sustained_clock.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/collective_measurements.h"
#include "calibrate/expert_fit.h"
#include "calibrate/generic_fit.h"
#include "calibrate/kernel_measurements.h"
#include "calibrate/related_systems_fit.h"
#include "outputs.h"

namespace stepcast::cli {

namespace {

struct PartOptions {
  std::vector<std::string> files;
  std::string output, document;
};

// The output of a part: its file and its description.
class PartOutput {
 public:
  static Result<PartOutput> at(const PartOptions& options) {
    PartOutput output{options};
    if (options.output.empty()) return output;
    const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
    STEPCAST_ASSIGN(output.file_, OutputFile::at(options.output, input_files(files)));
    return output;
  }
  // Prints the fit, and writes the part if a file was given.
  [[nodiscard]] Result<int> write(const ReportDocument& document, Platform part, std::string name,
                                  std::string description) const {
    print("{}", report_text(document, terminal_columns()));
    if (!file_) return kSuccess;
    part.name = std::move(name);
    part.description = std::move(description);
    STEPCAST_TRY(file_->write(platform_extension_json(part, Platform{}, {})));
    print("\nWritten to {}\n", options_->output);
    return kSuccess;
  }

 private:
  explicit PartOutput(const PartOptions& options) : options_(&options) {}
  const PartOptions* options_;
  std::optional<OutputFile> file_;
};

Calibration part_calibration(std::string name, std::string summary, const std::string& files,
                             const std::string& output, Result<int> (*run)(const PartOptions&)) {
  return {std::move(name), std::move(summary), [=](CLI::App& app) -> Action {
            auto options = std::make_shared<PartOptions>();
            app.add_option("FILES", options->files, files)->required();
            add_output_option(app, "-o,--output", options->output, output);
            app.add_option("--document", options->document, "source of the measurements, for the provenance");
            return [options, run] { return run(*options); };
          }};
}

// All-to-alls are measured between the GPUs of nodes with this number of GPUs.
constexpr std::int64_t kGpusOfNode = 8;

ModelRecord record_of(std::string_view kind, JsonValue parameters, const std::string& document,
                      std::uint64_t n_rows) {
  ModelRecord record;
  record.name = record.kind = kind;
  record.parameters = std::move(parameters);
  record.provenance.source = FigureSource::fitted;
  record.provenance.document = document;
  record.provenance.n_rows = n_rows;
  return record;
}

// Built-in platforms by the GPU of rows. Reports once for each GPU that no platform describes it.
class ShippedPlatforms {
 public:
  const Platform* of(const std::string& gpu) {
    const auto [at, is_new] = platforms_.try_emplace(gpu);
    if (is_new) {
      if (auto choice = platform_for({.gpu = gpu, .gpus_per_node = kGpusOfNode}))
        at->second = std::move(choice->platform);
      else
        print("{}: no shipped platform describes it\n", gpu);
    }
    return at->second ? &*at->second : nullptr;
  }

 private:
  std::map<std::string, std::optional<Platform>> platforms_;
};

struct Fitted {
  ExpertKernels kernels;
  ExpertExchange exchange;
};

Fitted fit(const ExpertMeasurements& all) {
  std::map<std::pair<std::string, DType>, std::vector<const MeasuredExpertLayer*>> layers;
  for (const MeasuredExpertLayer& m : all.layers) layers[{m.gpu, m.dtype}].push_back(&m);
  std::map<std::string, std::vector<const MeasuredExchange*>> exchanges;
  for (const MeasuredExchange& m : all.exchanges) exchanges[m.gpu].push_back(&m);
  ShippedPlatforms platforms;
  Fitted fitted;
  for (const auto& [key, rows] : layers) {
    const Platform* platform = platforms.of(key.first);
    if (platform == nullptr || !platform->device.peak(key.second)) continue;
    fitted.kernels.measured.push_back(fit_expert_rates(rows, platform->device, key.second));
  }
  for (const auto& [gpu, rows] : exchanges) {
    const Platform* platform = platforms.of(gpu);
    if (platform == nullptr) continue;
    for (const bool combine : {false, true})
      fitted.exchange.measured.push_back(fit_exchange_rates(rows, platform->device, platform->node, combine));
  }
  borrow_network_rates(fitted.exchange.measured);
  return fitted;
}

ReportDocument document_of(const Fitted& fitted) {
  ReportTable table{"device< | what | rows | p10 % | p90 %"};
  table.indent = 0;
  const auto row = [&](const auto& rates, std::string what) {
    table.row({rates.device, std::move(what), table_count(rates.n_rows),
               fmt::format("{:+.1f}", 100 * rates.log_p10), fmt::format("{:+.1f}", 100 * rates.log_p90)});
  };
  for (const ExpertRates& r : fitted.kernels.measured) row(r, fmt::format("layers, {}", to_string(r.dtype)));
  for (const ExchangeRates& r : fitted.exchange.measured) row(r, r.combine ? "combine" : "dispatch");
  ReportDocument document{.title = "Expert layers and token dispatch"};
  document.add("", {std::move(table)});
  return document;
}

Result<int> run_calibrate_experts(const PartOptions& options) {
  STEPCAST_ASSIGN(const PartOutput output, PartOutput::at(options));
  ExpertMeasurements all;
  for (const std::string& file : options.files) STEPCAST_TRY(read_expert_measurements(file, all));
  const auto [kernels, exchange] = fit(all);
  if (kernels.measured.empty() && exchange.measured.empty())
    return Error::at(options.files.front(), "the rows").found("no GPU of a shipped platform");
  Platform part;
  if (!kernels.measured.empty())
    part.set(record_of(ExpertKernels::kRecordKind, kernels.write(), options.document, all.layers.size()));
  if (!exchange.measured.empty()) {
    part.set(
        record_of(ExpertExchange::kRecordKind, exchange.write(), options.document, all.exchanges.size()));
  }
  return output.write(document_of({kernels, exchange}), std::move(part), "experts",
                      "Expert layers and token dispatch, for platform files that extend this one");
}

// One device with its measured rows.
struct DeviceRows {
  Platform platform;
  std::vector<KernelMeasurement> rows;
};

// Converts times of short runs to those of long runs, if the platform has the ratio. Devices without
// measurements are used to forecast steps, which are long runs.
Status to_long_runs(DeviceRows& device) {
  const ModelRecord* record = device.platform.find_model(kSustainedClockKind);
  if (record == nullptr) return Ok{};
  STEPCAST_ASSIGN(const SustainedClock clock, SustainedClock::read(record->parameters));
  for (KernelMeasurement& m : device.rows) {
    const KernelClass kernel_class = kernel_class_of(m.operation);
    if (kernel_class != KernelClass::gemm && kernel_class != KernelClass::attention) continue;
    m.time = m.time * clock.factor(kernel_class, m.operation.dtype, work_of(m.operation).flops,
                                   m.regime == Regime::sustained);
  }
  return Ok{};
}

struct RowsByDevice {
  std::map<std::string, DeviceRows> devices;
  std::map<std::string, std::size_t> unknown;  // rows of GPUs that match no built-in device
};

Result<RowsByDevice> rows_by_device(std::vector<KernelMeasurement> rows) {
  RowsByDevice found;
  std::map<std::string, std::string> device_of;  // by GPU name; empty: no built-in device
  for (KernelMeasurement& m : rows) {
    const auto [at, is_new] = device_of.emplace(m.gpu, std::string{});
    if (is_new) {
      if (auto platform = load_device(m.gpu)) {
        at->second = platform->device.name;
        found.devices.try_emplace(at->second, DeviceRows{*std::move(platform), {}});
      }
    }
    if (at->second.empty())
      ++found.unknown[m.gpu];
    else
      found.devices.at(at->second).rows.push_back(std::move(m));
  }
  for (auto& [name, device] : found.devices) {
    keep_one_regime(device.rows);
    STEPCAST_TRY(to_long_runs(device));
  }
  return found;
}

ReportDocument document_of(const GenericFit& fit, const std::map<std::string, std::size_t>& unknown) {
  ReportTable table{"record< | rows | left out in turn:\nmean |error| % | devices<"};
  table.indent = 0;
  for (const GenericFitNote& note : fit.notes) {
    table.row({note.record, table_count(note.n_rows), table_number(note.unseen_mape_percent, 1),
               fmt::format("{}", fmt::join(note.devices, ", "))});
  }
  ReportDocument document{.title = "Kernel models for unmeasured devices"};
  ReportSection& section = document.add("", {std::move(table)});
  for (const auto& [gpu, n] : unknown)
    section.add(ReportText{fmt::format("{}: {} rows; no shipped device has this name", gpu, n), 0});
  return document;
}

Result<int> run_calibrate_generic_kernels(const PartOptions& options) {
  STEPCAST_ASSIGN(const PartOutput output, PartOutput::at(options));
  STEPCAST_ASSIGN(KernelMeasurements all, read_kernel_measurements(std::vector<std::filesystem::path>(
                                              options.files.begin(), options.files.end())));
  STEPCAST_ASSIGN(const RowsByDevice found, rows_by_device(std::move(all.rows)));
  std::vector<MeasuredDevice> measured;
  for (const auto& [name, device] : found.devices) {
    MeasuredDevice& of_device = measured.emplace_back(MeasuredDevice{device.platform.device, {}});
    for (const KernelMeasurement& m : device.rows) of_device.rows.push_back(&m);
  }
  if (measured.empty()) return Error{"no row was measured on a shipped device"};
  STEPCAST_ASSIGN(GenericFit fit, fit_generic_models(measured));
  if (fit.records.empty()) return Error{"no model could be fitted"};
  Platform part;
  for (ModelRecord& record : fit.records) {
    record.provenance.document = options.document;
    part.set(std::move(record));
  }
  return output.write(document_of(fit, found.unknown), std::move(part), "generic-kernels",
                      "Kernel models for unmeasured devices, for platform files that extend this one");
}

Result<int> run_calibrate_related_systems(const PartOptions& options) {
  STEPCAST_ASSIGN(const PartOutput output, PartOutput::at(options));
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
  Platform part;
  ModelRecord record = record_of(RelatedSystems::kRecordKind, related.write(), options.document, n_rows);
  record.name = RelatedSystems::kRecordName;
  part.set(std::move(record));
  return output.write(document, std::move(part), "related-systems",
                      "Collectives of measured nodes, for platform files of unmeasured nodes");
}

}  // namespace

Calibration experts_calibration() {
  return part_calibration("experts", "fit expert layers and token dispatch to measurements of all devices",
                          "CSV files of expert layers or token dispatch, of several GPUs",
                          "the platform file to write; without it nothing is written", run_calibrate_experts);
}

Calibration generic_kernels_calibration() {
  return part_calibration("generic-kernels",
                          "fit kernel models for unmeasured GPUs to kernels of several measured ones",
                          "CSV files or folders of them (docs/kernels.md)",
                          "the file to write; without it nothing is written", run_calibrate_generic_kernels);
}

Calibration related_systems_calibration() {
  return part_calibration(
      "related-systems", "fit collectives of unmeasured nodes to measured nodes of all machines",
      "CSV files or logs of collectives, of several machines",
      "the platform file to write; without it nothing is written", run_calibrate_related_systems);
}

}  // namespace stepcast::cli
