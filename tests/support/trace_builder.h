// Writes small recorded ranks by hand, event by event, for tests.
#pragma once

#include <string_view>

#include "stepcast/trace/recorded_rank.h"

namespace stepcast::test {

// All times in microseconds. Events may be added in any order; build() sorts them as a reader would.
class TraceBuilder {
 public:
  explicit TraceBuilder(int rank = 0, int world_size = 1);

  int thread(std::int64_t tid);
  TraceBuilder& op(int thread, std::string_view name, double start_us, double duration_us);
  // Of the operator added last.
  TraceBuilder& sequence(std::int64_t number);
  TraceBuilder& annotation(int thread, std::string_view name, double start_us, double duration_us);
  TraceBuilder& step(int thread, int number, double start_us, double duration_us);
  // Returns the correlation of the call.
  std::int64_t call(int thread, std::string_view name, double start_us, double duration_us);
  TraceBuilder& kernel(std::int64_t correlation, int stream, std::string_view name, double start_us,
                       double duration_us, float blocks_per_sm = 1);
  TraceBuilder& memcpy(std::int64_t correlation, int stream, std::string_view name, double start_us,
                       double duration_us);
  // A launch and its kernel in one go.
  TraceBuilder& launch(int thread, double call_us, double call_length_us, int stream,
                       std::string_view kernel_name, double start_us, double duration_us);
  TraceBuilder& stream_wait(std::int64_t correlation, int waiting_stream, int awaited_stream,
                            std::int64_t record_correlation);

  // Totals of the caching allocator from then on.
  TraceBuilder& allocator(double at_us, std::int64_t allocated_bytes, std::int64_t reserved_bytes);

  [[nodiscard]] RecordedRank build() const;

 private:
  RecordedRank rank_;
  std::int64_t next_correlation_ = 1;
  std::int64_t next_order_ = 0;
};

}  // namespace stepcast::test
