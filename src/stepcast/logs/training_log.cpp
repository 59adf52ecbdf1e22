// Reads a log file in blocks and passes its lines to the scanner. Memory is bounded by the longest line that
// is kept (1 MiB) and the records of steps, so logs of any size can be read. The first block decides whether
// the file is text, a TensorBoard event file or something else.
#include "stepcast/logs/training_log.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/logs/detail/foreign_files.h"
#include "stepcast/logs/detail/log_scanner.h"

namespace stepcast {
namespace {

// Identifier and name of a format (log_formats.def).
struct FormatNames {
  std::string_view word, name;
};
constexpr FormatNames kNames[] = {
#define STEPCAST_LOG_FORMAT(word, name) {#word, name},
#include "stepcast/logs/log_formats.def"
#undef STEPCAST_LOG_FORMAT
};

// True if the bytes look like text: no zero bytes, and of the control characters only those of terminals.
bool is_text(std::string_view beginning) {
  return std::ranges::none_of(beginning, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0 || (byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b' &&
                         c != '\a' && c != '\f');
  });
}

// The error for a file without steps. `beginning` are its first bytes, from which the kind of file is
// guessed.
Error no_step(const TrainingLog& log, std::string_view beginning) {
  Error error = Error::at(log.file, "");
  if (log.n_bytes == 0) return std::move(error).found("an empty file").expected("the log of a training run");
  if (const std::string_view what = detail::name_of_text(beginning); !what.empty())
    return std::move(error)
        .found(std::string{what})
        .expected("the log of a training run, with lines that give the step time (docs/logs.md)");
  return std::move(error)
      .found(fmt::format("no line with a step time among {}", log.n_lines))
      .expected(
          "the log of Megatron-LM, NeMo, TorchTitan, DeepSpeed, Composer, MLPerf, MaxText, Hugging Face's "
          "Trainer or "
          "another framework of docs/logs.md, or a CSV file with a column such as step_time_ms")
      .advice(log.broken_lines > 0
                  ? fmt::format("{} lines begin like one and are cut off", log.broken_lines)
                  : std::string{"docs/logs.md shows the lines; the rank that prints them may log elsewhere"});
}

// Reads the rest of an event file. `buffer` contains its first `held` bytes. Error: the file has other data
// than records, or no scalars.
Result<TrainingLog> read_events(ByteSource& source, std::string buffer, std::size_t held, TrainingLog log) {
  detail::EventFile events{log};
  for (;;) {
    const std::optional<std::size_t> taken = events.take({buffer.data(), held});
    if (!taken) {
      return Error::at(log.file, fmt::format("byte {}", log.n_bytes))
          .found("no record of an event file")
          .expected("an unmodified event file of TensorBoard");
    }
    log.n_bytes += *taken;
    held -= *taken;
    std::memmove(buffer.data(), buffer.data() + *taken, held);
    if (held == buffer.size()) buffer.resize(2 * buffer.size());
    STEPCAST_ASSIGN(const std::size_t n, source.read(buffer.data() + held, buffer.size() - held));
    if (n == 0) break;
    held += n;
  }
  log.n_bytes += held;
  events.finish();
  if (log.steps.empty()) {
    return Error::at(log.file, "")
        .found("an event file of TensorBoard without scalars")
        .expected("scalars of a training run");
  }
  return log;
}

// Reads a whole log. Lines are passed on without their line break.
Result<TrainingLog> read(ByteSource source) {
  TrainingLog log;
  log.file = source.name();
  detail::LogScanner scanner{log};
  constexpr std::size_t kBlock = std::size_t{1} << 18, kLongestLine = std::size_t{1} << 20,
                        kBeginning = std::size_t{1} << 18;
  std::string buffer(kBlock, '\0');
  std::size_t held = 0;   // bytes of an incomplete line at the start of the buffer
  std::string beginning;  // first bytes of the file, for the error message if there are no steps
  for (;;) {
    if (held == buffer.size()) {
      if (held >= kLongestLine) {  // longer than any known line: only its first 1 MiB is read
        scanner.line({buffer.data(), held});
        held = 0;
      } else {
        buffer.resize(2 * buffer.size());
      }
    }
    STEPCAST_ASSIGN(const std::size_t n, source.read(buffer.data() + held, buffer.size() - held));
    if (n == 0) break;
    if (log.n_bytes == 0) {
      constexpr std::size_t kLooked = 4096;
      if (detail::begins_event_file({buffer.data(), n}))
        return read_events(source, std::move(buffer), n, std::move(log));
      if (!is_text({buffer.data(), std::min(n, kLooked)})) {
        return Error::at(log.file, "")
            .found(std::string{detail::name_of_binary({buffer.data(), n})})
            .expected("the log of a training run, text or gzip");
      }
      beginning.assign(buffer.data(), std::min(n, kBeginning));
    } else if (beginning.size() < kBeginning) {
      beginning.append(buffer.data() + held, std::min(n, kBeginning - beginning.size()));
    }
    log.n_bytes += n;
    const std::size_t end = held + n;
    std::size_t from = 0;
    while (from < end) {
      const void* const found = std::memchr(buffer.data() + from, '\n', end - from);
      if (found == nullptr) break;
      const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - buffer.data());
      scanner.line({buffer.data() + from, at - from});
      STEPCAST_TRY(scanner.status());
      from = at + 1;
    }
    held = end - from;
    std::memmove(buffer.data(), buffer.data() + from, held);
  }
  if (held > 0) scanner.line({buffer.data(), held}, true);
  STEPCAST_TRY(scanner.status());
  scanner.finish();
  if (log.steps.empty() && log.runtime_s == 0) return no_step(log, beginning);
  return log;
}

}  // namespace

std::string_view to_string(LogFormat format) {
  const auto i = static_cast<std::size_t>(format);
  return kNames[i < kLogFormats ? i : 0].word;
}
std::string_view log_format_name(LogFormat format) { return kNames[static_cast<std::size_t>(format)].name; }

Result<TrainingLog> read_training_log(const std::filesystem::path& file, const LogReadOptions& options) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, {.progress = options.progress}));
  return read(std::move(source));
}

Result<TrainingLog> parse_training_log(std::string_view content, std::string name) {
  return read(ByteSource::from_memory(content, std::move(name)));
}

// Decides by the first bytes only: event files and UTF-16 pass, so that the reader can explain them.
bool may_be_training_log(std::string_view beginning) {
  if (detail::begins_event_file(beginning) || beginning.starts_with("\xff\xfe")) return true;
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || !is_text(beginning)) return false;
  // A JSON document is another kind of file, but JSON with one object per line may be a log. Lines that begin
  // with "[2025-...", "[rank0]:" or "{'loss'" are not JSON.
  const std::size_t next = beginning.find_first_not_of(" \t\r\n", first + 1);
  const char second = next == std::string_view::npos ? ' ' : beginning[next];
  const std::string_view begin = beginning.substr(0, beginning.find('\n', first));
  const bool is_lines = begin.size() + 1 < beginning.size() && beginning[begin.size() + 1] == '{' &&
                        (begin.ends_with('}') || begin.ends_with("}\r"));
  if (beginning[first] == '{' && second != '\'' && !is_lines) return false;
  if (beginning[first] == '[' && (second == '{' || second == '[' || second == ']')) return false;
  return !beginning.starts_with("version https://git-lfs");
}

}  // namespace stepcast
