// Training logs with known truth, made up from a seed in the formats that frameworks print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::test {

struct MadeLog {
  std::string text, what;               // "megatron, restart, ranks"
  std::string framework;                // as the JSON of a log names it
  double median_ms = 0;                 // of the steady steps, as they are printed
  std::vector<std::uint32_t> stalls;    // steps, ascending
  std::vector<std::uint32_t> restarts;  // first step behind each
  bool stalls_are_told = true;          // the causes stand in the log
};

// Every ten seeds go through all formats; restarts, spikes, colours, carriage returns, prefixes of ranks, repeated and
// broken lines come and go with the seed.
[[nodiscard]] MadeLog made_log(std::uint64_t seed);

}  // namespace stepcast::test
