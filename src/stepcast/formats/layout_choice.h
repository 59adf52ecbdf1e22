// Layouts for somebody who named none, or whose own does not fit into the memory of its GPUs.
//
//   if (leaves_layout_open(job)) {
//     const LayoutSearch search{job, {.memory = gpu_memory, .gpus_per_node = 8}};
//     if (const auto chosen = search.usual()) ...  // chosen->flags: "--tp 2 --sequence-parallel ..."
//   }
//
// What is tried goes through resolve() as the same flags would: typing them gives the same forecast.
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

// True if nothing is said of how the work is spread over GPUs: no degree, no sharding, no recomputation, and no file
// or command line of a framework.
[[nodiscard]] bool leaves_layout_open(const Job& job);
// True if something of it is left open, which can be searched given what is said. A file or a command line of a framework
// says all of it. So do layers that are dealt out by hand, and counts of copies or of data-parallel ranks.
[[nodiscard]] bool leaves_part_open(const Job& job);
// True if tensor parallelism, stages, micro-batch and batch are said together, as every training script does. What such a
// layout leaves out is off, unless it is asked to be searched.
[[nodiscard]] bool says_whole_layout(const JobSettings& settings);

struct LayoutChoice {
  JobSettings settings;  // what is said in addition to the job, and holds against it
  std::string flags;     // the same as flags of `stepcast predict`; empty: nothing
  ResolvedJob job;       // what it comes to
  MemoryForecast memory;
};

// What layouts have to keep to.
struct LayoutBounds {
  Bytes memory;                    // of a GPU
  std::int64_t gpus_per_node = 1;  // tensor and expert parallelism stay inside of a node
};

class LayoutSearch {
 public:
  LayoutSearch(Job job, LayoutBounds bounds) : job_(std::move(job)), bounds_(bounds) {}

  // The first that fits of: data parallel alone; sharded optimizer states; then with experts, tensors and layers
  // spread over twice, four times, ... as many GPUs; then sharded weights; the same with full recomputation. FSDP,
  // TorchTitan and DeepSpeed shard weights before they split tensors. One that fits with room to spare goes before
  // one that is tight. A pipeline gets four micro-batches a stage where nobody says the batch. What the job says stays.
  [[nodiscard]] std::optional<LayoutChoice> usual() const;
  // The one of these that needs least memory; nothing if none can run.
  [[nodiscard]] std::optional<LayoutChoice> smallest() const;
  // The fewest GPUs, doubling from those of the job, on which one of the usual layouts fits; nothing if not even
  // 16,384 are enough.
  [[nodiscard]] std::optional<LayoutChoice> on_more_gpus() const;
  // Changes of what the job says that make it fit on as many GPUs, those that change least first: sharded optimizer
  // states, full recomputation, sharded weights, then two to 16 times as much tensor or pipeline parallelism, alone
  // and with these. At most `most`.
  [[nodiscard]] std::vector<LayoutChoice> nearest(std::size_t most) const;

 private:
  [[nodiscard]] std::optional<LayoutChoice> tried(const JobSettings& settings) const;
  [[nodiscard]] std::vector<JobSettings> usual_settings() const;

  Job job_;
  LayoutBounds bounds_;
};

}  // namespace stepcast
