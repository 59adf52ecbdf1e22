// The kinds of `stepcast calibrate KIND`: one Calibration for each kind of measurement.
//
// To add a kind, write one file with a function that returns its Calibration, and one line in calibrate.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {

struct Calibration {
  std::string name;     // "collectives"
  std::string summary;  // one line for `stepcast calibrate --help`
  std::function<Action(CLI::App&)> declare;
};

// Common options of the kinds that write the measured platform, in addition to their specific ones.
struct PlatformCalibration {
  std::vector<std::string> files;
  std::string base, output, name, document, date, software;
  bool json = false, force = false;

  // --platform, --output and --name.
  void add_platform(CLI::App& app, const std::string& platform, const std::string& output_file);
  // --document, --date and --software: the origin of "measurements" that were "made".
  void add_origin(CLI::App& app, std::string_view of, std::string_view made, const std::string& example);
  // --force, for kinds that reject implausible measurements of the platform.
  void add_force(CLI::App& app);
  [[nodiscard]] Provenance provenance() const;
  // Prints the JSON or the text; after the text also where the platform was written.
  void answer(const std::string& answer_json, const ReportDocument& shown, const PlatformOutput& to) const;
};

Calibration collectives_calibration();
Calibration kernels_calibration();
Calibration iterations_calibration();
Calibration generic_kernels_calibration();
Calibration related_systems_calibration();
Calibration overheads_calibration();
Calibration experts_calibration();

}  // namespace stepcast::cli
