// Which commands of a shell script run: `if`, `case`, loops, `&&` and `||`, in three values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/formats/detail/shell/arithmetic.h"

namespace stepcast::detail {

class ShellFlow {
 public:
  // Error: conditions in conditions without end.
  [[nodiscard]] Status check_depth() const;

  // Whether the next command runs, by all branches around it and by the command in front: `A && B`, `A || B`.
  [[nodiscard]] Truth runs() const;
  // What came of that command, which may not have run.
  void ended_with(Truth truth);
  // The next command stands behind `&&` ('&'), `||` ('|') or neither ('\0') of the last one.
  void join(char sign) { joined_by_ = sign; }

  // Takes the words that steer from the front. False: nothing is left to run.
  [[nodiscard]] bool steer(ShellWords& words);

  // `case SUBJECT in`, perhaps with the first pattern behind it, ends where a bracket or a line ends. False: not this.
  bool open_case(ShellWords& command);
  [[nodiscard]] bool in_cases() const;
  // Between `in` or `;;` and a closing bracket.
  [[nodiscard]] bool expects_pattern() const;
  void begin_arm(const ShellWords& patterns);
  void end_arm();

 private:
  // What stands between `if` and `fi`, `case` and `esac`, `do` and `done`, `{` and `}`.
  struct Branch {
    enum class Kind : std::uint8_t { condition, cases, other };
    Kind kind = Kind::other;
    Truth runs = Truth::unknown;   // the arm that is read now
    Truth earlier = Truth::no;     // one of the arms before ran
    bool in_condition = false;     // between `if` and `then`
    bool expects_pattern = false;  // behind `in` and `;;`
    std::string subject;           // of `case`
  };

  std::vector<Branch> branches_;
  char joined_by_ = '\0';
  Truth last_ = Truth::unknown;
};

}  // namespace stepcast::detail
