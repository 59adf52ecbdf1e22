// Models that are described by layers: transformers from presets and configs, and networks with built-in names.
#include "stepcast/api/detail/subject_answers.h"
#include "stepcast/describe/network_presets.h"

namespace stepcast {
namespace {

// A described step needs no conversion.
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

// Networks use the same requests and answers as transformers.
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
