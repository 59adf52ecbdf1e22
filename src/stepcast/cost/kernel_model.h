// The time of any Operation on the device of a platform: fitted models where the platform has them, physics
// everywhere else.
//
//   const KernelModel model{platform};
//   const Estimate t = model.estimate(gemm({.m = 8192, .n = 4096, .k = 4096}, DType::bf16));
//   t.time, t.p10, t.p90, t.source
//
// Looked up in this order: a record of the platform for this family, dtype and direction; a record of the
// family in a dtype or direction that behaves alike (fp16 for bf16), wider; the analytic model. Every answer
// is at least the lower bound of the analytic model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/cost/analytic_model.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// An estimate and what it rests on, for reports.
struct ExplainedEstimate {
  Estimate estimate;
  std::string_view record;    // name of the model record, valid as long as the model; empty: analytic
  bool extrapolated = false;  // outside of the range the record was fitted on
  // The record was fitted on products in the layout that the operation names, at such amounts of work.
  bool layout_measured = false;
  // At the clock that the power limit sustains: of a record of long runs, or of devices measured so.
  bool sustained = false;
};

class KernelModel {
 public:
  // A record is read when an operation first asks for it. Those that cannot be read (kind or version unknown,
  // numbers missing) are answered for by the next ground, and named in skipped().
  explicit KernelModel(const Platform& platform);
  KernelModel(const Device& device, std::span<const ModelRecord> records);
  KernelModel(KernelModel&&) noexcept;
  KernelModel& operator=(KernelModel&&) noexcept;
  ~KernelModel();

  // Safe to call from several threads.
  [[nodiscard]] ExplainedEstimate explain(const Operation& operation) const;
  [[nodiscard]] Estimate estimate(const Operation& operation) const { return explain(operation).estimate; }
  // The same for many: out[i] belongs to operations[i].
  void estimate(std::span<const Operation> operations, std::span<Estimate> out) const;

  [[nodiscard]] const AnalyticModel& analytic() const;
  // Matrix products of the device, or of a sibling, were measured in some type.
  [[nodiscard]] bool has_measured_products() const;
  // "model gemm/fp32/forward: the reason". Reads every record, or every one that does not ship.
  [[nodiscard]] std::vector<std::string> skipped(bool also_shipped = true) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast
