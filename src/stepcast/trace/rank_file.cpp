#include "stepcast/trace/rank_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/content_hash.h"
#include "stepcast/base/file.h"
#include "stepcast/trace/detail/rank_file_parts.h"
#include "stepcast/trace/detail/step_signs.h"

namespace stepcast {
namespace {

constexpr std::string_view kMagic = "stepcast-rank ", kVersion = "3\n";
constexpr std::size_t kFrame = 33;                               // bytes before the name of the base
constexpr std::size_t kLongestName = 255;                        // of a file
constexpr std::uint64_t kMostContent = std::uint64_t{1} << 34U;  // bytes
constexpr std::size_t kRowsOfAByte =
    512;  // at most, so that a file cannot claim memory that it does not pay for
constexpr std::size_t kRowsOfNothing = 4096;

// Of equal starts the longest first.
template <class Rows>
bool ascends_and_lasts(const Rows& rows) {
  return std::ranges::all_of(rows, [](const auto& row) { return row.duration >= Nanoseconds{0}; }) &&
         std::ranges::is_sorted(rows, {}, [](const auto& row) {
           return std::pair{row.start, -row.duration};
         });
}

template <class Rows>
bool is_named(const Rows& rows) {
  return std::ranges::all_of(rows, [](const auto& row) { return row.name.valid(); });
}

template <class Row, class Enum>
bool is_one_of(const std::vector<Row>& rows, Enum Row::*field, Enum last) {
  return std::ranges::all_of(rows,
                             [&](const Row& row) { return row.*field >= Enum{} && row.*field <= last; });
}

template <class Rows>
bool points_into(const Rows& rows, std::size_t n_collectives) {
  return std::ranges::all_of(rows, [&](const auto& row) {
    return row.collective >= -1 && row.collective < static_cast<std::int64_t>(n_collectives);
  });
}

// What other readers see to, and everything behind them relies on.
bool is_consistent(const RecordedRank& rank) {
  const auto on_thread = [&](const auto& row) {
    return row.thread.valid() && row.thread.index() < rank.threads.size();
  };
  return ascends_and_lasts(rank.cpu_ops) && ascends_and_lasts(rank.runtime_calls) &&
         ascends_and_lasts(rank.gpu_ops) && ascends_and_lasts(rank.stream_syncs) &&
         std::ranges::is_sorted(rank.allocator_states, {}, &AllocatorState::start) &&
         is_named(rank.cpu_ops) && is_named(rank.runtime_calls) && is_named(rank.gpu_ops) &&
         std::ranges::all_of(rank.cpu_ops, on_thread) && std::ranges::all_of(rank.runtime_calls, on_thread) &&
         is_one_of(rank.cpu_ops, &CpuOp::kind, CpuOp::Kind::step) &&
         is_one_of(rank.gpu_ops, &GpuOp::kind, GpuOp::Kind::memset) &&
         is_one_of(rank.stream_syncs, &StreamSync::kind, StreamSync::Kind::other) &&
         is_one_of(rank.collective_infos, &CollectiveInfo::op, CollectiveOp::barrier) &&
         is_one_of(rank.collective_infos, &CollectiveInfo::dtype, DType::boolean) &&
         points_into(rank.cpu_ops, rank.collective_infos.size()) &&
         points_into(rank.gpu_ops, rank.collective_infos.size());
}

bool is_consistent(const ExecutionTrace& trace) {
  return is_one_of(trace.collectives, &EtCollective::op, CollectiveOp::barrier) &&
         is_one_of(trace.collectives, &EtCollective::dtype, DType::boolean) &&
         points_into(trace.nodes, trace.collectives.size()) &&
         std::ranges::all_of(trace.nodes, [&](const EtNode& n) {
           return n.name.valid() && n.first_input <= n.first_output && n.first_output <= n.end_output &&
                  n.end_output <= trace.tensors.size();
         });
}

std::string eight_bytes(std::uint64_t value) {
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xffU);
  return bytes;
}

std::uint64_t eight_bytes_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Error damaged(const std::string& name, std::string found) {
  return Error::at(name, "content")
      .found(std::move(found))
      .expected("what `stepcast import` wrote")
      .advice("copy the file again, or import the trace again");
}

}  // namespace

bool is_rank_file(std::string_view beginning) { return beginning.starts_with(kMagic); }

namespace {

detail::AdaptiveCoder coder_after(const RankBase* base) {
  return base != nullptr ? *base->learned : detail::AdaptiveCoder{};
}

std::string written(detail::AdaptiveCoder& coder, const RankFile& file) {
  coder.start_writing();
  detail::code_rank_file(coder, const_cast<RankFile&>(file), kMostContent);  // a writer only looks
  std::string content = coder.finish();
  content.resize(std::max<std::size_t>(content.size(), detail::rows_of(file) / kRowsOfAByte));
  return content;
}

}  // namespace

std::string rank_file_content(const RankFile& file, const RankBase* base) {
  detail::AdaptiveCoder coder = coder_after(base);
  return written(coder, file);
}

RankBase rank_base_of(const RankFile& file, std::string name) {
  const auto coder = std::make_shared<detail::AdaptiveCoder>();
  const std::uint64_t hash = content_hash(written(*coder, file));
  return {.name = std::move(name), .hash = hash, .learned = coder};
}

