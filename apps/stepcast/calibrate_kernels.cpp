// stepcast calibrate kernels: fits kernel models of one device to measured times.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/learned_lookup.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/generic_fit.h"
#include "calibrate/kernel_fit.h"
#include "calibrate/kernel_measurements.h"
#include "calibrate/lookup_fit.h"
#include "calibrate/lookup_measurements.h"
#include "calibrate/plausible_measurements.h"
#include "calibration_answers.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateKernelsOptions : PlatformCalibration {
  std::string device;
  KernelFitOptions fit;
  bool models_only = false;
  double timing_us = 0;  // included in each time
};

// The rows of one device; which rows were left out, and for which other devices there are rows.
struct KernelRows {
  std::vector<KernelMeasurement> rows;
  std::vector<LookupMeasurement> lookups;  // embedding lookups over several tables
  std::vector<SkippedRows> skipped;
};

Result<KernelRows> rows_of_device(const CalibrateKernelsOptions& options, const Device& device) {
  std::vector<std::filesystem::path> paths(options.files.begin(), options.files.end());
  STEPCAST_ASSIGN(LookupFiles lookups, read_lookup_measurements(paths));
  KernelMeasurements all;
  if (!lookups.others.empty()) {
    STEPCAST_ASSIGN(all, read_kernel_measurements(lookups.others));
  }
  KernelRows chosen;
  chosen.skipped = std::move(all.skipped);
  std::map<std::string, std::size_t> others;
  const auto choose = [&](auto& rows, auto& into) {
    for (auto& m : rows) {
      const bool wanted =
          options.device.empty() ? device.matches_name(m.gpu) : same_name(m.gpu, options.device);
      if (wanted)
        into.push_back(std::move(m));
      else
        ++others[m.gpu];
    }
  };
  choose(all.rows, chosen.rows);
  take_off_timing(chosen.rows, Microseconds{options.timing_us});
  choose(lookups.kernels, chosen.lookups);
  if (chosen.rows.empty() && chosen.lookups.empty()) {
    std::string names;
    for (const auto& [gpu, n] : others) names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu);
    return Error{
        fmt::format("no row was measured on `{}`", options.device.empty() ? device.name : options.device)}
        .found(names.empty() ? "no rows" : names)
        .advice("name the device as the files do with --device, or choose another --platform");
  }
  for (const auto& [gpu, n] : others)
    chosen.skipped.push_back({gpu, fmt::format("another device than {}", device.name), n});
  if (!options.force) {
    STEPCAST_TRY(check_measured_on(options.device, device));
    STEPCAST_TRY(check_plausible(chosen.rows, device));
  }
  for (SkippedRows& s : remove_impossible_rows(chosen.rows, AnalyticModel{device}))
    chosen.skipped.push_back(std::move(s));
  for (SkippedRows& s : join_regimes(chosen.rows)) chosen.skipped.push_back(std::move(s));
  if (chosen.rows.empty() && chosen.lookups.empty()) {
    return Error{fmt::format("every row is faster than the limits of {}", device.name)}.advice(
        "check that the platform describes the measured device, and that times are in microseconds");
  }
  return chosen;
}

// Adds the source of each record and the number of rows that it is based on: rows of its family, element type
// and direction, by the beginning of its name.
void add_provenance(std::vector<ModelRecord>& records, const std::vector<KernelMeasurement>& rows,
                    const Device& device, const CalibrateKernelsOptions& options) {
  std::map<std::string, std::vector<std::uint32_t>> hashes;
  const std::vector<std::string_view> families = record_families(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Operation& operation = rows[i].operation;
    hashes[kernel_record_name(families[i], operation.dtype, operation.direction)].push_back(rows[i].hash);
  }
  const Provenance of_all = options.provenance();
  for (ModelRecord& record : records) {
    if (record.device.empty()) record.device = device.name;
    Provenance& p = record.provenance;
    p.source = of_all.source;
    p.document = of_all.document;
    p.date = of_all.date;
    p.software = of_all.software;
    std::vector<std::uint32_t> rows_of_record = p.row_hashes.all();
    for (auto& [key, of_key] : hashes) {
      if (record.name != key && !record.name.starts_with(key + "/")) continue;
      if (p.n_rows == 0) p.n_rows = of_key.size();
      rows_of_record.insert(rows_of_record.end(), of_key.begin(), of_key.end());
    }
    p.row_hashes = RowHashes{std::move(rows_of_record)};
  }
}

