// What the kinds of `stepcast calibrate` that print JSON answer: values, their JSON and its schemas in docs/schemas/.
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
    // What a reader of the curve should know about where it is weak; empty: nothing.
    [[nodiscard]] std::string weakness() const;
  };
  std::string platform;
  std::vector<Curve> curves;
  std::vector<std::string>
      moved;  // curves of too few sizes to fit: what other systems suggest, moved through them
  std::vector<std::string> refused;
  std::vector<UnusedRows> unused;
  std::vector<std::string> denser_sizes;  // commands for sizes where NCCL changes protocol
  std::vector<std::string> not_measured;  // commands
  std::string changes;                    // the question whose step changes most, before and after
  std::vector<std::string> used_by_nothing;
};

struct CalibratedIterations {
  std::string platform;
  IterationFit fit;  // what could not be read is among what it skipped
  std::vector<std::string> notes;
};

struct CalibratedKernels {
  std::string platform, device;
  KernelFit fit;
  std::vector<SkippedRows> skipped;
};

struct CalibratedOverheads {
  std::string platform;
  double profiler_cost_us = 0;  // of an event
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
