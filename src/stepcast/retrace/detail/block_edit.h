// Edits a recorded block: removes, copies and inserts tasks.
//
//   BlockEdit edit{block, measured};
//   edit.remove(7);
//   const std::uint32_t copy = edit.insert_after(12, edit.task(7));
//   edit.connect(12, copy, 2.0, {.origin = EdgeOrigin::launch});
//   std::vector<EditedBlock> blocks;  blocks.push_back(value(std::move(edit).finish()));
//   with_blocks(std::move(recorded), std::move(blocks), {});
//
// Task numbers of the block stay valid during the edit. New tasks get the numbers after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/program/block.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

// No task: an absent operand or result.
inline constexpr std::uint32_t kNoTask = 0xffffffff;

// A task during the edit: a recorded one or a new one.
struct EditedTask {
  TaskInfo info;
  double duration_us = 0;
  Interval measured;  // new tasks: an empty interval at the place of insertion
  std::uint16_t lane = 0;
  bool removed = false;
};

// A dependency during the edit: `to` starts at least `delay_us` after the end (or start) of `from`.
struct EditedEdge {
  std::uint32_t from = 0;  // task; in-port if from_port
  std::uint32_t to = 0;
  bool from_port = false, from_start = false;  // from_start: the delay counts from the start of `from`
  double delay_us = 0;
  EdgeInfo info;
};

// Result of an edit: a valid block and the mapping of task numbers into it.
struct EditedBlock {
  Block block;
  // [task of the edit]; a removed CPU task maps to the one before it on the lane.
  std::vector<TaskId> of_task;
  std::vector<Interval> measured;  // [task of the block]
};

// Mutable copy of a block. Keeps a reference to `block`, which must outlive the edit.
class BlockEdit {
 public:
  BlockEdit(const Block& block, std::span<const Interval> measured);

  [[nodiscard]] const EditedTask& task(std::uint32_t t) const { return tasks_[t]; }
  [[nodiscard]] EditedTask& task(std::uint32_t t) { return tasks_[t]; }
  [[nodiscard]] std::span<const EditedEdge> edges() const { return edges_; }
  // Index in edges() of the first edge into recorded task `t`; the edges of `t` end at first_edge(t + 1).
  [[nodiscard]] std::uint32_t first_edge(std::uint32_t t) const { return block_.first_edge()[t]; }
  // Time at which the thread issued the task, in us: for GPU work the time of its launch call.
  [[nodiscard]] double launched_us(std::uint32_t t) const { return launched_us_[t]; }
  // Tasks of a lane in their order, including removed and inserted ones.
  [[nodiscard]] std::span<const std::uint32_t> lane(std::uint16_t lane) const { return order_[lane]; }
  // The last task of the lane launched before `us`; kNoTask if there is none.
  [[nodiscard]] std::uint32_t last_launched(std::uint16_t lane, double us) const;

  // Removes a task. Removed CPU work passes its predecessor on the thread to its successors, and its incoming waits to
  // the next work of the thread. Waits of other lanes for removed GPU work are lost: the caller must connect() them again.
  void remove(std::uint32_t t) { tasks_[t].removed = true; }
  // Inserts on the lane of `before`, directly after it and after earlier insertions there. Returns the number of the task.
  std::uint32_t insert_after(std::uint32_t before, EditedTask copy);
  // Inserts on the lane of `next`, directly before it and after earlier insertions there. Returns the number of the task.
  std::uint32_t insert_before(std::uint32_t next, EditedTask copy);
  // Inserts on `lane` after all tasks launched until `launched_us`. Returns the number of the task.
  std::uint32_t insert_launched(std::uint16_t lane, double launched_us, EditedTask copy);
  // Adds a dependency with a delay in us after the end of `from` (after its start if `from_start`).
  void connect(std::uint32_t from, std::uint32_t to, double delay_us, const EdgeInfo& info,
               bool from_start = false);

  // Builds the edited block. Error: tasks that wait for each other in a cycle.
  [[nodiscard]] Result<EditedBlock> finish() &&;

 private:
  std::uint32_t add(EditedTask copy, double launched_us);

  const Block& block_;
  std::vector<EditedTask> tasks_;
  std::vector<EditedEdge> edges_;
  std::vector<double> launched_us_;
  std::vector<std::vector<std::uint32_t>> order_;  // [lane]
};

// A collective to add; `tasks` gives its members by their task numbers in the edits of their blocks.
struct NewCollective {
  Collective collective;  // members: classes and instances, in the order of `tasks`
  std::vector<std::uint32_t> tasks;
};

// Replaces the blocks of all rank classes ([rank class]), drops collectives with removed tasks and adds `added`.
// `message_bytes`: new message sizes of recorded collectives, by collective index. Error: collectives that wait for each
// other in a cycle.
[[nodiscard]] Result<RecordedProgram> with_blocks(RecordedProgram recorded, std::vector<EditedBlock> blocks,
                                                  std::vector<NewCollective> added,
                                                  const std::map<std::size_t, double>& message_bytes = {});

// Replaces the durations of all tasks by those of `costs`.
[[nodiscard]] Result<RecordedProgram> with_durations(RecordedProgram recorded, const Costs& costs);

}  // namespace stepcast::detail
