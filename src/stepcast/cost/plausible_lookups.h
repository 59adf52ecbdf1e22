// What the model of lookups may be wrong about, as eight models that are as plausible as the one that predicts: what a
// choice among shardings should be good under, all of them together.
//
//   for (const LookupConstants& constants : plausible_lookups()) LookupModel{device, constants} ...
//
// Of four things that are not known of kernels one has not measured, and that decide which tables are dear: whether blocks
// share the gradients of a hot row, whether narrow gradients leave lanes idle, whether misses of the cache hide hits, and
// whether the cache keeps rows at all (docs/dlrm.md has the grounds). All combinations of the first three; the fourth goes
// with an even number of them, so that each is one way in half of the models whatever another is.
#pragma once

#include <array>
#include <cstddef>

#include "stepcast/cost/embedding_lookup.h"

namespace stepcast {

inline constexpr std::size_t kPlausibleLookups = 8;

[[nodiscard]] std::array<LookupConstants, kPlausibleLookups> plausible_lookups(
    const LookupConstants& constants = {});

}  // namespace stepcast
