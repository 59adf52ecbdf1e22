// A Program: which tasks run, in which order, on which rank. Recorded traces and described workloads both
// become Programs.
//
// Ranks that do the same form one rank class with a multiplicity. A class runs a sequence of block instances.
// Its state is a vector of times: one per lane ("free from") and one per slot (a pending result that one
// instance writes and a later one reads). An instance binds the block's lanes to lanes of the class, its
// in-ports to slots it reads and its out-ports to slots it writes. A collective joins tasks of kind
// `collective` in instances of one or several classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/id.h"
#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"
#include "stepcast/program/block.h"
#include "stepcast/program/task_work.h"

namespace stepcast {

using BlockId = Id<struct BlockTag>;
using RankClassId = Id<struct RankClassTag>;
using InstanceId = Id<struct InstanceTag>;  // within a rank class
using CollectiveId = Id<struct ProgramCollectiveTag>;

// One execution of a block by every rank of a class.
struct BlockInstance {
  BlockId block{};
  std::int32_t micro_batch = -1;           // of a pipeline pass; -1: none
  std::vector<std::uint16_t> lanes{};      // [block lane] -> lane of the class; empty: the same numbers
  std::vector<std::uint16_t> in_slots{};   // [in-port] -> slot read when the instance begins
  std::vector<std::uint16_t> out_slots{};  // [out-port] -> slot written
};

// Ranks with the same instances in the same order, and so with the same times.
struct RankClass {
  std::string name{};              // "rank 3", "pipeline stage 2"
  std::uint32_t multiplicity = 1;  // number of ranks in this class
  std::vector<Lane> lanes{};
  std::uint16_t slot_count = 0;  // a slot contains the rank's start offset until it is written
  std::vector<BlockInstance> instances{};
  std::int32_t recorded_rank = -1;  // rank number in the trace; -1: described
};

// Which members of a collective wait for which. Every member arrives at its own time; the transfer then takes
// the member's duration. In the Timeline, the start of a collective task is its arrival and the end is when
// the member leaves.
enum class CollectiveKind : std::uint8_t {
  all,          // the transfer starts when the last member has arrived; all leave then + their duration
  rooted_from,  // broadcast, eager send: the root leaves at its own arrival + duration, others at max(own,
                // root) + duration
};

// How the ranks of member classes with a multiplicity are matched.
enum class CollectiveGrouping : std::uint8_t {
  spanning,  // one group joins all ranks of all member classes; every rank of the root's class is a root, and
             // the others wait for the last of them
  aligned,   // the k-th ranks of the member classes form group k; equal multiplicities
};

// One task in one instance of one class that takes part in a collective.
struct CollectiveMember {
  RankClassId rank_class{};
  InstanceId instance{};
  TaskId task{};
  auto operator<=>(const CollectiveMember&) const = default;
};

// A transfer or synchronisation of several ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::all;
  CollectiveGrouping grouping = CollectiveGrouping::spanning;
  std::uint32_t root = 0;  // position in members, used by rooted_from
  CollectiveOp op = CollectiveOp::unknown;
  NameId name{};
  double message_bytes = -1;  // -1: unknown
  std::vector<CollectiveMember> members{};
};

// Stacks of the framework ops that were open on a thread at a moment. A stack is its innermost frame; frames
// link to their parents, so common outer frames are stored once.
class OpStacks {
 public:
  // The stack `parent` with one more, innermost frame. Equal stacks are not merged.
  StackId push(StackId parent, NameId name);
  [[nodiscard]] NameId name(StackId stack) const { return frames_[stack.index()].name; }
  [[nodiscard]] StackId parent(StackId stack) const { return frames_[stack.index()].parent; }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }

 private:
  struct Frame {
    StackId parent;
    NameId name;
  };
  std::vector<Frame> frames_;
};

// Blocks, rank classes with their instances, collectives, and the tables that tasks refer to.
class Program {
 public:
  StringTable names;
  OpStacks stacks;
  WorkTable works;

  BlockId add_block(Block block);
  RankClassId add_rank_class(RankClass rank_class);
  // `rank_class` must be one of this Program.
  InstanceId add_instance(RankClassId rank_class, BlockInstance instance);
  CollectiveId add_collective(Collective collective);
  // Adds a group with this label and these ranks, or returns the existing one.
  GroupId add_group(RankGroup group);

  [[nodiscard]] std::span<const Block> blocks() const { return blocks_; }
  [[nodiscard]] std::span<const RankClass> rank_classes() const { return rank_classes_; }
  [[nodiscard]] std::span<const Collective> collectives() const { return collectives_; }
  [[nodiscard]] std::span<const RankGroup> groups() const { return groups_; }
  [[nodiscard]] const Block& block(BlockId id) const { return blocks_[id.index()]; }
  [[nodiscard]] const RankClass& rank_class(RankClassId id) const { return rank_classes_[id.index()]; }
  [[nodiscard]] const Block& block_of(RankClassId c, InstanceId i) const {
    return block(rank_class(c).instances[i.index()].block);
  }
  void set_multiplicity(RankClassId id, std::uint32_t multiplicity) {
    rank_classes_[id.index()].multiplicity = multiplicity;
  }
  // Number of ranks of all classes.
  [[nodiscard]] std::uint64_t rank_count() const;
  // Number of tasks over all ranks and instances. Saturates at 2^64 - 1.
  [[nodiscard]] std::uint64_t expanded_task_count() const;

  // Checks the Program; an error names the first broken invariant: a class without ranks, an unknown block,
  // an unbound lane or port, a lane bound twice or to a lane of another kind, a slot out of range or written
  // by two out-ports, a collective with a missing, foreign, repeated or non-collective member, a collective
  // task that belongs to no collective or to two, unequal multiplicities in an aligned group, a root out of
  // range, or collectives that wait for each other in a cycle (with its ranks and tasks).
  [[nodiscard]] Status check() const;

 private:
  std::vector<Block> blocks_;
  std::vector<RankClass> rank_classes_;
  std::vector<Collective> collectives_;
  std::vector<RankGroup> groups_;
};

// Durations of all tasks and delays of all edges under one scenario, in microseconds, stored outside the
// Program. Each task and edge of a block has one number; all instances of a block share it.
class Costs {
 public:
  // The durations and delays that the blocks were built with.
  explicit Costs(const Program& program);

  [[nodiscard]] std::size_t block_count() const { return task_base_.size() - 1; }
  // [task of the block], in the order of Block::tasks().
  [[nodiscard]] std::span<double> duration_us(BlockId b);
  [[nodiscard]] std::span<const double> duration_us(BlockId b) const;
  // [edge of the block], in the order of Block::sources().
  [[nodiscard]] std::span<double> delay_us(BlockId b);
  [[nodiscard]] std::span<const double> delay_us(BlockId b) const;
  // Recomputes delays that are a share of their source's duration (EdgeInfo::share_of_source) from the
  // current durations.
  void rescale_shared_delays(const Program& program);
  // Errors: costs of another Program; a duration or delay that is negative or not finite.
  [[nodiscard]] Status check(const Program& program) const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  std::vector<std::size_t> task_base_, edge_base_;  // [block], one extra entry at the end
  std::vector<double> durations_, delays_;
};

}  // namespace stepcast
