// Checks the parts of a Program against each other and links them: the first half of order_execution().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// Index of "no task, instance or collective".
inline constexpr std::uint32_t kNoTask = 0xffffffff;

// Returns an ExecutionOrder without steps: instances, in-ports and collective tasks numbered, and for each
// in-port the instance that wrote its slot. Errors: all invariants of Program::check except cycles of
// collectives.
[[nodiscard]] Result<ExecutionOrder> check_and_link(const Program& program);

// Position of a task among the collective tasks of its block.
[[nodiscard]] std::size_t collective_position(const Block& block, TaskId task);

// The lane of the class to which a lane of the instance's block is bound.
[[nodiscard]] inline std::uint32_t bound_lane(const BlockInstance& instance, std::uint32_t block_lane) {
  return instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
}

// Names of the parts of a Program in error messages.
[[nodiscard]] std::string name_of_class(const Program& program, std::uint32_t c);
// Includes class and block. The block may be unknown.
[[nodiscard]] std::string name_of_instance(const Program& program, std::uint32_t c, std::uint32_t i);
[[nodiscard]] std::string name_of_collective(const Program& program, std::uint32_t k);
// Names member m of collective k. The member's class must exist.
[[nodiscard]] std::string name_of_member(const Program& program, std::uint32_t k, std::uint32_t m);

}  // namespace stepcast::detail
