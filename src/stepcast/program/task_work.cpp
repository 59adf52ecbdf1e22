#include "stepcast/program/task_work.h"

#include <functional>

namespace stepcast {
namespace {

// Combines two hashes; the factor is 2^64 divided by the golden ratio, as in Fibonacci hashing.
std::size_t mixed(std::size_t state, std::size_t value) {
  return (state ^ value) * 0x9e3779b97f4a7c15ULL + (state >> 29U);
}

// Hash of each alternative of TaskWork; hash_of() mixes in the index of the alternative.
struct HashOfWork {
  std::size_t operator()(std::monostate) const { return 0; }
  std::size_t operator()(const Operation& operation) const { return hash_of(operation); }
  std::size_t operator()(const CollectiveWork& work) const {
    const std::size_t kind = (static_cast<std::size_t>(work.op) << 8U) + static_cast<std::size_t>(work.dtype);
    return mixed(mixed(kind, std::hash<double>{}(work.message.value())), work.group.index());
  }
  std::size_t operator()(const HostWork& work) const {
    const std::size_t kind =
        (static_cast<std::size_t>(work.activity) << 8U) + static_cast<std::size_t>(work.type);
    return mixed(kind, work.op.index());
  }
  std::size_t operator()(const Waiting&) const { return 1; }
};

}  // namespace

std::size_t hash_of(const TaskWork& work) { return mixed(work.index(), std::visit(HashOfWork{}, work)); }

WorkId WorkTable::intern(const TaskWork& work) {
  if (std::holds_alternative<std::monostate>(work)) return WorkId{};
  const auto [place, fresh] = index_.try_emplace(work, WorkId{works_.size()});
  if (fresh) works_.push_back(work);
  return place->second;
}

}  // namespace stepcast
