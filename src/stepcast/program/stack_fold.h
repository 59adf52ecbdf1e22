// What a chain of frames says, told from the outermost frame inward and remembered for each, so that deep chains cost
// what their frames cost once.
//
//   StackFold<bool> in_backward(program.stacks);
//   in_backward.of(task.stack, [&](bool outer, StackId frame) { return outer || is_backward(frame); });
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

template <class Value>
class StackFold {
 public:
  // `stacks` has to outlive the fold.
  explicit StackFold(const OpStacks& stacks) : stacks_(&stacks) {}

  // `inward(outer, frame)` gives what a frame says from what the one around it does; Value{} stands outside of all,
  // and is what an invalid stack says. The same function every time.
  template <class Inward>
  [[nodiscard]] Value of(StackId stack, const Inward& inward) {
    for (StackId frame = stack; frame.valid() && !known_.contains(frame.index());
         frame = stacks_->parent(frame))
      inner_.push_back(frame);
    for (; !inner_.empty(); inner_.pop_back())
      known_.emplace(inner_.back().index(), inward(known(stacks_->parent(inner_.back())), inner_.back()));
    return known(stack);
  }

 private:
  [[nodiscard]] Value known(StackId stack) const {
    return stack.valid() ? known_.at(stack.index()) : Value{};
  }

  const OpStacks* stacks_;
  std::unordered_map<std::uint32_t, Value> known_;  // [StackId]
  std::vector<StackId> inner_;                      // not yet known, outermost last
};

}  // namespace stepcast
