// The groups of a layout by rank: the stage of a rank and the ranks that it communicates with. placement.h
// describes the positions of the same groups on nodes.
//
//   STEPCAST_ASSIGN(const RankGroups groups, RankGroups::of(layout));
//   groups.stage(1)                          // world ranks of the second stage, ascending
//   groups.with(GroupKind::tensor, 5)        // {4, 5}: the tensor-parallel group of rank 5
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {

// A rank is a number with one digit per axis of the grid. A group consists of the ranks that differ only in
// certain digits.
class RankGroups {
 public:
  // Errors: those of place() on the rank order and the shard groups; more than 65,536 ranks.
  [[nodiscard]] static Result<RankGroups> of(const Layout& layout);

  [[nodiscard]] std::uint32_t n_ranks() const { return n_ranks_; }
  // World ranks of a pipeline stage, ascending.
  [[nodiscard]] std::vector<std::uint32_t> stage(std::uint32_t number) const;
  // The group of `rank`, ascending. `pipeline`: all stages of one chain; `embedding`: its first and last
  // stage.
  [[nodiscard]] std::vector<std::uint32_t> with(GroupKind kind, std::uint32_t rank) const;

 private:
  // One axis: the distance between neighbours, the number of places, and its roles.
  struct Digit {
    std::uint32_t stride = 1, size = 1;
    bool tensor = false, context = false, data = false, shard = false, expert = false, pipeline = false;
    [[nodiscard]] std::uint32_t of(std::uint32_t rank) const { return rank / stride % size; }
  };
  // All ranks that differ from `rank` only in the digits with varies(digit), ascending.
  template <class Varies>
  [[nodiscard]] std::vector<std::uint32_t> differing(const std::vector<Digit>& digits, std::uint32_t rank,
                                                     Varies varies) const;

  std::vector<Digit> dense_, experts_;
  std::uint32_t n_ranks_ = 1;
};

}  // namespace stepcast
