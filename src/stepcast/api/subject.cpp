// The list of subjects, and which subject an option or what-if belongs to.
#include "stepcast/api/subject.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stepcast/api/detail/subject_answers.h"

namespace stepcast {

std::span<const Subject> subjects() {
  // The order is that of subjects.def.
  static const std::array kSubjects{
#define STEPCAST_SUBJECT(name) name##_subject(),
#include "stepcast/api/subjects.def"
#undef STEPCAST_SUBJECT
  };
  return kSubjects;
}

const Subject& subject_of(const Job& job, const RlSettings& rl) {
  const std::span<const Subject> all = subjects();
  const auto found =
      std::ranges::find_if(all, [&](const Subject& s) { return s.is_of != nullptr && s.is_of(job, rl); });
  // The last subject accepts everything else.
  return found == all.end() ? all.back() : *found;
}

const Subject* owner_of(QuestionSet questions, const Subject& subject) {
  if ((questions & (bit(subject.question) | bit(Question::described))) != 0) return nullptr;
  const auto found =
      std::ranges::find_if(subjects(), [&](const Subject& s) { return (questions & bit(s.question)) != 0; });
  return found == subjects().end() ? nullptr : &*found;
}

Status check_what_ifs(const Subject& subject, std::span<const std::string> what_ifs) {
  for (const std::string& change : what_ifs) {
    const std::string_view name = std::string_view{change}.substr(0, change.find('='));
    const auto has = [&](const Subject& s) {
      return std::ranges::find(s.what_ifs, name) != s.what_ifs.end();
    };
    const auto owner = std::ranges::find_if(subjects(), has);
    if (owner != subjects().end() && !has(subject))
      return Error::at("", "--what-if", fmt::format("{} belongs to {}", name, owner->plural));
  }
  return Ok{};
}

}  // namespace stepcast
