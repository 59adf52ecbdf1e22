// Does a Program of 10^8 expanded tasks fit, and how long does it take? measure_engine_capacity [TASKS]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/resource.h>

#include "stepcast/simulate/engine.h"

#include "replicated_program.h"

int main(int argc, char** argv) {
  using namespace stepcast;
  const double wanted = argc > 1 ? std::strtod(argv[1], nullptr) : 1e8;
  if (!(wanted >= 1 && wanted <= 1e10)) {
    std::fprintf(stderr, "usage: measure_engine_capacity [TASKS], 1 to 1e10, found %s\n", argv[1]);
    return 2;
  }
  Program program = bench::replicated_program(8);
  const auto per_eight = static_cast<double>(program.expanded_task_count());
  const auto multiplicity = static_cast<std::uint32_t>(wanted / per_eight) + 1;
  for (std::uint32_t c = 0; c < 8; ++c) program.set_multiplicity(RankClassId{c}, multiplicity);
  const auto tasks = static_cast<double>(program.expanded_task_count());

  const Plan plan = bench::value_or_exit(Plan::compile(program));
  const Costs costs{program};
  const SimulateOptions options{.unfold = true, .max_timeline_bytes = std::size_t{1} << 40};
  Timeline timeline;
  std::vector<double> seconds;
  for (int run = 0; run < 6; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    bench::value_or_exit(plan.simulate(costs, options, timeline));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double first = seconds.front();
  std::sort(seconds.begin() + 1, seconds.end());
  const double median = seconds[3];
  std::printf("ranks                  %llu\n", static_cast<unsigned long long>(program.rank_count()));
  std::printf("tasks                  %.0f\n", tasks);
  std::printf("timeline               %.3f GiB (%.1f bytes a task)\n",
              static_cast<double>(timeline.memory_bytes()) / 1073741824.0,
              static_cast<double>(timeline.memory_bytes()) / tasks);
  std::printf("peak resident memory   %.3f GiB\n", static_cast<double>(usage.ru_maxrss) / 1048576.0);
  std::printf("first sweep            %.3f s (%.0f M tasks/s), memory new\n", first, tasks / first / 1e6);
  std::printf("median of 5 more       %.3f s (%.0f M tasks/s), memory used again\n", median,
              tasks / median / 1e6);
  std::printf("last end               %.3f us\n", timeline.end_us());
  return 0;
}