Result<RankFile> parse_rank_file_content(std::string_view content, const std::string& name,
                                         const RankBase* base) {
  RankFile file;
  detail::AdaptiveCoder coder = coder_after(base);
  coder.start_reading(content);
  detail::code_rank_file(coder, file, kRowsOfAByte * (content.size() + 1) + kRowsOfNothing);
  if (coder.failed() || !is_consistent(file.rank) ||
      (file.execution_trace && !is_consistent(*file.execution_trace)))
    return damaged(name, "numbers that make no recording");
  if (file.execution_trace) file.execution_trace->file = name;
  file.rank.file = name;
  detail::tell_steps_apart(file.rank);
  if (file.step)  // of the others some operators are here
    std::erase_if(file.rank.step_sizes, [&](const StepSize& work) { return work.number != *file.step; });
  return file;
}

Result<std::string> rank_file_bytes(const RankFile& file, const RankBase* like) {
  const std::string base = like != nullptr ? std::filesystem::path{like->name}.filename().string() : "";
  if (base.size() > kLongestName)
    return Error::at(base, "").found("a name of more bytes than a rank file holds");
  const std::string content = rank_file_content(file, like);
  return fmt::format("{}{}{}{}{}{}{}", kMagic, kVersion, eight_bytes(content_hash(content)),
                     eight_bytes(like != nullptr ? like->hash : 0), static_cast<char>(base.size()), base,
                     content);
}

namespace {

// Of a rank file that says what it has in common with another one, the name of that.
Result<std::string> base_of(std::string_view bytes, const std::string& name) {
  if (!is_rank_file(bytes)) {
    return Error::at(name, "content")
        .found(bytes.empty() ? "nothing" : "something else")
        .expected("a rank file, which begins with \"stepcast-rank\"");
  }
  const std::string_view version = bytes.substr(kMagic.size(), kVersion.size());
  if (version.size() == kVersion.size() && version != kVersion) {
    std::string line{bytes.substr(0, std::min<std::size_t>(bytes.find('\n'), kFrame))};
    std::ranges::replace_if(
        line, [](char c) { return c < ' ' || c > '~'; }, '?');
    return Error::at(name, "version")
        .found(fmt::format("`{}`", line))
        .expected(fmt::format("`{}{}`", kMagic, kVersion.substr(0, kVersion.size() - 1)))
        .advice("import the trace with this stepcast, or read the file with a newer one");
  }
  if (bytes.size() < kFrame)
    return damaged(name, fmt::format("a file that ends after {} bytes", bytes.size()));
  const auto length = static_cast<unsigned char>(bytes[kFrame - 1]);
  if (bytes.size() < kFrame + length) return damaged(name, "a name that ends early");
  return std::string{bytes.substr(kFrame, length)};
}

// What is behind the frame, which has to be what was written.
Result<std::string_view> content_of(std::string_view bytes, const std::string& wanted,
                                    const std::string& name) {
  const std::string_view content = bytes.substr(kFrame + wanted.size());
  if (wanted.empty() && eight_bytes_at(bytes, kMagic.size() + kVersion.size() + 8) != 0)
    return damaged(name, "the checksum of another file, and no name of it");
  if (content_hash(content) != eight_bytes_at(bytes, kMagic.size() + kVersion.size()))
    return damaged(
        name, fmt::format("{} bytes that were cut or changed: their checksum is another", content.size()));
  return content;
}

}  // namespace

Result<RankBase> read_rank_base(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string bytes, read_file(file, kMostContent));
  STEPCAST_ASSIGN(const std::string other, base_of(bytes, file.string()));
  if (!other.empty()) {
    return Error::at(file.string(), "content")
        .found(fmt::format("a rank file that needs `{}`", other))
        .expected("one that stands alone");
  }
  STEPCAST_ASSIGN(const RankFile content, parse_rank_file(bytes, file.string()));
  return rank_base_of(content, file.string());
}

Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name, const RankBase* base) {
  STEPCAST_ASSIGN(const std::string wanted, base_of(bytes, name));
  STEPCAST_ASSIGN(const std::string_view content, content_of(bytes, wanted, name));
  if (wanted.empty()) return parse_rank_file_content(content, name);
  if (base == nullptr || base->hash != eight_bytes_at(bytes, kMagic.size() + kVersion.size() + 8)) {
    return Error::at(name, "content")
        .found(base == nullptr ? fmt::format("no `{}` next to it", wanted)
                               : fmt::format("another `{}` than it was imported with", wanted))
        .expected("the rank file that it was imported with --like")
        .advice("copy that one into the folder, too");
  }
  return parse_rank_file_content(content, name, base);
}

Result<RankFile> read_rank_file(const std::filesystem::path& file, RankBases* bases) {
  STEPCAST_ASSIGN(const std::string bytes, read_file(file, kMostContent));
  STEPCAST_ASSIGN(const std::string like, base_of(bytes, file.string()));
  const std::filesystem::path near = file.parent_path() / std::filesystem::path{like}.filename();
  if (like.empty() || !std::filesystem::exists(near)) return parse_rank_file(bytes, file.string());
  RankBases own;
  RankBases& known = bases != nullptr ? *bases : own;
  const RankBase* base = nullptr;
  {
    const std::lock_guard lock{known.mutex};
    auto found = known.read.find(near);
    if (found == known.read.end()) {
      STEPCAST_ASSIGN(RankBase read, read_rank_base(near));
      found = known.read.emplace(near, std::move(read)).first;
    }
    base = &found->second;
  }
  return parse_rank_file(bytes, file.string(), base);
}

}  // namespace stepcast
