// Joins the blocks of single ranks to one Program and matches their collectives.
#include "stepcast/predict/untimed_ranks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/predict/untimed_program.h"

namespace stepcast {
namespace {

// One rank's part in a collective or send.
struct JoinPart {
  std::size_t rank;  // index into the ranks
  const JoinedTask* task;
};
// The collectives of one process group, or the sends from one rank to another: for each rank that takes part,
// its list in execution order.
using JoinParts = std::vector<std::vector<JoinPart>>;  // [participating rank]

bool is_point_to_point(CollectiveOp op) { return op == CollectiveOp::send || op == CollectiveOp::receive; }

// Whether all ranks have the same operations in the same order. A send matches a receive.
bool agree(const JoinParts& of_ranks) {
  return std::ranges::all_of(of_ranks, [&](const std::vector<JoinPart>& of_rank) {
    return std::ranges::equal(of_rank, of_ranks.front(), [](const JoinPart& a, const JoinPart& b) {
      return a.task->op == b.task->op || (is_point_to_point(a.task->op) && is_point_to_point(b.task->op));
    });
  });
}

// Adds one collective with these members. The sender of a point-to-point transfer is its root.
void add_collective(std::span<const JoinPart> parts, RecordedProgram& out) {
  const JoinedTask& first = *parts.front().task;
  Collective collective{.op = first.op, .name = first.name, .message_bytes = first.message_bytes};
  for (const JoinPart& part : parts) {
    if (parts.size() > 1 && part.task->op == CollectiveOp::send) {
      collective.kind = CollectiveKind::rooted_from;
      collective.root = static_cast<std::uint32_t>(collective.members.size());
    }
    collective.members.push_back({RankClassId{part.rank}, InstanceId{0}, part.task->task});
  }
  out.program.add_collective(std::move(collective));
}

// Joins the lists of all ranks. If the ranks of a group disagree, each member becomes a collective of one
// rank, and a note is added.
void join_collectives(const std::vector<std::vector<JoinedTask>>& of_ranks, RecordedProgram& out) {
  // Keyed by process group, sender and receiver.
  std::map<std::tuple<GroupId, std::int64_t, std::int64_t>, std::map<std::size_t, std::vector<JoinPart>>>
      joined;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    for (const JoinedTask& task : of_ranks[r])
      joined[{task.group, task.sender, task.receiver}][r].push_back({r, &task});
  }
  bool all_agree = true;
  for (const auto& [key, by_rank] : joined) {
    JoinParts parts;
    for (const auto& [rank, of_rank] : by_rank) parts.push_back(of_rank);
    if (agree(parts)) {
      for (std::size_t i = 0; i < parts.front().size(); ++i) {
        std::vector<JoinPart> together;
        for (const std::vector<JoinPart>& of_rank : parts) together.push_back(of_rank[i]);
        add_collective(together, out);
      }
      continue;
    }
    all_agree = false;
    for (const std::vector<JoinPart>& of_rank : parts)
      for (const JoinPart& part : of_rank) add_collective({&part, 1}, out);
  }
  if (!all_agree)
    out.notes.emplace_back("the ranks differ in number or order of collectives: they are not synchronised");
}

// Name of a class of equal ranks: "rank 3", "ranks 0-3", "ranks 0, 2, ... 14" or "ranks 0, 1, 5, ...".
std::string name_of(std::span<const std::uint32_t> ranks, std::int32_t recorded) {
  if (ranks.size() < 2) return fmt::format("rank {}", recorded);
  const auto step = [&](std::size_t i) { return static_cast<std::int64_t>(ranks[i]) - ranks[i - 1]; };
  bool even = true;
  for (std::size_t i = 2; i < ranks.size(); ++i) even = even && step(i) == step(1);
  if (even && step(1) == 1) return fmt::format("ranks {}-{}", ranks.front(), ranks.back());
  constexpr std::size_t kMost = 4;  // most ranks listed in a table cell
  if (ranks.size() <= kMost) return fmt::format("ranks {}", fmt::join(ranks, ", "));
  return fmt::format("ranks {}, ...{}", fmt::join(ranks.first(even ? 2 : 3), ", "),
                     even ? fmt::format(" {}", ranks.back()) : "");
}

}  // namespace

Result<RankGroup> all_ranks(std::span<const UntimedRank> ranks) {
  if (ranks.empty()) return Error{"no execution trace was given; give one file per rank"};
  std::set<std::int32_t> seen;
  RankGroup all{"all ranks", {}};
  for (const UntimedRank& rank : ranks) {
    if (!seen.insert(rank.rank).second) {
      return Error::at(rank.trace->file, "rank")
          .found(fmt::format("{} a second time", rank.rank))
          .expected("one file per rank");
    }
    all.ranks.push_back(static_cast<std::uint32_t>(std::max(rank.rank, 0)));
  }
  std::sort(all.ranks.begin(), all.ranks.end());
  return all;
}

Status join_untimed(std::span<const UntimedRank> ranks, std::vector<UntimedBlock> blocks,
                    RecordedProgram& out) {
  std::vector<std::vector<JoinedTask>> collectives;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const UntimedRank& rank = ranks[r];
    RankClass rank_class;
    rank_class.name = fmt::format("rank {}", rank.rank);
    rank_class.lanes.assign(blocks[r].block.lanes().begin(), blocks[r].block.lanes().end());
    rank_class.recorded_rank = rank.rank;
    if (rank.trace->dry_run) {
      const std::vector<std::uint32_t>& equal = rank.trace->dry_run->ranks;
      rank_class.name = name_of(equal, rank.rank);
      rank_class.multiplicity = static_cast<std::uint32_t>(std::max<std::size_t>(1, equal.size()));
    }
    auto finished = std::move(blocks[r].block).finish_with_map();
    if (!finished.ok()) return std::move(finished).error().in_file(rank.trace->file);
    for (JoinedTask& c : blocks[r].collectives) c.task = finished->new_id[c.task.index()];
    collectives.push_back(std::move(blocks[r].collectives));
    RecordedStepFacts facts;
    facts.rank = rank.rank;
    facts.step_us = {rank.start_us, rank.start_us + rank.recorded_step_us};
    facts.gpu_window_end_us = rank.start_us;
    if (const auto& record = rank.trace->dry_run)
      facts.memory = AllocatorPeak{record->peak_allocated_bytes, record->peak_reserved_bytes};
    facts.step_end_task = finished->new_id[blocks[r].step_end.index()];
    out.facts.push_back(facts);
    out.measured.emplace_back(finished->block.task_count(), Interval{rank.start_us, rank.start_us});
    out.start_offset_us.push_back(rank.start_us);
    RecordedFileFacts files;
    files.execution_trace = rank.trace->file;
    if (rank.trace->dry_run) files.world_size = static_cast<std::int32_t>(rank.trace->dry_run->world_size);
    out.files.push_back(std::move(files));
    const BlockId id = out.program.add_block(std::move(finished->block));
    out.program.add_instance(out.program.add_rank_class(std::move(rank_class)), {.block = id});
  }
  join_collectives(collectives, out);
  return Ok{};
}

}  // namespace stepcast
