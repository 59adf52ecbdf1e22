// The origin of the figures of a platform.
//
// Every figure of a Platform has one:
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

// Kind of origin.
enum class FigureSource : std::uint8_t {
  assumed,     // no document states it
  data_sheet,  // stated in the named document
  measured,    // a measurement, possibly averaged
  fitted,      // a parameter of a model, fitted to measurements
};
[[nodiscard]] std::string_view to_string(FigureSource source);
[[nodiscard]] std::optional<FigureSource> parse_figure_source(std::string_view text);

// Plain numbers by name: parameters of a model, errors, ranges. The name contains the unit.
using NamedNumbers = std::map<std::string, double, std::less<>>;

// row_hash() of measurements, ascending, without repeats. Those of shipped files are parsed on first use,
// which forecasts never need.
class RowHashes {
 public:
  using List = detail::Later<std::vector<std::uint32_t>>;
  RowHashes() = default;
  // Accepts any order. Hashes of 32 bits (earlier versions) are recognised by a value above 24 bits and
  // shortened to their first 24 bits.
  explicit RowHashes(std::vector<std::uint32_t> hashes);
  explicit RowHashes(List hashes) : hashes_(std::move(hashes)) {}
  [[nodiscard]] const std::vector<std::uint32_t>& all() const { return *hashes_; }
  [[nodiscard]] bool empty() const { return all().empty(); }
  friend bool operator==(const RowHashes& a, const RowHashes& b) = default;

 private:
  List hashes_;
};

// Origin of a figure, and the evidence behind it.
struct Provenance {
  FigureSource source = FigureSource::assumed;
  std::string document;  // title, repository and file, or the reason of an assumption
  std::string date;      // of the document or measurement: 2024, 2024-05 or 2024-05-31
  std::string software;  // of a measurement: "NCCL 2.23.4", "PyTorch 2.1, CUDA 12.1"
  // Only for measured and fitted figures:
  std::uint64_t n_rows = 0;  // measurements behind it; 0: not counted
  RowHashes row_hashes;      // of each measurement
  NamedNumbers error;        // "mape_pct", "p90_ape_pct", ...
  NamedNumbers range;        // "message_bytes_min", "message_bytes_max", "m_min", ...

  // Whether a measurement with this hash was used. (False positives have the probability n_rows / 2^24.)
  [[nodiscard]] bool used_row(std::uint32_t hash) const;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// Identifies a measurement by the cells of its row, in an order that the caller keeps: 24 bits, independent
// of the machine. It links a fitted model with the data sets that contain its rows.
[[nodiscard]] std::uint32_t row_hash(std::initializer_list<std::string_view> cells);
[[nodiscard]] std::uint32_t row_hash(std::span<const std::string_view> cells);

// The origin of each figure of a group, by the key of the figure in the file.
class Sources {
 public:
  // The origin of a figure; `assumed` if none is stated.
  [[nodiscard]] const Provenance& of(std::string_view key) const;
  // The stated origin, or null.
  [[nodiscard]] const Provenance* find(std::string_view key) const;
  void set(std::string_view key, Provenance provenance);
  void erase(std::string_view key);
  [[nodiscard]] const std::map<std::string, Provenance, std::less<>>& all() const { return by_key_; }
  friend bool operator==(const Sources&, const Sources&) = default;

 private:
  std::map<std::string, Provenance, std::less<>> by_key_;
};

}  // namespace stepcast
