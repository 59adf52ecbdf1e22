#include "stepcast/base/line_prefix.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "stepcast/base/text.h"

namespace stepcast {
namespace {

constexpr char kEscape = '\x1b';

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_ascii_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
bool is_parameter(char c) { return is_digit(c) || c == ';' || c == '?' || c == ':'; }
bool is_name(char c) { return is_ascii_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; }

// Prefixes of log lines. Placeholders of the patterns:
//
//   %r rank number    %n number           %w letters, blanks and '_', may be empty    %_ blanks, may be empty
//   %o optional blank    %h name          %H host name that ends with a number, which is taken as the rank
//   %z date and time with time zone (RFC 3339)     %s "Jan 02 03:04:05"
constexpr std::array<std::string_view, 20> kPrefixes{
    "%_[%w%r]:%o",                // torchrun: "[rank0]:", "[default3]:"
    "%_[%n,%r]<%w>:%o",           // mpirun --tag-output: "[1,0]<stdout>:"
    "[%h@%n,%r]<%w>:%o",          // Open MPI 5: "[prterun-node1-77@1,0]<stdout>: "
    "[%n,mpirank:%r,%h]<%w>:%o",  // SageMaker: "[1,mpirank:0,algo-1]<stdout>:"
    "[%r]<%w>:%o",                // horovodrun: "[0]<stdout>:"
    "%_%r: ",                     // srun -l: "0: "
    "[%r] ",                      // MPICH, Intel MPI: "[0] "
    "(%h pid=%n) ",               // Ray
    "(%h pid=%n, ip=%h) ",
    "[%H] ",         // "[worker-0] "
    "[pod/%H/%h] ",  // kubectl logs --prefix
    "[pod/%h/%h] ",  // of a Deployment
    "%z stdout F ",  // log files of containerd
    "%z stderr F ",
    "%z %h %h[%n]: ",  // journalctl -o short-iso
    "%s %h %h[%n]: ",  // journald, syslog
    "%z ",             // kubectl logs --timestamps, docker logs -t
    "%H%_| ",          // docker compose: "worker-1  | "
    "%s ",             // ts
    "%H: ",            // pdsh, DeepSpeed's launcher: "worker-1: "
};

// Length of the terminal escape sequence at the start of `text`, or 0. Colour codes are also recognised
// without their escape character ("[31m"), which some log collectors drop.
std::size_t escape_length(std::string_view text) {
  std::size_t at = 0;
  const bool escaped = text.front() == kEscape;
  if (escaped) ++at;
  if (at >= text.size()) return at;
  if (text[at] != '[') {
    if (!escaped) return 0;
    if (text[at] == ']') {  // a window title, which ends with BEL
      const std::size_t end = text.find('\a', at);
      return end == std::string_view::npos ? text.size() : end + 1;
    }
    return at + 1;
  }
  std::size_t end = at + 1;
  while (end < text.size() && is_parameter(text[end])) ++end;
  if (end >= text.size()) return escaped ? end : 0;
  if (escaped) return end + 1;
  return text[end] == 'm' && end > at + 1 ? end + 1 : 0;
}

// `line` without escape sequences. Returns `line` itself if it has none, else a view of `buffer`.
std::string_view without_colours(std::string_view line, std::string& buffer) {
  if (line.find(kEscape) == std::string_view::npos &&
      line.find('m', line.find('[')) == std::string_view::npos)
    return line;
  bool changed = false;
  buffer.clear();
  for (std::size_t i = 0; i < line.size();) {
    const bool may_be = line[i] == kEscape || line[i] == '[';
    const std::size_t length = may_be ? escape_length(line.substr(i)) : 0;
    changed = changed || length > 0;
    if (length == 0) buffer += line[i];
    i += std::max<std::size_t>(length, 1);
  }
  return changed ? std::string_view{buffer} : line;
}

// Number of leading characters for which `is` is true.
template <class Is>
std::size_t length_of(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is) - text.begin());
}

// Length of `form` if `text` begins with that form, else 0. In `form`, "0" is any digit and "a" any letter.
std::size_t formed(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool fits = form[i] == '0'   ? is_digit(text[i])
                      : form[i] == 'a' ? is_ascii_letter(text[i])
                                       : text[i] == form[i];
    if (!fits) return 0;
  }
  return form.size();
}

