#include "option_list.h"

#include <type_traits>

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

}  // namespace stepcast::cli
