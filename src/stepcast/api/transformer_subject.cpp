// What is trained in layers: language models and others by their presets and configs, and networks by their names.
#include "stepcast/api/detail/subject_answers.h"
#include "stepcast/describe/network_presets.h"

namespace stepcast {
namespace {

const PredictRequest& described_request(const StepQuestion& question) { return question.step; }

}  // namespace

Subject transformer_subject() {
  return {.called = "a transformer",
          .plural = "transformers",
          .question = Question::described,
          .predict = detail::predicted<described_request>,
          .sensitivity = detail::sensitive<described_request>,
          .report = detail::reported<described_request>,
          .several = "--gpus --mbs --gbs",
          .series = [](const Session& session, const StepQuestion& question, const StepSeries& series) {
            return session.predict_series(question.step, series);
          }};
}

// Described and answered as transformers are.
Subject network_subject() {
  Subject subject = transformer_subject();
  subject.called = "a network";
  subject.plural = "networks";
  subject.names = network_names;
  subject.listed_as = "Image networks, and encoders before decoders";
  subject.is_of = [](const Job& job, const RlSettings&) {
    const Result<std::optional<Transformer>> found = find_network(job.model);
    return found.ok() && found->has_value();
  };
  return subject;
}

}  // namespace stepcast
