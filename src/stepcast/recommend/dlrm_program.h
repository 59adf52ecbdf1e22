// One training step of a recommendation model as a Program. There is one rank class per rank, all with the
// same structure, so that a sharding only changes the Costs and not the Program.
//
// Lanes of a rank: host, compute, exchange of vectors (all-to-all), dense gradients (all-reduce), gradients
// of tables on every rank, and distribution of inputs. Order of a step: lookups; all-to-all of vectors,
// overlapping the bottom MLP; interaction; top MLP forward and backward; all-to-all of gradients, overlapping
// the backward pass of the bottom MLP and the all-reduce; backward pass of the lookups with their update;
// optimizer of the dense part.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/program/program.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

inline constexpr double kIndexBytes = 8;  // bytes; indices and offsets of lookups are 64-bit numbers

// What a software stack fuses, launches and overlaps. docs/dlrm.md gives the reasons.
struct DlrmBehavior {
  bool graphs = false;             // CUDA graphs: the host does not launch single kernels
  bool eager = false;              // loss, optimizer and copies into buckets run operator by operator
  bool fused_forward = false;      // bias and activation of the MLPs are fused into the GEMMs
  bool fused_interaction = false;  // the interaction is one kernel
  bool sorted_backward = true;     // as in FBGEMM: linearise, sort, segments; else atomic updates
  bool input_exchange = true;      // indices are sent to the ranks with the tables
  bool pipelined_input = false;    // overlapped with the previous step
  bool hybrid = false;             // popular rows on every rank, other rows spread by row
  bool one_stream = false;         // no overlap of exchanges; one all-reduce of all gradients at the end
  bool reduces_in_node = false;    // parts of a table by row: a node sends one sum
  // Gradients of each MLP are reduced when it is complete; else in buckets of DDP.
  bool reduces_by_mlp = false;
  bool half_exchange = false;   // vectors and gradients are sent in 16 bits if the dense part has 16 bits
  bool places_vectors = false;  // a separate pass copies vectors to and from exchange buffers
  bool casts_vectors = false;   // separate kernels convert vectors to and from 32 bits
  // Separate kernels look up the tables on every rank (TorchRec).
  bool replicated_apart = false;
  bool bottom_on_one_rank = false;  // one rank computes the bottom MLP for the whole batch, like a table
  // Gradients of weights run on a separate stream and overlap those of inputs, as far as the GPU has room for
  // both.
  bool weights_beside = false;
  double processors = 1;  // number of processors (SMs) of the GPU
  // Sorting the indices of the next batch runs while this batch waits for its exchanges.
  bool indices_beside = false;
  double index_passes = 0;       // passes over all indices of the batch, to find the location of each row
  double host_us = 0;            // host time per step besides operators
  double operator_us = 0;        // host time of an operator with one kernel
  double further_kernel_us = 0;  // host time of each further kernel of an operator
  double casts_us = 0;           // host time for casting the operands of a GEMM
  double stream_gap_us = 0;      // gap between kernels of a stream

  // Dtype of the vectors and gradients in kernels, on the links and in sums over ranks.
  [[nodiscard]] DType exchanged(DType dense) const {
    const bool half = dense == DType::fp16 || dense == DType::bf16;
    return half && half_exchange ? dense : DType::fp32;
  }
};
// The behaviour of a stack. `one_hot`: every table has at most one lookup per sample.
[[nodiscard]] DlrmBehavior habits_of(const DlrmTraining& training, const StepAssumptions& assumptions,
                                     bool one_hot = true);

// Tasks with times that depend on the sharding. Their numbers are the same in the block of every rank;
// invalid if the stack does not have the task.
struct DlrmTasks {
  // Labels of their groups. Reports name exposed waiting time by them.
  static constexpr std::string_view kInputs = "embedding indices", kVectors = "embedding vectors",
                                    kGradients = "embedding gradients", kTables = "embedding tables";
  TaskId input_exchange{}, lookup{}, exchange{}, gradient_exchange{}, lookup_backward{}, table_reduction{};
};

// The Program of a job, before costs are filled in.
struct DlrmProgram {
  Program program;
  DlrmTasks tasks;
  std::vector<BlockId> blocks;  // [rank]
};

// Error if the number of ranks is outside 1 to 4096.
[[nodiscard]] Status check_dlrm_ranks(std::int64_t n_ranks);

// Builds the Program. All tasks except DlrmTasks carry their work (operation or message), from which they are
// priced. Errors: those of Dlrm::check() and check_dlrm_ranks(), a batch with fewer samples than ranks.
[[nodiscard]] Result<DlrmProgram> dlrm_program(const Dlrm& model, const DlrmTraining& training,
                                               const DlrmBehavior& habits, std::int64_t n_ranks);

}  // namespace stepcast
