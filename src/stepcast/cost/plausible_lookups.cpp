#include "stepcast/cost/plausible_lookups.h"

#include <bit>
#include <limits>

namespace stepcast {

// Bits of k switch the first three properties; their parity gives the fourth.
std::array<LookupConstants, kPlausibleLookups> plausible_lookups(const LookupConstants& constants) {
  constexpr double kColumnsOfWarp = 128;
  std::array<LookupConstants, kPlausibleLookups> all;
  for (std::size_t k = 0; k < kPlausibleLookups; ++k) {
    all[k] = constants;
    if ((k & 1U) != 0) all[k].most_of_one_block = std::numeric_limits<double>::infinity();
    if ((k & 2U) != 0) all[k].fewest_columns = kColumnsOfWarp;
    if ((k & 4U) != 0) all[k].misses_beside_hits = true;
    all[k].keeps_rows = std::popcount(k) % 2 == 0;
  }
  return all;
}

}  // namespace stepcast
