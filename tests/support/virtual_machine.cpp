#include "tests/support/virtual_machine.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <queue>
#include <stdexcept>
#include <tuple>

namespace stepcast::test::machine {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

struct Stream {
  std::deque<int> queue;  // items not yet over
  bool busy = false;
  double previous_end = -kNever;
  ItemKind previous_kind = ItemKind::kernel;
  double not_before = -kNever;  // latest event waited for
  int put = 0, over = 0;        // counts of all items
};

struct Thread {
  std::size_t next = 0;
  bool blocked = false;
  double due = 0;  // when it goes on, unless it is blocked
};

struct Happening {
  double time;
  std::uint64_t order;  // ties: first scheduled, first served
  enum class Kind { thread, stream, item_over } kind;
  int rank, index;
  bool operator>(const Happening& other) const {
    return std::tie(time, order) > std::tie(other.time, other.order);
  }
};

struct Rank {
  std::vector<Stream> streams;
  std::vector<Thread> threads;
  std::vector<double> visible_us, event_us, flag_us;
  std::vector<char> item_over;
  std::vector<int> stream_target;  // [thread] items that must be over before the thread goes on (sync_stream)
  std::vector<std::vector<int>> device_target;
};

struct Meeting {
  double last_arrival = -kNever;
  std::vector<std::pair<int, int>> arrived;  // rank, item
};

class Machine {
 public:
  Machine(const std::vector<RankScript>& scripts, const std::vector<Collective>& collectives,
          const Options& options)
      : scripts_(scripts),
        collectives_(collectives),
        options_(options),
        random_(options.seed),
        meetings_(collectives.size()) {
    for (const RankScript& s : scripts) {
      Rank r;
      r.streams.resize(at(s.stream_count));
      r.threads.resize(s.threads.size());
      r.visible_us.assign(s.items.size(), kNever);
      r.event_us.assign(at(s.event_count), kNever);
      r.flag_us.assign(at(s.flag_count), kNever);
      r.item_over.assign(s.items.size(), 0);
      r.stream_target.assign(s.threads.size(), 0);
      r.device_target.resize(s.threads.size());
      ranks_.push_back(std::move(r));
      RankRun run;
      for (const auto& t : s.threads) run.instructions.emplace_back(t.size());
      run.items.resize(s.items.size());
      run.ready_us.assign(s.items.size(), 0);
      runs_.push_back(std::move(run));
    }
  }

