// Many questions from one file: lists of models, platforms, numbers of GPUs, layouts, flags; every combination is a point.
//
//   STEPCAST_ASSIGN(const SweepSpec spec, read_sweep("sweep.toml"));
//   spec.points.size(), spec.points[0].id        // "9f1c2a7be0d35c44": of its content, wherever it stands in the list
//
// A file is TOML or JSON (docs/sweeps.md). A list is a dimension, a single value holds for all points, and a list of
// tables holds values that go together:
//
//   mode = "predict"                                       # or "plan"
//   model = ["llama-3-8b", "llama-3-70b"]
//   gpus = [64, 128]
//   gbs = 256
//   layouts = [{ tp = 8, pp = 4 }, { tp = 4, pp = 8 }]     # the name is free
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

enum class SweepMode : std::uint8_t { predict, plan };
[[nodiscard]] std::string_view to_string(SweepMode mode);

struct SweepPoint {
  // 16 hexadecimal digits: a hash of mode, settings and the content of files that settings name. The same on every
  // machine and in every version.
  std::string id;
  SweepMode mode = SweepMode::predict;
  // In the order of their keys, which are spelled with underscores: numbers, texts and `true`. What is off or empty is not
  // there.
  std::vector<std::pair<std::string, JsonValue>> settings;
  // Where files are looked for that stand in no other place.
  std::filesystem::path folder{};

  // Null pointer if it is not there.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  // The file that a setting names, as it is to be opened; the text itself where there is no such file.
  [[nodiscard]] std::string file(std::string_view text) const;
  // An object of `mode` and settings on one line: a spec of this one point (parse_sweep()).
  [[nodiscard]] std::string json() const;
};

struct SweepSpec {
  std::string name;  // of the file
  SweepMode mode = SweepMode::predict;
  std::string hash;  // of all points in their order, as an id
  // In the order of the file, the last list fastest; each once.
  std::vector<SweepPoint> points;
  std::uint64_t n_repeated = 0;  // that were another one again

  // Its position; nothing if there is no such point.
  [[nodiscard]] const SweepPoint* find(std::string_view id) const;
};

// More are an error.
inline constexpr std::size_t kMostSweepPoints = 1'000'000;

// Errors: a file that is neither JSON nor TOML; an unknown key, which names the nearest known one; an empty list; a key in
// two places; more points than kMostSweepPoints. Whether a point can be run is found when it is.
[[nodiscard]] Result<SweepSpec> read_sweep(const std::filesystem::path& file);
// `folder`: see SweepPoint.
[[nodiscard]] Result<SweepSpec> parse_sweep(std::string_view text, const std::string& name,
                                            const std::filesystem::path& folder = {});

}  // namespace stepcast
