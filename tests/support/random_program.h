// Random Programs for property tests: the same seed gives the same Program on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast::fixtures {

struct RandomProgramOptions {
  std::uint32_t max_classes = 4;
  std::uint32_t max_multiplicity = 3;
  std::uint32_t max_blocks = 4;
  std::uint32_t max_tasks = 14;     // of a block
  std::uint32_t max_instances = 6;  // of a class
  bool collectives = true;
  // Ranks may then list collectives in orders in which they wait for each other for ever; check() says so.
  bool may_wait_in_circles = false;
  bool whole_times = false;  // times are multiples of 1/8: sums are exact
};

// A Program that passes check(), unless it may wait in circles.
[[nodiscard]] Program random_program(std::uint64_t seed, const RandomProgramOptions& options = {});

// One number per rank class, or per rank.
[[nodiscard]] std::vector<double> random_offsets(std::uint64_t seed, std::size_t count, bool whole = false);

// The same Program with its rank classes in the order classes[0], classes[1], ... (members of collectives in
// the same order as before).
[[nodiscard]] Program with_classes_in_order(const Program& program,
                                            const std::vector<std::uint32_t>& classes);

}  // namespace stepcast::fixtures
