// Control flow of a script. Each open construct is a Branch; runs() combines their truths. A command with an
// unknown truth is executed as "may run".
#include "stepcast/formats/detail/shell/flow.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kMostBranches = 256;  // limit of nesting

}  // namespace

Status ShellFlow::check_depth() const {
  if (branches_.size() > kMostBranches) return Error{"a script with unlimited nesting"};
  return Ok{};
}

Truth ShellFlow::runs() const {
  Truth truth = joined_by_ == '&' ? last_ : joined_by_ == '|' ? negated(last_) : Truth::yes;
  for (const Branch& branch : branches_)
    truth = both(truth, branch.in_condition ? Truth::unknown : branch.runs);
  return truth;
}

void ShellFlow::ended_with(Truth truth) {
  last_ = joined_by_ == '&' ? both(last_, truth) : joined_by_ == '|' ? either(last_, truth) : truth;
}

bool ShellFlow::open_case(ShellWords& command) {
  // Also `do case` and `then case` on one line.
  std::size_t at = 0;
  while (at < command.size() && (command[at] == "do" || command[at] == "then" || command[at] == "else")) ++at;
  if (command.size() < at + 3 || command[at] != "case" || command[at + 2] != "in") return false;
  const auto begin = command.begin();
  ShellWords before(begin, begin + static_cast<std::ptrdiff_t>(at));
  if (!before.empty()) static_cast<void>(steer(before));
  branches_.push_back({.kind = Branch::Kind::cases, .expects_pattern = true, .subject = command[at + 1]});
  command.erase(begin, begin + static_cast<std::ptrdiff_t>(at + 3));
  return true;
}

bool ShellFlow::in_cases() const {
  return !branches_.empty() && branches_.back().kind == Branch::Kind::cases;
}

bool ShellFlow::expects_pattern() const { return !branches_.empty() && branches_.back().expects_pattern; }

void ShellFlow::begin_arm(const ShellWords& patterns) {
  Branch& branch = branches_.back();
  Truth matches = Truth::no;
  for (const std::string& pattern : patterns)
    matches = either(matches, matches_pattern(branch.subject, pattern));
  branch.runs = both(negated(branch.earlier), matches);
  branch.expects_pattern = false;
}

void ShellFlow::end_arm() {
  Branch& branch = branches_.back();
  branch.earlier = either(branch.earlier, branch.runs);
  branch.expects_pattern = branch.kind == Branch::Kind::cases;
}

bool ShellFlow::steer(ShellWords& words) {
  while (!words.empty()) {
    const std::string word = words.front();
    Branch* branch = branches_.empty() ? nullptr : &branches_.back();
    const bool in_if = branch != nullptr && branch->kind == Branch::Kind::condition;
    if (word == "if") {
      branches_.push_back({.kind = Branch::Kind::condition, .in_condition = true});
    } else if (word == "elif" && in_if) {
      end_arm();
      branch->in_condition = true;
      joined_by_ = '\0';
    } else if (word == "then" && in_if) {
      branch->in_condition = false;
      branch->runs = both(negated(branch->earlier), last_);
      joined_by_ = '\0';
    } else if (word == "else" && in_if) {
      end_arm();
      branch->runs = negated(branch->earlier);
    } else if (word == "do" && in_if) {  // of `while`: the number of rounds is unknown
      branch->in_condition = false;
      branch->runs = last_ == Truth::no ? Truth::no : Truth::unknown;
      joined_by_ = '\0';
    } else if (word == "while") {
      branches_.push_back({.kind = Branch::Kind::condition, .in_condition = true});
    } else if (word == "fi" || word == "done" || word == "esac" || word == "}") {
      if (branch != nullptr) branches_.pop_back();
    } else if (word == "{") {
      branches_.push_back({});
    } else if (word == "for" || word == "until" || word == "case") {
      const bool never = word == "for" && words.size() == 3 && words[2] == "in";  // an empty list
      branches_.push_back({.runs = never ? Truth::no : Truth::unknown});
      return false;
    } else if (word != "do") {
      return true;
    }
    words.erase(words.begin());
  }
  return false;
}

}  // namespace stepcast::detail
