// Which GPU should hold which embedding table, and how much that is worth.
//
//   shard_tables [MODEL] [GPUS]

#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>

#include "stepcast/api/stepcast.h"

int main(int argc, char** argv) {
  stepcast::ShardRequest request;
  request.model = argc > 1 ? argv[1] : "dlrm-mlperf-v1";
  request.n_gpus = argc > 2 ? std::atoi(argv[2]) : 8;
  request.choices.max_seconds = 2;

  // Whoever holds `stop` ends the search from another thread: stop.request_stop().
  const std::stop_source stop;
  const stepcast::StopScope scope{stop.get_token()};
  const auto all = stepcast::Session{}.shard(request);
  if (!all.ok()) {
    std::fprintf(stderr, "%s\n", all.error().message().c_str());
    return 1;
  }
  for (const stepcast::ComparedSharding& one : all->shardings) {
    std::printf("%-12s %8.3f ms, lookups of the busiest rank %.3f ms%s\n", one.plan.name.c_str(),
                one.step.time.time.value() / 1e3, one.most_lookups_us() / 1e3,
                one.step.fits ? "" : ", does not fit");
  }
  std::printf("%s\n", all->verdict().c_str());
  return 0;
}
