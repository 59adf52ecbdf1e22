// What sets a recorded step apart from those around it, told by what is in it: calls and annotations by their names,
// frames of Python, copies to the host, a backward pass that is not there. Its length alone says nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

enum class StepKind : std::uint8_t {
  ordinary,
  loader,      // waits for its data loader
  profiler,    // a profiler starts or stops
  checkpoint,  // is written: named so, or much is copied to the host
  evaluation,  // named so, or without the backward pass that most steps have
  start_up,    // code is compiled or loaded, memory allocated
};
[[nodiscard]] std::string_view to_string(StepKind kind);
// "waits for its data loader".
[[nodiscard]] std::string_view describe(StepKind kind);

// A step that is not ordinary.
struct SpecialStep {
  std::int64_t number = 0;
  StepKind kind = StepKind::ordinary;
};

}  // namespace stepcast
