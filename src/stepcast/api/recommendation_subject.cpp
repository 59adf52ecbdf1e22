// Recommendation models: embedding tables distributed over GPUs, and dense layers on every GPU.
#include <algorithm>
#include <iterator>
#include <utility>

#include "stepcast/api/detail/subject_answers.h"
#include "stepcast/base/npz_file.h"
#include "stepcast/base/zip_file.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/measured_indices.h"

namespace stepcast {
namespace {

// The request of a question: the common fields come from `step`, the others from `recommendation`.
PredictDlrmRequest dlrm_request(const StepQuestion& question) {
  const PredictRequest& step = question.step;
  PredictDlrmRequest request = question.recommendation;
  request.model = step.job.model;
  request.platform = step.platform;
  request.n_gpus = step.job.n_gpus.value_or(0);
  request.gpus_per_node = step.job.gpus_per_node;
  request.global_batch = step.job.settings.global_batch_sequences;
  request.what_if = step.what_if;
  request.budget = step.budget;
  request.collectives = step.collectives;
  request.timeline = step.timeline;
  request.explained = step.explained;
  return request;
}

// A zip archive with the name ending of NumPy.
bool is_npz(const std::string& file) { return file.ends_with(".npz") && ZipFile::is_zip(file); }

// Measures the indices in all .npz files of the question. With several files, an entry for the whole data set
// follows at the end.
Result<std::vector<MeasuredIndices>> indices_of(const FileQuestion& question) {
  std::vector<std::string> archives;
  std::ranges::copy_if(question.files, std::back_inserter(archives), is_npz);
  if (archives.empty()) return std::vector<MeasuredIndices>{};
  MeasureOptions with{.batch_samples = question.batch_samples};
  std::vector<EmbeddingTable> tables;
  if (!question.tables.empty()) {
    STEPCAST_ASSIGN(tables, read_embedding_tables(question.tables));
    with.tables = &tables;
  }
  return measure_indices(archives, with);
}

// An answer for each file, in order. An error in one .npz file is the error of all, because they are measured together.
std::vector<Result<std::optional<InspectedFile>>> inspect(const FileQuestion& question) {
  const Result<std::vector<MeasuredIndices>> measured = indices_of(question);
  const auto one = [&](const std::string& file) -> Result<std::optional<InspectedFile>> {
    if (!is_npz(file)) {
      STEPCAST_ASSIGN(const std::vector<EmbeddingTable> tables, read_embedding_tables(file));
      return {inspected(file, tables)};
    }
    if (!measured) return Error{measured.error()};
    const auto found = std::ranges::find(*measured, file, &MeasuredIndices::file);
    return {inspected(*found, measured->size() > 1 ? &measured->back() : nullptr, question.batch_samples)};
  };
  std::vector<Result<std::optional<InspectedFile>>> all;
  for (const std::string& file : question.files) all.push_back(one(file));
  return all;
}

}  // namespace

Subject recommendation_subject() {
  // The names of the what-ifs come from the table that applies them.
  DlrmWhatIf none;
  std::vector<std::string_view> what_ifs;
  for (const WhatIfFactor& factor : factors_of(none)) what_ifs.push_back(factor.name);
  return {.called = "a recommendation model",
          .plural = "recommendation models",
          .question = Question::recommendation,
          .names = dlrm_names,
          .listed_as = "Recommendation models",
          .is_of = [](const Job& job, const RlSettings&) { return is_dlrm_job(job.model); },
          .what_ifs = std::move(what_ifs),
          .planner = "shard",
          .predict = detail::predicted<dlrm_request>,
          .sensitivity = detail::sensitive<dlrm_request>,
          .report = detail::reported<dlrm_request>,
          .several = "--gpus --batch",
          .series =
              [](const Session& session, const StepQuestion& question, const StepSeries& series) {
                return session.predict_series(dlrm_request(question), series.gpus, series.batches_per_rank);
              },
          .holds =
              [](const std::string& file, std::string_view beginning) {
                return is_npz(file) || looks_like_embedding_tables(beginning);
              },
          .inspect = inspect};
}

}  // namespace stepcast
