// Reads XLA profiles in two passes over the message in memory. The first collects planes with their tables of
// names; the second visits the events of each line. Field numbers are those of XLA's xplane.proto.
#include "stepcast/trace/xla_profile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/scan.h"
#include "stepcast/trace/detail/leading_bytes.h"
#include "stepcast/trace/detail/protobuf.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/rank_builder.h"
#include "stepcast/trace/detail/xplane.h"

namespace stepcast {
namespace {

using detail::EventClass;
using detail::KinetoEvent;
using detail::RankBuilder;
using detail::XEvent;
using detail::XLine;
using detail::XPlane;

// A host has fewer devices. Each device gets the steps and threads of the host, which are limited together.
constexpr std::size_t kMostDevices = 256, kMostHostParts = 1'000'000;
constexpr std::int64_t kLatestNs = 3'900'000'000'000'000'000;  // since 1970
constexpr std::int64_t kHostPid = 701;                         // as the trace viewer of XLA numbers the host
constexpr std::string_view kEnclosing = "encloses other operations";
constexpr std::string_view kDerived = "on lines that repeat the work";
constexpr std::string_view kOtherHostEvent = "of the host";

// The number behind the last colon of "/device:GPU:0"; empty for other planes, such as "/host:CPU" and
// "/device:TPU:0 SparseCore 1".
std::optional<std::int32_t> device_number(std::string_view plane) {
  if (!plane.starts_with("/device:GPU:") && !plane.starts_with("/device:TPU:")) return std::nullopt;
  const auto number = scan<std::int32_t>(plane.substr(plane.rfind(':') + 1));
  return number.value_or(-1) >= 0 ? number : std::nullopt;
}

// The collective of an operation of a program: "all-reduce.3", "all-gather-start.1". `unknown` for others.
CollectiveOp collective_of(std::string_view hlo_op) {
  constexpr std::pair<std::string_view, CollectiveOp> kNames[] = {
      {"all-reduce-scatter", CollectiveOp::reduce_scatter},
      {"all-reduce", CollectiveOp::all_reduce},
      {"all-gather", CollectiveOp::all_gather},
      {"reduce-scatter", CollectiveOp::reduce_scatter},
      {"all-to-all", CollectiveOp::all_to_all},
      {"ragged-all-to-all", CollectiveOp::all_to_all},
      {"collective-permute", CollectiveOp::send_receive},
      {"collective-broadcast", CollectiveOp::broadcast},
  };
  if (hlo_op.starts_with('%')) hlo_op.remove_prefix(1);
  for (const auto& [name, op] : kNames)
    if (hlo_op.starts_with(name)) return op;
  return CollectiveOp::unknown;
}

// The operation starts an asynchronous one and does not wait for it: "all-gather-start.1".
bool is_start(std::string_view hlo_op) {
  // A whole instruction also names its operands: "%all-gather-done.1 = ... all-gather-done(%all-gather-start.1)".
  return hlo_op.substr(0, hlo_op.find(' ')).find("-start") != std::string_view::npos;
}

// The number behind "size:" of "kind_src:device kind_dst:host size:1024 dest:0 async:1"; -1 if there is none.
std::int64_t copied_bytes(std::string_view details) {
  constexpr std::string_view kKey = "size:";
  const std::size_t key = details.find(kKey);
  if (key == std::string_view::npos) return -1;
  details.remove_prefix(key + kKey.size());
  return std::max<std::int64_t>(-1, scan<std::int64_t>(details.substr(0, details.find(' '))).value_or(-1));
}

// A stretch of time that becomes a step, on the clock of the lines.
struct Step {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
};

// An event of the host with a `step_num`, or a call with a `correlation_id`.
struct HostEvent {
  std::string_view name;
  std::int64_t start_ns = 0, duration_ns = 0;
  std::int64_t thread = 0;
  std::int64_t correlation = -1;
};

// What the host recorded.
struct Host {
  std::vector<HostEvent> calls;
  std::vector<Step> steps;  // by start
  std::string_view steps_called;
  std::int64_t steps_thread = 0;
  std::map<std::int64_t, std::string_view> threads;
  std::uint64_t others = 0;  // number of other events
};

// A piece of work of a device.
struct Work {
  std::string_view name, hlo_op, copy, fill;
  std::int64_t start_ns = 0, duration_ns = 0, correlation = -1, stream = 0;
};

// What a device recorded.
struct Device {
  const XPlane* plane = nullptr;
  std::int32_t number = 0;
  bool is_tpu = false;
  std::vector<Work> work;
  std::vector<Step> steps;
  std::map<std::string_view, std::vector<Step>> modules;  // executions by module
  std::map<std::string_view, std::uint64_t> skipped;
};

void sort_steps(std::vector<Step>& steps) { std::ranges::stable_sort(steps, {}, &Step::start_ns); }

// A number that names a stream ("Stream #13(Compute)"), else the number of the line.
std::int64_t stream_of(const XLine& line) {
  constexpr std::string_view kPrefix = "Stream #";
  const std::string_view digits = line.name.substr(kPrefix.size());
  return scan<std::int64_t>(digits.substr(0, digits.find('('))).value_or(line.id);
}

// Removes work that encloses later work of its stream: loops and calls. Their operations are also on the
// line, since the events of a line are nested.
void drop_enclosing(Device& device) {
  std::ranges::stable_sort(device.work, [](const Work& a, const Work& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
  std::map<std::int64_t, std::size_t> last;  // on a stream
  std::vector<bool> encloses(device.work.size(), false);
  for (std::size_t i = 0; i < device.work.size(); ++i) {
    const Work& work = device.work[i];
    if (const auto before = last.find(work.stream); before != last.end()) {
      const Work& outer = device.work[before->second];
      encloses[before->second] = work.start_ns + work.duration_ns <= outer.start_ns + outer.duration_ns &&
                                 work.start_ns < outer.start_ns + outer.duration_ns;
    }
    last[work.stream] = i;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < device.work.size(); ++i)
    if (!encloses[i]) device.work[kept++] = device.work[i];
  if (kept < device.work.size()) device.skipped[kEnclosing] += device.work.size() - kept;
  device.work.resize(kept);
}

// The executions of the module with most time, each up to the start of the next one, and its name.
std::pair<std::string_view, std::vector<Step>> module_steps(const Device& device) {
  const auto total_ns = [](const std::vector<Step>& executions) {
    double sum = 0;
    for (const Step& step : executions) sum += static_cast<double>(step.end_ns - step.start_ns);
    return sum;
  };
  const auto most = std::ranges::max_element(device.modules, {},
                                             [&](const auto& module) { return total_ns(module.second); });
  if (most == device.modules.end()) return {};
  std::vector<Step> steps = most->second;
  sort_steps(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].number = static_cast<std::int64_t>(i);
    if (i + 1 < steps.size()) steps[i].end_ns = steps[i + 1].start_ns;
  }
  return {most->first, std::move(steps)};
}

// Collects planes, then builds the ranks.
class ProfileReader {
 public:
  ProfileReader(std::string_view content, const std::string& file) : content_(content), file_(file) {}

  Result<std::vector<RecordedRank>> read() {
    STEPCAST_TRY(read_space());
    for (const XPlane& plane : planes_) {
      if (const auto number = device_number(plane.name)) {
        STEPCAST_TRY(read_device(plane, *number));
      } else if (plane.name.starts_with("/host:")) {
        STEPCAST_TRY(read_host(plane));
      } else if (plane.name == "Task Environment") {
        base_ns_ = detail::number_in(plane, "profile_start_time").value_or(0);
        if (base_ns_ < 0 || base_ns_ > kLatestNs) base_ns_ = 0;  // relative times suffice
      }
    }
    if (std::ranges::none_of(devices_, [](const Device& d) { return !d.work.empty(); })) return nothing_ran();
    std::erase_if(devices_, [](const Device& d) { return d.work.empty(); });
    if (const std::size_t parts = host_.steps.size() + host_.threads.size();
        parts > kMostHostParts / devices_.size()) {
      return Error::at(file_, "planes")
          .found(fmt::format("{} devices and {} steps and threads of the host", devices_.size(), parts))
          .expected(fmt::format("a product of at most {}", kMostHostParts));
    }
    std::ranges::stable_sort(devices_, {}, &Device::number);
    for (std::size_t d = 0; d < devices_.size(); ++d)
      for (const Work& work : devices_[d].work)
        if (work.correlation >= 0) launched_.try_emplace(work.correlation, d);
    sort_steps(host_.steps);
    // Times count from the start of the profile, or from 1970 in files that were not finished.
    if (latest_line_ns_ >= base_ns_) base_ns_ = 0;
    std::vector<RecordedRank> ranks;
    ranks.reserve(devices_.size());
    for (const Device& device : devices_) {
      STEPCAST_ASSIGN(RecordedRank rank, rank_of(device));
      if (devices_.size() > 1) rank.rank = static_cast<std::int32_t>(ranks.size());
      ranks.push_back(std::move(rank));
    }
    return ranks;
  }

 private:
  // The error for a message that is not valid protobuf.
  [[nodiscard]] Error damaged(std::string_view message, std::string_view what) const {
    return Error::at(file_, fmt::format("byte {}", message.data() - content_.data()))
        .found(fmt::format("{} that does not follow the protobuf format", what))
        .expected("an XLA profile (XSpace, *.xplane.pb)")
        .advice("copy or write the file again");
  }

  // The error for a file without work on a device.
  [[nodiscard]] Error nothing_ran() const {
    const std::string found =
        devices_.empty()
            ? std::string{"no plane of a device (a CPU-only profile)"}
            : fmt::format("no operations on {}", detail::quote_for_message(devices_.front().plane->name));
    return Error::at(file_, "planes")
        .found(found)
        .expected("operations on a plane \"/device:GPU:0\" or \"/device:TPU:0\"")
        .advice("profile the training where it runs on GPUs or TPUs");
  }

  // Reads planes and what the profiler says about its recording.
  Status read_space() {
    detail::ProtobufFields f{content_};
    std::string_view rest = content_;
    while (f.next()) {
      if (!f.is_bytes()) continue;
      rest = content_.substr(static_cast<std::size_t>(f.bytes().data() - content_.data()) + f.bytes().size());
      if (f.number() == 1) {
        planes_.emplace_back();
        if (!detail::read_plane(f.bytes(), planes_.back())) return damaged(f.bytes(), "a plane");
      }
      constexpr std::size_t kMostNotes = 3, kLongestNote = 200;
      if ((f.number() == 2 || f.number() == 3) && notes_.size() < kMostNotes)
        notes_.push_back(fmt::format("the profiler says: {}", f.bytes().substr(0, kLongestNote)));
    }
    if (f.damaged()) return damaged(rest, "a plane");
    return Ok{};
  }

  // Calls `visit` with every event of a line and its start and duration in ns. Counts those with invalid
  // times.
  template <class Visit>
  Status for_each_event(const XPlane& plane, const XLine& line, const Visit& visit) {
    constexpr std::int64_t kLongestPs = std::int64_t{1} << 61;
    latest_line_ns_ = std::max(latest_line_ns_, line.timestamp_ns);
    detail::ProtobufFields f{line.message};
    while (f.next()) {
      if (f.number() != detail::kLineEvents) continue;
      XEvent event;
      if (!detail::read_event(plane, f.bytes(), event)) return damaged(f.bytes(), "an event");
      const bool in_range = line.timestamp_ns >= 0 && line.timestamp_ns <= kLatestNs &&
                            event.offset_ps >= 0 && event.offset_ps <= kLongestPs && event.duration_ps >= 0 &&
                            event.duration_ps <= kLongestPs;
      if (!in_range) {
        ++bad_times_;
        continue;
      }
      // Both ends are rounded, so that events that meet still do.
      const auto ns = [](std::int64_t ps) { return (ps + 500) / 1000; };
      const std::int64_t start = ns(event.offset_ps);
      visit(event, line.timestamp_ns + start, ns(event.offset_ps + event.duration_ps) - start);
    }
    return Ok{};
  }

  // Reads the work, steps and modules of a device. Other lines repeat the work by other names.
  Status read_device(const XPlane& plane, std::int32_t number) {
    if (devices_.size() >= kMostDevices) {
      return Error::at(file_, "planes")
          .found(fmt::format("more than {} devices", kMostDevices))
          .expected("the devices of one host");
    }
    Device& device = devices_.emplace_back(
        Device{.plane = &plane, .number = number, .is_tpu = plane.name.starts_with("/device:TPU:")});
    for (const XLine& line : plane.lines) {
      const bool is_work = device.is_tpu ? line.name == "XLA Ops" : line.name.starts_with("Stream #");
      const std::int64_t stream = device.is_tpu ? 0 : is_work ? stream_of(line) : 0;
      STEPCAST_TRY(for_each_event(plane, line, [&](const XEvent& event, std::int64_t start, std::int64_t ns) {
        const Step stretch{event.step, start, start + ns};
        if (is_work) {
          device.work.push_back({event.name, event.hlo_op.empty() ? event.name : event.hlo_op, event.copy,
                                 event.fill, start, ns, event.correlation, stream});
          return;
        }
        ++device.skipped[kDerived];
        if (line.name == "XLA Modules")
          device.modules[event.name.substr(0, event.name.find('('))].push_back(stretch);
        if (line.name != "Steps" || ns == 0) return;
        device.steps.push_back(stretch);
        if (event.step < 0)
          device.steps.back().number =
              scan<std::int64_t>(event.name).value_or(static_cast<std::int64_t>(device.steps.size()) - 1);
      }));
    }
    if (device.is_tpu) drop_enclosing(device);
    sort_steps(device.steps);
    return Ok{};
  }

  // Reads calls and step annotations of the host. Of several kinds of annotations, those with most time are
  // steps of the training.
  Status read_host(const XPlane& plane) {
    struct Annotations {
      double total_ns = 0;
      std::int64_t thread = 0;
      std::vector<Step> steps;
    };
    std::map<std::string_view, Annotations> by_name;
    for (const XLine& line : plane.lines) {
      host_.threads.emplace(line.id, line.name);
      STEPCAST_TRY(for_each_event(plane, line, [&](const XEvent& event, std::int64_t start, std::int64_t ns) {
        if (event.step >= 0 && ns > 0) {
          Annotations& of_name = by_name[event.name];
          of_name.total_ns += static_cast<double>(ns);
          of_name.thread = line.id;
          of_name.steps.push_back({event.step, start, start + ns});
        } else if (event.correlation >= 0) {
          host_.calls.push_back({event.name, start, ns, line.id, event.correlation});
        } else {
          ++host_.others;
        }
      }));
    }
    const auto most = std::ranges::max_element(
        by_name, {}, [](const auto& annotations) { return annotations.second.total_ns; });
    if (most == by_name.end() || !host_.steps.empty()) return Ok{};
    host_.steps = std::move(most->second.steps);
    host_.steps_called = most->first;
    host_.steps_thread = most->second.thread;
    return Ok{};
  }

  // The device with work of this correlation; null if there is none.
  [[nodiscard]] const Device* launched_by(const HostEvent& call) const {
    const auto owner = launched_.find(call.correlation);
    return owner == launched_.end() ? nullptr : &devices_[owner->second];
  }

  // The calls of threads that launch work of this device, without those that launch work of other devices.
  [[nodiscard]] std::vector<const HostEvent*> calls_of(const Device& device) const {
    std::unordered_set<std::int64_t> threads;
    for (const HostEvent& call : host_.calls)
      if (launched_by(call) == &device) threads.insert(call.thread);
    std::vector<const HostEvent*> calls;
    for (const HostEvent& call : host_.calls) {
      const Device* const owner = launched_by(call);
      if ((owner == nullptr || owner == &device) && threads.contains(call.thread)) calls.push_back(&call);
    }
    return calls;
  }

  // The steps of a device and the note that says where they come from. See the header for the order.
  struct ChosenSteps {
    std::vector<Step> steps;
    std::int64_t thread = -1;
    std::string from;
    bool by_launch = false;
  };
  [[nodiscard]] ChosenSteps steps_of(const Device& device, const std::vector<const HostEvent*>& calls) const {
    const auto launches_in_a_step = [&](const HostEvent* call) {
      const auto next = std::ranges::upper_bound(host_.steps, call->start_ns, {}, &Step::start_ns);
      return next != host_.steps.begin() && call->start_ns < std::prev(next)->end_ns &&
             launched_by(*call) == &device;
    };
    const std::string annotations =
        fmt::format("annotations {} of the host", detail::quote_for_message(host_.steps_called));
    if (std::ranges::any_of(calls, launches_in_a_step))
      return {host_.steps, host_.steps_thread, annotations, true};
    if (!device.steps.empty()) return {device.steps, -1, "the line \"Steps\" of the device", false};
    auto [module, executions] = module_steps(device);
    if (!executions.empty()) {
      return {std::move(executions), -1,
              fmt::format("executions of {}, each up to the next one", detail::quote_for_message(module)),
              false};
    }
    if (!host_.steps.empty())
      return {host_.steps, host_.steps_thread, annotations + ", with the work that runs during them", false};
    return {};
  }

  // Adds a piece of work. Collectives are known by their kernel, or by the operation of the program. On a TPU
  // the start of an asynchronous collective only issues it, and its end is the exposed time.
  static void add_work(RankBuilder& builder, const Device& device, const Work& work) {
    KinetoEvent event{
        .event_class = EventClass::kernel, .start_ns = work.start_ns, .duration_ns = work.duration_ns};
    event.name.raw = work.name;
    event.pid.number = device.number;
    event.args.device = device.number;
    event.args.stream = event.tid.number = work.stream;
    event.args.correlation = work.correlation;
    std::string copy;  // "MemcpyD2H" as "Memcpy DtoH", the name that CUPTI's other users write
    if (!work.copy.empty() || work.name.starts_with("Memcpy")) {
      event.event_class = EventClass::memcpy;
      event.args.bytes = copied_bytes(work.copy);
      if (work.name.size() == 9 && work.name[7] == '2') {
        copy = fmt::format("Memcpy {}to{}", work.name[6], work.name[8]);
        event.name.raw = copy;
      }
    } else if (!work.fill.empty() || work.name.starts_with("Memset")) {
      event.event_class = EventClass::memset;
      event.args.bytes = copied_bytes(work.fill);
    } else if (const CollectiveOp op = collective_of(work.hlo_op);
               op != CollectiveOp::unknown && !(device.is_tpu && is_start(work.hlo_op))) {
      event.args.collective.any = true;
      event.args.collective.name.raw = to_string(op);
    }
    builder.add(event);
  }

  // Adds steps and, if these are of the host, calls.
  void add_host(RankBuilder& builder, const ChosenSteps& steps,
                const std::vector<const HostEvent*>& calls) const {
    const bool with_calls = steps.by_launch || steps.steps.empty();
    const auto on_thread = [](std::int64_t thread) {
      KinetoEvent event;
      event.pid.number = kHostPid;
      event.tid.number = thread;
      return event;
    };
    const auto name_thread = [&](std::int64_t thread, std::string_view name) {
      KinetoEvent event = on_thread(thread);
      event.event_class = EventClass::thread_name;
      event.args.name.raw = name;
      builder.add(event);
    };
    for (const Step& step : steps.steps) {
      KinetoEvent event = on_thread(steps.thread);
      const std::string name = fmt::format("ProfilerStep#{}", step.number);
      event.event_class = EventClass::annotation;
      event.name.raw = name;
      event.start_ns = step.start_ns;
      event.duration_ns = step.end_ns - step.start_ns;
      builder.add(event);
    }
    for (const HostEvent* call : calls) {
      if (!with_calls) break;
      KinetoEvent event = on_thread(call->thread);
      event.event_class = EventClass::runtime;
      event.name.raw = call->name;
      event.start_ns = call->start_ns;
      event.duration_ns = call->duration_ns;
      event.args.correlation = call->correlation;
      builder.add(event);
    }
    for (const auto& [thread, name] : host_.threads) name_thread(thread, name);
    if (steps.thread < 0) name_thread(steps.thread, "steps");
    const std::uint64_t left_out = host_.others + (with_calls ? 0 : host_.calls.size());
    if (left_out > 0) builder.rank().skipped[std::string{kOtherHostEvent}] += left_out;
    builder.rank().event_count += left_out;
  }

  // Builds the rank of a device with the same builder as the events of Kineto. Facts that the plane lacks stay
  // unknown.
  Result<RecordedRank> rank_of(const Device& device) const {
    RankBuilder builder{file_};
    RecordedRank& rank = builder.rank();
    rank.format = ProfileFormat::xplane;
    const auto small = [&](std::string_view stat) {
      return std::clamp<std::int64_t>(detail::number_in(*device.plane, stat).value_or(0), 0, INT32_MAX);
    };
    rank.devices.push_back(
        {.id = device.number,
         .name = std::string{detail::text_in(*device.plane, "device_type_string").substr(0, 64)},
         .memory_bytes =
             std::max<std::int64_t>(0, detail::number_in(*device.plane, "memory_size").value_or(0)),
         .sm_count = static_cast<std::int32_t>(small("core_count"))});
    const std::vector<const HostEvent*> calls = calls_of(device);
    const ChosenSteps steps = steps_of(device, calls);
    rank.notes = notes_;
    if (!steps.from.empty()) rank.notes.push_back(fmt::format("steps are {}", steps.from));
    for (const Work& work : device.work) add_work(builder, device, work);
    add_host(builder, steps, calls);
    for (const auto& [reason, n] : device.skipped) {
      rank.skipped[std::string{reason}] += n;
      rank.event_count += n;
    }
    if (bad_times_ > 0) rank.skipped[std::string{kBadTime}] += bad_times_;
    return builder.finish(base_ns_);
  }

  std::string_view content_;
  const std::string& file_;
  std::vector<XPlane> planes_;
  std::vector<Device> devices_;
  std::unordered_map<std::int64_t, std::size_t> launched_;  // [correlation] position of the device
  Host host_;
  std::vector<std::string> notes_;
  std::uint64_t bad_times_ = 0;
  std::int64_t base_ns_ = 0, latest_line_ns_ = 0;
};

}  // namespace

bool is_xla_profile(std::string_view beginning) {
  return detail::recognise_leading_bytes(beginning) == detail::LeadingBytes::xplane;
}

Result<std::vector<RecordedRank>> parse_xla_profile(std::string_view content, const std::string& name) {
  return ProfileReader{content, name}.read();
}

// Protobuf messages have at most 2 GiB.
Result<std::vector<RecordedRank>> read_xla_profile(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string content, read_file(file, std::uint64_t{1} << 31));
  return parse_xla_profile(content, file.string());
}

}  // namespace stepcast
