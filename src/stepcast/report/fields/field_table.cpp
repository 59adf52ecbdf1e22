#include "stepcast/report/fields/field_table.h"

#include <algorithm>

namespace stepcast::detail {

ReportCell number_cell(double number, const TableColumn& column) {
  const double shown = number * column.scale;
  switch (column.as) {
    case TableColumn::As::number:
    case TableColumn::As::plain_number: return table_number(shown, column.decimals);
    case TableColumn::As::number_or_blank: return table_number_or_blank(shown, column.decimals);
    case TableColumn::As::amount: return table_amount(shown, column.decimals);
    case TableColumn::As::signed_number: return table_signed(shown, column.decimals);
  }
  return {};
}

std::vector<FieldRow::Field> FieldRow::take() && {
  std::ranges::stable_sort(fields_, {}, [](const Field& field) { return field.column.place; });
  return std::move(fields_);
}

ReportRow& add_fields(ReportTable& table, std::vector<ReportCell> first,
                      std::vector<FieldRow::Field> fields) {
  if (table.columns.size() == first.size()) {
    for (const FieldRow::Field& field : fields) {
      table.add_columns(field.column.heading);
      // Only a number that is shown as it is in the JSON names its key: tests compare the two.
      const bool is_that_number = field.column.as == TableColumn::As::number && field.column.scale == 1;
      if (is_that_number && table.columns.back().is_number) table.columns.back().key = field.key;
    }
  }
  ReportRow& row = table.row(std::move(first));
  for (FieldRow::Field& field : fields) row.cell(std::move(field.cell));
  return row;
}

}  // namespace stepcast::detail
