// Two described Programs small enough to be worked by hand: a 1F1B pipeline and a stack of sharded layers
// with prefetch.
#pragma once

#include <cstdint>

#include "stepcast/program/program.h"

namespace stepcast::fixtures {

// How a stage hands its result to the next one.
enum class Transfer {
  none,     // no transfer: the next stage sees it at once
  eager,    // the sender goes on, the receiver has it transfer_us after it was sent (rooted_from)
  meeting,  // the transfer begins when sender and receiver are both there (all)
};

struct PipelineShape {
  std::uint32_t stages = 4;
  std::uint32_t micro_batches = 8;
  std::uint32_t replicas = 1;  // data parallel copies of the pipeline: ranks of each stage
  double forward_us = 1;       // one micro-batch on one stage
  double backward_us = 2;
  Transfer transfer = Transfer::none;
  double transfer_us = 0;
};

// One forward, one backward (Narayanan et al., 2021): stage s of p does min(p - 1 - s, m) forwards, then
// forward and backward in turn, then the backwards that are left. One rank class per stage, one block
// instance per forward and per backward. Every stage has a compute stream and four more, to receive and send
// activations and gradients, so that transfers run beside the work.
[[nodiscard]] Program pipeline_1f1b(const PipelineShape& shape);

struct ShardedStackShape {
  std::uint32_t layers = 8;
  double gather_us = 1;   // all-gather of one layer's parameters
  double compute_us = 2;  // one layer
  // Ranks that join in every all-gather; 0: the all-gathers are plain work of one rank.
  std::uint32_t joined_ranks = 0;
};

// Forward pass of a stack of layers whose parameters are sharded: the all-gather of layer i + 1 starts with
// the computation of layer i, on a stream of its own. A slot carries the gathered parameters from one layer
// to the next.
[[nodiscard]] Program sharded_stack(const ShardedStackShape& shape);

}  // namespace stepcast::fixtures
