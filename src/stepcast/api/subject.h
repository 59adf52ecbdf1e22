// What a training can be of: how it is recognised, what of it is known by name, and how each question about it is answered.
//
//   const Subject& subject = subject_of(job);                              // of "dlrm-mlperf-v1": recommendation
//   STEPCAST_ASSIGN(const StepAnswer answer, subject.predict(session, question));
//
// A subject is a function NAME_subject(), which returns its row, and a line in subjects.def. A question is a member: where it
// is null, the subject does not answer it. Verbs, sweeps and Python ask here and name no subject.
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

// A step, whatever it is of: each subject takes what means something for it.
struct StepQuestion {
  PredictRequest step;  // the job, where it runs, what is asked besides
  RlSettings rl;
  PredictDlrmRequest recommendation;  // without what `step` says
};
using StepAnswer = std::variant<Report, RlReport>;

// Files that belong to a subject and are no traces.
struct FileQuestion {
  std::vector<std::string> files;
  std::string tables;  // of indices
  std::int64_t batch_samples = 0;
};

struct Subject {
  std::string_view called{};                // "a recommendation model"
  std::string_view plural{};                // "recommendation models": whom its own options belong to
  std::string_view own_flag{};              // that asks for it, if there is one: "--rl"
  Question question = Question::described;  // whose options it takes
  // Models that are known by name, and what `stepcast models` calls them; null: its table has them (formats/presets.h).
  std::vector<std::string> (*names)() = nullptr;
  std::string_view listed_as{};
  bool (*is_of)(const Job& job, const RlSettings& rl) = nullptr;
  std::vector<std::string_view> what_ifs{};  // its own, besides those of all (predict/what_if.h)
  std::string_view planner = "plan";         // the verb that searches how it is spread

  // Its step; with what it would gain from faster resources; with what a page shows.
  Result<StepAnswer> (*predict)(const Session& session, const StepQuestion& question) = nullptr;
  Result<StepAnswer> (*sensitivity)(const Session& session, const StepQuestion& question) = nullptr;
  Result<StepAnswer> (*report)(const Session& session, const StepQuestion& question) = nullptr;
  // Several steps side by side; `several`: flags that take more than one value then.
  std::string_view several{};
  Result<std::vector<ScalingPoint>> (*series)(const Session& session, const StepQuestion& question,
                                              const StepSeries& series) = nullptr;
  // Whether a file, which begins so, is one of its own; and what is in such files, an answer each.
  bool (*holds)(const std::string& file, std::string_view beginning) = nullptr;
  std::vector<Result<std::optional<InspectedFile>>> (*inspect)(const FileQuestion& question) = nullptr;
};

// As in subjects.def.
[[nodiscard]] std::span<const Subject> subjects();
[[nodiscard]] const Subject& subject_of(const Job& job, const RlSettings& rl = {});

// The subject whose own an option for these questions is, as `subject` sees it: it answers one of them, and neither `subject`
// nor a step of a description does. Null if there is none.
[[nodiscard]] const Subject* owner_of(QuestionSet questions, const Subject& subject);

// Errors: a what-if that is one of another subject alone.
[[nodiscard]] Status check_what_ifs(const Subject& subject, std::span<const std::string> what_ifs);

}  // namespace stepcast
