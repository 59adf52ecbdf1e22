// The JSON of the differences in a Comparison (report/fields/field_list.h), for every answer that contains
// one.
#pragma once

#include "stepcast/analyze/compare.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

constexpr std::string_view schema_name(const Difference*) { return "difference"; }

// One difference. The percentage is only a column of the page; "new" if the time is 0 in A.
void fields(auto& a, Is<Difference> auto& d) {
  constexpr int kDecimals = 6;
  a("key", d.key);
  a("a_ms", fixed<kDecimals>(d.a_ms), "", {"A ms", 3});
  a("b_ms", fixed<kDecimals>(d.b_ms), "", {"B ms", 3});
  a("difference_ms", fixed<kDecimals>(d.difference_ms()), "",
    {"B - A ms", 3, 1, "-", TableColumn::As::signed_number});
  column(a, {"%@"}, d.a_ms > 0 ? table_signed(100 * d.difference_ms() / d.a_ms, 1) : "new");
}

}  // namespace stepcast
