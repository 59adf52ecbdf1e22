#include "stepcast/plan/job_pool.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/toml_document.h"

namespace stepcast {
namespace {

// Error: a value that is not above 0, or absurdly large.
Status check_pool_number(const ObjectReader& reader, const char* key, std::optional<double> value) {
  if (!value || (*value > 0 && *value <= 1e18)) return Ok{};
  return reader.error(key).found(fmt::format("{:g}", *value)).expected("a number above 0");
}

// Tokens of the job: given as `tokens`, or as `steps` together with batch and sequence length.
Result<double> pool_job_tokens(ObjectReader& reader, const PoolJob& job) {
  std::optional<double> tokens, steps;
  STEPCAST_TRY(reader.optional("tokens", tokens));
  STEPCAST_TRY(reader.optional("steps", steps));
  STEPCAST_TRY(check_pool_number(reader, "tokens", tokens));
  STEPCAST_TRY(check_pool_number(reader, "steps", steps));
  // Exactly one of the two must be given.
  if (tokens.has_value() == steps.has_value())
    return reader.error({}, tokens ? "tokens and steps contradict each other" : "has no length of training")
        .expected("one of tokens and steps");
  if (tokens) return *tokens;
  if (job.global_batch_sequences == 0 || job.seq_len_tokens == 0)
    return reader.error("steps", "needs gbs and seq to be tokens").advice("add gbs and seq, or give tokens");
  return *steps * static_cast<double>(job.global_batch_sequences) * static_cast<double>(job.seq_len_tokens);
}

// Reads one [[job]] table; see parse_pool_jobs() for the keys.
Result<PoolJob> read_pool_job(const JsonValue& value, const std::string& path, const std::string& name) {
  STEPCAST_ASSIGN(ObjectReader reader, ObjectReader::of(value, path, name));
  PoolJob job;
  STEPCAST_TRY(reader.optional("name", job.name));
  STEPCAST_TRY(reader.optional("model", job.model));
  for (const auto& [key, text] : {std::pair{"name", &job.name}, std::pair{"model", &job.model}})
    if (text->empty()) return reader.error(key, "is missing").expected("a text");
  std::uint64_t gbs = 0, seq = 0, weight = 1;
  constexpr std::uint64_t kMost = 1'000'000'000;
  STEPCAST_TRY(reader.count("gbs", 1, kMost, gbs));
  STEPCAST_TRY(reader.count("seq", 1, kMost, seq));
  STEPCAST_TRY(reader.count("weight", 1, 1'000'000, weight));
  job.global_batch_sequences = static_cast<std::int64_t>(gbs);
  job.seq_len_tokens = static_cast<std::int64_t>(seq);
  job.weight = static_cast<std::int64_t>(weight);
  STEPCAST_TRY(reader.optional("deadline_days", job.deadline_days));
  STEPCAST_TRY(check_pool_number(reader, "deadline_days", job.deadline_days));
  STEPCAST_TRY(reader.optional("late_price_per_hour", job.late_price_per_hour));
  STEPCAST_TRY(check_pool_number(reader, "late_price_per_hour", job.late_price_per_hour));
  if (job.late_price_per_hour && !job.deadline_days)
    return reader.error("late_price_per_hour", "without deadline_days").advice("add one, or leave it out");
  STEPCAST_ASSIGN(job.tokens, pool_job_tokens(reader, job));
  STEPCAST_TRY(reader.finish());
  return job;
}

// Candidate numbers of nodes: powers of two and three times these, which common degrees divide, and the whole pool.
std::vector<std::int64_t> node_counts(std::int64_t nodes) {
  std::vector<std::int64_t> counts{nodes};
  for (std::int64_t n = 1; n < nodes; n *= 2)
    for (const std::int64_t count : {n, 3 * n})
      if (count < nodes) counts.push_back(count);
  std::ranges::sort(counts);
  return counts;
}

// True if a layout exists and meets the deadline.
bool in_time(const TrainingOption& option) { return option.why_not.empty() && option.meets; }

// Options of one job for each of `counts` GPUs.
Result<std::vector<TrainingOption>> pool_curve(const PlanRequest& request, const NamedPlatform& platform,
                                               const std::vector<std::int64_t>& counts, const PoolJob& job) {
  PlanRequest one = request;
  one.job.model = job.model;
  if (job.global_batch_sequences > 0) one.job.settings.global_batch_sequences = job.global_batch_sequences;
  if (job.seq_len_tokens > 0) one.job.settings.seq_len_tokens = job.seq_len_tokens;
  TrainingGoal goal;
  goal.tokens = job.tokens;
  goal.within_days = job.deadline_days;
  STEPCAST_ASSIGN(TrainingPlan plan, plan_training(one, {platform}, counts, goal));
  return std::move(plan.options);
}

// Fewest GPUs that meet the deadline. Above the pool, only 2, 4 and 8 times its size are tried.
Result<std::optional<std::int64_t>> fewest_in_time(const PlanRequest& request, const NamedPlatform& platform,
                                                   std::int64_t pool, const PooledJob& pooled) {
  for (const TrainingOption& option : pooled.curve)
    if (in_time(option)) return std::optional{option.n_gpus};
  for (const std::int64_t times : {2, 4, 8}) {
    STEPCAST_ASSIGN(const std::vector<TrainingOption> more,
                    pool_curve(request, platform, {times * pool}, pooled.job));
    if (in_time(more.front())) return std::optional{times * pool};
  }
  return std::optional<std::int64_t>{};
}

// The options of a job as parts of the pool in nodes; options without a layout are left out.
PoolChoices choices_of(const PooledJob& pooled, std::int64_t in_node, PlanObjective objective) {
  PoolChoices choices{.parts = {}, .weight = pooled.job.weight};
  for (const TrainingOption& option : pooled.curve) {
    if (!option.why_not.empty()) continue;
    // Objective cost: the price with late fees. Other objectives: the days.
    const double cost =
        objective == PlanObjective::cost ? pooled.price(option).value_or(option.gpu_hours) : option.days;
    choices.parts.push_back({option.n_gpus / in_node, !option.meets, cost});
  }
  return choices;
}

}  // namespace

Result<std::vector<PoolJob>> parse_pool_jobs(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(const JsonValue root, parse_toml(text, name));
  STEPCAST_ASSIGN(ObjectReader reader, ObjectReader::of(root, "", name));
  const JsonValue* list = reader.take("job");
  if (list == nullptr || !list->is_array() || list->items().empty() || list->items().size() > kMostPoolJobs)
    return Error::at(name, "job")
        .found(list == nullptr    ? "nothing"
               : list->is_array() ? fmt::format("{} jobs", list->items().size())
                                  : std::string{list->kind_name()})
        .expected(fmt::format("1 to {} tables [[job]]", kMostPoolJobs));
  STEPCAST_TRY(reader.finish());
  std::vector<PoolJob> jobs;
  for (const JsonValue& item : list->items()) {
    const std::string path = fmt::format("job[{}]", jobs.size());
    STEPCAST_ASSIGN(PoolJob job, read_pool_job(item, path, name));
    if (std::ranges::find(jobs, job.name, &PoolJob::name) != jobs.end())
      return error_at(name, item, path, fmt::format("another job is named `{}`", job.name.substr(0, 60)))
          .advice("give it another name");
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<std::optional<std::size_t>> assign_parts(const std::vector<PoolChoices>& jobs,
                                                     std::int64_t pool) {
  // Weight of missed jobs, jobs that do not run, cost.
  using Cost = std::tuple<std::int64_t, std::int64_t, double>;
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(0, pool)) + 1;
  // Dynamic programming. least[room]: minimum over the jobs so far within `room` nodes; taken[j][room]: the part of job j in it.
  std::vector<Cost> least(width, Cost{0, 0, 0.0});
  std::vector<std::vector<std::size_t>> taken;
  for (const PoolChoices& job : jobs) {
    std::vector<Cost> next(width);
    std::vector<std::size_t>& part = taken.emplace_back(width, kNone);
    for (std::size_t room = 0; room < width; ++room) {
      const auto& [missed, idle, cost] = least[room];
      // Default: the job does not run, which also misses its deadline.
      next[room] = {missed + job.weight, idle + 1, cost};
      for (std::size_t p = 0; p < job.parts.size(); ++p) {
        const PoolPart& one = job.parts[p];
        if (one.size > static_cast<std::int64_t>(room)) continue;
        const auto& [m, i, c] = least[room - static_cast<std::size_t>(one.size)];
        const Cost with{m + (one.misses ? job.weight : 0), i, c + one.cost};
        if (with >= next[room]) continue;
        next[room] = with;
        part[room] = p;
      }
    }
    least = std::move(next);
  }
  std::vector<std::optional<std::size_t>> chosen(jobs.size());
  // Follow the chosen parts back from the full pool.
  std::size_t room = width - 1;
  for (std::size_t j = jobs.size(); j-- > 0;) {
    if (taken[j][room] == kNone) continue;
    chosen[j] = taken[j][room];
    room -= static_cast<std::size_t>(jobs[j].parts[*chosen[j]].size);
  }
  return chosen;
}

std::optional<double> PooledJob::slack_days() const {
  if (!chosen || !job.deadline_days) return std::nullopt;
  return *job.deadline_days - curve[*chosen].days;
}

std::optional<double> PooledJob::price(const TrainingOption& option) const {
  if (!option.price && !job.late_price_per_hour) return std::nullopt;
  // Hours after the deadline; without a deadline none.
  const double late_hours = 24 * std::max(0.0, option.days - job.deadline_days.value_or(option.days));
  return option.price.value_or(0) + late_hours * job.late_price_per_hour.value_or(0);
}

Result<JobPool> plan_jobs(const PlanRequest& request, const NamedPlatform& platform, std::int64_t n_gpus,
                          const std::vector<PoolJob>& jobs) {
  JobPool pool{.platform = platform.name,
               .n_gpus = n_gpus,
               .gpus_per_node = platform.platform.node.gpus_per_node,
               .objective = request.objective,
               .jobs = {}};
  const std::int64_t in_node = pool.gpus_per_node, nodes = n_gpus / in_node;
  if (nodes < 1)
    return Error{fmt::format("a pool of {} GPUs is less than a node of {}", n_gpus, platform.name)}.expected(
        fmt::format("whole nodes: {} GPUs or more", in_node));
  // One curve per job: its duration on every candidate size.
  std::vector<std::int64_t> counts = node_counts(nodes);
  for (std::int64_t& count : counts) count *= in_node;
  std::vector<PoolChoices> choices;
  for (const PoolJob& job : jobs) {
    PooledJob& pooled = pool.jobs.emplace_back(PooledJob{.job = job, .curve = {}});
    STEPCAST_ASSIGN(pooled.curve, pool_curve(request, platform, counts, job));
    choices.push_back(choices_of(pooled, in_node, request.objective));
  }
  const std::vector<std::optional<std::size_t>> parts = assign_parts(choices, nodes);
  bool all_in_time = true;
  std::int64_t needed = 0;
  for (std::size_t j = 0; j < parts.size(); ++j) {
    PooledJob& pooled = pool.jobs[j];
    if (parts[j]) {
      const std::int64_t gpus = choices[j].parts[*parts[j]].size * in_node;
      const auto at = std::ranges::find(pooled.curve, gpus, &TrainingOption::n_gpus);
      pooled.chosen = static_cast<std::size_t>(at - pooled.curve.begin());
      pool.n_used += gpus;
    }
    STEPCAST_ASSIGN(pooled.gpus_in_time, fewest_in_time(request, platform, nodes * in_node, pooled));
    all_in_time = all_in_time && pooled.gpus_in_time.has_value();
    needed += pooled.gpus_in_time.value_or(0);
  }
  if (all_in_time) pool.pool_in_time = needed;
  return pool;
}

}  // namespace stepcast
