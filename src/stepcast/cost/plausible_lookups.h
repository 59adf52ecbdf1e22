// Eight equally plausible variants of the lookup model, for choices that should be good under all of them,
// such as a sharding.
//
//   for (const LookupConstants& constants : plausible_lookups()) LookupModel{device, constants} ...
//
// They vary four properties of unmeasured kernels that decide which tables are expensive: whether blocks
// share the gradients of a hot row, whether narrow gradients leave lanes idle, whether cache misses overlap
// with hits, and whether the cache keeps rows at all (docs/dlrm.md gives the reasons). All combinations of
// the first three; the fourth is on for an even number of them, a half-fraction design in which every
// property is on in half of the models, independently of any other.
#pragma once

#include <array>
#include <cstddef>

#include "stepcast/cost/embedding_lookup.h"

namespace stepcast {

inline constexpr std::size_t kPlausibleLookups = 8;

[[nodiscard]] std::array<LookupConstants, kPlausibleLookups> plausible_lookups(
    const LookupConstants& constants = {});

}  // namespace stepcast
