// Measured embedding lookups over several tables at once, as in the table-batched kernels of FBGEMM. LearnedLookup is
// trained on them.
//
// A CSV file with one line per table of each kernel; the lines of a kernel are contiguous:
//
//   gpu,kernel,direction,dtype,batch,rows,dim,pooling_factor,reuse,time_us
//   A100-SXM4-80GB,0,forward,fp32,4096,1000000,128,20.5,0.8-0.1-0.05-...,412.5
//   A100-SXM4-80GB,0,forward,fp32,4096,50000,64,1,0.2-0.3-...,412.5
//   A100-SXM4-80GB,1,backward,fp32,512,...
//
// `kernel` is any unique name of the kernel, equal in all its lines. gpu, direction, dtype, batch and time_us describe the
// kernel and are also equal in all its lines. `reuse` are the shares of the distinct rows in this batch by reuse factor: 17
// numbers joined by '-' (empty if pooling_factor is 0). Optional: `optimizer` of a backward (sgd, momentum_sgd, adagrad,
// adam; default sgd). The time of a backward includes the sort and the update of the rows.
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
  std::uint32_t line = 0;  // of its first row
  std::uint32_t hash = 0;  // row_hash() of its cells and tables
};

// True if the header has `kernel`, `pooling_factor`, `reuse` and `time_us`.
[[nodiscard]] bool looks_like_lookup_measurements(std::string_view text);

// Errors name the line and column: a missing column or number, shares that do not sum to 1, contradicting lines of one
// kernel, a kernel with lines that are not consecutive.
[[nodiscard]] Result<std::vector<LookupMeasurement>> parse_lookup_measurements(std::string_view text,
                                                                               const std::string& name);
// The files of lookups among `paths` (a folder means its *.csv and *.csv.gz). `others`: the remaining paths.
struct LookupFiles {
  std::vector<LookupMeasurement> kernels;
  std::vector<std::filesystem::path> others;
};
[[nodiscard]] Result<LookupFiles> read_lookup_measurements(const std::vector<std::filesystem::path>& paths);

}  // namespace stepcast
