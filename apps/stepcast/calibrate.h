// What `stepcast calibrate KIND` can do: one Calibration per kind of measurement.
//
// A new kind is one file with a function that returns its Calibration, and one line in calibrate.cpp.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "verbs.h"

namespace stepcast::cli {

struct Calibration {
  std::string name;     // "collectives"
  std::string summary;  // one line for `stepcast calibrate --help`
  std::function<Action(CLI::App&)> declare;
};

Calibration collectives_calibration();
Calibration kernels_calibration();
Calibration iterations_calibration();
Calibration generic_kernels_calibration();
Calibration related_systems_calibration();
Calibration overheads_calibration();
Calibration experts_calibration();

}  // namespace stepcast::cli
