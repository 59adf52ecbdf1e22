// Layers of a ByteSource, from the bottom: a file or a ByteInput fills `pending` (input bytes); read_plain()
// or read_gzip() turns it into content; `peeked` holds content that peek() has already produced.
#include "stepcast/base/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/detail/inflater.h"
#include "stepcast/base/detail/member_input.h"
#include "stepcast/base/read_scope.h"
#include "stepcast/base/stop.h"

namespace stepcast {

using detail::Inflater;
using detail::InflateStep;
using detail::kMaxStep;

namespace {

// Input buffer, and how often progress is reported (bytes of input).
constexpr std::size_t kInputBytes = std::size_t{1} << 17;
// Used bytes that are kept before the unused ones, because ISA-L may return some of them.
constexpr std::size_t kGivenBack = 16;
constexpr std::uint64_t kProgressStep = std::uint64_t{1} << 20;

// The inflater of zlib. 15 + 16: the largest window, and gzip headers only.
class ZlibInflater final : public Inflater {
 public:
  ZlibInflater() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;
  ~ZlibInflater() override {
    if (ready_) inflateEnd(&stream_);
  }
  void start_member() override {
    if (ready_) inflateReset(&stream_);
  }
  InflateStep step(std::string_view input, char* to, std::size_t capacity) override {
    InflateStep result;
    if (!ready_) {
      result.problem = "zlib could not be initialised";
      return result;
    }
    input = input.substr(0, kMaxStep);
    capacity = std::min(capacity, kMaxStep);
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));  // zlib's interface lacks the const
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(capacity);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    result.consumed =
        static_cast<std::ptrdiff_t>(input.size()) - static_cast<std::ptrdiff_t>(stream_.avail_in);
    result.produced = capacity - stream_.avail_out;
    if (code == Z_STREAM_END)
      result.member_ended = true;
    else if (code != Z_OK && code != Z_BUF_ERROR)
      result.problem = stream_.msg != nullptr ? stream_.msg : "invalid gzip data";
    return result;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

// ISA-L if it is linked and wanted, else zlib.
std::unique_ptr<Inflater> make_inflater(InflateEngine engine) {
  std::unique_ptr<Inflater> inflater;
  if (engine == InflateEngine::automatic) inflater = detail::isal_inflater();
  return inflater != nullptr ? std::move(inflater) : std::make_unique<ZlibInflater>();
}

// Closes a C file handle when its unique_ptr ends.
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

// Lifecycle: start() on the first read, then read_plain() or read_gzip() until `ended`. After an error the
// object stays in the `ended` state and returns 0.
struct ByteSource::Impl {
  std::string name;
  Options options;
  // The input: one of these. Both are null for content in memory, which is in `pending` from the start.
  std::unique_ptr<std::FILE, FileCloser> file;
  ByteInput input;
  std::unique_ptr<char[]> buffer;
  std::string_view pending;         // input that was read but not used yet
  std::string peeked;               // content that read() returns next
  std::optional<Error> late_error;  // found by peek(): follows after `peeked`
  std::uint64_t taken = 0;          // bytes of input read so far, including `pending`
  std::uint64_t total = 0;          // bytes of input; 0 if unknown (a pipe)
  std::uint64_t delivered = 0;      // bytes of content returned to the caller
  std::uint64_t next_progress = kProgressStep;
  bool input_ended = false;
  bool started = false;
  bool ended = false;
  std::unique_ptr<Inflater> inflater;  // null: the content is not compressed

  // Allocates the input buffer for files and ByteInputs; `pending` is empty and begins after the space for
  // returned bytes.
  void make_buffer() {
    buffer = std::make_unique_for_overwrite<char[]>(kGivenBack + kInputBytes);
    pending = {buffer.get() + kGivenBack, 0};
  }
  // Bytes of input that were used: the position for errors.
  [[nodiscard]] std::uint64_t offset() const { return taken - pending.size(); }

  // Calls the progress function if at least kProgressStep bytes were read since the last call, or if `force` is true.
  void report_progress(bool force) {
    if (!options.progress || (!force && taken < next_progress)) return;
    next_progress = taken + kProgressStep;
    options.progress(taken, std::max(taken, total));
  }

  [[nodiscard]] bool is_in_memory() const { return file == nullptr && input == nullptr; }

