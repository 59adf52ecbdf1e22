#include "tests/support/trace_generator.h"

#include <utility>

#include "tests/support/dlrm_rank.h"
#include "tests/support/virtual_machine.h"

namespace stepcast::test {

GeneratedJob generate_job(const GeneratorOptions& options) {
  generator::Shared shared;
  std::vector<generator::DlrmRank> writers;
  writers.reserve(static_cast<std::size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; ++rank) writers.emplace_back(options, rank, shared);
  std::vector<machine::RankScript> scripts;
  for (const generator::DlrmRank& w : writers) scripts.push_back(w.script());
  const auto runs =
      machine::run(scripts, shared.machine, {.seed = options.seed, .launch_queue = options.launch_queue});
  GeneratedJob job;
  for (std::size_t r = 0; r < writers.size(); ++r)
    job.ranks.push_back(writers[r].record(runs[r], shared.truth));
  for (TrueCollective& c : shared.truth) {
    if (c.gpu_ops.size() == job.ranks.size()) job.collectives.push_back(std::move(c));
  }
  return job;
}

GeneratorOptions dlrm_example() {
  GeneratorOptions options;
  options.seed = 4;
  options.ranks = 4;
  options.tables = {2, 1, 2, 3};
  options.pooling = {20, 20, 20, 60};
  options.late_gpu_ranks = {1};
  return options;
}

}  // namespace stepcast::test
