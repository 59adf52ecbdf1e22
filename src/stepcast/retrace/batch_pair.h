// Predicts a step at an unrecorded batch size from recordings at two other batch sizes.
//
//   const BatchPair pair{&at_1024, 1024, &at_2048, 2048};
//   STEPCAST_ASSIGN(const Costs costs, between_batches(pair, 4096));   // of the structure of pair.nearer(4096)
//
// The time of every piece of GPU work follows the straight line through its two recorded times. Host time, waiting and order
// come from the recording with the nearer batch.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Two recordings of the same ranks and their batches in samples per rank. The programs must outlive the pair.
struct BatchPair {
  const RecordedProgram* first = nullptr;
  std::int64_t first_batch = 0;
  const RecordedProgram* second = nullptr;
  std::int64_t second_batch = 0;

  // The recording with the batch nearer to `batch`.
  [[nodiscard]] const RecordedProgram& nearer(std::int64_t batch) const;
};

// A sentence for the notes of a forecast: the wanted batch and the two recorded ones.
[[nodiscard]] std::string batch_pair_note(std::int64_t wanted, std::int64_t first, std::int64_t second);

// Costs for the program of pair.nearer(batch). Errors: equal batches, recordings of different ranks or of different GPU
// work; the message names the first difference.
[[nodiscard]] Result<Costs> between_batches(const BatchPair& pair, std::int64_t batch);

}  // namespace stepcast
