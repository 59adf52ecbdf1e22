// How much of the recorded GPU time has a known work: what a kernel model can price.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "stepcast/base/quantity.h"

namespace stepcast {

// GPU work without an Operation, of one operator.
struct UnmodelledWork {
  std::size_t count = 0;  // kernels, copies and fills
  Microseconds time;
  std::string why;  // of the first
};

// Which share of the recorded GPU time belongs to work that is known.
struct KernelTimeCoverage {
  Microseconds computation;             // kernels, copies and fills without communication
  Microseconds modelled;                // of these: those with an Operation
  Microseconds communication;           // not part of the above
  Microseconds communication_modelled;  // of these: those whose kind and size are recorded
  Microseconds unlinked;                // that no traced operator launched; not part of the above
  std::map<std::string, Microseconds> time_of_operator;  // modelled: by the operator that counts the work
  std::map<std::string, UnmodelledWork> unmodelled;      // by the innermost operator
};
KernelTimeCoverage& operator+=(KernelTimeCoverage& sum, const KernelTimeCoverage& more);

}  // namespace stepcast
