// Computes a value for a stack of frames by a function that goes from the outermost frame inward. Values of
// frames are cached, so stacks with common outer frames cost each frame once.
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
  // `stacks` must outlive the fold.
  explicit StackFold(const OpStacks& stacks) : stacks_(&stacks) {}

  // `inward(outer, frame)` returns the value of a frame from the value of the enclosing one. The outermost
  // frame gets Value{}, and an invalid stack has the value Value{}. Every call must pass the same function,
  // because results are cached.
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
  std::vector<StackId> inner_;                      // frames without a value yet, outermost last
};

}  // namespace stepcast
