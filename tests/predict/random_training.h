// Random models and layouts that pass the layout check, for properties of step forecasts.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::test {

struct RandomTraining {
  Transformer model;
  Layout layout;
};

// Small models of every kind (GPT, Llama with grouped queries, experts, latent attention) on 1 to 256 GPUs,
// with every schedule, sharding, overlap, recomputation, precision and kind of context parallelism.
[[nodiscard]] RandomTraining random_training(std::mt19937_64& random);
// The same with at least that many micro-batches, where rounds of a pipeline repeat.
[[nodiscard]] RandomTraining random_training(std::mt19937_64& random, std::int64_t least_micro_batches);

// One line for failures: model, degrees, schedule, sharding, overlap.
[[nodiscard]] std::string describe(const RandomTraining& training);

}  // namespace stepcast::test
