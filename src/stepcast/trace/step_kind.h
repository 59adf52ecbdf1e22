// Why a recorded step differs from the others, derived from its content: names of calls, annotations and
// Python frames, copies to the host, a missing backward pass. Its length alone does not count.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// The reasons that are distinguished.
enum class StepKind : std::uint8_t {
  ordinary,
  loader,      // it waits for its data loader
  profiler,    // a profiler starts or stops
  checkpoint,  // a checkpoint is written: by name, or much data is copied to the host
  evaluation,  // by name, or without the backward pass that most steps have
  start_up,    // code is compiled or loaded, or memory is allocated
};
// The name in JSON output: "start_up".
[[nodiscard]] std::string_view to_string(StepKind kind);
// A text for users: "waits for its data loader".
[[nodiscard]] std::string_view describe(StepKind kind);

// A step that is not ordinary.
struct SpecialStep {
  std::int64_t number = 0;
  StepKind kind = StepKind::ordinary;
};

}  // namespace stepcast
