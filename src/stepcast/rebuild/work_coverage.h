// How much of the recorded GPU time has known work that kernel models can price.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "stepcast/base/quantity.h"

namespace stepcast {

// GPU work of one operator without an Operation.
struct UnmodelledWork {
  std::size_t count = 0;  // number of kernels, copies and fills
  Microseconds time;
  std::string why;  // reason for the first one
};

// The recorded GPU time by whether its work is known.
struct KernelTimeCoverage {
  Microseconds computation;             // kernels, copies and fills without communication
  Microseconds modelled;                // part of `computation` with an Operation
  Microseconds communication;           // not included in `computation`
  Microseconds communication_modelled;  // part of `communication` with recorded kind and size
  Microseconds unlinked;                // not launched by a traced operator; not included above
  std::map<std::string, Microseconds> time_of_operator;  // modelled time by the operator that counts the work
  std::map<std::string, UnmodelledWork> unmodelled;      // by the innermost operator
};
KernelTimeCoverage& operator+=(KernelTimeCoverage& sum, const KernelTimeCoverage& more);

}  // namespace stepcast
