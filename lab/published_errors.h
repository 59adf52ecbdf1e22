// Errors that other people's models state for themselves (data/published.csv), to compare with. No prediction
// uses them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Mean errors of operators, by GPU and direction: gpu,operator,direction,mape_percent,source. Optimizer steps
// count as forward.
class PublishedErrors {
 public:
  PublishedErrors() = default;  // none
  // Errors name line and column: a direction that is neither forward nor backward, an error of 0 or less, a row
  // without its source.
  [[nodiscard]] static Result<PublishedErrors> parse(std::string_view text, const std::string& name);
  [[nodiscard]] static Result<PublishedErrors> read(const std::filesystem::path& file);

  // Percent; nothing where none is stated.
  [[nodiscard]] std::optional<double> mape_percent(std::string_view gpu, std::string_view operator_label,
                                                   Direction direction) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::string gpu, operator_label;
    Direction direction = Direction::forward;
    double mape_percent = 0;
  };
  std::vector<Row> rows_;
};

}  // namespace stepcast