// Length of a date and time with a time zone at the start of `text`, or 0: "2026-01-02T03:04:05.123456Z",
// "...+08:00", "...+0000".
std::size_t zoned_length(std::string_view text) {
  std::size_t at = formed(text, "0000-00-00T00:00:00");
  if (at == 0) return 0;
  if (at < text.size() && (text[at] == '.' || text[at] == ','))
    at += 1 + length_of(text.substr(at + 1), is_digit);
  if (text.substr(at).starts_with('Z')) return at + 1;
  for (const std::string_view zone : {"+00:00", "-00:00", "+0000", "-0000"})
    if (const std::size_t length = formed(text.substr(at), zone); length > 0) return at + length;
  return 0;
}

// Length of "Jan 02 03:04:05" or "Jan  2 03:04:05" at the start of `text`, or 0.
std::size_t syslog_length(std::string_view text) {
  const std::size_t length = formed(text, "aaa 00 00:00:00");
  return length > 0 ? length : formed(text, "aaa  0 00:00:00");
}

// Length of a host name at the start of `text`, or 0. A host name ends with a digit, and it contains a dash, is an
// IPv4 address, or is a known word with a number ("node7"), so that keys of settings are not mistaken for hosts.
std::size_t host_length(std::string_view text) {
  const std::size_t length = length_of(text, is_name);
  const std::string_view host = text.substr(0, length);
  if (host.empty() || !is_digit(host.back())) return 0;
  const std::size_t words = length_of(host, [](char c) { return is_ascii_letter(c) || c == '_'; });
  const bool has_dash = host.find('-') != std::string_view::npos && words > 0;
  const bool is_address = std::ranges::count(host, '.') == 3 && words == 0;
  constexpr std::array<std::string_view, 7> kHosts{"node", "host", "worker", "nid", "gpu", "rank", "pod"};
  const std::string name = lower(host.substr(0, words));
  const bool is_known = words + length_of(host.substr(words), is_digit) == length &&
                        std::ranges::find(kHosts, name) != kHosts.end();
  return has_dash || is_address || is_known ? length : 0;
}

// The number, or nothing if it exceeds 32 bits.
std::optional<std::int32_t> count_of(std::string_view digits) {
  std::int32_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc{} ? std::optional{value} : std::nullopt;
}

// Length of the match of `pattern` at the start of `line`, or 0. Sets `rank` if the match contains one.
std::size_t prefix_length(std::string_view line, std::string_view pattern,
                          std::optional<std::int32_t>& rank) {
  std::size_t at = 0;
  std::optional<std::int32_t> named;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = line.substr(at);
    if (pattern[i] != '%') {
      if (!rest.starts_with(pattern[i])) return 0;
      ++at;
      continue;
    }
    const char kind = pattern[++i];
    std::size_t length = 0;
    switch (kind) {
      case '_': at += length_of(rest, is_space); continue;
      case 'o': at += rest.empty() || !is_space(rest[0]) ? 0U : 1U; continue;
      case 'w':
        at += length_of(rest, [](char c) { return is_ascii_letter(c) || is_space(c) || c == '_'; });
        continue;
      case 'h': length = length_of(rest, is_name); break;
      case 'H': length = host_length(rest); break;
      case 'z': length = zoned_length(rest); break;
      case 's': length = syslog_length(rest); break;
      default: length = length_of(rest, is_digit);
    }
    if (length == 0) return 0;
    if (kind == 'r' || kind == 'H') {
      std::size_t digits = 0;
      while (digits < length && is_digit(rest[length - 1 - digits])) ++digits;
      named = count_of(rest.substr(length - digits, digits));
      if (kind == 'r' && !named) return 0;
    }
    at += length;
  }
  if (named) rank = named;
  return at;
}

}  // namespace

PlainLine plain_line(std::string_view line, std::string& buffer) {
  // Prefixes can be nested (a container's log of torchrun's log), so matching repeats.
  constexpr int kMost = 4;
  const std::string_view all = without_colours(line, buffer);
  PlainLine plain{.text = all, .prefix = {}, .rank = std::nullopt};
  for (int i = 0; i < kMost; ++i) {
    std::size_t length = 0;
    for (const std::string_view pattern : kPrefixes) {
      length = prefix_length(plain.text, pattern, plain.rank);
      if (length > 0) break;
    }
    if (length == 0) break;
    plain.text.remove_prefix(length);
  }
  plain.prefix = all.substr(0, all.size() - plain.text.size());
  return plain;
}

}  // namespace stepcast
