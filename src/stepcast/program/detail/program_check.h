// Checks the parts of a Program against each other and links them: the first half of order_execution().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// No task, instance or collective.
inline constexpr std::uint32_t kNoTask = 0xffffffff;

// An ExecutionOrder without steps: instances, in-ports and collective tasks numbered, and for each in-port
// who wrote its slot. Errors: all invariants of Program::check but that collectives wait for each other in a
// circle.
[[nodiscard]] Result<ExecutionOrder> check_and_link(const Program& program);

// Position of a task among the collective tasks of its block.
[[nodiscard]] std::size_t collective_position(const Block& block, TaskId task);

// The lane of the class that a lane of the instance's block is bound to.
[[nodiscard]] inline std::uint32_t bound_lane(const BlockInstance& instance, std::uint32_t block_lane) {
  return instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
}

// How error messages name the parts of a Program.
[[nodiscard]] std::string name_of_class(const Program& program, std::uint32_t c);
// With its class and block; the block may be unknown.
[[nodiscard]] std::string name_of_instance(const Program& program, std::uint32_t c, std::uint32_t i);
[[nodiscard]] std::string name_of_collective(const Program& program, std::uint32_t k);
// Member m of collective k; its class must exist.
[[nodiscard]] std::string name_of_member(const Program& program, std::uint32_t k, std::uint32_t m);

}  // namespace stepcast::detail
