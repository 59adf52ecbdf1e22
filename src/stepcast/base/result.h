// Errors from invalid input are values: Result<T> contains a T or an Error. Parsers do not throw.
//
//   Result<Config> read_config(const Path& path) {
//     STEPCAST_ASSIGN(std::string text, read_file(path));   // returns the Error if there is one
//     if (text.empty()) return Error::at(path, "the file").found("0 bytes").expected("a JSON object");
//     ...
//   }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace stepcast {

// An error as one line for the user: where, what was found, what was expected, what to do.
class Error {
 public:
  explicit Error(std::string problem) : problem_(std::move(problem)) {}

  // An error in a file. `place` is a line, a byte offset, a key or an event: "byte 1234", "line 7", "traceEvents[12].ts".
  static Error at(std::string file, std::string place, std::string problem = {}) {
    Error e{std::move(problem)};
    e.file_ = std::move(file);
    e.place_ = std::move(place);
    return e;
  }
  // Add the found value, the expected one, and advice such as "did you mean ...?".
  Error&& found(std::string what) && {
    found_ = std::move(what);
    return std::move(*this);
  }
  Error&& expected(std::string what) && {
    expected_ = std::move(what);
    return std::move(*this);
  }
  Error&& advice(std::string what) && {
    advice_ = std::move(what);
    return std::move(*this);
  }
  // Marks a failure of the machine instead of the input, such as a full disk. Programs use another exit code for it.
  Error&& of_machine() && {
    of_machine_ = true;
    return std::move(*this);
  }
  // Adds the file name to an error from a reader that did not know it. A name that is set is kept.
  Error&& in_file(std::string file) && {
    if (file_.empty()) file_ = std::move(file);
    return std::move(*this);
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool is_of_machine() const { return of_machine_; }
  // "FILE: PLACE: PROBLEM: found F, expected E; ADVICE" without the parts that are missing. Contains no line breaks.
  [[nodiscard]] std::string message() const;

 private:
  std::string file_, place_, problem_, found_, expected_, advice_;
  bool of_machine_ = false;
};

// A T or an Error. value() and operator* need a value, error() needs an error; the other access throws
// std::bad_variant_access.
template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): returning a value or an Error is the point
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// The value of a Status: success without a result.
struct Ok {};
using Status = Result<Ok>;

}  // namespace stepcast

// STEPCAST_CONCAT expands its arguments, such as __LINE__, before it joins them.
#define STEPCAST_CONCAT_INNER(a, b) a##b
#define STEPCAST_CONCAT(a, b) STEPCAST_CONCAT_INNER(a, b)

// Evaluates `expression` (a Status or Result) and returns its error from the enclosing function, if there is one.
#define STEPCAST_TRY(expression)                                    \
  do {                                                              \
    if (auto stepcast_status = (expression); !stepcast_status.ok()) \
      return std::move(stepcast_status).error();                    \
  } while (false)

// Declares or assigns `declaration` from the value of `expression`, or returns its error from the enclosing function.
#define STEPCAST_ASSIGN(declaration, expression) \
  STEPCAST_ASSIGN_IMPL(STEPCAST_CONCAT(stepcast_result_, __LINE__), declaration, expression)
#define STEPCAST_ASSIGN_IMPL(name, declaration, expression) \
  auto name = (expression);                                 \
  if (!name.ok()) return std::move(name).error();           \
  declaration = std::move(name).value()
