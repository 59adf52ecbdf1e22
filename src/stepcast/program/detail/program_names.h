// How error messages name the parts of a Program.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/program/program.h"

namespace stepcast::detail {

[[nodiscard]] std::string name_of_class(const Program& program, std::uint32_t c);
// With its class and block; the block may be unknown.
[[nodiscard]] std::string name_of_instance(const Program& program, std::uint32_t c, std::uint32_t i);
[[nodiscard]] std::string name_of_collective(const Program& program, std::uint32_t k);
// Member m of collective k; its class must exist.
[[nodiscard]] std::string name_of_member(const Program& program, std::uint32_t k, std::uint32_t m);

}  // namespace stepcast::detail
