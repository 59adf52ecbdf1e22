// Finds a layout for jobs without one, or for jobs that do not fit into GPU memory.
//
//   if (leaves_layout_open(job)) {
//     const LayoutSearch search{job, {.memory = gpu_memory, .gpus_per_node = 8}};
//     if (const auto chosen = search.usual()) ...  // chosen->flags: "--tp 2 --sequence-parallel ..."
//   }
//
// Candidates are resolved like typed flags, so typing `flags` gives the same forecast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/describe/job.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

// True if the job has no layout at all: no degree, no sharding, no recomputation, and no file or command line
// of a framework.
[[nodiscard]] bool leaves_layout_open(const Job& job);
// True if a part of the layout is open and can be searched, given the rest. False for files and command lines of
// a framework, which are complete, and for explicit layers per stage, weight copies or data-parallel degrees.
[[nodiscard]] bool leaves_part_open(const Job& job);
// True if tensor degree, pipeline degree, micro-batch and global batch are all given, as in every training
// script. Other options of such a layout are off, unless a search is requested.
[[nodiscard]] bool says_whole_layout(const JobSettings& settings);

// A layout that was tried.
struct LayoutChoice {
  JobSettings settings;  // settings in addition to the job; they override it
  std::string flags;     // `settings` as flags of `stepcast predict`; empty: none
  ResolvedJob job;       // the resulting job
  MemoryForecast memory;
};

// Limits of the layouts.
struct LayoutBounds {
  Bytes memory;                    // per GPU
  std::int64_t gpus_per_node = 1;  // limit of tensor parallelism
};

// A search over the usual layouts of a job.
class LayoutSearch {
 public:
  LayoutSearch(Job job, LayoutBounds bounds) : job_(std::move(job)), bounds_(bounds) {}

  // The first layout that fits, in this order: data parallelism alone; sharded optimizer states; these with
  // expert, tensor and pipeline parallelism over 2, 4, ... times as many GPUs; sharded weights; the same with
  // full recomputation. FSDP, TorchTitan and DeepSpeed shard weights before they use tensor parallelism.
  // Layouts with headroom are preferred to those without. A pipeline gets four micro-batches per stage if no
  // batch is given. Settings of the job are kept.
  [[nodiscard]] std::optional<LayoutChoice> usual() const;
  // The usual layout with the smallest memory; nothing if none can run.
  [[nodiscard]] std::optional<LayoutChoice> smallest() const;
  // A usual layout on the fewest GPUs that suffice, doubling the number of the job; nothing if 16,384 are not enough.
  [[nodiscard]] std::optional<LayoutChoice> on_more_gpus() const;
  // Up to `most` changes of the job's layout that fit on the same GPUs, the smallest change first: sharded
  // optimizer states, full recomputation, sharded weights, then 2 to 16 times the tensor or pipeline degree,
  // alone and combined with these.
  [[nodiscard]] std::vector<LayoutChoice> nearest(std::size_t most) const;

 private:
  [[nodiscard]] std::optional<LayoutChoice> tried(const JobSettings& settings) const;
  [[nodiscard]] std::vector<JobSettings> usual_settings() const;

  Job job_;
  LayoutBounds bounds_;
};

}  // namespace stepcast
