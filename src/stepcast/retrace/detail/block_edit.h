// A recorded block with tasks taken out, copied and put in.
//
//   BlockEdit edit{block, measured};
//   edit.remove(7);
//   const std::uint32_t copy = edit.insert_after(12, edit.task(7));
//   edit.connect(12, copy, 2.0, {.origin = EdgeOrigin::launch});
//   std::vector<EditedBlock> blocks;  blocks.push_back(value(std::move(edit).finish()));
//   with_blocks(std::move(recorded), std::move(blocks), {});
//
// Tasks keep the numbers they have in the block, new ones are numbered from there on.
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

inline constexpr std::uint32_t kNoTask = 0xffffffff;

struct EditedTask {
  TaskInfo info;
  double duration_us = 0;
  Interval measured;  // of new tasks: where they were put, of no length
  std::uint16_t lane = 0;
  bool removed = false;
};

struct EditedEdge {
  std::uint32_t from = 0;  // task; in-port if from_port
  std::uint32_t to = 0;
  bool from_port = false, from_start = false;
  double delay_us = 0;
  EdgeInfo info;
};

struct EditedBlock {
  Block block;
  std::vector<TaskId> of_task;     // [task of the edit]; of removed CPU tasks: the one before on the lane
  std::vector<Interval> measured;  // [task of the block]
};

class BlockEdit {
 public:
  BlockEdit(const Block& block, std::span<const Interval> measured);

  [[nodiscard]] const EditedTask& task(std::uint32_t t) const { return tasks_[t]; }
  [[nodiscard]] EditedTask& task(std::uint32_t t) { return tasks_[t]; }
  [[nodiscard]] std::span<const EditedEdge> edges() const { return edges_; }
  // Of the block as it was: the edges into a task, as positions in edges().
  [[nodiscard]] std::uint32_t first_edge(std::uint32_t t) const { return block_.first_edge()[t]; }
  // When a task was started by its thread: GPU work with the call that launched it.
  [[nodiscard]] double launched_us(std::uint32_t t) const { return launched_us_[t]; }
  [[nodiscard]] std::span<const std::uint32_t> lane(std::uint16_t lane) const { return order_[lane]; }
  // The last task of the lane that was launched before that; kNoTask where there is none.
  [[nodiscard]] std::uint32_t last_launched(std::uint16_t lane, double us) const;

  // Successors of removed CPU work inherit its predecessor on the thread, and what it waited for holds back the next
  // work of the thread. What other lanes waited for of GPU work has to be connected anew.
  void remove(std::uint32_t t) { tasks_[t].removed = true; }
  // On the lane of `before`, directly behind it (and behind what was put there before).
  std::uint32_t insert_after(std::uint32_t before, EditedTask copy);
  // On the lane of `next`, directly in front of it (and behind what was put there before).
  std::uint32_t insert_before(std::uint32_t next, EditedTask copy);
  // On `lane`, behind everything that was launched before `launched_us`, and what was put there at that time.
  std::uint32_t insert_launched(std::uint16_t lane, double launched_us, EditedTask copy);
  void connect(std::uint32_t from, std::uint32_t to, double delay_us, const EdgeInfo& info,
               bool from_start = false);

  // Errors: tasks that wait for each other in a circle.
  [[nodiscard]] Result<EditedBlock> finish() &&;

 private:
  std::uint32_t add(EditedTask copy, double launched_us);

  const Block& block_;
  std::vector<EditedTask> tasks_;
  std::vector<EditedEdge> edges_;
  std::vector<double> launched_us_;
  std::vector<std::vector<std::uint32_t>> order_;  // [lane]
};

// A member of a collective by its number in the edit of its class's block.
struct NewCollective {
  Collective collective;  // members: classes and instances; their tasks are those of `tasks`
  std::vector<std::uint32_t> tasks;
};

// The recorded ranks with other blocks, [rank class]. Collectives whose tasks were removed go. `message_bytes`: what
// recorded collectives move now, by their number. Errors: collectives that wait for each other in a circle.
[[nodiscard]] Result<RecordedProgram> with_blocks(RecordedProgram recorded, std::vector<EditedBlock> blocks,
                                                  std::vector<NewCollective> added,
                                                  const std::map<std::size_t, double>& message_bytes = {});

// The recorded ranks with other times of their tasks.
[[nodiscard]] Result<RecordedProgram> with_durations(RecordedProgram recorded, const Costs& costs);

}  // namespace stepcast::detail
