#include "stepcast/sweep/sweep_shard.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// The largest number of shards.
constexpr std::uint32_t kMostShards = 1'000'000;

// The value of an environment variable as an integer, or nothing if it is unset or empty. Error: not an
// integer.
Result<std::optional<std::uint32_t>> number(const Environment& environment, const std::string& name) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return std::optional<std::uint32_t>{};
  const std::optional<std::uint32_t> value = scan<std::uint32_t>(*text);
  if (value) return value;
  return Error::at("", name)
      .found(fmt::format("`{}`", text->substr(0, 40)))
      .expected("a whole number")
      .advice("say --shard i/n");
}

// The shard of task `id` of a Slurm array. Ids of an array may start above 0 and have a stride
// ("--array=3-15:4"). The index of the shard is the position of the id in the array.
Result<SweepShard> of_slurm(const Environment& environment, std::uint32_t id,
                            std::optional<std::uint32_t> count) {
  STEPCAST_ASSIGN(const auto said, number(environment, "SLURM_ARRAY_TASK_COUNT"));
  STEPCAST_ASSIGN(const auto min, number(environment, "SLURM_ARRAY_TASK_MIN"));
  STEPCAST_ASSIGN(const auto max, number(environment, "SLURM_ARRAY_TASK_MAX"));
  STEPCAST_ASSIGN(const auto step, number(environment, "SLURM_ARRAY_TASK_STEP"));
  const std::uint32_t first = min.value_or(0), stride = std::max(1U, step.value_or(1));
  const std::optional<std::uint32_t> n = said ? said : count;
  if (!n) {
    return Error::at("", "SLURM_ARRAY_TASK_COUNT", "not set although SLURM_ARRAY_TASK_ID is")
        .advice("say --shard i/n");
  }
  if (count && *count != *n) {
    return Error::at("", "--shards")
        .found(fmt::format("{}", *count))
        .expected(fmt::format("{}, as SLURM_ARRAY_TASK_COUNT says", *n));
  }
  // An array such as "--array=1,5,6" has no constant stride: positions cannot be derived from the ids.
  const bool has_gaps = max && (*max < first || (*max - first) / stride + 1 != *n);
  if (id < first || (id - first) % stride != 0 || (id - first) / stride >= *n || has_gaps) {
    return Error::at("", "SLURM_ARRAY_TASK_ID",
                     fmt::format("the array has gaps: task {} of {} tasks from {} on", id, *n, first))
        .advice("say --shard i/n");
  }
  return SweepShard{(id - first) / stride, *n, "SLURM_ARRAY_TASK_ID"};
}

}  // namespace

bool SweepShard::has(const SweepPoint& point) const {
  // The id is 16 hexadecimal digits of a hash with well-mixed low bits, so the remainder spreads points
  // evenly.
  std::uint64_t value = 0;
  std::from_chars(point.id.data(), point.id.data() + point.id.size(), value, 16);
  return value % count == index;
}

std::string SweepShard::file_name() const { return fmt::format("shard-{:04}-of-{:04}.jsonl", index, count); }

Result<SweepShard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto index = scan<std::uint32_t>(std::string_view{text}.substr(0, slash));
    const auto count = scan<std::uint32_t>(std::string_view{text}.substr(slash + 1));
    if (index && count && *index < *count && *count <= kMostShards) return SweepShard{*index, *count, {}};
  }
  return Error::at("", "--shard")
      .found(fmt::format("`{}`", text.substr(0, 40)))
      .expected("i/n with i from 0 to n - 1, as in 0/4");
}

Result<SweepShard> shard_of_environment(const Environment& environment, std::optional<std::uint32_t> count) {
  if (count && (*count < 1 || *count > kMostShards))
    return Error::at("", "--shards").found(fmt::format("{}", *count)).expected("1 to 1000000");
  STEPCAST_ASSIGN(const auto task, number(environment, "SLURM_ARRAY_TASK_ID"));
  if (task) return of_slurm(environment, *task, count);
  STEPCAST_ASSIGN(const auto completion, number(environment, "JOB_COMPLETION_INDEX"));
  if (completion) {
    if (!count) {
      return Error::at("", "JOB_COMPLETION_INDEX", "an Indexed Job does not say how many pods it has")
          .advice("say --shards with the completions of the job, or --shard i/n");
    }
    if (*completion >= *count) {
      return Error::at("", "JOB_COMPLETION_INDEX")
          .found(fmt::format("{}", *completion))
          .expected(fmt::format("less than --shards {}", *count));
    }
    return SweepShard{*completion, *count, "JOB_COMPLETION_INDEX"};
  }
  if (!count || *count == 1) return SweepShard{};
  return Error::at("", "--shards",
                   "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX says which of them this is")
      .advice("say --shard i/n");
}

}  // namespace stepcast
