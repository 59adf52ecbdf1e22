// Decides which commands of a script run: `if`, `case`, loops, `&&` and `||`, in three-valued logic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/formats/detail/shell/arithmetic.h"

namespace stepcast::detail {

// Tracks the open constructs while a script is read from front to back.
class ShellFlow {
 public:
  // Errors: more than 256 nested constructs.
  [[nodiscard]] Status check_depth() const;

  // Whether the next command runs, given all constructs around it and the preceding command (`A && B`, `A || B`).
  [[nodiscard]] Truth runs() const;
  // Records the result of that command. It may not have run.
  void ended_with(Truth truth);
  // How the next command is joined to the last one: `&&` ('&'), `||` ('|') or neither ('\0').
  void join(char sign) { joined_by_ = sign; }

  // Removes leading words of control flow (if, then, do, ...) and updates the state. False: no command remains.
  [[nodiscard]] bool steer(ShellWords& words);

  // Handles `case SUBJECT in`, also with the first pattern after it. Called where a bracket or line ends.
  // False: `command` is something else.
  bool open_case(ShellWords& command);
  [[nodiscard]] bool in_cases() const;
  // Whether a pattern is expected: after `in` or `;;`, up to the closing bracket.
  [[nodiscard]] bool expects_pattern() const;
  // Begin and end of an arm of `case` or `if`.
  void begin_arm(const ShellWords& patterns);
  void end_arm();

 private:
  // An open construct: `if` to `fi`, `case` to `esac`, `do` to `done`, `{` to `}`.
  struct Branch {
    enum class Kind : std::uint8_t { condition, cases, other };
    Kind kind = Kind::other;
    Truth runs = Truth::unknown;   // whether the current arm runs
    Truth earlier = Truth::no;     // whether an earlier arm ran
    bool in_condition = false;     // between `if` and `then`
    bool expects_pattern = false;  // after `in` and `;;`
    std::string subject;           // the word after `case`
  };

  std::vector<Branch> branches_;
  char joined_by_ = '\0';
  Truth last_ = Truth::unknown;
};

}  // namespace stepcast::detail
