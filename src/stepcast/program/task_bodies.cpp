#include "stepcast/program/task_bodies.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace stepcast {

std::size_t TaskBodies::add(StringTable& names, Block block, std::vector<Lane> lanes) {
  const std::size_t body = names_.size();
  // The name identifies the task that represents the body, so it must be unique in the step's Program.
  const std::string name = fmt::format("body {}", body);
  const BlockId id = program_.add_block(std::move(block));
  const RankClassId rank_class = program_.add_rank_class({.name = name, .lanes = std::move(lanes)});
  program_.add_instance(rank_class, {.block = id});
  names_.push_back(names.intern(name));
  if (by_name_.size() <= names_.back().index())
    by_name_.resize(names_.back().index() + std::size_t{1}, kNone);
  by_name_[names_.back().index()] = body;
  return body;
}

void TaskBodies::finish(const Program& program) {
  // Ids in the bodies refer to these tables, so the tables are copied only when they are complete.
  program_.names = program.names;
  program_.stacks = program.stacks;
  program_.works = program.works;
  for (const RankGroup& group : program.groups()) program_.add_group(group);
}

}  // namespace stepcast
