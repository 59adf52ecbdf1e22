// Kernels of an expert layer: GEMMs of many experts in one launch ("grouped GEMMs"), and the kernels that
// sort and move their tokens. A closed form with seven rates per device and element type, fitted to measured
// layers (calibrate/expert_fit.h). The platform record "expert_kernels" has them for all measured devices.
//
//   ExpertKernels kernels = ...;                                   // of the platform's record
//   const auto rates = kernels.rates(device, DType::bf16);        // of the device or its relatives
//   grouped_product_us(*rates, figures, {.experts = 16, .m = 2048, .n = 1536, .k = 2048})
//
// A grouped GEMM: whole tiles of rows per expert, spread over the SMs. Its time is the sharp sum of two
// times: arithmetic of the tiles at the peak of one SM, with k a few hundred deeper to fill the pipelines,
// and the bytes of all operands at the memory bandwidth.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/families/gradient_trees.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Fitted rates of one device and operand type.
struct ExpertRates {
  std::string device, architecture;
  DType dtype = DType::bf16;
  double startup_us = 30;        // sorting tokens, launches: once per layer
  double arithmetic_share = 1;   // of the peak, by a tile with many rows
  double memory_share = 0.85;    // of the bandwidth, by the operands of GEMMs
  double fill_depth = 400;       // added to k
  double tile_rows = 60;         // rows at which a tile reaches half of its rate
  double movement_factor = 1.5;  // time of activation and permutation over their bytes at the bandwidth
  double per_expert_us = 0.08;   // per local expert, once per layer
  double log_p10 = -0.2, log_p90 = 0.2;  // ln(measured / predicted) of layers, held out by model
  std::uint64_t n_rows = 0;              // measured layers behind the fit
  // Correction of the closed form in ln over ExpertFeatures, since the kernels that libraries choose depend
  // on the sizes of a layer. Null where none was learned, or for the mean of several devices.
  std::shared_ptr<const GradientTrees> learned;
  // ln of the weights of one GEMM of one expert in the measured layers, and the band of other layers with
  // such weights, where the choice of kernels is known. Empty: log_p10 and log_p90 apply to all layers.
  std::vector<double> known_weights;
  double known_log_p10 = -0.2, known_log_p90 = 0.2;
  // The sibling that the rates belong to, where only a sibling of the device was measured: times of the
  // sibling are then scaled by its factors. Null: the rates are of the device or a mean.
  std::shared_ptr<const KernelSibling> sibling;

  friend bool operator==(const ExpertRates&, const ExpertRates&) = default;
};

// Inputs of the correction: ln(rows), ln(number of experts), whether rows differ between experts, ln(weights
// of one GEMM of one expert), and ln(expert choices that this rank sorts over those that it serves). A single
// GEMM does not know the last one and averages over it.
using ExpertFeatures = std::array<float, 5>;
[[nodiscard]] ExpertFeatures expert_features(double rows, double experts, bool uneven, double weights,
                                             double sorted_over_served = 1);

// Band (ln, each side) of a time from `rates`, for an expert with `weights` weights in one GEMM (or in two,
// up and gate).
struct ExpertBand {
  double log_p10, log_p90;
};
[[nodiscard]] ExpertBand expert_band(const ExpertRates& rates, double weights);

// C[m, n] = A[m, k] B[k, n], for `experts` experts in one launch.
struct GroupedProduct {
  double experts = 1;
  double m = 0, n = 0, k = 0;    // of one expert, on average
  bool uneven = false;           // rows differ between experts: half a tile of each is empty on average
  double operand_bytes = 2;      // of an element
  double output_bytes = 2;       // written, and read where it is accumulated
  bool weight_gradient = false;  // tokens are k, and C[m, n] has the extents of the weights
};
// Time in us of a grouped GEMM.
[[nodiscard]] double grouped_product_us(const ExpertRates& rates, const DeviceFigures& device,
                                        const GroupedProduct& product);

// The work of one rank for its experts: sort and copy tokens, up (and gate), activation, down, weighted sum.
struct ExpertLayer {
  double tokens = 0;  // of all ranks of the layer that see the same tokens, before routing
  double hidden_size = 0, expert_ffn_size = 0;  // expert_ffn_size: of one rank
  double experts_per_token = 1;
  double local_experts = 1;           // experts on this rank
  double visits = 0;                  // tokens routed to experts of this rank, counted per expert
  bool gated = true, uneven = false;  // gated: two up GEMMs; uneven: rows differ between experts
};
[[nodiscard]] ExpertFeatures features_of(const ExpertLayer& layer);
// Time in us of a layer, forward.
[[nodiscard]] double expert_layer_us(const ExpertRates& rates, const DeviceFigures& device,
                                     const ExpertLayer& layer);

// The rates of all measured devices, as a platform record.
class ExpertKernels {
 public:
  // Name and `kind` of the record.
  static constexpr std::string_view kRecordKind = "expert_kernels";

  std::vector<ExpertRates> measured;

  // Rates of this device; else of its sibling with the factors of KernelSibling::time_ratio; else the mean of
  // its architecture, else of all devices, each step with a wider band. 16-bit types share rates; an
  // unmeasured narrow type takes the nearest measured one. None if nothing is measured.
  [[nodiscard]] std::optional<ExpertRates> rates(const Device& device, DType dtype,
                                                 const std::optional<KernelSibling>& sibling = {}) const;

  // Keys: rates[] of (device, architecture, dtype, startup_us, ..., optional `learned` trees, optional
  // `known_weights` with `known_log_p10` and `known_log_p90`). Errors: a rate that is missing or not above 0,
  // unreadable trees.
  [[nodiscard]] static Result<ExpertKernels> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

// Whether an operation is a grouped GEMM of experts: a batched forward GEMM with a stated output type. GEMMs
// of unfused attention write the type they read and state none.
[[nodiscard]] bool is_expert_product(const Operation& operation);

}  // namespace stepcast
