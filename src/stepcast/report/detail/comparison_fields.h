// What a Comparison holds beside its own fields in JSON (report/fields/field_list.h), for every answer that holds one.
#pragma once

#include "stepcast/analyze/compare.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

constexpr std::string_view schema_name(const Difference*) { return "difference"; }

void fields(auto& a, Is<Difference> auto& d) {
  constexpr int kDecimals = 6;
  a("key", d.key);
  a("a_ms", fixed<kDecimals>(d.a_ms));
  a("b_ms", fixed<kDecimals>(d.b_ms));
  a("difference_ms", fixed<kDecimals>(d.difference_ms()));
}

}  // namespace stepcast
