#include "calibrate/kernel_measurements.h"

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/names.h"

#include "calibrate/detail/kernel_layouts.h"

namespace stepcast {

namespace {

namespace fs = std::filesystem;

constexpr auto kRegimeNames = names<Regime>(
    {{Regime::unstated, "unstated"}, {Regime::burst, "burst"}, {Regime::sustained, "sustained"}});

// `n` is an extent of a matrix product and, behind the times, the number of repetitions.
void tell_repetitions(CsvRows& rows) {
  const std::size_t time = rows.find("time_us");
  if (time == kNoColumn) return;
  for (std::size_t i = time + 1; i < rows.columns().size(); ++i)
    if (rows.columns()[i] == "n") rows.rename(i, "n_repetitions");
}

// The layout that the header means; nullptr if it is none of kernels.
const detail::KernelLayout* layout_of(CsvRows& rows) {
  for (const detail::KernelLayout& layout : detail::kernel_layouts()) {
    if (!layout.is_meant(rows)) continue;
    if (rows.has("op") && rows.has("direction")) tell_repetitions(rows);
    return &layout;
  }
  return nullptr;
}

Error unknown_header(const std::string& name) {
  return Error::at(name, "line 1", "the header is of no kind of kernel measurements that stepcast knows")
      .expected(
          "gpu, op, direction, dtype, the shape columns of the op, time_us (docs/kernels.md lists them and "
          "the "
          "other layouts)");
}

// Adds the rows of `text` as file number `file`; nothing and false where the header is of something else.
Result<bool> read_into(std::string_view text, const std::string& name, KernelMeasurements& out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  const detail::KernelLayout* layout = layout_of(rows);
  if (layout == nullptr) return false;
  STEPCAST_TRY(rows.check_names());
  STEPCAST_TRY(detail::check_columns(rows, layout->needed, layout->name));
  const std::size_t before = out.rows.size();
  STEPCAST_TRY(layout->read(rows, *layout, out));
  const auto file = static_cast<std::uint32_t>(out.files.size());
  for (std::size_t i = before; i < out.rows.size(); ++i) out.rows[i].file = file;
  out.files.emplace_back(name);
  return true;
}

bool is_csv(const fs::path& path) {
  return path.extension() == ".csv" || (path.extension() == ".gz" && path.stem().extension() == ".csv");
}

// Sustained rows have to reach this share of the largest extents of the others: assumed.
constexpr double kLeastReach = 0.25;

using Sizes = std::array<double, 3>;
Sizes sizes_of(const Operation& operation) {
  if (const auto* s = std::get_if<GemmShape>(&operation.shape))
    return {static_cast<double>(s->m), static_cast<double>(s->n), static_cast<double>(s->k)};
  return {work_of(operation).flops.value(), work_of(operation).bytes().value(), 0};
}

}  // namespace

std::string_view to_string(Regime regime) { return kRegimeNames[regime]; }
std::optional<Regime> parse_regime(std::string_view text) { return kRegimeNames.find(text); }

Result<KernelMeasurements> parse_kernel_measurements(std::string_view text, const std::string& name) {
  KernelMeasurements measurements;
  STEPCAST_ASSIGN(const bool known, read_into(text, name, measurements));
  if (!known) return unknown_header(name);
  return measurements;
}

Result<KernelMeasurements> read_kernel_measurements(const fs::path& path) {
  STEPCAST_ASSIGN(const std::string text, read_file(path));
  return parse_kernel_measurements(text, path.generic_string());
}

Result<KernelMeasurements> read_kernel_measurements(const std::vector<fs::path>& paths) {
  KernelMeasurements all;
  for (const fs::path& path : paths) {
    std::error_code failure;
    const bool folder = fs::is_directory(path, failure);
    std::vector<fs::path> files;
    if (folder) {
      for (fs::recursive_directory_iterator entry{path, failure}, end; !failure && entry != end;
           entry.increment(failure)) {
        std::error_code ignored;
        if (is_csv(entry->path()) && entry->is_regular_file(ignored)) files.push_back(entry->path());
      }
      std::ranges::sort(files);
    } else {
      files.push_back(path);
    }
    std::size_t n_read = 0;
    for (const fs::path& file : files) {
      STEPCAST_ASSIGN(const std::string text, read_file(file));
      auto known = read_into(text, file.generic_string(), all);
      if (!known) return std::move(known).error();
      if (*known)
        ++n_read;
      else if (!folder)
        return unknown_header(file.generic_string());
      else
        all.skipped.push_back({file.filename().string(), "no kernel measurements: another header", 1});
    }
    if (folder && n_read == 0) {
      return Error::at(path.generic_string(), "the folder", "has no file with kernel measurements")
          .expected("CSV files with the columns gpu, op, direction, dtype, ..., time_us (docs/kernels.md)");
    }
  }
  return all;
}

bool is_impossible(const KernelMeasurement& measurement, const AnalyticModel& device) {
  return measurement.time < kImpossibleShareOfBound * device.lower_bound(measurement.operation);
}

std::vector<SkippedRows> remove_impossible_rows(std::vector<KernelMeasurement>& rows,
                                                const AnalyticModel& device) {
  std::map<std::string, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool impossible = is_impossible(m, device);
    if (impossible) ++counts[kernel_set_name(m)];
    return impossible;
  });
  std::vector<SkippedRows> skipped;
  for (const auto& [set, n] : counts)
    skipped.push_back({set, "impossible: more than 5 % faster than the bound of the device", n});
  return skipped;
}

std::vector<SkippedRows> keep_one_regime(std::vector<KernelMeasurement>& rows) {
  struct Reach {
    bool any = false;
    Sizes largest{};
  };
  std::map<std::string, std::array<Reach, 2>> reach_of;  // [record key][sustained]
  for (const KernelMeasurement& m : rows) {
    Reach& reach = reach_of[kernel_record_key(m.operation)][m.regime == Regime::sustained ? 1 : 0];
    const Sizes sizes = sizes_of(m.operation);
    reach.any = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) reach.largest[i] = std::max(reach.largest[i], sizes[i]);
  }
  const auto sustained_wanted = [](const std::array<Reach, 2>& reach) {
    if (!reach[1].any) return false;
    for (std::size_t i = 0; reach[0].any && i < reach[0].largest.size(); ++i)
      if (reach[1].largest[i] < kLeastReach * reach[0].largest[i]) return false;
    return true;
  };
  std::map<std::pair<std::string, bool>, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool sustained = m.regime == Regime::sustained;
    const bool leave = sustained != sustained_wanted(reach_of.at(kernel_record_key(m.operation)));
    if (leave) ++counts[{kernel_set_name(m), sustained}];
    return leave;
  });
  std::vector<SkippedRows> skipped;
  for (const auto& [set, n] : counts) {
    skipped.push_back({set.first,
                       set.second ? "of long runs that reach less than a quarter of the sizes of short ones"
                                  : "of short runs, where the same device has long ones",
                       n});
  }
  return skipped;
}

std::string kernel_set_name(const KernelMeasurement& measurement) {
  return fmt::format("{}/{}/{}", measurement.gpu, measurement.label,
                     to_string(measurement.operation.direction));
}

std::string kernel_record_key(const Operation& operation) {
  return fmt::format("{}/{}/{}", family_of(operation), to_string(operation.dtype),
                     to_string(operation.direction));
}

}  // namespace stepcast