// One line per reason, with the names of the rows that were left out for that reason.
std::vector<std::string> skipped_lines(const std::vector<SkippedRows>& skipped) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const SkippedRows& s : skipped) {
    std::vector<std::string>& what = by_reason[s.why];
    if (what.empty()) order.push_back(s.why);
    what.push_back(fmt::format("{} ({})", s.what, s.n));
  }
  for (std::string& why : order) why += fmt::format(": {}", fmt::join(by_reason[why], ", "));
  return order;
}

ReportDocument document_of(const CalibratedKernels& answer) {
  ReportTable table{
      "record< | rows | chosen< | mean |error|\n% | geometric\nmean % | others: mean |error| %<"};
  table.indent = 0;
  for (const KernelFitNote& note : answer.fit.notes) {
    std::vector<std::string> others;
    std::string mape = "-", gmae = "-";
    for (const KernelFitNote::Candidate& c : note.candidates) {
      if (c.family == note.chosen) {
        mape = table_number(c.mape_percent, 2);
        gmae = table_number(c.gmae_percent, 2);
      } else {
        others.push_back(fmt::format("{} {}", c.family, table_number(c.mape_percent, 2)));
      }
    }
    table.row({note.record, table_count(note.n_rows), note.chosen, mape, gmae, join(others)});
  }
  ReportDocument document{.title = "Kernels of " + answer.platform};
  document.add("Kernel models", {std::move(table)}).opening.emplace();
  document.add("Left out", {ReportList{skipped_lines(answer.skipped), "  "}});
  if (const std::string& problem = answer.fit.problem; !problem.empty())
    document.add("", {TerminalText{"\n"}, ReportText{"note: " + problem, 0}});
  return document;
}

// Operations with many rows get separate models; for those with few rows, the generic models of the base are adjusted.
Result<KernelFit> fit_or_adapt(const std::vector<KernelMeasurement>& rows, const Platform& base,
                               const KernelFitOptions& options) {
  std::map<std::string, std::size_t> n_rows;
  for (const KernelMeasurement& m : rows) ++n_rows[kernel_record_key(m.operation)];
  std::vector<KernelMeasurement> many;
  std::vector<const KernelMeasurement*> few;
  for (const KernelMeasurement& m : rows) {
    const std::size_t few_rows = work_of(m.operation).matrix ? kFewMatrixRows : kFewStreamingRows;
    if (n_rows[kernel_record_key(m.operation)] < few_rows && has_generic_model(base.models, m.operation)) {
      few.push_back(&m);
    } else {
      many.push_back(m);
    }
  }
  KernelFit fit;
  if (!many.empty()) {
    STEPCAST_ASSIGN(fit, fit_kernel_models(many, base.device, options));
  }
  STEPCAST_ASSIGN(std::vector<ModelRecord> records, adapt_generic_models(base.models, few, base.device));
  for (ModelRecord& record : records) {
    if (record.device != base.device.name) continue;  // only records of this device are checked
    fit.notes.push_back(
        {record.name, static_cast<std::size_t>(record.provenance.n_rows), {}, "generic, adapted"});
    fit.records.push_back(std::move(record));
  }
  return fit;
}

