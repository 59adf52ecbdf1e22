// `stepcast calibrate generic-kernels`: measured kernels of several GPUs in, models for GPUs that nobody
// measured out (platforms/kernels/generic.json, which platforms of devices extend).
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/cost/sustained_clock.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/generic_fit.h"
#include "calibrate/kernel_measurements.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateGenericKernelsOptions {
  std::vector<std::string> files;
  std::string output, document;
};

// One device with its rows.
struct DeviceRows {
  Platform platform;
  std::vector<KernelMeasurement> rows;
};

// Rows of short runs become what they are in a long one, where the platform knows how much slower that is:
// devices that nobody measured are asked for steps.
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
  std::map<std::string, std::size_t> unknown;  // rows of GPUs that no shipped device is called like
};

Result<RowsByDevice> rows_by_device(std::vector<KernelMeasurement> rows) {
  RowsByDevice found;
  std::map<std::string, std::string> device_of;  // [gpu]; empty: none ships
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

Result<int> run_calibrate_generic_kernels(const CalibrateGenericKernelsOptions& options) {
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    STEPCAST_ASSIGN(output, OutputFile::at(options.output, input_files(files)));
  }
  STEPCAST_ASSIGN(KernelMeasurements all, read_kernel_measurements(files));
  STEPCAST_ASSIGN(const RowsByDevice found, rows_by_device(std::move(all.rows)));
  std::vector<MeasuredDevice> measured;
  for (const auto& [name, device] : found.devices) {
    MeasuredDevice& of_device = measured.emplace_back(MeasuredDevice{device.platform.device, {}});
    for (const KernelMeasurement& m : device.rows) of_device.rows.push_back(&m);
  }
  if (measured.empty()) return Error{"no row was measured on a shipped device"};
  STEPCAST_ASSIGN(GenericFit fit, fit_generic_models(measured));
  if (fit.records.empty()) return Error{"no model could be fitted"};
  print("{}", report_text(document_of(fit, found.unknown)));
  if (!output) return kSuccess;
  Platform part;
  part.name = "generic-kernels";
  part.description = "Kernel models for unmeasured devices, for platform files that extend this one";
  for (ModelRecord& record : fit.records) {
    record.provenance.document = options.document;
    part.set(std::move(record));
  }
  STEPCAST_TRY(output->write(platform_extension_json(part, Platform{}, {})));
  print("\nWritten to {}\n", options.output);
  return kSuccess;
}

}  // namespace

Calibration generic_kernels_calibration() {
  return {
      "generic-kernels", "kernel models for unmeasured GPUs, from measured kernels of several others",
      [](CLI::App& app) -> Action {
        auto options = std::make_shared<CalibrateGenericKernelsOptions>();
        app.add_option("FILES", options->files, "CSV files or folders of them (docs/kernels.md)")->required();
        add_output_option(app, "-o,--output", options->output,
                          "the file to write; without it nothing is written");
        app.add_option("--document", options->document,
                       "where the measurements are from, for the provenance");
        return [options] { return run_calibrate_generic_kernels(*options); };
      }};
}

}  // namespace stepcast::cli
