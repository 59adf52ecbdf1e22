// Kinds of trainings (subjects): how each is recognised, which names it has, and how it answers each question.
//
//   const Subject& subject = subject_of(job);      // for "dlrm-mlperf-v1": recommendation
//   STEPCAST_ASSIGN(const StepAnswer answer, subject.predict(session, question));
//
// A subject is a function NAME_subject() that returns its row, plus a line in subjects.def. Each question is
// a member; null means that the subject cannot answer it. Verbs, sweeps and the Python package use these rows
// and do not mention subjects.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/result.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/sweep/option_table.h"

namespace stepcast {

// A question about a step of any subject. Each subject reads the fields that have a meaning for it.
struct StepQuestion {
  PredictRequest step;  // the job, its machine and the requested outputs
  RlSettings rl;
  PredictDlrmRequest recommendation;  // fields that `step` does not have
};
using StepAnswer = std::variant<Report, RlReport>;

// A question about files of a subject other than traces.
struct FileQuestion {
  std::vector<std::string> files;
  std::string tables;  // CSV file with the tables of the indices; may be empty
  std::int64_t batch_samples = 0;
};

// A row of the table of subjects.
struct Subject {
  std::string_view called{};                // with an article: "a recommendation model"
  std::string_view plural{};                // for messages about its options: "recommendation models"
  std::string_view own_flag{};              // flag that selects it: "--rl"; empty: none
  Question question = Question::described;  // which options it accepts
  // Names of its built-in models, and their heading in `stepcast models`. Null: they are in the preset table
  // (formats/presets.h).
  std::vector<std::string> (*names)() = nullptr;
  std::string_view listed_as{};
  // Whether a job is of this subject. Null: all that no other subject claims.
  bool (*is_of)(const Job& job, const RlSettings& rl) = nullptr;
  std::vector<std::string_view> what_ifs{};  // additional what-ifs (the common ones: predict/what_if.h)
  std::string_view planner = "plan";         // verb that searches layouts for it

  // The forecast; the forecast with sensitivities; the forecast with everything that a page shows.
  Result<StepAnswer> (*predict)(const Session& session, const StepQuestion& question) = nullptr;
  Result<StepAnswer> (*sensitivity)(const Session& session, const StepQuestion& question) = nullptr;
  Result<StepAnswer> (*report)(const Session& session, const StepQuestion& question) = nullptr;
  // A series of steps. `several`: flags that accept several values for it.
  std::string_view several{};
  Result<std::vector<ScalingPoint>> (*series)(const Session& session, const StepQuestion& question,
                                              const StepSeries& series) = nullptr;
  // Whether a file with this beginning belongs to the subject; and the contents of such files, one answer per file.
  bool (*holds)(const std::string& file, std::string_view beginning) = nullptr;
  std::vector<Result<std::optional<InspectedFile>>> (*inspect)(const FileQuestion& question) = nullptr;
};

// All subjects in the order of subjects.def, and the subject of a job.
[[nodiscard]] std::span<const Subject> subjects();
[[nodiscard]] const Subject& subject_of(const Job& job, const RlSettings& rl = {});

// The subject that owns an option for these questions, from the view of `subject`. Null if `subject` or
// described steps accept the option, or if no subject has it.
[[nodiscard]] const Subject* owner_of(QuestionSet questions, const Subject& subject);

// Errors: a what-if that exists only for another subject.
[[nodiscard]] Status check_what_ifs(const Subject& subject, std::span<const std::string> what_ifs);

}  // namespace stepcast