  std::vector<RankRun> run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t t = 0; t < ranks_[r].threads.size(); ++t) {
        schedule(scripts_[r].start_us, Happening::Kind::thread, static_cast<int>(r), static_cast<int>(t));
      }
    }
    while (!happenings_.empty()) {
      const Happening h = happenings_.top();
      happenings_.pop();
      now_ = h.time;
      switch (h.kind) {
        case Happening::Kind::thread: step_thread(h.rank, h.index); break;
        case Happening::Kind::stream: poll(h.rank, h.index); break;
        case Happening::Kind::item_over: finish_item(h.rank, h.index); break;
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t t = 0; t < ranks_[r].threads.size(); ++t) {
        if (ranks_[r].threads[t].next != scripts_[r].threads[t].size()) {
          throw std::logic_error("virtual machine: a thread never finished its script");
        }
      }
      for (const Stream& s : ranks_[r].streams) {
        if (!s.queue.empty()) throw std::logic_error("virtual machine: a stream never finished its work");
      }
    }
    return std::move(runs_);
  }

 private:
  void schedule(double time, Happening::Kind kind, int rank, int index) {
    happenings_.push({time, order_++, kind, rank, index});
  }
  double jittered(double us) { return us * (1 + options_.time_jitter * random_.between(-1, 1)); }

  // Runs instructions until one takes time or blocks.
  void step_thread(int rank, int index) {
    Rank& r = ranks_[at(rank)];
    Thread& thread = r.threads[at(index)];
    const auto& script = scripts_[at(rank)].threads[at(index)];
    if (!thread.blocked && now_ < thread.due) return;  // woken twice
    while (thread.next < script.size()) {
      const Instruction& i = script[thread.next];
      Span& span = runs_[at(rank)].instructions[at(index)][thread.next];
      double end = now_;
      if (!thread.blocked) span.start = now_;
      switch (i.kind) {
        case Instruction::Kind::mark: break;
        case Instruction::Kind::work: end = now_ + i.us; break;
        case Instruction::Kind::raise:
          r.flag_us[at(i.flag)] = now_;
          wake_threads(rank);
          break;
        case Instruction::Kind::await:
          if (r.flag_us[at(i.flag)] == kNever) return block(thread);
          end = std::max(now_, r.flag_us[at(i.flag)] + i.us);
          break;
        case Instruction::Kind::call: {
          if (i.item != kNone) {
            const Stream& s = r.streams[at(scripts_[at(rank)].items[at(i.item)].stream)];
            if (s.put - s.over >= options_.launch_queue) return block(thread);
          }
          end = now_ + i.us;
          if (i.item != kNone) put(rank, i.item, now_, end);
          break;
        }
        case Instruction::Kind::sync_item:
          if (!thread.blocked && r.visible_us[at(i.item)] == kNever) put(rank, i.item, now_, now_ + i.us);
          if (r.item_over[at(i.item)] == 0) return block(thread);
          end = std::max(span.start + i.us, runs_[at(rank)].items[at(i.item)].end + i.return_us);
          break;
        case Instruction::Kind::sync_stream: {
          const Stream& s = r.streams[at(i.stream)];
          if (!thread.blocked) r.stream_target[at(index)] = s.put;
          if (s.over < r.stream_target[at(index)]) return block(thread);
          end = std::max(span.start + i.us, s.put > 0 ? s.previous_end + i.return_us : now_);
          break;
        }
        case Instruction::Kind::sync_device: {
          auto& target = r.device_target[at(index)];
          if (!thread.blocked) {
            target.clear();
            for (const Stream& s : r.streams) target.push_back(s.put);
          }
          double last = -kNever;
          for (std::size_t s = 0; s < r.streams.size(); ++s) {
            if (r.streams[s].over < target[s]) return block(thread);
            last = std::max(last, r.streams[s].previous_end);
          }
          end = std::max(span.start + i.us, last + i.return_us);
          break;
        }
      }
      thread.blocked = false;
      span.end = std::max(end, now_);
      ++thread.next;
      if (span.end > now_) {
        thread.due = span.end;
        return schedule(span.end, Happening::Kind::thread, rank, index);
      }
    }
    thread.due = kNever;
  }

  static void block(Thread& thread) { thread.blocked = true; }

  void wake_threads(int rank) {
    Rank& r = ranks_[at(rank)];
    for (std::size_t t = 0; t < r.threads.size(); ++t) {
      if (r.threads[t].blocked) schedule(now_, Happening::Kind::thread, rank, static_cast<int>(t));
    }
  }

  void put(int rank, int item, double call_start, double call_end) {
    const Item& it = scripts_[at(rank)].items[at(item)];
    Rank& r = ranks_[at(rank)];
    r.visible_us[at(item)] = (it.delay_from_start ? call_start : call_end) + it.delay_us;
    Stream& s = r.streams[at(it.stream)];
    s.queue.push_back(item);
    ++s.put;
    schedule(r.visible_us[at(item)], Happening::Kind::stream, rank, it.stream);
  }

  static bool is_work(ItemKind kind) {
    return kind != ItemKind::event_record && kind != ItemKind::event_wait;
  }

  void pop(int rank, Stream& s) {
    ranks_[at(rank)].item_over[at(s.queue.front())] = 1;
    s.queue.pop_front();
    ++s.over;
  }

  // Starts what can start at the head of a stream.
  void poll(int rank, int stream) {
    Rank& r = ranks_[at(rank)];
    Stream& s = r.streams[at(stream)];
    const auto& items = scripts_[at(rank)].items;
    bool popped = false;
    while (!s.busy && !s.queue.empty()) {
      const int head = s.queue.front();
      const Item& it = items[at(head)];
      if (r.visible_us[at(head)] > now_) break;  // polled again then
      if (it.kind == ItemKind::event_record) {
        r.event_us[at(it.event)] = now_;
        runs_[at(rank)].items[at(head)] = {now_, now_};
        pop(rank, s);
        popped = true;
        for (int other = 0; other < static_cast<int>(r.streams.size()); ++other) {
          if (other != stream) schedule(now_, Happening::Kind::stream, rank, other);
        }
        continue;
      }
      if (it.kind == ItemKind::event_wait) {
        if (it.event != kNone) {
          if (r.event_us[at(it.event)] == kNever) break;  // polled again when it is recorded
          s.not_before =
              std::max(s.not_before, r.event_us[at(it.event)] + jittered(options_.event_latency_us));
        }
        runs_[at(rank)].items[at(head)] = {now_, now_};
        pop(rank, s);
        popped = true;
        continue;
      }
      if (runs_[at(rank)].ready_us[at(head)] == 0) {
        const bool kernels = it.kind == ItemKind::kernel && s.previous_kind == ItemKind::kernel;
        const double gap = jittered(kernels ? options_.kernel_gap_us : options_.other_gap_us);
        runs_[at(rank)].ready_us[at(head)] =
            std::max({r.visible_us[at(head)], s.previous_end + gap, s.not_before});
      }
      const double ready = runs_[at(rank)].ready_us[at(head)];
      if (ready > now_) {
        schedule(ready, Happening::Kind::stream, rank, stream);
        break;
      }
      if (it.kind == ItemKind::kernel && device_full(rank, stream))
        break;  // polled again when that kernel ends
      s.busy = true;
      runs_[at(rank)].items[at(head)].start = now_;
      if (it.collective == kNone) {
        runs_[at(rank)].items[at(head)].end = now_ + it.duration_us;
        schedule(now_ + it.duration_us, Happening::Kind::item_over, rank, stream);
      } else {
        arrive(rank, head);
      }
    }
    if (popped) wake_threads(rank);
  }

  bool device_full(int rank, int stream) const {
    const Rank& r = ranks_[at(rank)];
    for (std::size_t other = 0; other < r.streams.size(); ++other) {
      const Stream& s = r.streams[other];
      if (static_cast<int>(other) != stream && s.busy &&
          scripts_[at(rank)].items[at(s.queue.front())].fills_device)
        return true;
    }
    return false;
  }

  void arrive(int rank, int item) {
    const int collective = scripts_[at(rank)].items[at(item)].collective;
    Meeting& m = meetings_[at(collective)];
    m.last_arrival = std::max(m.last_arrival, now_);
    m.arrived.emplace_back(rank, item);
    if (static_cast<int>(m.arrived.size()) < collectives_[at(collective)].members) return;
    for (const auto& [member, member_item] : m.arrived) {
      const Item& it = scripts_[at(member)].items[at(member_item)];
      const double end = m.last_arrival + collectives_[at(collective)].transfer_us + it.duration_us;
      runs_[at(member)].items[at(member_item)].end = end;
      schedule(end, Happening::Kind::item_over, member, it.stream);
    }
  }

  void finish_item(int rank, int stream) {
    Rank& r = ranks_[at(rank)];
    Stream& s = r.streams[at(stream)];
    const Item& it = scripts_[at(rank)].items[at(s.queue.front())];
    s.busy = false;
    s.previous_end = now_;
    s.previous_kind = it.kind;
    pop(rank, s);
    for (int other = 0; other < static_cast<int>(r.streams.size()); ++other) {
      if (other == stream || it.fills_device) schedule(now_, Happening::Kind::stream, rank, other);
    }
    wake_threads(rank);
  }

  const std::vector<RankScript>& scripts_;
  const std::vector<Collective>& collectives_;
  Options options_;
  Random random_;
  std::vector<Meeting> meetings_;
  std::vector<Rank> ranks_;
  std::vector<RankRun> runs_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  std::uint64_t order_ = 0;
  double now_ = 0;
};

}  // namespace

std::vector<RankRun> run(const std::vector<RankScript>& ranks, const std::vector<Collective>& collectives,
                         const Options& options) {
  return Machine{ranks, collectives, options}.run();
}

}  // namespace stepcast::test::machine
