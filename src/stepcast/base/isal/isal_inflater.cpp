// The only source file that includes ISA-L. It is a separate target, so that programs that must run without
// ISA-L can link another version.
#include "stepcast/base/detail/inflater.h"

#if STEPCAST_HAVE_ISAL
#include <algorithm>
#include <cstdint>

#include <isa-l/igzip_lib.h>
#endif

namespace stepcast::detail {

#if STEPCAST_HAVE_ISAL

namespace {

// ISA-L's counterpart of ZlibInflater. isal_inflate checks the CRC of each member because of ISAL_GZIP.
class IsalInflater final : public Inflater {
 public:
  void start_member() override {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }
  InflateStep step(std::string_view input, char* to, std::size_t capacity) override {
    InflateStep result;
    input = input.substr(0, kMaxStep);
    capacity = std::min(capacity, kMaxStep);
    state_.next_in =
        reinterpret_cast<std::uint8_t*>(const_cast<char*>(input.data()));  // the interface lacks the const
    state_.avail_in = static_cast<std::uint32_t>(input.size());
    state_.next_out = reinterpret_cast<std::uint8_t*>(to);
    state_.avail_out = static_cast<std::uint32_t>(capacity);
    const int code = isal_inflate(&state_);
    result.consumed =
        static_cast<std::ptrdiff_t>(input.size()) - static_cast<std::ptrdiff_t>(state_.avail_in);
    result.produced = capacity - state_.avail_out;
    result.problem = describe(code);
    result.member_ended = result.problem == nullptr && state_.block_state == ISAL_BLOCK_FINISH;
    return result;
  }

 private:
  // The problem as a static text; null for success. Positive codes mean that more input or output is needed.
  static const char* describe(int code) {
    switch (code) {
      case ISAL_INVALID_BLOCK: return "invalid deflate block";
      case ISAL_INVALID_SYMBOL: return "invalid deflate symbol";
      case ISAL_INVALID_LOOKBACK: return "invalid distance too far back";
      case ISAL_INVALID_WRAPPER: return "invalid gzip header";
      case ISAL_UNSUPPORTED_METHOD: return "unknown compression method";
      case ISAL_INCORRECT_CHECKSUM: return "checksum mismatch";
      default: return code < 0 ? "invalid gzip data" : nullptr;
    }
  }
  inflate_state state_{};
};

}  // namespace

std::unique_ptr<Inflater> isal_inflater() { return std::make_unique<IsalInflater>(); }

#else

std::unique_ptr<Inflater> isal_inflater() { return nullptr; }

#endif

}  // namespace stepcast::detail
