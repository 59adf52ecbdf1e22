// A little discrete-event machine: ranks with CPU threads and GPU streams that execute scripts.
//
// It knows nothing of the library's Program or engine, so that traces recorded on it test the import
// honestly. A thread runs its instructions one after the other; calls put work into streams; streams work
// first in, first out; event records and waits stand in the streams as CUDA has them; a collective holds its
// stream until every rank has arrived.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast::test::machine {

inline constexpr int kNone = -1;

// Same numbers on every platform: the standard library's distributions differ between implementations.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}
  double uniform() {  // [0, 1)
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
  double between(double low, double high) { return low + (high - low) * uniform(); }

 private:
  std::uint64_t state_;
};

enum class ItemKind : std::uint8_t { kernel, copy, fill, event_record, event_wait };

// Something in a stream.
struct Item {
  ItemKind kind = ItemKind::kernel;
  int stream = 0;          // dense number within the rank
  double duration_us = 0;  // of a collective: added after the common transfer, this rank's own
  int collective = kNone;  // index into the machine's collectives
  int event = kNone;       // event_record and event_wait
  double delay_us = 2;     // from the end of the launching call to the moment the GPU can start it
  bool delay_from_start = false;
  bool fills_device = false;  // no kernel of another stream can start while it runs
};

struct Instruction {
  enum class Kind : std::uint8_t {
    mark,         // takes no time; its moment is recorded
    work,         // `us` of the thread's own time
    call,         // a runtime call of `us` that puts `item` into its stream
    sync_item,    // a call that returns when `item` (put into its stream before, or by this call) is over
    sync_stream,  // ... when everything put into `stream` so far is over
    sync_device,  // ... when everything on the device is over
    raise,        // sets `flag`
    await,        // blocks until `flag` is set, then resumes after `us`
  };
  Kind kind = Kind::mark;
  double us = 0;         // for calls and synchronisations: the length without waiting
  double return_us = 0;  // synchronisations: from the end of what they wait for to their return
  int item = kNone;
  int stream = kNone;
  int flag = kNone;
};

struct RankScript {
  double start_us = 0;
  int stream_count = 0;
  int event_count = 0;
  int flag_count = 0;
  std::vector<std::vector<Instruction>> threads;
  std::vector<Item> items;
};

struct Collective {
  double transfer_us = 0;
  int members = 0;
};

struct Span {
  double start = 0;
  double end = 0;
};

struct RankRun {
  std::vector<std::vector<Span>> instructions;  // [thread][instruction]
  std::vector<Span> items;
  std::vector<double> ready_us;  // [item] when the stream's own order and the launch let it start
};

struct Options {
  std::uint64_t seed = 1;
  int launch_queue = 1024;     // items a stream may hold before a launching call blocks
  double kernel_gap_us = 1.0;  // between kernels of a stream
  double other_gap_us = 2.2;   // between other neighbours
  double event_latency_us = 1.0;
  double time_jitter = 0.25;  // relative, of gaps and latencies
};

// Stops with an exception (std::logic_error) when the scripts wait for each other in a circle: a mistake in
// the script.
std::vector<RankRun> run(const std::vector<RankScript>& ranks, const std::vector<Collective>& collectives,
                         const Options& options);

}  // namespace stepcast::test::machine
