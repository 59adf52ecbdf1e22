// XLA profiles (XSpace), written field by field.
//
//   PlaneText gpu{"/device:GPU:0"};
//   gpu.line("Stream #13(Compute)", {gpu.event("gemm", 10'000, 30'000)});      // picoseconds
//   const std::string file = xplane_file({gpu});
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/chakra_text.h"

namespace stepcast::test {

class PlaneText {
 public:
  explicit PlaneText(std::string_view name) { message_.text(2, name); }

  // A fact about an event or plane: a number, a text, or a text by reference.
  std::string stat(std::string_view name, std::uint64_t number) {
    return ProtobufMessage{}.number(1, id_of(name, kStats)).number(4, number).text();
  }
  std::string stat(std::string_view name, std::string_view text) {
    return ProtobufMessage{}.number(1, id_of(name, kStats)).text(5, text).text();
  }
  std::string reference(std::string_view name, std::string_view text) {
    return ProtobufMessage{}.number(1, id_of(name, kStats)).number(7, id_of(text, kStats)).text();
  }
  std::string event(std::string_view name, std::uint64_t offset_ps, std::uint64_t duration_ps,
                    const std::vector<std::string>& stats = {}) {
    ProtobufMessage event;
    event.number(1, id_of(name, kEvents)).number(2, offset_ps).number(3, duration_ps);
    for (const std::string& stat : stats) event.text(4, stat);
    return event.text();
  }
  PlaneText& line(std::string_view name, const std::vector<std::string>& events, std::uint64_t id = 0,
                  std::uint64_t timestamp_ns = 0) {
    ProtobufMessage line;
    line.number(1, id).text(2, name).number(3, timestamp_ns);
    for (const std::string& event : events) line.text(4, event);
    message_.text(3, line.text());
    return *this;
  }
  PlaneText& fact(const std::string& stat) {
    message_.text(6, stat);
    return *this;
  }
  [[nodiscard]] std::string text() const {
    ProtobufMessage all = message_;
    for (const auto& [key, id] : ids_) {
      ProtobufMessage metadata, entry;
      metadata.number(1, id).text(2, key.second);
      all.text(key.first, entry.number(1, id).text(2, metadata.text()).text());
    }
    return all.text();
  }

 private:
  static constexpr std::uint64_t kEvents = 4, kStats = 5;  // fields of the tables of names

  std::uint64_t id_of(std::string_view name, std::uint64_t table) {
    return ids_.try_emplace({table, std::string{name}}, ids_.size() + 1).first->second;
  }

  ProtobufMessage message_;
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> ids_;
};

inline std::string xplane_file(std::initializer_list<PlaneText> planes) {
  ProtobufMessage space;
  for (const PlaneText& plane : planes) space.text(1, plane.text());
  return space.text();
}

// Two steps on a GPU, 100 us apart. Microseconds of the first one: gemm 10 to 40, add 40 to 50 on stream 13,
// an all-reduce from 50 to 70 on stream 14. In the second step the all-reduce takes 5 us longer. Correlations
// are 10 times the step plus 1, 2 and 3, and 100 more per device.
inline PlaneText two_steps(std::uint64_t device) {
  constexpr std::uint64_t kUs = 1'000'000;  // picoseconds
  PlaneText gpu{"/device:GPU:" + std::to_string(device)};
  std::vector<std::string> compute, transfers;
  for (const std::uint64_t step : {1U, 2U}) {
    const std::uint64_t start = (step - 1) * 100 * kUs, first = 100 * device + 10 * step;
    compute.push_back(gpu.event("gemm", start + 10 * kUs, 30 * kUs,
                                {gpu.stat("correlation_id", first + 1), gpu.reference("hlo_op", "dot.1")}));
    compute.push_back(gpu.event("add", start + 40 * kUs, 10 * kUs, {gpu.stat("correlation_id", first + 2)}));
    transfers.push_back(
        gpu.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 50 * kUs, (step == 1 ? 20 : 25) * kUs,
                  {gpu.stat("correlation_id", first + 3), gpu.reference("hlo_op", "all-reduce-start.2")}));
  }
  gpu.line("Stream #13(Compute)", compute, 13).line("Stream #14(Compute)", transfers, 14);
  return gpu;
}

}  // namespace stepcast::test
