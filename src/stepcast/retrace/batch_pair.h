// A step at a batch that nobody recorded, from recordings of two batches: what scales is what differs.
//
//   const BatchPair pair{&at_1024, 1024, &at_2048, 2048};
//   STEPCAST_ASSIGN(const Costs costs, between_batches(pair, 4096));   // of the structure of pair.nearer(4096)
//
// The time of every piece of GPU work goes through its two recorded ones on a straight line. Host time, waiting
// and order are those of the recording that is nearer.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct BatchPair {
  const RecordedProgram* first = nullptr;
  std::int64_t first_batch = 0;
  const RecordedProgram* second = nullptr;
  std::int64_t second_batch = 0;

  [[nodiscard]] const RecordedProgram& nearer(std::int64_t batch) const;
};

// What was done, for the notes of a forecast.
[[nodiscard]] std::string batch_pair_note(std::int64_t wanted, std::int64_t first, std::int64_t second);

// Errors: equal batches, recordings of different ranks or of different GPU work, with the first difference.
[[nodiscard]] Result<Costs> between_batches(const BatchPair& pair, std::int64_t batch);

}  // namespace stepcast