  // Reads from the file or archive member. Returns 0 and sets `input_ended` at the end.
  Result<std::size_t> read_input(char* to, std::size_t capacity) {
    std::size_t got = 0;
    if (input != nullptr) {
      STEPCAST_ASSIGN(got, input(to, capacity));
    } else {
      got = std::fread(to, 1, capacity, file.get());
      if (got == 0 && std::ferror(file.get()) != 0) {
        return Error::at(name, "byte " + std::to_string(taken),
                         "cannot read: " + std::error_code(errno, std::generic_category()).message());
      }
    }
    input_ended = got == 0;
    taken += got;
    return got;
  }

  // Appends more input to `pending`. At the end of the input it only sets `input_ended`. Up to kGivenBack
  // used bytes stay in front of `pending` in the buffer.
  Status refill() {
    if (input_ended) return Ok{};
    if (is_in_memory()) {
      input_ended = true;
      return Ok{};
    }
    const std::size_t used = std::min<std::uint64_t>(offset(), kGivenBack);
    const std::size_t kept = pending.size();
    char* const first = buffer.get() + kGivenBack;
    if (used + kept > 0) std::memmove(first - used, pending.data() - used, used + kept);
    STEPCAST_ASSIGN(const std::size_t got, read_input(first + kept, kInputBytes - kept));
    pending = {first, kept + got};
    report_progress(false);
    return Ok{};
  }

  // Decides from the first two bytes whether the content is gzip.
  Status start() {
    started = true;
    while (pending.size() < 2 && !input_ended) STEPCAST_TRY(refill());
    if (pending.size() >= 2 && pending[0] == '\x1f' && pending[1] == '\x8b') {
      inflater = make_inflater(options.engine);
      inflater->start_member();
    }
    return Ok{};
  }

  // Returns uncompressed content: first what is in `pending`, then blocks that are read without a copy.
  Result<std::size_t> read_plain(char* to, std::size_t capacity) {
    if (pending.empty() && !is_in_memory() && !input_ended) {  // fast path: directly into the caller's memory
      STEPCAST_ASSIGN(const std::size_t got, read_input(to, capacity));
      report_progress(false);
      return got;
    }
    const std::size_t n = std::min(capacity, pending.size());
    if (n > 0) std::memcpy(to, pending.data(), n);
    pending.remove_prefix(n);
    return n;
  }

  // The error for damaged gzip data, with the position in the compressed input.
  Error corrupt(std::string problem, std::string advice) const {
    return Error::at(name, "compressed byte " + std::to_string(offset()), std::move(problem))
        .advice(std::move(advice));
  }

  // After the end of a gzip member: starts the next member, skips padding with zero bytes, or sets `ended`.
  Status next_member() {
    bool padding = false;
    for (;;) {
      if (pending.empty()) {
        STEPCAST_TRY(refill());
        if (pending.empty() && input_ended) {
          ended = true;
          report_progress(true);
          return Ok{};
        }
        continue;
      }
      // Some writers pad files with zero bytes; after padding no further member may follow.
      if (pending.front() == '\0') {
        padding = true;
        pending.remove_prefix(1);
        continue;
      }
      if (pending.front() != '\x1f' || padding) {
        return corrupt("the gzip data is followed by bytes that are not gzip data",
                       "compress the file again or cut it there");
      }
      inflater->start_member();
      return Ok{};
    }
  }

