#include "stepcast/predict/untimed_ranks.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/predict/untimed_program.h"

namespace stepcast {
namespace {

bool collectives_agree(const std::vector<std::vector<JoinedTask>>& of_ranks) {
  return std::all_of(of_ranks.begin(), of_ranks.end(), [&](const auto& of_rank) {
    return std::equal(of_rank.begin(), of_rank.end(), of_ranks.front().begin(), of_ranks.front().end(),
                      [](const JoinedTask& a, const JoinedTask& b) { return a.op == b.op; });
  });
}

void join_collectives(const std::vector<std::vector<JoinedTask>>& of_ranks, RecordedProgram& out) {
  const bool agree = collectives_agree(of_ranks);
  if (!agree)
    out.notes.emplace_back("the ranks' collectives differ in number or order: they are not synchronised");
  const auto add = [&](const JoinedTask& c, std::vector<CollectiveMember> members) {
    Collective collective;
    collective.op = c.op;
    collective.name = c.name;
    collective.message_bytes = c.message_bytes;
    collective.members = std::move(members);
    out.program.add_collective(std::move(collective));
  };
  const auto member = [&](std::size_t r, std::size_t i) {
    return CollectiveMember{RankClassId{r}, InstanceId{0}, of_ranks[r][i].task};
  };
  for (std::size_t r = 0; r < (agree ? 1 : of_ranks.size()); ++r) {
    for (std::size_t i = 0; i < of_ranks[r].size(); ++i) {
      std::vector<CollectiveMember> members{member(r, i)};
      for (std::size_t other = 1; agree && other < of_ranks.size(); ++other)
        members.push_back(member(other, i));
      add(of_ranks[r][i], std::move(members));
    }
  }
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
    auto finished = std::move(blocks[r].block).finish_with_map();
    if (!finished.ok()) return std::move(finished).error().in_file(rank.trace->file);
    for (JoinedTask& c : blocks[r].collectives) c.task = finished->new_id[c.task.index()];
    collectives.push_back(std::move(blocks[r].collectives));
    RecordedStepFacts facts;
    facts.rank = rank.rank;
    facts.step_us = {rank.start_us, rank.start_us + rank.recorded_step_us};
    facts.gpu_window_end_us = rank.start_us;
    facts.step_end_task = finished->new_id[blocks[r].step_end.index()];
    out.facts.push_back(facts);
    out.measured.emplace_back(finished->block.task_count(), Interval{rank.start_us, rank.start_us});
    out.start_offset_us.push_back(rank.start_us);
    RecordedFileFacts files;
    files.execution_trace = rank.trace->file;
    out.files.push_back(std::move(files));
    const BlockId id = out.program.add_block(std::move(finished->block));
    out.program.add_instance(out.program.add_rank_class(std::move(rank_class)), {.block = id});
  }
  join_collectives(collectives, out);
  return Ok{};
}

}  // namespace stepcast
