#include "lab/published_errors.h"

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

Result<PublishedErrors> PublishedErrors::parse(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  PublishedErrors errors;
  for (const std::string_view column : {"gpu", "operator", "direction", "mape_percent", "source"}) {
    if (!rows.has(column)) {
      return Error::at(name, "line 1", fmt::format("no column '{}'", column))
          .expected("gpu,operator,direction,mape_percent,source");
    }
  }
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return errors;
    for (const std::string_view column : {"gpu", "operator"})
      if (rows.cell(column).empty()) return rows.error(column).expected("a name");
    if (rows.cell("source").empty()) return rows.error("source").expected("where the error is published");
    const std::string_view direction = rows.cell("direction");
    if (direction != to_string(Direction::forward) && direction != to_string(Direction::backward))
      return rows.error("direction").expected("forward or backward");
    STEPCAST_ASSIGN(const double mape, rows.number("mape_percent", 0));
    if (mape <= 0) return rows.error("mape_percent").expected("a number above 0");
    errors.rows_.push_back(
        {std::string{rows.cell("gpu")}, std::string{rows.cell("operator")},
         direction == to_string(Direction::forward) ? Direction::forward : Direction::backward, mape});
  }
}

Result<PublishedErrors> PublishedErrors::read(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse(text, file.string());
}

std::optional<double> PublishedErrors::mape_percent(std::string_view gpu, std::string_view operator_label,
                                                    Direction direction) const {
  for (const Row& row : rows_)
    if (row.operator_label == operator_label && row.direction == direction && same_name(row.gpu, gpu))
      return row.mape_percent;
  return std::nullopt;
}

}  // namespace stepcast
