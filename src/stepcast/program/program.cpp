// Programs are appended to without checks; check() validates everything at once with the code that orders the
// execution.
#include "stepcast/program/program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/program/execution_order.h"

namespace stepcast {
namespace {

// Whether all values are finite and not negative. Without an early exit, so that compilers can vectorise the
// loop.
bool all_are_lengths(std::span<const double> values) {
  bool all = true;
  for (const double v : values) all &= (v >= 0) & (v <= std::numeric_limits<double>::max());
  return all;
}

// Index of the first value that is negative or not finite; values.size() if there is none.
std::size_t first_that_is_none(std::span<const double> values) {
  return static_cast<std::size_t>(
      std::find_if(values.begin(), values.end(), [](double v) { return !(std::isfinite(v) && v >= 0); }) -
      values.begin());
}

}  // namespace

StackId OpStacks::push(StackId parent, NameId name) {
  frames_.push_back({parent, name});
  return StackId{frames_.size() - 1};
}

BlockId Program::add_block(Block block) {
  blocks_.push_back(std::move(block));
  return BlockId{blocks_.size() - 1};
}

RankClassId Program::add_rank_class(RankClass rank_class) {
  rank_classes_.push_back(std::move(rank_class));
  return RankClassId{rank_classes_.size() - 1};
}

InstanceId Program::add_instance(RankClassId rank_class, BlockInstance instance) {
  auto& instances = rank_classes_[rank_class.index()].instances;
  instances.push_back(std::move(instance));
  return InstanceId{instances.size() - 1};
}

CollectiveId Program::add_collective(Collective collective) {
  collectives_.push_back(std::move(collective));
  return CollectiveId{collectives_.size() - 1};
}

GroupId Program::add_group(RankGroup group) {
  const auto there = std::find(groups_.begin(), groups_.end(), group);
  if (there != groups_.end()) return GroupId{static_cast<std::size_t>(there - groups_.begin())};
  groups_.push_back(std::move(group));
  return GroupId{groups_.size() - 1};
}

std::uint64_t Program::rank_count() const {
  std::uint64_t ranks = 0;
  for (const RankClass& c : rank_classes_) ranks += c.multiplicity;
  return ranks;
}

std::uint64_t Program::expanded_task_count() const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t tasks = 0;
  for (const RankClass& c : rank_classes_) {
    std::uint64_t of_rank = 0, of_class = 0;
    for (const BlockInstance& i : c.instances) {
      // An unknown block is an error of check(), not of this count.
      if (i.block.index() >= blocks_.size()) continue;
      of_rank += block(i.block).task_count();  // 32 bits each: the sum fits in 64
    }
    if (__builtin_mul_overflow(of_rank, std::uint64_t{c.multiplicity}, &of_class) ||
        __builtin_add_overflow(tasks, of_class, &tasks)) {
      return kMost;
    }
  }
  return tasks;
}

Status Program::check() const {
  STEPCAST_TRY(order_execution(*this));
  return Ok{};
}

Costs::Costs(const Program& program) {
  std::size_t tasks = 0, edges = 0;
  task_base_.push_back(0);
  edge_base_.push_back(0);
  for (const Block& b : program.blocks()) {
    task_base_.push_back(tasks += b.task_count());
    edge_base_.push_back(edges += b.edge_count());
  }
  durations_.reserve(tasks);
  delays_.reserve(edges);
  for (const Block& b : program.blocks()) {
    durations_.insert(durations_.end(), b.duration_us().begin(), b.duration_us().end());
    delays_.insert(delays_.end(), b.delay_us().begin(), b.delay_us().end());
  }
}

std::span<double> Costs::duration_us(BlockId b) {
  const std::size_t first = task_base_[b.index()];
  return std::span{durations_}.subspan(first, task_base_[b.index() + 1] - first);
}
std::span<const double> Costs::duration_us(BlockId b) const {
  const std::size_t first = task_base_[b.index()];
  return std::span{durations_}.subspan(first, task_base_[b.index() + 1] - first);
}
std::span<double> Costs::delay_us(BlockId b) {
  const std::size_t first = edge_base_[b.index()];
  return std::span{delays_}.subspan(first, edge_base_[b.index() + 1] - first);
}
std::span<const double> Costs::delay_us(BlockId b) const {
  const std::size_t first = edge_base_[b.index()];
  return std::span{delays_}.subspan(first, edge_base_[b.index() + 1] - first);
}

void Costs::rescale_shared_delays(const Program& program) {
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.blocks()[b];
    const std::span<const double> durations = duration_us(BlockId{b});
    const std::span<double> delays = delay_us(BlockId{b});
    for (std::size_t e = 0; e < delays.size(); ++e) {
      const double share = static_cast<double>(block.edge_infos()[e].share_of_source);
      // A source code below 2 * tasks is a task; BlockBuilder rejects shares on edges from in-ports.
      if (share > 0) delays[e] = share * durations[block.sources()[e] / 2];
    }
  }
}

Status Costs::check(const Program& program) const {
  const std::span<const Block> blocks = program.blocks();
  if (block_count() != blocks.size()) {
    return Error{"costs of another program"}
        .found(fmt::format("{} blocks", block_count()))
        .expected(std::to_string(blocks.size()));
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::span<const double> durations = duration_us(BlockId{b});
    const std::span<const double> delays = delay_us(BlockId{b});
    if (durations.size() != blocks[b].task_count() || delays.size() != blocks[b].edge_count()) {
      return Error{fmt::format("costs of another program: block {} (\"{}\")", b, blocks[b].name())}
          .found(fmt::format("{} durations and {} delays", durations.size(), delays.size()))
          .expected(fmt::format("{} and {}", blocks[b].task_count(), blocks[b].edge_count()));
    }
    if (!all_are_lengths(durations)) {
      const std::size_t t = first_that_is_none(durations);
      return Error{
          fmt::format("costs: invalid duration of task {} of block {} (\"{}\")", t, b, blocks[b].name())}
          .found(fmt::format("{} us", durations[t]))
          .expected("a finite time that is not negative");
    }
    if (!all_are_lengths(delays)) {
      const std::size_t e = first_that_is_none(delays);
      return Error{
          fmt::format("costs: invalid delay of edge {} of block {} (\"{}\")", e, b, blocks[b].name())}
          .found(fmt::format("{} us", delays[e]))
          .expected("a finite time that is not negative");
    }
  }
  return Ok{};
}

std::size_t Costs::memory_bytes() const {
  return (durations_.capacity() + delays_.capacity()) * sizeof(double) +
         (task_base_.capacity() + edge_base_.capacity()) * sizeof(std::size_t);
}

}  // namespace stepcast
