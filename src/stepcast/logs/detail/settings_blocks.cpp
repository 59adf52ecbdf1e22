#include "stepcast/logs/detail/settings_blocks.h"

#include <algorithm>
#include <utility>

#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {

namespace {

constexpr std::size_t kMostLines = 20'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '-' || c == '.';
  });
}

bool is_letter(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

}  // namespace

bool is_yaml_line(std::string_view line) {
  std::string_view text = trimmed(line);
  while (text.starts_with("- ")) text = trimmed(text.substr(2));
  if (text.empty() || text == "-" || text.starts_with('#')) return !text.empty();
  if (trimmed(line).starts_with("- ") && text.find(": ") == std::string_view::npos) return true;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  if (colon + 1 < text.size() && text[colon + 1] != ' ') return false;
  return is_word(text.substr(0, colon));
}

void SettingsBlocks::open_megatron() {
  close();
  kind_ = Kind::megatron;
  block_ = {};
  lines_ = foreign_ = 0;
}

void SettingsBlocks::open_json(std::string_view line, std::string LoggedSettings::*to) {
  const std::size_t brace = line.find('{');
  if (brace == std::string_view::npos) return;
  close();
  kind_ = Kind::json;
  block_ = {};
  to_ = to;
  depth_ = 0;
  in_text_ = escaped_ = false;
  lines_ = 0;
  take_json(line.substr(brace));
}

void SettingsBlocks::open_yaml(std::string_view line) {
  close();
  kind_ = Kind::yaml;
  block_ = {};
  lines_ = foreign_ = 0;
  if (is_yaml_line(line)) take_yaml(line);
}

bool SettingsBlocks::take(std::string_view line) {
  if (kind_ == Kind::none) return false;
  if (++lines_ > kMostLines) {
    kind_ = Kind::none;
    return false;
  }
  switch (kind_) {
    case Kind::megatron: return take_argument(line);
    case Kind::json:
      take_json(line);
      if (kind_ == Kind::json) block_.*to_ += '\n';
      return true;
    case Kind::yaml: return take_yaml(line);
    case Kind::none: break;
  }
  return false;
}

// "  tensor_model_parallel_size ...................... 8", maybe behind what a launcher puts there.
bool SettingsBlocks::take_argument(std::string_view line) {
  if (line.find("end of arguments") != std::string_view::npos || line.find("end of ") == 0) {
    close();
    return true;
  }
  const std::size_t dots = line.find(" .");
  if (dots == std::string_view::npos) return false;
  const std::size_t behind = line.find_first_not_of('.', dots + 1);
  if (behind == std::string_view::npos || line[behind] != ' ') return false;
  std::string_view key = trimmed(line.substr(0, dots));
  if (const std::size_t blank = key.rfind(' '); blank != std::string_view::npos) key = key.substr(blank + 1);
  if (!is_word(key)) return false;
  block_.megatron.emplace_back(key, trimmed(line.substr(behind)));
  return true;
}

// Up to the bracket that closes the first one. Python's quotes count, too.
void SettingsBlocks::take_json(std::string_view text) {
  std::string& out = block_.*to_;
  for (const char c : text) {
    out += c;
    if (in_text_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == quote_)
        in_text_ = false;
      continue;
    }
    if (c == '"' || c == '\'') {
      in_text_ = true;
      quote_ = c;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      close();
      return;
    }
  }
  if (out.size() > kMostBytes) kind_ = Kind::none;
}

bool SettingsBlocks::take_yaml(std::string_view line) {
  // The line that announces the block may stand before it, and a blank one behind the announcement.
  const bool begun = !block_.yaml.empty();
  if (!is_yaml_line(line)) {
    constexpr std::size_t kMostForeign = 3;
    if (begun || ++foreign_ > kMostForeign) close();
    return false;
  }
  block_.yaml += line;
  block_.yaml += '\n';
  if (block_.yaml.size() > kMostBytes) kind_ = Kind::none;
  return true;
}

void SettingsBlocks::keep() {
  LoggedSettings& all = log_.settings;
  const auto differs = [](const auto& before, const auto& now) { return !before.empty() && before != now; };
  if (!block_.megatron.empty()) {
    all.changed = all.changed || differs(all.megatron, block_.megatron);
    if (all.megatron != block_.megatron) all.at_record = log_.steps.size();
    all.megatron = std::move(block_.megatron);
  }
  for (std::string LoggedSettings::*text :
       {&LoggedSettings::torchtitan, &LoggedSettings::deepspeed, &LoggedSettings::model_config}) {
    if ((block_.*text).empty()) continue;
    all.changed = all.changed || differs(all.*text, block_.*text);
    if (all.*text != block_.*text) all.at_record = log_.steps.size();
    all.*text = std::move(block_.*text);
  }
  // Sections of one document come one after the other; those of a later run replace them.
  if (!block_.yaml.empty()) {
    if (all.yaml.find(block_.yaml) == std::string::npos) {
      const bool later = log_.steps.size() > all.at_record && !all.yaml.empty();
      if (later) all.yaml.clear();
      all.changed = all.changed || later;
      all.at_record = log_.steps.size();
      if (all.yaml.size() < kMostBytes) all.yaml += block_.yaml;
    }
  }
}

void SettingsBlocks::close() {
  if (kind_ == Kind::none) return;
  const bool broken = kind_ == Kind::json && depth_ > 0;
  kind_ = Kind::none;
  if (!broken) keep();
  block_ = {};
}

void SettingsBlocks::word(std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 200;
  log_.settings.words.insert_or_assign(std::string{name}, std::string{value.substr(0, kLongest)});
}

void SettingsBlocks::begin_run() { ++log_.settings.times; }

std::string python_to_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      out += '"';
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
          if (text[i + 1] != '\'') out += text[i];
          out += text[++i];
        } else if (text[i] == '"') {
          out += "\\\"";
        } else {
          out += text[i];
        }
      }
      out += '"';
      ++i;
    } else if (is_letter(c)) {
      std::size_t end = i;
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]) || text[end] == '.')) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (word == "True" || word == "true") {
        out += "true";
      } else if (word == "False" || word == "false") {
        out += "false";
      } else if (word == "None" || word == "null") {
        out += "null";
      } else {
        out += '"';
        out += word;
        out += '"';
      }
      i = end;
    } else if (is_digit(c) || c == '-' || c == '+') {  // with its exponent, which is no word
      std::size_t end = i + 1;
      while (end < text.size() &&
             (is_digit(text[end]) || text[end] == '.' || text[end] == 'e' || text[end] == 'E' ||
              ((text[end] == '-' || text[end] == '+') && lower(text[end - 1]) == 'e')))
        ++end;
      out += text.substr(i, end - i);
      i = end;
    } else {
      out += c == '(' ? '[' : c == ')' ? ']' : c;
      ++i;
    }
  }
  return out;
}

}  // namespace stepcast::detail