// Lists records that apply to fewer operations than the user may expect.
void add_unused(const KernelFit& fit, std::vector<SkippedRows>& skipped) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(fit.records, name, &ModelRecord::name) != fit.records.end();
  };
  for (const ModelRecord& record : fit.records) {
    const std::size_t slash = record.name.rfind('/');
    if (!record.name.starts_with("embedding_lookup") || slash == std::string::npos) continue;
    const bool learned = record.kind == LearnedLookup::kRecordKind;
    const bool forward = record.name.ends_with("/forward");
    const bool alone = !has(record.name.substr(0, slash) + (forward ? "/backward" : "/forward"));
    const auto n_rows = static_cast<std::size_t>(record.provenance.n_rows);
    if (learned && alone) {
      skipped.push_back(
          {record.name,
           fmt::format("fitted, but without {} rows the choice of shardings uses the analytic model",
                       forward ? "backward" : "forward"),
           n_rows});
    } else if (!learned) {
      skipped.push_back({record.name,
                         "fitted for embeddings of language models; lookups of recommendation models need "
                         "files with a line per table (docs/dlrm.md)",
                         n_rows});
    }
  }
}

Result<int> run_calibrate_kernels(const CalibrateKernelsOptions& options) {
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files,
                                     options.models_only ? PlatformOutput::Content::part
                                                         : PlatformOutput::Content::platform));
  STEPCAST_ASSIGN(KernelRows chosen, rows_of_device(options, base.device));
  STEPCAST_ASSIGN(KernelFit fit, fit_or_adapt(chosen.rows, base, options.fit));
  if (!chosen.lookups.empty()) {
    STEPCAST_ASSIGN(KernelFit lookups,
                    fit_lookup_models(chosen.lookups, base.device, {.seed = options.fit.seed}));
    std::move(lookups.records.begin(), lookups.records.end(), std::back_inserter(fit.records));
    std::move(lookups.notes.begin(), lookups.notes.end(), std::back_inserter(fit.notes));
  }
  if (fit.records.empty()) return Error{"no model could be fitted"};
  if (!options.force) STEPCAST_TRY(check_plausible(fit, base.device));
  add_unused(fit, chosen.skipped);
  add_provenance(fit.records, chosen.rows, base.device, options);
  Platform calibrated = output.begin(base, options.name);
  for (const ModelRecord& record : fit.records) calibrated.set(record);
  if (options.models_only) {
    Platform part;
    part.models = fit.records;
    part.description =
        fmt::format("Kernel models of {}, for a platform file that extends this one", calibrated.device.name);
    STEPCAST_TRY(output.write_part(std::move(part), calibrated));
  } else {
    STEPCAST_TRY(output.write(calibrated, base));
  }
  const CalibratedKernels answer{calibrated.name, calibrated.device.name, std::move(fit),
                                 std::move(chosen.skipped)};
  options.answer(calibration_json(answer), document_of(answer), output);
  return kSuccess;
}

}  // namespace

Calibration kernels_calibration() {
  return {
      "kernels", "fit kernel models to CSV files of measured kernels", [](CLI::App& app) -> Action {
        auto options = std::make_shared<CalibrateKernelsOptions>();
        app.add_option("FILES", options->files, "CSV files or folders of them (docs/kernels.md)")->required();
        options->add_platform(
            app, "measured platform: a name or a file",
            "platform file to write (may be that of --platform); without it nothing is written");
        app.add_option("--device", options->device,
                       "use rows of this device (default: that of the platform, by name or alias)");
        app.add_option("--seed", options->fit.seed, "random seed of folds and models")->capture_default_str();
        app.add_option("--threads", options->fit.threads, "threads to use")->capture_default_str();
        options->add_origin(app, "measurements", "made", "\"PyTorch 2.1, CUDA 12.1\"");
        app.add_option("--timing-us", options->timing_us,
                       "overhead of timing in us, subtracted from every time (`between_two_events` in "
                       "overheads.csv of the collector)")
            ->check(CLI::Range(0.0, 1000.0))
            ->capture_default_str();
        app.add_flag("--models-only", options->models_only,
                     "write only the models, as a part that the platform file extends");
        options->add_force(app);
        app.add_flag("--json", options->json, "print one JSON object (docs/kernels.md)");
        return [options] { return run_calibrate_kernels(*options); };
      }};
}

}  // namespace stepcast::cli
