// Helpers for rows of subject.h: members of a row that answer a question through a Session. `request_of`
// converts the question into a request of the Session.
#pragma once

#include <utility>

#include "stepcast/api/subject.h"

namespace stepcast {

#define STEPCAST_SUBJECT(name) Subject name##_subject();
#include "stepcast/api/subjects.def"
#undef STEPCAST_SUBJECT

namespace detail {

// The forecast alone; the forecast with sensitivities; the forecast with sensitivities and pictures.
template <auto request_of>
Result<StepAnswer> predicted(const Session& session, const StepQuestion& question) {
  STEPCAST_ASSIGN(Forecast forecast, session.predict(request_of(question)));
  return StepAnswer{Report{std::move(forecast), {}, {}}};
}

template <auto request_of>
Result<StepAnswer> sensitive(const Session& session, const StepQuestion& question) {
  STEPCAST_ASSIGN(auto answer, session.sensitivity(request_of(question)));
  return StepAnswer{std::move(answer)};
}

template <auto request_of>
Result<StepAnswer> reported(const Session& session, const StepQuestion& question) {
  STEPCAST_ASSIGN(auto answer, session.report(request_of(question)));
  return StepAnswer{std::move(answer)};
}

}  // namespace detail
}  // namespace stepcast
