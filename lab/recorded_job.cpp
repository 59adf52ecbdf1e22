#include "lab/recorded_job.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/base/statistics.h"
#include "stepcast/operation/overhead_name.h"

namespace stepcast {

namespace {

// Most steps of a recording that are rebuilt: enough for means, and affordable for files with thousands of steps.
constexpr std::size_t kMostSteps = 12;
// Two recordings are of one workload if they have this share of their operator calls in common.
constexpr double kSameWorkload = 0.9;

std::map<std::string, std::uint64_t> operators_of(const RecordedRank& rank) {
  std::map<std::string, std::uint64_t> operators;
  for (const CpuOp& op : rank.cpu_ops) {
    if (op.kind != CpuOp::Kind::op) continue;
    std::string call{rank.names.text(op.name)};
    if (op.input_shapes.valid()) call += rank.names.text(op.input_shapes);
    ++operators[std::move(call)];
  }
  return operators;
}

// Share of the calls that two recordings have in common, 0 to 1.
double common_share(const std::map<std::string, std::uint64_t>& a,
                    const std::map<std::string, std::uint64_t>& b) {
  std::uint64_t both = 0, any = 0;
  for (const auto& [op, n] : a) {
    const auto other = b.find(op);
    both += std::min(n, other == b.end() ? 0 : other->second);
    any += std::max(n, other == b.end() ? 0 : other->second);
  }
  for (const auto& [op, n] : b) any += a.contains(op) ? 0 : n;
  return any > 0 ? static_cast<double>(both) / static_cast<double>(any) : 0;
}

bool is_data_loader(const RecordedProgram& recorded, const TaskInfo& task) {
  const OpStacks& stacks = recorded.program.stacks;
  for (StackId s = task.stack; s.valid(); s = stacks.parent(s))
    if (recorded.program.names.text(stacks.name(s)).starts_with(kDataLoader)) return true;
  return false;
}

namespace fs = std::filesystem;

}  // namespace

std::vector<RankClassId> all_classes(const RecordedProgram& recorded) {
  std::vector<RankClassId> classes;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) classes.emplace_back(c);
  return classes;
}

bool same_workload(const RecordedJob& a, const RecordedJob& b) {
  return common_share(a.operators, b.operators) >= kSameWorkload;
}

void scale_data_loader(const RecordedProgram& recorded, RankClassId c, Costs& costs, double factor) {
  const BlockId id = recorded.program.rank_class(c).instances.front().block;
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t)
    if (is_data_loader(recorded, block.tasks()[t]))
      costs.duration_us(id)[t] = block.duration_us()[t] * factor;
}

double data_loader_us(const RecordedProgram& recorded, RankClassId c) {
  const Block& block = recorded.program.block_of(c, InstanceId{0});
  double us = 0;
  for (std::uint32_t t = 0; t < block.task_count(); ++t)
    if (is_data_loader(recorded, block.tasks()[t])) us += block.duration_us()[t];
  return us;
}

std::size_t first_steady_step(const RecordedJob& job) {
  std::size_t first = 0;
  for (; first + 3 < job.steps.size(); ++first) {
    std::vector<double> behind;
    for (std::size_t s = first + 1; s < job.steps.size(); ++s)
      behind.push_back(job.steps[s].facts.front().step_us.length_us());
    const double typical = median(behind);
    if (std::abs(job.steps[first].facts.front().step_us.length_us() - typical) <= kSteadyWithin * typical)
      break;
  }
  return first;
}

Result<RecordedJob> rebuild_job(const TraceSet& set, const std::string& name, unsigned threads) {
  RecordedJob job{.name = name, .folder = std::filesystem::path{name}.parent_path().generic_string()};
  std::vector<std::optional<std::int64_t>> steps;
  for (const std::int64_t step : common_steps(set)) steps.emplace_back(step);
  if (steps.empty()) steps.emplace_back();
  if (steps.size() > kMostSteps) steps.erase(steps.begin(), steps.end() - kMostSteps);
  const std::vector<RecordedInput> inputs = set.inputs();
  std::vector<std::optional<Result<RecordedProgram>>> programs(steps.size());
  STEPCAST_TRY(parallel_for(steps.size(), threads, [&](std::size_t i) -> Status {
    programs[i].emplace(
        rebuild_program(inputs, {.step = steps[i], .own_delays = false, .tf32_allowed = false}));
    return Ok{};
  }));
  std::optional<Error> problem;
  for (auto& program : programs)
    if (program->ok())
      job.steps.push_back(std::move(program->value()));
    else
      problem = program->error();
  if (job.steps.empty()) return *problem;
  for (const RecordedProgram& step : job.steps) job.host.add(recorded_overheads(step));
  const RecordedProgram& last = job.steps.back();
  for (const RankClassId c : all_classes(last))
    job.host_of_ranks.push_back(recorded_overheads(last, std::span{&c, 1}));
  job.operators = operators_of(set.ranks.front());
  job.device = last.files.front().device;
  return job;
}

Result<std::vector<fs::path>> folders_of(const fs::path& data) {
  std::error_code problem;
  const fs::file_status status = fs::status(data, problem);
  if (!fs::exists(status)) return Error::at(data.string(), "there is no such file or folder");
  if (!fs::is_directory(status)) return std::vector<fs::path>{data};
  std::vector<fs::path> folders{data};
  for (auto entry = fs::recursive_directory_iterator{data, problem};
       !problem && entry != fs::recursive_directory_iterator{}; entry.increment(problem)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  if (problem) return Error::at(data.string(), fmt::format("cannot list the folder: {}", problem.message()));
  std::ranges::sort(folders);
  return folders;
}

std::string relative_name(const fs::path& path, const fs::path& data) {
  std::string name = path.lexically_relative(data).generic_string();
  if (name.empty() || name == ".") name = path.filename().generic_string();
  if (name.empty())
    name = path.parent_path().filename().generic_string();  // for a folder with a slash at its end
  for (const std::string_view ending : {".gz", ".json", ".trace", ".pt"})
    if (name.ends_with(ending)) name.erase(name.size() - ending.size());
  return name;
}

}  // namespace stepcast
