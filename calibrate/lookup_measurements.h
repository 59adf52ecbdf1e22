// Measured embedding lookups over several tables at once, as FBGEMM's table-batched kernels do them: what LearnedLookup is
// trained on.
//
// A CSV file with one line per table of each kernel; the lines of a kernel are contiguous:
//
//   gpu,kernel,direction,dtype,batch,rows,dim,pooling_factor,reuse,time_us
//   A100-SXM4-80GB,0,forward,fp32,4096,1000000,128,20.5,0.8-0.1-0.05-...,412.5
//   A100-SXM4-80GB,0,forward,fp32,4096,50000,64,1,0.2-0.3-...,412.5
//   A100-SXM4-80GB,1,backward,fp32,512,...
//
// `kernel` is any name, the same in all lines of one kernel and no other; gpu, direction, dtype, batch and time_us are the
// kernel's, and the same in all its lines. `reuse` are the 17 shares of the distinct rows that the very batch looked up, by
// reuse factor, joined by '-' (empty where pooling_factor is 0). Optional: `optimizer` of a backward (sgd, momentum_sgd,
// adagrad, adam; sgd if not said). The time of a backward includes its sort and the update of the rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

struct LookupMeasurement {
  struct Table {
    double rows = 0, dim = 0, pooling = 0;
    ReuseHistogram reuse{};  // of rows
  };
  std::string gpu;
  Direction direction = Direction::forward;
  DType dtype = DType::fp32;
  OptimizerKind optimizer = OptimizerKind::sgd;
  double bags = 0;  // of each table
  std::vector<Table> tables;
  double time_us = 0;
  std::uint32_t line = 0;  // the first
  std::uint32_t hash = 0;  // row_hash() of its cells and tables
};

// What the header says: `kernel`, `pooling_factor`, `reuse` and `time_us`.
[[nodiscard]] bool looks_like_lookup_measurements(std::string_view text);

// Errors name the line and column: a column or a number that is missing, shares that do not sum to 1, lines of one kernel
// that contradict each other, a kernel that comes up again later.
[[nodiscard]] Result<std::vector<LookupMeasurement>> parse_lookup_measurements(std::string_view text,
                                                                               const std::string& name);
// The files of lookups among `paths` (a folder means its *.csv and *.csv.gz). `others`: the remaining paths.
struct LookupFiles {
  std::vector<LookupMeasurement> kernels;
  std::vector<std::filesystem::path> others;
};
[[nodiscard]] Result<LookupFiles> read_lookup_measurements(const std::vector<std::filesystem::path>& paths);

}  // namespace stepcast
