// The members of a comparison of shardings in JSON (report/fields/fields.h): stepcast.shard/1.
#pragma once

#include <string>

#include "stepcast/base/units.h"
#include "stepcast/plan/sharding_comparison.h"
#include "stepcast/report/fields/fields.h"

namespace stepcast {

constexpr AnswerHead answer_head(const ShardingComparison*) {
  return {"stepcast.shard/1", "stepcast shard --json"};
}

void fields(auto& a, Is<DlrmRank> auto& rank) {
  a("lookup_ms", rank.lookup_us * 1e-3);
  a("lookup_backward_ms", rank.lookup_backward_us * 1e-3);
  a("memory_GiB", rank.memory_bytes / kGiB);
  a("host_memory_GiB", rank.host_bytes / kGiB, "tables in the memory of the host");
  a("sent_bytes", rank.sent_bytes, "of the forward all-to-all, to other ranks");
}

void fields(auto& a, Is<ComparedSharding> auto& c) {
  a("name", c.plan.name);
  a("fits", c.step.fits);
  a("expected_step_time_ms", c.expected_us * 1e-3, "what it is judged by");
  a("step_time_ms", c.step.time.time.value() * 1e-3);
  a("step_time_p10_ms", c.step.time.p10.value() * 1e-3);
  a("step_time_p90_ms", c.step.time.p90.value() * 1e-3);
  a("lookup_imbalance", c.step.lookup_imbalance, "the busiest rank over the mean");
  a("exchange_ms", c.step.exchange_us * 1e-3);
  a("bound_ms", c.step.bound_us * 1e-3);
  a("ranks", c.step.ranks);
}

void fields(auto& a, Is<ShardingComparison> auto& all) {
  a("model", all.model.name);
  a("n_gpus", all.n_gpus);
  a("global_batch_samples", all.global_batch_samples);
  a("verdict", all.shardings.empty() ? std::string{} : all.verdict());
  a("least_step_time_ms", all.least_step_us * 1e-3, "no placement of whole tables is faster");
  a("shardings", all.shardings, "those that fit first, by their expected time");
}

}  // namespace stepcast