  // An inflater step may consume input without producing content, so it repeats until there is content or the end.
  Result<std::size_t> read_gzip(char* to, std::size_t capacity) {
    while (!ended) {
      if (pending.empty()) STEPCAST_TRY(refill());
      const InflateStep step = inflater->step(pending, to, capacity);
      pending = {pending.data() + step.consumed,
                 static_cast<std::size_t>(static_cast<std::ptrdiff_t>(pending.size()) - step.consumed)};
      if (step.problem != nullptr) {
        return corrupt(std::string("the gzip data is corrupt: ") + step.problem,
                       "copy or download the file again");
      }
      if (step.member_ended) STEPCAST_TRY(next_member());
      if (step.produced > 0) return step.produced;
      // No progress and no more input: the last member is incomplete.
      if (!step.member_ended && step.consumed == 0 && pending.empty() && input_ended)
        return corrupt("the gzip data ends early (a truncated file)", "copy or download the file again");
    }
    return std::size_t{0};
  }
};

ByteSource::ByteSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::open(const std::filesystem::path& file, Options options) {
  STEPCAST_TRY(may_read(file));
  auto impl = std::make_unique<Impl>();
  impl->name = file.string();
  impl->options = std::move(options);
  std::error_code code;
  if (std::filesystem::is_directory(file, code))
    return Error::at(impl->name, "").found("a directory").expected("a file");
  impl->file.reset(std::fopen(file.c_str(), "rb"));
  if (impl->file == nullptr) {
    const int why = errno;
    // ENOTDIR: a part of the path is a file, which may be an archive that contains the rest of the path.
    if (const auto archive = why == ENOTDIR ? archive_of(file) : std::nullopt) {
      STEPCAST_ASSIGN(ByteInput member, detail::open_member(*archive, file));
      return from_input(std::move(member), impl->name, std::move(impl->options));
    }
    return Error::at(impl->name, "",
                     "cannot open: " + std::error_code(why, std::generic_category()).message());
  }
  std::setvbuf(impl->file.get(), nullptr, _IONBF, 0);  // no second buffer: the blocks read here are large
  const auto size = std::filesystem::file_size(file, code);
  if (!code) impl->total = size;
  impl->make_buffer();
  return ByteSource{std::move(impl)};
}

// The size of the input is not known, so progress is not reported.
ByteSource ByteSource::from_input(ByteInput input, std::string name, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::move(name);
  impl->options = std::move(options);
  impl->options.progress = {};
  impl->input = std::move(input);
  impl->make_buffer();
  return ByteSource{std::move(impl)};
}

// No buffer is needed: `pending` is the content itself.
ByteSource ByteSource::from_memory(std::string_view content, std::string name, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::move(name);
  impl->options = std::move(options);
  impl->pending = content;
  impl->taken = content.size();
  impl->total = content.size();
  return ByteSource{std::move(impl)};
}

Result<std::size_t> ByteSource::read(char* to, std::size_t capacity) {
  Impl& s = *impl_;
  if (const std::size_t n = std::min(capacity, s.peeked.size()); n > 0) {
    std::memcpy(to, s.peeked.data(), n);
    s.peeked.erase(0, n);
    return n;
  }
  if (capacity == 0) return std::size_t{0};
  if (s.late_error) return *std::exchange(s.late_error, std::nullopt);
  if (s.ended) return std::size_t{0};
  STEPCAST_TRY(not_stopped());
  if (!s.started) STEPCAST_TRY(s.start());
  auto got = s.inflater != nullptr ? s.read_gzip(to, capacity) : s.read_plain(to, capacity);
  if (!got) {
    s.ended = true;
    return got;
  }
  // The limit applies to decompressed bytes, because a small file may expand to very many.
  s.delivered += *got;
  if (s.delivered > s.options.max_bytes) {
    s.ended = true;
    return Error::at(s.name,
                     (s.inflater != nullptr ? "compressed byte " : "byte ") + std::to_string(s.offset()))
        .found("more than " + std::to_string(s.options.max_bytes) + " bytes of content")
        .expected("at most that many");
  }
  if (*got == 0) {
    s.ended = true;
    s.report_progress(true);
  }
  return got;
}

Result<std::string_view> ByteSource::peek(std::size_t n) {
  Impl& s = *impl_;
  std::string found;
  while (found.size() < n) {
    const std::size_t size = found.size();
    found.resize(n);
    Result<std::size_t> got = read(found.data() + size, n - size);
    found.resize(size + (got ? *got : 0));
    const bool ends = !got || *got == 0;
    if (!got) s.late_error = std::move(got).error();
    if (ends) break;
  }
  s.peeked.insert(0, found);
  if (s.peeked.empty() && s.late_error) return *s.late_error;
  return std::string_view{s.peeked}.substr(0, n);
}

Result<std::uint64_t> ByteSource::skip(std::uint64_t n) {
  Impl& s = *impl_;
  std::uint64_t skipped = 0;
  std::array<char, 1 << 16> block;
  while (skipped < n) {
    const std::uint64_t left = n - skipped;
    const bool may_seek = s.started && s.inflater == nullptr && s.file != nullptr && !s.ended &&
                          s.peeked.empty() && s.pending.empty() && s.total > s.taken;
    // Seeking is possible only in an uncompressed file with nothing buffered.
    if (may_seek && left > block.size()) {
      const std::uint64_t by = std::min(left, s.total - s.taken);
      if (fseeko(s.file.get(), static_cast<off_t>(by), SEEK_CUR) == 0) {
        s.taken += by;
        skipped += by;
        continue;
      }
    }
    STEPCAST_ASSIGN(const std::size_t got, read(block.data(), std::min<std::uint64_t>(left, block.size())));
    if (got == 0) break;
    skipped += got;
  }
  return skipped;
}

const std::string& ByteSource::name() const { return impl_->name; }
bool ByteSource::compressed() const { return impl_->inflater != nullptr; }

}  // namespace stepcast
