// The groups of a layout rank by rank: who stands on which pipeline stage, and with whom it communicates. placement.h
// says of the same groups how they lie on nodes.
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

class RankGroups {
 public:
  // Errors: those of place() on the rank order and the shard groups; more than 65,536 ranks.
  [[nodiscard]] static Result<RankGroups> of(const Layout& layout);

  [[nodiscard]] std::uint32_t n_ranks() const { return n_ranks_; }
  [[nodiscard]] std::vector<std::uint32_t> stage(std::uint32_t number) const;
  // Ascending. Of `pipeline`: all stages of one chain; of `embedding`: its first and its last.
  [[nodiscard]] std::vector<std::uint32_t> with(GroupKind kind, std::uint32_t rank) const;

 private:
  struct Digit {
    std::uint32_t stride = 1, size = 1;
    bool tensor = false, context = false, data = false, shard = false, expert = false, pipeline = false;
    [[nodiscard]] std::uint32_t of(std::uint32_t rank) const { return rank / stride % size; }
  };
  template <class Varies>
  [[nodiscard]] std::vector<std::uint32_t> differing(const std::vector<Digit>& digits, std::uint32_t rank,
                                                     Varies varies) const;

  std::vector<Digit> dense_, experts_;
  std::uint32_t n_ranks_ = 1;
};

}  // namespace stepcast
