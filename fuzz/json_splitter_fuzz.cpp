// The pieces of any document must not depend on the blocks in which it is read. The first byte chooses the
// block size.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/trace/detail/json_splitter.h"

namespace {

using stepcast::ByteSource;
using stepcast::detail::JsonSplitter;

std::string pieces_of(std::string_view document, std::size_t block_bytes) {
  JsonSplitter::Options options;
  options.block_bytes = block_bytes;
  options.max_piece_bytes = 4096;
  options.max_depth = 32;
  ByteSource source = ByteSource::from_memory(document, "fuzz");
  JsonSplitter splitter(source, {"traceEvents", "nodes"}, options);
  std::string log;
  for (;;) {
    const JsonSplitter::Step step = splitter.next();
    log += static_cast<char>('0' + static_cast<int>(step));
    if (step == JsonSplitter::Step::end) return log;
    if (step == JsonSplitter::Step::error) return log + splitter.take_error().message();
    if (step != JsonSplitter::Step::element) log += splitter.key();
    if (step != JsonSplitter::Step::list) {
      log += std::to_string(splitter.offset()) + ":" + std::to_string(splitter.index()) + ":";
      log += splitter.text();
    }
    log += '\n';
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t block_bytes = std::size_t{1} + data[0];
  const std::string_view document{reinterpret_cast<const char*>(data) + 1, size - 1};
  if (pieces_of(document, block_bytes) != pieces_of(document, std::size_t{1} << 18)) std::abort();
  return 0;
}
