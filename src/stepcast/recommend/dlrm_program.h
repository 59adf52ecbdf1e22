// One training step of a recommendation model as a Program: one rank class per rank, all of the same structure, so
// that a sharding is a scenario of Costs and not another Program.
//
// Lanes of a rank: host, computation, exchange of vectors (all-to-all), gradients (all-reduce), those of tables that
// every rank has, and the distribution of inputs. The order of a step: lookups; their all-to-all beside the bottom MLP; interaction; top
// MLP forward and backward; the all-to-all of gradients beside the backward of the bottom MLP and the all-reduce;
// backward of the lookups with their update; optimizer of the dense part.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/program/program.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

inline constexpr double kIndexBytes = 8;  // indices and offsets of lookups are 64-bit numbers

// What a stack fuses, launches and hides; docs/dlrm.md says on what grounds.
struct DlrmBehavior {
  bool graphs = false;             // the host launches nothing kernel by kernel
  bool eager = false;              // loss, optimizer and copies into buckets operator by operator
  bool fused_forward = false;      // bias and activation of the MLPs inside the products
  bool fused_interaction = false;  // one kernel
  bool sorted_backward = true;     // FBGEMM's: linearise, sort, segments; else atomic updates
  bool input_exchange = true;      // indices travel to the ranks that hold the tables
  bool pipelined_input = false;    // beside the step before
  bool hybrid = false;             // popular rows on every rank, others spread by row
  bool one_stream = false;         // exchanges beside nothing, all-reduce of all gradients at the end
  bool reduces_in_node = false;    // parts of a table by row: one sum of a node leaves it
  bool reduces_by_mlp = false;     // gradients of each MLP as soon as they are there; else buckets of DDP
  bool half_exchange = false;      // vectors and gradients travel in 16 bits where the dense part has 16
  bool places_vectors = false;     // from and to the buffers of the exchange, in a pass of their own
  bool casts_vectors = false;      // from and to 32 bits, in kernels of their own
  // Tables that every rank has are looked up by kernels of their own (TorchRec)
  bool replicated_apart = false;
  bool bottom_on_one_rank = false;  // one rank runs the bottom MLP for the whole batch, as if it were a table
  // Gradients of weights on a stream of their own, beside those of inputs as far as both leave room on the GPU
  bool weights_beside = false;
  double processors = 1;  // of the GPU
  // What orders the indices of the next batch runs while this one waits for its exchanges
  bool indices_beside = false;
  double index_passes = 0;       // over all indices of the batch, to sort out which row is where
  double host_us = 0;            // per step beyond operators
  double operator_us = 0;        // of the host, for an operator that launches one kernel
  double further_kernel_us = 0;  // of the same operator
  double casts_us = 0;           // of the host, for the casts of the operands of a product
  double stream_gap_us = 0;      // between kernels of a stream

  // In which its kernels have vectors and gradients, those that travel and those that are summed over ranks.
  [[nodiscard]] DType exchanged(DType dense) const {
    const bool half = dense == DType::fp16 || dense == DType::bf16;
    return half && half_exchange ? dense : DType::fp32;
  }
};
// `one_hot`: no table has several lookups per sample.
[[nodiscard]] DlrmBehavior habits_of(const DlrmTraining& training, const StepAssumptions& assumptions,
                                     bool one_hot = true);

// Tasks whose time is of the sharding, the same numbers in the block of every rank; invalid where there is none.
struct DlrmTasks {
  // Labels of their groups: what the exposed ones are waited for.
  static constexpr std::string_view kInputs = "embedding indices", kVectors = "embedding vectors",
                                    kGradients = "embedding gradients", kTables = "embedding tables";
  TaskId input_exchange{}, lookup{}, exchange{}, gradient_exchange{}, lookup_backward{}, table_reduction{};
};

struct DlrmProgram {
  Program program;
  DlrmTasks tasks;
  std::vector<BlockId> blocks;  // [rank]
};

// More ranks than are laid out, or none.
[[nodiscard]] Status check_dlrm_ranks(std::int64_t n_ranks);

// All tasks carry their work but those of DlrmTasks.
[[nodiscard]] Result<DlrmProgram> dlrm_program(const Dlrm& model, const DlrmTraining& training,
                                               const DlrmBehavior& habits, std::int64_t n_ranks);

}  // namespace stepcast
