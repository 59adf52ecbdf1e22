#include "stepcast/program/detail/program_names.h"

#include <string_view>

#include <fmt/format.h>

namespace stepcast::detail {

std::string name_of_class(const Program& program, std::uint32_t c) {
  const std::string& name = program.rank_classes()[c].name;
  return name.empty() ? fmt::format("rank class {}", c) : fmt::format("rank class \"{}\"", name);
}

std::string name_of_instance(const Program& program, std::uint32_t c, std::uint32_t i) {
  const BlockId block = program.rank_classes()[c].instances[i].block;
  std::string text = fmt::format("{}, instance {}", name_of_class(program, c), i);
  if (block.index() < program.blocks().size())
    text += fmt::format(" (block \"{}\")", program.block(block).name());
  return text;
}

std::string name_of_collective(const Program& program, std::uint32_t k) {
  const std::string_view name = program.names.text(program.collectives()[k].name);
  return name.empty() ? fmt::format("collective {}", k) : fmt::format("collective {} (\"{}\")", k, name);
}

std::string name_of_member(const Program& program, std::uint32_t k, std::uint32_t m) {
  const CollectiveMember& member = program.collectives()[k].members[m];
  return fmt::format("{}, member {} (task {} of instance {} of {})", name_of_collective(program, k), m,
                     member.task.index(), member.instance.index(),
                     name_of_class(program, member.rank_class.index()));
}

}  // namespace stepcast::detail
