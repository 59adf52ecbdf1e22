// Where the figures of a platform come from.
//
// Every figure of a Platform can be asked for its origin:
//
//   const Provenance& p = platform.device.sources.of("memory_bandwidth_GBps");
//   p.source     data_sheet, measured, fitted or assumed
//   p.document   what to read or repeat to check it
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/on_demand.h"

namespace stepcast {

enum class FigureSource : std::uint8_t {
  assumed,     // nobody here read a document that says so
  data_sheet,  // stands in the named document
  measured,    // a measurement, perhaps averaged
  fitted,      // a parameter of a model, found from measurements
};
[[nodiscard]] std::string_view to_string(FigureSource source);
[[nodiscard]] std::optional<FigureSource> parse_figure_source(std::string_view text);

// Plain numbers by name: parameters of a model, errors, ranges. The unit stands in the name.
using NamedNumbers = std::map<std::string, double, std::less<>>;

// row_hash() of measurements, ascending, without repeats. Of a file that ships they are read when they are first asked for:
// forecasts never do.
class RowHashes {
 public:
  using List = detail::Later<std::vector<std::uint32_t>>;
  RowHashes() = default;
  // In any order. Of 32 bits, as earlier versions had them, where one is above 24: their first 24 are the same number.
  explicit RowHashes(std::vector<std::uint32_t> hashes);
  explicit RowHashes(List hashes) : hashes_(std::move(hashes)) {}
  [[nodiscard]] const std::vector<std::uint32_t>& all() const { return *hashes_; }
  [[nodiscard]] bool empty() const { return all().empty(); }
  friend bool operator==(const RowHashes& a, const RowHashes& b) = default;

 private:
  List hashes_;
};

struct Provenance {
  FigureSource source = FigureSource::assumed;
  std::string document;  // title, repository and file, or the reason of an assumption
  std::string date;      // of the document or measurement: 2024, 2024-05 or 2024-05-31
  std::string software;  // of a measurement: "NCCL 2.23.4", "PyTorch 2.1, CUDA 12.1"
  // For measured and fitted figures.
  std::uint64_t n_rows = 0;  // measurements behind it; 0: not counted
  RowHashes row_hashes;      // of each
  NamedNumbers error;        // "mape_pct", "p90_ape_pct", ...
  NamedNumbers range;        // "message_bytes_min", "message_bytes_max", "m_min", ...

  // True if a measurement with this hash was used. (A false yes has the chance n_rows / 2^24.)
  [[nodiscard]] bool used_row(std::uint32_t hash) const;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// Identifies a measurement by the cells of its row, in a fixed order chosen by the caller: 24 bits that do
// not depend on the machine. A model that was fitted on a row and a data set that holds the row meet in this
// number.
[[nodiscard]] std::uint32_t row_hash(std::initializer_list<std::string_view> cells);
[[nodiscard]] std::uint32_t row_hash(std::span<const std::string_view> cells);

// The origin of each figure of a group, by the figure's key in the file.
class Sources {
 public:
  // The origin of the figure; one that says `assumed` if nothing was said about it.
  [[nodiscard]] const Provenance& of(std::string_view key) const;
  [[nodiscard]] const Provenance* find(std::string_view key) const;
  void set(std::string_view key, Provenance provenance);
  void erase(std::string_view key);
  [[nodiscard]] const std::map<std::string, Provenance, std::less<>>& all() const { return by_key_; }
  friend bool operator==(const Sources&, const Sources&) = default;

 private:
  std::map<std::string, Provenance, std::less<>> by_key_;
};

}  // namespace stepcast
