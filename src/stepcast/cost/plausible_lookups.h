// What the model of lookups may be wrong about, as eight models that are as plausible as the one that predicts: what a
// choice among shardings should be good under, all of them together.
//
//   for (const LookupConstants& constants : plausible_lookups()) LookupModel{device, constants} ...
//
// All combinations of three things that are not known of kernels one has not measured, and that decide which tables are
// dear: whether blocks share the gradients of a hot row, whether narrow gradients leave lanes idle, and whether misses of
// the cache hide hits (docs/dlrm.md has the grounds).
#pragma once

#include <array>
#include <cstddef>

#include "stepcast/cost/embedding_lookup.h"

namespace stepcast {

inline constexpr std::size_t kPlausibleLookups = 8;

[[nodiscard]] std::array<LookupConstants, kPlausibleLookups> plausible_lookups(
    const LookupConstants& constants = {});

}  // namespace stepcast
