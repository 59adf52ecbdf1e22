// The kernels of an expert layer: products of many experts in one launch ("grouped" products), and what sorts and
// moves their tokens. A closed form with seven rates per device and element type, fitted to whole layers that were
// measured (calibrate/expert_fit.h); the platform record "expert_kernels" holds them for all measured devices.
//
//   ExpertKernels kernels = ...;                                   // of the platform's record
//   const auto rates = kernels.rates(device, DType::bf16);        // its own, or of its relatives
//   grouped_product_us(*rates, figures, {.experts = 16, .m = 2048, .n = 1536, .k = 2048})
//
// A product: whole tiles of rows per expert, spread over the SMs; arithmetic of a tile over the peak of one SM, with
// k a few hundred deeper than it is, for filling the pipelines; or the bytes of all operands over the memory
// bandwidth; the sharp sum of both.
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

// Of one device and type of operands.
struct ExpertRates {
  std::string device, architecture;
  DType dtype = DType::bf16;
  double startup_us = 30;        // sorting tokens, launches: once per layer
  double arithmetic_share = 1;   // of the peak, by a tile of endless rows
  double memory_share = 0.85;    // of the bandwidth, by the operands of products
  double fill_depth = 400;       // added to k
  double tile_rows = 60;         // of which a tile reaches half of its rate
  double movement_factor = 1.5;  // time of activation and permutation over their bytes at the bandwidth
  double per_expert_us = 0.08;   // of one layer
  double log_p10 = -0.2, log_p90 = 0.2;  // ln(measured / predicted) of layers, held out by model
  std::uint64_t n_rows = 0;
  // What the closed form leaves of the layers of the device, in ln, over ExpertFeatures: which kernels libraries choose
  // goes with the sizes of a layer. Nothing where none was learned, or of several devices together.
  std::shared_ptr<const GradientTrees> learned;
  // Weights of one product of one expert, in ln, that layers were measured with, and the band of other layers with these:
  // which kernels libraries choose is known there. Empty: the band above holds for all.
  std::vector<double> known_weights;
  double known_log_p10 = -0.2, known_log_p90 = 0.2;
  // Whose rates these are, where a sibling of the device was measured: times are those of the sibling, moved by its factors.
  std::shared_ptr<const KernelSibling> sibling;

  friend bool operator==(const ExpertRates&, const ExpertRates&) = default;
};

// What a correction is learned over: logarithms of the rows and the number of experts, whether rows differ from expert to
// expert, logarithm of the weights of one product of one expert, and of the choices of an expert that this rank sorts over
// those that it serves. A product does not say the last one, and takes the mean.
using ExpertFeatures = std::array<float, 5>;
[[nodiscard]] ExpertFeatures expert_features(double rows, double experts, bool uneven, double weights,
                                             double sorted_over_served = 1);

// Of a time that `rates` give to an expert with so many weights in one product (or in two, up and gate), each side, in ln.
struct ExpertBand {
  double log_p10, log_p90;
};
[[nodiscard]] ExpertBand expert_band(const ExpertRates& rates, double weights);

// C[m, n] = A[m, k] B[k, n], `experts` times at once.
struct GroupedProduct {
  double experts = 1;
  double m = 0, n = 0, k = 0;    // of one expert, on average
  bool uneven = false;           // rows differ from expert to expert: half a tile of each is empty
  double operand_bytes = 2;      // of an element
  double output_bytes = 2;       // written, and read where it is added to
  bool weight_gradient = false;  // tokens are k: C[m, n] has the extents of the weights
};
[[nodiscard]] double grouped_product_us(const ExpertRates& rates, const DeviceFigures& device,
                                        const GroupedProduct& product);

// All that one rank does for its experts: sort and copy tokens, up (and gate), activation, down, weighted sum.
struct ExpertLayer {
  double tokens = 0;  // of all ranks of the layer that see the same tokens, before routing
  double hidden_size = 0, expert_ffn_size = 0;  // the latter of one rank
  double experts_per_token = 1;
  double local_experts = 1;
  double visits = 0;  // of tokens to experts of this rank
  bool gated = true, uneven = false;
};
[[nodiscard]] ExpertFeatures features_of(const ExpertLayer& layer);
[[nodiscard]] double expert_layer_us(const ExpertRates& rates, const DeviceFigures& device,
                                     const ExpertLayer& layer);

class ExpertKernels {
 public:
  // Name and `kind` of the record.
  static constexpr std::string_view kRecordKind = "expert_kernels";

  std::vector<ExpertRates> measured;

  // Of this device; else of its sibling, moved by its factors (KernelSibling::time_ratio); else the mean of its
  // architecture, else of all, each with a wider band. 16-bit types share theirs; a narrow type that was not measured takes
  // the nearest one that was. Nothing if nothing is measured.
  [[nodiscard]] std::optional<ExpertRates> rates(const Device& device, DType dtype,
                                                 const std::optional<KernelSibling>& sibling = {}) const;

  // Keys: rates[] of (device, architecture, dtype, startup_us, ..., optional `learned` trees, optional `known_weights` with
  // `known_log_p10` and `known_log_p90`). Errors: a rate that is missing or not above 0, trees that cannot be read.
  [[nodiscard]] static Result<ExpertKernels> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

// Products of a batch that say what type they write are those of experts and their weights: products of unfused
// attention write the type they read.
[[nodiscard]] bool is_expert_product(const Operation& operation);

}  // namespace stepcast
