#include "option_list.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "stepcast/base/spelled_number.h"

#include "option_values.h"
#include "outputs.h"

namespace stepcast::cli {

namespace {

CLI::Option* declare(CLI::App& app, const std::string& names, FlagTarget target, const std::string& meaning) {
  return std::visit(
      [&](auto* to) -> CLI::Option* {
        if constexpr (std::is_same_v<decltype(to), bool*>)
          return app.add_flag(names, *to, meaning);
        else
          return app.add_option(names, *to, meaning);
      },
      target);
}

void restrict_values(CLI::Option& option, const FlagValues& values) {
  if (values.with_commas) option.delimiter(',');
  if (values.one_word) option.allow_extra_args(false);
  if (values.above_zero) option.check(above_zero);
  if (values.range) option.check(CLI::Range(values.range->first, values.range->second));
  if (!values.one_of.empty()) option.check(CLI::IsMember(values.one_of));
  if (values.shows_default) option.capture_default_str();
  if (values.required) option.required();
  if (!values.needs.empty()) option.needs(values.needs);
}

}  // namespace

void FlagList::begin(std::string heading, QuestionSet of) {
  heading_ = std::move(heading);
  of_ = of;
}

void FlagList::add(const std::string& names, FlagTarget to, const std::string& meaning,
                   const FlagValues& values, std::optional<QuestionSet> of) {
  CLI::Option* option = values.is_output
                            ? add_output_option(*app_, names, *std::get<std::string*>(to), meaning)
                            : declare(*app_, names, to, meaning);
  restrict_values(*option, values);
  if (!heading_.empty()) option->group(heading_);
  flags_.emplace_back(option, of.value_or(of_));
}

void FlagList::add_declared(const std::string& name) {
  CLI::Option* option = app_->get_option(name);
  if (!heading_.empty()) option->group(heading_);
  flags_.emplace_back(option, of_);
}

std::vector<GivenFlag> FlagList::given() const {
  std::vector<GivenFlag> all;
  for (const auto& [option, of] : flags_)
    if (option->count() > 0 && !option->get_lnames().empty())
      all.push_back({"--" + option->get_lnames().front(), of});
  return all;
}

bool FlagList::is_given(const std::string& name) const { return app_->get_option(name)->count() > 0; }

std::vector<std::string> FlagList::names() const { return flags_of(*app_); }

std::string above_zero(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && end == text.data() + text.size() && value > 0) return {};
  return fmt::format("found {}, expected a number above 0", text.substr(0, 40));
}

std::string check_date(const std::string& text) {
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  std::array<int, 3> parts{0, 1, 1};
  const char* at = text.data();
  const char* end = at + text.size();
  std::size_t n = 0;
  bool good = text.size() == 4 || text.size() == 7 || text.size() == 10;
  for (; good && n < parts.size() && at != end; ++n) {
    const std::ptrdiff_t width = n == 0 ? 4 : 2;
    if (n > 0) good = *at++ == '-';
    const auto read = std::from_chars(at, at + width, parts[n]);
    good = good && read.ec == std::errc{} && read.ptr == at + width;
    at += width;
  }
  good = good && at == end && parts[0] >= 1970 && parts[1] >= 1 && parts[1] <= 12 && parts[2] >= 1 &&
         parts[2] <= kDays[static_cast<std::size_t>(parts[1] - 1)];
  if (good) return {};
  return fmt::format("found `{}`, expected a date: 2024, 2024-05 or 2024-05-31", text.substr(0, 40));
}

Result<Framework> framework_named(const std::string& text) {
  const Framework framework = parse_framework(text);
  if (framework != Framework::unknown) return framework;
  return Error::at("", "--framework")
      .found(fmt::format("`{}`", text))
      .expected("megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch or libai");
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

void make_strict(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) continue;  // a switch
    const std::string type = option->get_type_name();
    const bool whole = type.starts_with("INT") || type.starts_with("UINT");
    if (whole) option->transform(CLI::Validator{spell_out_whole, ""});
    if (type.starts_with("FLOAT")) option->transform(CLI::Validator{spell_out_number, ""});
    if (option->check_lname("date")) option->check(check_date);
    // Added last to the front: looked at first.
    option->transform(CLI::Validator{[](std::string& text) {
                                       return text.empty() ? std::string{"found an empty value; is a shell "
                                                                         "variable not set?"}
                                                           : std::string{};
                                     },
                                     ""});
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) make_strict(*verb);
}

}  // namespace stepcast::cli
