// Works of a step as lines and sums that tests compare, and two models small enough to work by hand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stepcast/workload/step_work.h"

namespace stepcast::test {

// One line per item: "qkv gemm 1024x1536x1024", "reduce_ffn_output reduce_scatter tensor 2097152 B".
inline std::string text(const WorkItem& item) {
  std::string line{item.name};
  if (item.count != 1) line = fmt::format("{} times {}", item.count, line);
  if (const Transfer* t = item.transfer()) {
    line += fmt::format(" {} {} {:.0f} B", to_string(t->op), to_string(t->group), t->message.value());
    return line + (item.overlaps_next ? " beside" : "");
  }
  const Operation& operation = *item.operation();
  if (const auto* s = std::get_if<GemmShape>(&operation.shape)) {
    line += s->batch == 1 ? std::string{" gemm "} : fmt::format(" gemm {} of ", s->batch);
    line += fmt::format("{}x{}x{}{}", s->m, s->n, s->k, s->bias ? " bias" : "");
  } else if (const auto* a = std::get_if<AttentionShape>(&operation.shape)) {
    line += fmt::format(" attention batch {} q {} k {} heads {}/{} dim {}", a->batch, a->query_length,
                        a->key_length, a->heads, a->key_value_heads, a->head_dim);
  } else if (const auto* n = std::get_if<NormShape>(&operation.shape)) {
    line += fmt::format(" norm {}x{}", n->rows, n->cols);
  } else if (const auto* e = std::get_if<ElementwiseShape>(&operation.shape)) {
    line += fmt::format(" {} {}", to_string(e->function), e->elements);
  } else if (const auto* r = std::get_if<ReductionShape>(&operation.shape)) {
    line += fmt::format(" reduce {}x{}", r->rows, r->cols);
  } else {
    line += fmt::format(" {}", family_of(operation));
  }
  if (item.weight_gradient) line += " (weight)";
  return line;
}

inline std::vector<std::string> texts(const WorkList& list) {
  std::vector<std::string> lines;
  for (const WorkItem& item : list) lines.push_back(text(item));
  return lines;
}

inline StepWork work_for(const Transformer& model, const Layout& layout) {
  Result<StepWork> work = step_work(model, layout);
  EXPECT_TRUE(work.ok()) << work.error().message();
  return work.ok() ? std::move(*work) : StepWork{};
}

inline Transformer gpt() {
  return {.name = "gpt",
          .n_layers = 4,
          .hidden_size = 1024,
          .ffn_hidden_size = 4096,
          .n_heads = 16,
          .vocab_size = 51200,
          .max_position = 512};
}

inline Transformer llama() {
  Transformer model{.name = "llama",
                    .n_layers = 4,
                    .hidden_size = 1024,
                    .ffn_hidden_size = 2816,
                    .n_heads = 16,
                    .n_kv_heads = 4,
                    .vocab_size = 32768,
                    .max_position = 512};
  model.norm = NormKind::rms_norm;
  model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  model.activation = Activation::silu;
  model.gated_ffn = true;
  model.position = PositionEncoding::rotary;
  model.tied_embeddings = false;
  return model;
}

// Two sequences of 512 tokens in a micro-batch.
inline Layout layout_of(std::int64_t tensor_parallel, bool sequence_parallel = false) {
  Layout layout{.degrees = {.tensor = tensor_parallel},
                .batch = {.micro_batch_sequences = 2, .global_batch_sequences = 8, .seq_len_tokens = 512},
                .layer = {.sequence_parallel = sequence_parallel}};
  return layout;
}

struct Totals {
  double products = 0;   // FLOPs of matrix products with weights
  double attention = 0;  // FLOPs of fused attention
  double transferred_bytes = 0;
  std::map<std::string, int> transfers;
  Totals& operator+=(const Totals& other) {
    products += other.products;
    attention += other.attention;
    transferred_bytes += other.transferred_bytes;
    for (const auto& [name, n] : other.transfers) transfers[name] += n;
    return *this;
  }
};

inline Totals totals(const WorkList& list, double times = 1) {
  Totals sum;
  for (const WorkItem& item : list) {
    const double count = times * static_cast<double>(item.count);
    if (const Transfer* t = item.transfer()) {
      sum.transferred_bytes += count * t->message.value();
      sum.transfers[fmt::format("{} {}", to_string(t->op), to_string(t->group))] += static_cast<int>(count);
      continue;
    }
    const Operation& operation = *item.operation();
    const double flops = count * work_of(operation).flops.value();
    if (std::holds_alternative<GemmShape>(operation.shape)) sum.products += flops;
    if (std::holds_alternative<AttentionShape>(operation.shape)) sum.attention += flops;
  }
  return sum;
}

// All chunks of one rank per stage, one micro-batch.
inline Totals totals(const StepWork& work) {
  Totals sum;
  for (const ChunkWork& chunk : work.chunks) {
    if (chunk.has_embedding) {
      sum += totals(work.embedding->forward);
      sum += totals(work.embedding->backward);
    }
    for (const ChunkWork::Run& run : chunk.runs) {
      sum += totals(work.layer_kinds[run.kind]->forward, run.count);
      sum += totals(work.layer_kinds[run.kind]->backward, run.count);
    }
    if (chunk.has_head) {
      sum += totals(work.head->forward);
      sum += totals(work.head->backward);
    }
  }
  return sum;
}

}  // namespace stepcast::test
