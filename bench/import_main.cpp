// How fast and with how much memory profiler traces are imported, on one core: measure_import [FILE...].
// Without files it measures a synthetic trace of 200 MB.
//
//   import MB/s    uncompressed bytes of the file per second of processor time in read_kineto, median of 5
//   bare MB/s      the same for a pass that only inflates and marks the JSON structure, median of 5, same run
//   B/event        the most heap in use during the import, per kept event, above what an empty trace needs
//   events MB/s    cutting the text, in memory, into events and reading the members that are needed
//   simdjson MB/s  the same members with simdjson (package libsimdjson-dev; a dash without it)
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <malloc.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"
#include "stepcast/trace/detail/bracket_scan.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/readers.h"

#include "large_trace.h"
#ifdef STEPCAST_HAVE_SIMDJSON
#include "simdjson_events.h"
#endif

namespace {

std::atomic<std::size_t> heap_bytes{0};
std::atomic<std::size_t> heap_peak{0};

void count_allocation(std::size_t bytes) {
  const std::size_t now = heap_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > heap_peak.load(std::memory_order_relaxed)) heap_peak.store(now, std::memory_order_relaxed);
}

}  // namespace

// Every allocation of this program is counted. Not inlined: the compiler would see malloc behind `new` and free behind
// `delete` apart from each other, and warn that they do not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc{};
  count_allocation(malloc_usable_size(memory));
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  heap_bytes.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace {

using stepcast::ByteSource;
using stepcast::read_kineto;

namespace detail = stepcast::detail;

constexpr int kRepeats = 5;

// Processor time, so that other work on the machine does not count. The import runs on one thread.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const auto& work) {
  const double start = processor_seconds();
  work();
  return processor_seconds() - start;
}

double median_seconds(const auto& work) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) seconds.push_back(seconds_of(work));
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRepeats / 2];
}

// Inflates the file and marks strings and brackets, as any reader has to; gives the number of bytes.
std::uint64_t bare_pass(const std::string& file) {
  auto source = ByteSource::open(file);
  std::vector<char> block((std::size_t{1} << 18) + 64);
  std::uint64_t bytes = 0;
  std::uint64_t brackets = 0;
  std::uint64_t carry = 0;
  while (source.ok()) {
    const auto n = source->read(block.data(), block.size() - 64);
    if (!n.ok() || *n == 0) break;
    bytes += *n;
    for (std::size_t i = 0; i < *n; i += 64) {
      const detail::ByteMasks masks = detail::classify_64(block.data() + i);
      const std::uint64_t in_string = detail::prefix_xor(masks.quote & ~(masks.backslash << 1)) ^ carry;
      carry = (in_string >> 63) != 0 ? ~std::uint64_t{0} : 0;
      brackets += detail::count_bits((masks.open | masks.close) & ~in_string);
    }
  }
  return brackets == 1 ? 0 : bytes;  // keeps the counting from being optimised away
}

// MB/s of the reader, and of simdjson.
std::string event_speeds(const std::string& file) {
  const auto text = stepcast::read_file(file, std::uint64_t{1} << 32U);
  if (!text.ok()) return {};
  const double megabytes = static_cast<double>(text->size()) * 1e-6;
  std::uint64_t events = 0;
  const double seconds = median_seconds([&] {
    ByteSource source = ByteSource::from_memory(*text, file);
    detail::JsonSplitter splitter(source, {"traceEvents"});
    detail::KinetoEvent event;
    detail::EventProblem problem;
    events = 0;
    for (auto step = splitter.next(); step < detail::JsonSplitter::Step::end; step = splitter.next())
      if (step == detail::JsonSplitter::Step::element)
        events += detail::read_kineto_event(splitter.text(), event, problem) ? 1U : 0U;
  });
  std::string simdjson = "-";
#ifdef STEPCAST_HAVE_SIMDJSON
  const simdjson::padded_string padded(*text);
  stepcast::bench::SimdjsonEvents reader;
  stepcast::bench::TakenValues taken;
  const double simdjson_seconds = median_seconds([&] { taken = reader.take_all(padded); });
  simdjson = taken.events == events && taken.bytes > 0 ? fmt::format("{:.0f}", megabytes / simdjson_seconds)
                                                       : "another count";
#endif
  return fmt::format("{:>12.0f} {:>14}", megabytes / seconds, simdjson);
}

std::size_t peak_heap_of(const auto& work) {
  const std::size_t before = heap_bytes;
  heap_peak = before;
  work();
  return heap_peak - before;
}

bool measure(const std::string& file, std::size_t heap_of_nothing) {
  std::size_t kept = 0;
  std::size_t events = 0;
  std::string problem;
  const std::size_t peak = peak_heap_of([&] {
    const auto rank = read_kineto(file);
    if (!rank.ok()) {
      problem = rank.error().message();
      return;
    }
    events = rank->event_count;
    kept =
        rank->cpu_ops.size() + rank->runtime_calls.size() + rank->gpu_ops.size() + rank->stream_syncs.size();
  });
  if (!problem.empty()) {
    fmt::print(stderr, "{}\n", problem);
    return false;
  }
  const double import_seconds = median_seconds([&] { static_cast<void>(read_kineto(file)); });
  std::uint64_t bytes = 0;
  const double bare_seconds = median_seconds([&] { bytes = bare_pass(file); });
  const double megabytes = static_cast<double>(bytes) * 1e-6;
  const double above = static_cast<double>(peak) - static_cast<double>(heap_of_nothing);
  fmt::print("{:>9.1f} {:>9} {:>9} {:>12.0f} {:>10.0f} {:>8.2f} {:>9.1f} {}  {}\n", megabytes, events, kept,
             megabytes / import_seconds, megabytes / bare_seconds, import_seconds / bare_seconds,
             kept == 0 ? 0.0 : std::max(0.0, above) / static_cast<double>(kept), event_speeds(file),
             std::filesystem::path(file).filename().string());
  return true;
}

std::string synthetic_trace(double megabytes) {
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("stepcast_import_{}.json.gz", ::getpid());
  stepcast::bench::LargeTrace trace(1);
  std::string text = trace.header();
  while (static_cast<double>(text.size()) < megabytes * 1e6) text += trace.step();
  text += trace.footer();
  const auto packed = stepcast::gzip_compress(text, 4);
  if (!packed.ok() || !stepcast::write_file(file, *packed).ok()) return {};
  return file.string();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] != '-') files.emplace_back(argv[i]);
  std::string temporary;
  if (files.empty()) {
    temporary = synthetic_trace(200);
    if (temporary.empty()) {
      fmt::print(stderr, "cannot write a synthetic trace\n");
      return 1;
    }
    files.push_back(temporary);
  }
  const std::size_t nothing =
      peak_heap_of([] { static_cast<void>(stepcast::parse_kineto("[]", "nothing")); });
  fmt::print("{:>9} {:>9} {:>9} {:>12} {:>10} {:>8} {:>9} {:>12} {:>14}\n", "MB", "events", "kept",
             "import MB/s", "bare MB/s", "ratio", "B/event", "events MB/s", "simdjson MB/s");
  bool good = true;
  for (const std::string& file : files) good = measure(file, nothing) && good;
  if (!temporary.empty()) std::filesystem::remove(temporary);
  return good ? 0 : 1;
}
