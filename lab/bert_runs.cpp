#include "lab/bert_runs.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/statistics.h"

#include "lab/run_platforms.h"

namespace stepcast {
namespace {

constexpr std::array<std::string_view, 6> kColumns{
    "round", "gpu", "n_gpus", "global_batch_samples", "grad_accum", "iter_time_ms"};
constexpr std::string_view kHeader =
    "set,model,hidden_size,ffn_hidden_size,n_layers,n_heads,vocab_size,architecture,seq_len_tokens,gpu,"
    "gpus_per_node,n_gpus,dtype,framework,tensor_parallel,pipeline_parallel,data_parallel,"
    "micro_batch_sequences,global_batch_sequences,attention,packed_mean_tokens,optimizer,iter_time_ms,note\n";

// Mean length of MLPerf's Wikipedia sequences, of which its software packs two into a row of 512.
constexpr int kMeanTokens = 256;

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// NVIDIA's code turns Transformer Engine's fp8 on from Hopper on; cards of Ada and Ampere run it in fp16.
std::string_view type_on(std::string_view gpu) {
  const bool narrow = has_word(gpu, "H100") || has_word(gpu, "H200") || has_word(gpu, "B200");
  return narrow ? "fp8" : "fp16";
}

}  // namespace

bool looks_like_bert_runs(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  for (const std::string_view column : kColumns)
    if (!has_word(header, column)) return false;
  return !has_word(header, "model,") && !has_word(header, "tensor_parallel");
}

Result<std::vector<LlmRun>> parse_bert_runs(std::string_view text, const std::string& name,
                                            std::vector<std::string>* left_out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  std::vector<LlmRun> runs;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
    STEPCAST_ASSIGN(const std::int64_t samples, rows.extent("global_batch_samples"));
    STEPCAST_ASSIGN(const std::int64_t accumulated, rows.extent("grad_accum"));
    STEPCAST_ASSIGN(const double ms, rows.number("iter_time_ms", 0));
    const std::string_view gpu = rows.cell("gpu");
    // The benchmark is trained with LAMB.
    const std::string row = fmt::format(
        "{}{},bert-large,1024,4096,24,16,30522,bert,{},\"{}\",{},{},{},PyTorch,1,1,{},{},{},flash,{},lamb,{},"
        "\"{} one node; cuda graph CUDA_GRAPH\"\n",
        kHeader, kBertNodeSet, kMeanTokens, gpu, n_gpus, n_gpus, type_on(gpu), n_gpus,
        samples / std::max<std::int64_t>(1, n_gpus) / std::max<std::int64_t>(1, accumulated), samples,
        kMeanTokens, ms, rows.cell("round"));
    Result<std::vector<LlmRun>> run = parse_llm_runs(row, name);
    if (!run) {
      const Error problem = rows.error("gpu", run.error().message());
      if (left_out == nullptr) return problem;
      left_out->push_back(problem.message());
      continue;
    }
    run->front().line = rows.line();
    runs.push_back(std::move(run->front()));
  }
  return runs;
}

TestScore score_bert_scaling(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "node_scaling_with_one_factor", .protocol = "refit", .unit = "ms"};
  std::map<std::int64_t, std::vector<const PredictedRun*>> by_gpus;
  for (const PredictedRun& p : runs)
    if (p.run->set == kBertNodeSet) by_gpus[p.run->n_gpus].push_back(&p);
  if (by_gpus.size() < 2) return result;
  for (const auto& [n_gpus, members] : by_gpus) {
    std::vector<double> factors;
    for (const auto& [others, rows] : by_gpus) {
      if (others == n_gpus) continue;
      for (const PredictedRun* p : rows) factors.push_back(measured_over_predicted(*p));
    }
    const double factor = upper_median(factors);
    SetScore set{.set = fmt::format("{} {} GPUs", kBertNodeSet, n_gpus), .n_fit = factors.size()};
    for (const PredictedRun* p : members) set.rows.push_back(scaled(scored(*p), factor));
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
