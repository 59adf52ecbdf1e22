#include "described.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/api/subject.h"
#include "stepcast/base/words.h"
#include "stepcast/sweep/option_table.h"

namespace stepcast::python {
namespace {

using cli::DescribedStep;

struct Value {
  char kind = 0;  // kinds as in library.h
  std::string text;
};

std::optional<std::int64_t> count_of(const Value& value) {
  std::int64_t n = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, n);
  if (value.kind != 'i' || read.ec != std::errc{} || read.ptr != end || n < 1) return std::nullopt;
  return n;
}

std::optional<double> amount_of(const Value& value) {
  if (const auto n = count_of(value)) return static_cast<double>(*n);
  double x = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, x);
  if (value.kind != 'f' || read.ec != std::errc{} || read.ptr != end || !std::isfinite(x) || x <= 0)
    return std::nullopt;
  return x;
}

// The value as a word; nothing if it contains a comma, which separates values on the command line.
std::optional<std::string> word_of(const Value& value) {
  if ((value.kind != 's' && value.kind != 'l') || value.text.empty() ||
      value.text.find(',') != std::string::npos)
    return std::nullopt;
  return value.text;
}

// Whether a value has the kind that the member accepts on the command line.
bool take(std::optional<std::int64_t>& to, const Value& value) {
  to = count_of(value);
  return to.has_value();
}

bool take(std::optional<double>& to, const Value& value) {
  to = amount_of(value);
  return to.has_value();
}

bool take(std::string& to, const Value& value) {
  const auto found = value.kind == 's' ? word_of(value) : std::nullopt;
  if (found) to = *found;
  return found.has_value();
}

bool take(std::vector<std::string>& to, const Value& value) {
  const auto found = word_of(value);
  if (found) to.push_back(*found);
  return found.has_value();
}

using Taker = bool (*)(DescribedStep&, const Value&);

// How each row of the option table is read here; null for rows that the command line reads.
std::span<const Taker> takers() {
  static constexpr Taker kAll[] = {
#define STEPCAST_OPTION(flags, heading, questions, goes_to, ...) Taker{goes_to},
#define PYTHON(member) [](DescribedStep& step, const Value& value) { return take(step.member, value); }
#include "stepcast/sweep/option_table.def"  // NOLINT(bugprone-suspicious-include): a list that several read
  };
  return kAll;
}

enum class Read : std::uint8_t { taken, left, unknown };

// Reads one keyword of `predict`: taken, left to the command line, or unknown, which means a flag of Megatron-LM.
Read read_keyword(std::string_view name, const Value& value, DescribedStep& step) {
  const Option* option = find_option(fmt::format("--{}", name), kPredictQuestions);
  if (option == nullptr) return Read::unknown;
  const Taker take = takers()[static_cast<std::size_t>(option - option_table().data())];
  // Other spellings are flags of Megatron-LM.
  if (take == nullptr || name != option->name().substr(2) || !take(step, value)) return Read::left;
  const std::string_view words = option->values.one_of;
  return words.empty() || is_among(value.text, words) ? Read::taken : Read::left;
}

bool add_megatron_flag(const std::string& name, const Value& value, std::vector<std::string>& flags) {
  if (value.kind == 't') {
    flags.push_back("--" + name);
    return true;
  }
  if (!count_of(value) && (value.kind != 's' || !word_of(value))) return false;
  flags.push_back("--" + name + "=" + value.text);
  return true;
}

}  // namespace

std::optional<DescribedStep> described_step(const std::vector<std::string>& keywords) {
  DescribedStep step;
  for (std::size_t i = 0; i + 2 < keywords.size(); i += 3) {
    std::string name = keywords[i];
    const Value value{keywords[i + 1].front(), keywords[i + 2]};
    std::replace(name.begin(), name.end(), '_', '-');
    const Read read = read_keyword(name, value, step);
    if (read == Read::left) return std::nullopt;
    if (read == Read::unknown && !add_megatron_flag(name, value, step.megatron_flags)) return std::nullopt;
    if (name == "platform") step.platform_is_named = true;
  }
  const std::string& model = step.request.job.model;
  if (model.find('/') != std::string::npos || model.find('.') == 0 || model.ends_with(".json") ||
      subject_of({.model = model}).question != Question::described)
    return std::nullopt;
  return step;
}

}  // namespace stepcast::python
