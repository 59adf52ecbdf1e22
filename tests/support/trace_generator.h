// Traces with known truth: a small recommendation-model training job on several ranks, executed on the
// virtual machine and recorded as the PyTorch profiler would.
//
//   GeneratorOptions options;
//   options.ranks = 4;
//   options.event_records = EventRecords::hidden;       // as old profilers: waits are calls without ids
//   const GeneratedJob job = generate_job(options);
//   job.ranks[0].recorded;            // what read_kineto would return
//   job.ranks[0].execution_trace;     // the text of an execution trace (ET) file
//   job.ranks[0].event_edges;         // which GPU op really waited for which, by event
//
// Every rank runs: input copies (stream 22), distribution of the sparse features (stream 24: two small
// all-to-alls of lengths and values behind an all-to-all of the split sizes, whose result the CPU has to
// read), bottom MLP, embedding lookup and all-to-all, interaction, top MLP, loss (stream 7), backward on the
// autograd thread with gradient all-reduces (stream 84) launched from it, optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/operation/collective_kind.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::test {

// The zero of the generator's own clock in recorded times.
inline constexpr Nanoseconds kGeneratorEpoch{1'694'128'201'000'000'000};

enum class EventRecords : std::uint8_t {
  hidden,        // cudaStreamWaitEvent calls only
  calls,         // cudaEventRecord calls too
  sync_records,  // and `cuda_sync` records that name the event record waited for
};

enum class BatchPipeline : std::uint8_t {
  same_step,  // a batch is copied, distributed and used in one step; every stream waits for the stream used
              // just before
  ahead,  // batches are copied two steps and distributed one step ahead; some waits are for events recorded
          // long before
};

struct GeneratorOptions {
  std::uint64_t seed = 1;
  int ranks = 4;
  int steps = 1;
  std::int64_t first_step = 10;    // number of the first ProfilerStep
  bool whole_microseconds = true;  // times cut to whole microseconds, as profilers before 2024 wrote them
  EventRecords event_records = EventRecords::hidden;
  BatchPipeline pipeline = BatchPipeline::ahead;
  // Sizes and groups in the profiler trace, not only in the execution trace.
  bool collective_metadata = false;
  // "External id" of launches and kernels names the op; otherwise the correlation.
  bool launch_linked_to_op = false;
  bool read_loss = true;                   // `.item()` at the end of every step
  bool large_kernels_fill_device = false;  // no kernel of another stream starts while they run
  int launch_queue = 1024;
  double cpu_jitter = 0.1;                // relative spread of CPU times
  double kernel_scale = 1;                // on all kernels and copies; 10 makes the job wait for the GPU
  double start_skew_us = 1500;            // ranks begin up to this much apart
  std::vector<int> late_gpu_ranks = {1};  // their GPU still works on the step before when the window opens
  // The backward pass runs the top MLP's forward again first, as checkpointing does.
  bool recompute_top = false;
  int top_blocks = 0;  // the top MLP is so many equal blocks of two layers, with autograd's sequence numbers
  bool recompute_blocks = false;  // the backward of each runs its forward again first
  // Gradients are reduced in buckets of so much or more; 0: top, dense table, bottom.
  double bucket_bytes = 0;
  int local_batch = 2048;
  std::vector<int> tables = {2, 1, 2, 3};       // embedding tables per rank, cyclic
  std::vector<int> pooling = {20, 20, 20, 60};  // lookups per sample and table, per rank, cyclic
  std::vector<double> loader_us = {600};        // host time for the next batch, per rank, cyclic
};

// Why a stream waited for an event.
enum class WaitPattern : std::uint8_t {
  communication_after_compute,  // before a collective: its input has to be there
  collective_result,            // the `wait` of a collective
  gradients_reduced,            // end of backward: all gradient all-reduces
  other_stream,                 // one compute or copy stream waits for another
};

// Indices are those of RecordedRank::gpu_ops and runtime_calls.
struct TrueEventEdge {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t wait_call = 0;
  WaitPattern pattern = WaitPattern::other_stream;
  bool held = false;  // it decided when the destination started
};
struct TrueSynchronization {
  std::uint32_t gpu_op = 0;
  std::uint32_t runtime_call = 0;
  double waited_us = 0;  // beyond the length of a call that does not wait
};
struct TrueCollective {
  std::int64_t sequence = 0;
  CollectiveOp op = CollectiveOp::unknown;
  double transfer_us = 0;
  double bytes = 0;                    // sent by the rank that sends most
  std::vector<std::uint32_t> gpu_ops;  // [rank]
  std::vector<double> arrival_us;      // [rank] not rounded, since kGeneratorEpoch
};

struct GeneratedRank {
  RecordedRank recorded;
  std::string execution_trace;
  std::vector<TrueEventEdge> event_edges;
  std::vector<TrueSynchronization> synchronizations;
  std::uint64_t left_over = 0;  // GPU ops launched before the window
};

struct GeneratedJob {
  std::vector<GeneratedRank> ranks;
  std::vector<TrueCollective> collectives;  // those that are recorded on every rank, in order
};

[[nodiscard]] GeneratedJob generate_job(const GeneratorOptions& options);

// The job of examples/dlrm_4gpu: rank 3 holds most tables, and the ones with the longest lookups.
[[nodiscard]] GeneratorOptions dlrm_example();

}  // namespace stepcast::test
