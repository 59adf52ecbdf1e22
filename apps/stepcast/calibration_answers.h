// The JSON answers of `stepcast calibrate`: their values, their writers and their schemas in docs/schemas/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stepcast/report/answers.h"

#include "calibrate/collective_fit.h"
#include "calibrate/iteration_fit.h"
#include "calibrate/kernel_fit.h"
#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"

namespace stepcast {

struct CalibratedCollectives {
  struct Curve {
    std::string name;  // "a100_sxm/all_reduce/8"
    CollectiveFit fit;
    // What users of the curve should know about its weak ranges; empty if there are none.
    [[nodiscard]] std::string weakness() const;
  };
  std::string platform;
  std::vector<Curve> curves;
  std::vector<std::string>
      moved;  // curves with too few sizes to fit: curves of other systems, shifted to the measured points
  std::vector<std::string> refused;
  std::vector<UnusedRows> unused;
  std::vector<std::string> denser_sizes;  // commands for sizes near a protocol change of NCCL
  std::vector<std::string> not_measured;  // commands for missing measurements
  std::string changes;                    // the forecast that changes most, before and after
  std::vector<std::string> used_by_nothing;
};

struct CalibratedIterations {
  std::string platform;
  IterationFit fit;  // its skipped steps include the unreadable ones
  std::vector<std::string> notes;
};

struct CalibratedKernels {
  std::string platform, device;
  KernelFit fit;
  std::vector<SkippedRows> skipped;
};

struct CalibratedOverheads {
  std::string platform;
  double profiler_cost_us = 0;  // microseconds per event
  OverheadFit fit;
  std::vector<OverheadSource> sources;
  std::vector<TraceOverheads::LeftOut> left_out;
  std::vector<std::string> notes;
};

[[nodiscard]] std::string calibration_json(const CalibratedCollectives& answer);
[[nodiscard]] std::string calibration_json(const CalibratedIterations& answer);
[[nodiscard]] std::string calibration_json(const CalibratedKernels& answer);
[[nodiscard]] std::string calibration_json(const CalibratedOverheads& answer);

[[nodiscard]] std::span<const AnswerSchema> calibration_schemas();

}  // namespace stepcast
