// Writes and reads rank files. One function describes the tables for both directions
// (detail/table_columns.h). A reader checks all numbers that other code relies on, since a file can be
// damaged.
#include "stepcast/trace/rank_file.h"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/byte_source.h"
#include "stepcast/base/file.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/step_signs.h"
#include "stepcast/trace/detail/table_columns.h"

namespace stepcast {
namespace {

using detail::Coding;
using detail::ColumnFile;
using detail::Columns;
using detail::counts;
using detail::Names;
using detail::table;
using detail::Table;

constexpr std::string_view kMagic = "stepcast-rank ", kHead = "stepcast-rank 4\n";
// Limits against decompression bombs: content of a small file in bytes, and content per byte of a large file.
// Recordings have 5 to 14.
constexpr std::uint64_t kContentOfAny = std::uint64_t{1} << 24U, kContentOfAByte = 64;

// True if rows are ordered by start, longest first among equal starts, and no duration is negative.
template <class Rows>
bool ascends_and_lasts(const Rows& rows) {
  return std::ranges::all_of(rows, [](const auto& row) { return row.duration >= Nanoseconds{0}; }) &&
         std::ranges::is_sorted(rows, {}, [](const auto& row) {
           return std::pair{row.start, -row.duration};
         });
}

// True if all rows have a name.
template <class Rows>
bool is_named(const Rows& rows) {
  return std::ranges::all_of(rows, [](const auto& row) { return row.name.valid(); });
}

// True if all values of an enumeration are in its range.
template <class Row, class Enum>
bool is_one_of(const std::vector<Row>& rows, Enum Row::*field, Enum last) {
  return std::ranges::all_of(rows,
                             [&](const Row& row) { return row.*field >= Enum{} && row.*field <= last; });
}

// True if all references to collectives are -1 or valid positions.
template <class Rows>
bool points_into(const Rows& rows, std::size_t n_collectives) {
  return std::ranges::all_of(rows, [&](const auto& row) {
    return row.collective >= -1 && row.collective < static_cast<std::int64_t>(n_collectives);
  });
}

// Checks the invariants of RecordedRank that other readers guarantee and later code relies on.
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

// The same for execution traces.
bool is_consistent(const ExecutionTrace& trace) {
  return is_one_of(trace.collectives, &EtCollective::op, CollectiveOp::barrier) &&
         is_one_of(trace.collectives, &EtCollective::dtype, DType::boolean) &&
         points_into(trace.nodes, trace.collectives.size()) &&
         std::ranges::all_of(trace.nodes, [&](const EtNode& n) {
           return n.name.valid() && n.first_input <= n.first_output && n.first_output <= n.end_output &&
                  n.end_output <= trace.tensors.size();
         });
}

// Tables of the CPU side.
void host(ColumnFile& file, RecordedRank& rank, Names& names) {
  table(file, "threads", rank.threads)
      .add("pid", &RecordedThread::pid)
      .add("tid", &RecordedThread::tid)
      .add("name", &RecordedThread::name);
  table(file, "cpu_ops", rank.cpu_ops, &names)
      .add("start", &CpuOp::start, Coding::changes)
      .add("duration", &CpuOp::duration)
      .add("name", &CpuOp::name)
      .add("thread", &CpuOp::thread)
      .add("input_shapes", &CpuOp::input_shapes)
      .add("input_types", &CpuOp::input_types)
      .add("input_values", &CpuOp::input_values)
      .add("external_id", &CpuOp::external_id, Coding::changes)
      .add("order", &CpuOp::order, Coding::changes)
      .add("sequence_number", &CpuOp::sequence_number, Coding::changes)
      .add("collective", &CpuOp::collective, Coding::changes)
      .add("kind", &CpuOp::kind);
  table(file, "runtime_calls", rank.runtime_calls, &names)
      .add("start", &RuntimeCall::start, Coding::changes)
      .add("duration", &RuntimeCall::duration)
      .add("name", &RuntimeCall::name)
      .add("thread", &RuntimeCall::thread)
      .add("correlation", &RuntimeCall::correlation, Coding::changes)
      .add("external_id", &RuntimeCall::external_id, Coding::changes);
}

// Tables of the GPU side. blocks_per_sm is stored as difference to blocks / number of SMs, its expected
// value.
void gpu(ColumnFile& file, RecordedRank& rank, Names& names) {
  table(file, "devices", rank.devices)
      .add("id", &DeviceProperties::id)
      .add("name", &DeviceProperties::name)
      .add("memory_bytes", &DeviceProperties::memory_bytes)
      .add("sm_count", &DeviceProperties::sm_count)
      .add("max_threads_per_sm", &DeviceProperties::max_threads_per_sm);
  const std::int32_t sms = rank.devices.empty() ? 0 : rank.devices.front().sm_count;
  const auto expected_per_sm = [&](std::size_t i) {
    return sms > 0 ? detail::number_of(static_cast<float>(rank.gpu_ops[i].blocks) / static_cast<float>(sms))
                   : 0;
  };
  table(file, "gpu_ops", rank.gpu_ops, &names)
      .add("start", &GpuOp::start, Coding::changes)
      .add("duration", &GpuOp::duration)
      .add("name", &GpuOp::name)
      .add("device", &GpuOp::device)
      .add("stream", &GpuOp::stream)
      .add("correlation", &GpuOp::correlation, Coding::changes)
      .add("external_id", &GpuOp::external_id, Coding::changes)
      .add("bytes", &GpuOp::bytes)
      .add("blocks", &GpuOp::blocks)
      .add("blocks_per_sm", &GpuOp::blocks_per_sm, Coding::values, expected_per_sm)
      .add("collective", &GpuOp::collective, Coding::changes)
      .add("graph_node", &GpuOp::graph_node)
      .add("kind", &GpuOp::kind);
  table(file, "stream_syncs", rank.stream_syncs)
      .add("start", &StreamSync::start, Coding::changes)
      .add("duration", &StreamSync::duration)
      .add("correlation", &StreamSync::correlation, Coding::changes)
      .add("stream", &StreamSync::stream)
      .add("wait_on_stream", &StreamSync::wait_on_stream)
      .add("wait_on_event", &StreamSync::wait_on_event_record_correlation, Coding::changes)
      .add("kind", &StreamSync::kind);
  table(file, "allocator_states", rank.allocator_states)
      .add("start", &AllocatorState::start, Coding::changes)
      .add("device", &AllocatorState::device)
      .add("allocated_bytes", &AllocatorState::allocated_bytes, Coding::changes)
      .add("reserved_bytes", &AllocatorState::reserved_bytes, Coding::changes);
  table(file, "collectives", rank.collective_infos, &names)
      .add("name", &CollectiveInfo::name)
      .add("op", &CollectiveInfo::op)
      .add("dtype", &CollectiveInfo::dtype)
      .add("in_elements", &CollectiveInfo::in_elements)
      .add("out_elements", &CollectiveInfo::out_elements)
      .add("group_size", &CollectiveInfo::group_size)
      .add("process_group", &CollectiveInfo::process_group)
      .add("sequence", &CollectiveInfo::sequence, Coding::changes)
      .add("comms_id", &CollectiveInfo::comms_id)
      .add("group_ranks", &CollectiveInfo::group_ranks)
      .add("in_split", &CollectiveInfo::in_split)
      .add("out_split", &CollectiveInfo::out_split);
}

// Tables of the execution trace.
void execution_trace(ColumnFile& file, ExecutionTrace& trace) {
  Table<ExecutionTrace>{file, "execution_trace", {&trace, 1}}
      .add("schema", &ExecutionTrace::schema)
      .add("rank", &ExecutionTrace::rank);
  counts(file, "execution_trace.skipped", trace.skipped);
  std::vector<EtNode>& nodes = trace.nodes;
  Names names{file, trace.names};
  table(file, "nodes", nodes, &names)
      .add("id", &EtNode::id, Coding::changes)
      .add("parent", &EtNode::parent, Coding::values, [&](std::size_t i) { return nodes[i].id; })
      .add("order", &EtNode::order, Coding::changes)
      .add("sequence_number", &EtNode::sequence_number, Coding::changes)
      .add("forward_parent", &EtNode::forward_parent, Coding::changes)
      .add("thread", &EtNode::thread)
      .add("forward_thread", &EtNode::forward_thread)
      .add("name", &EtNode::name)
      .add("input_shapes", &EtNode::input_shapes)
      .add("input_types", &EtNode::input_types)
      .add("output_shapes", &EtNode::output_shapes)
      .add("output_types", &EtNode::output_types)
      .add("values", &EtNode::values)
      .add("first_input", &EtNode::first_input, Coding::changes)
      .add("first_output", &EtNode::first_output, Coding::values,
           [&](std::size_t i) { return std::int64_t{nodes[i].first_input}; })
      .add("end_output", &EtNode::end_output, Coding::values,
           [&](std::size_t i) { return std::int64_t{nodes[i].first_output}; })
      .add("collective", &EtNode::collective, Coding::changes);
  const auto tensor = [&](std::size_t i) { return trace.tensors[i].tensor; };
  table(file, "tensors", trace.tensors)
      .add("tensor", &TensorUse::tensor)
      .add("storage", &TensorUse::storage, Coding::values, tensor)
      .add("offset", &TensorUse::offset)
      .add("elements", &TensorUse::elements)
      .add("element_bytes", &TensorUse::element_bytes)
      .add("on_gpu", &TensorUse::on_gpu);
  table(file, "node_collectives", trace.collectives, &names)
      .add("op", &EtCollective::op)
      .add("is_wait", &EtCollective::is_wait)
      .add("sequence", &EtCollective::sequence, Coding::changes)
      .add("elements_in", &EtCollective::elements_in)
      .add("elements_out", &EtCollective::elements_out)
      .add("dtype", &EtCollective::dtype)
      .add("group_size", &EtCollective::group_size)
      .add("process_group", &EtCollective::process_group)
      .add("in_split", &EtCollective::in_split)
      .add("out_split", &EtCollective::out_split);
}

// All tables of a file in their order.
void all_columns(ColumnFile& file, RankFile& content) {
  Table<RankFile>{file, "file", {&content, 1}}.add("step", &RankFile::step);
  RecordedRank& rank = content.rank;
  Table<RecordedRank>{file, "rank", {&rank, 1}}
      .add("schema", &RecordedRank::schema)
      .add("rank", &RecordedRank::rank)
      .add("world_size", &RecordedRank::world_size)
      .add("events", &RecordedRank::event_count);
  counts(file, "skipped", rank.skipped);
  Names names{file, rank.names};
  host(file, rank, names);
  gpu(file, rank, names);
  const auto has_trace = [&](std::size_t) { return std::int64_t{content.execution_trace.has_value()}; };
  file.column("execution_traces", Coding::values, 1, has_trace, [&](std::size_t, std::int64_t n) {
    if (n == 1) content.execution_trace.emplace();
    return n == 0 || n == 1;
  });
  if (content.execution_trace) execution_trace(file, *content.execution_trace);
}

// Codes in the column of texts: end of a text, and a zero byte inside a text.
constexpr std::int64_t kEnd = 0, kZero = 256;

// The characters of all texts, each text followed by kEnd.
std::vector<std::int64_t> spelled(const StringTable& texts) {
  std::vector<std::int64_t> letters;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (const char c : texts.text(NameId{i}))
      letters.push_back(c == 0 ? kZero : static_cast<unsigned char>(c));
    letters.push_back(kEnd);
  }
  return letters;
}

// Reads the texts. False if a code is not a character or a text occurs twice.
bool read_texts(const std::vector<std::int64_t>& letters, StringTable& texts) {
  std::string text;
  for (const std::int64_t letter : letters) {
    if (letter < 0 || letter > kZero) return false;
    if (letter != kEnd) {
      text += static_cast<char>(letter);
      continue;
    }
    if (texts.find(text).valid()) return false;
    texts.intern(text);
    text.clear();
  }
  return text.empty();
}

// The error for a damaged file.
Error damaged(const std::string& name, std::string found) {
  return Error::at(name, "content")
      .found(std::move(found))
      .expected("the output of `stepcast import` of this version")
      .advice("copy the file again, or import the trace again");
}

// The error for a file of another version, with the command to write it again.
Error of_another_version(const std::string& name, std::string_view content) {
  return Error::at(name, "version")
      .found(detail::quote_for_message(content.substr(0, content.find('\n'))))
      .expected(detail::quote_for_message(kHead.substr(0, kHead.size() - 1)))
      .advice(fmt::format("write it again with this version: stepcast import TRACE -o {}", name));
}

// Reads a source to its end.
Result<std::string> content_of(ByteSource& source) {
  std::string content;
  std::size_t size = 0;
  for (;;) {
    content.resize(std::max<std::size_t>(size * 2, std::size_t{1} << 16U));
    STEPCAST_ASSIGN(const std::size_t n, source.read(content.data() + size, content.size() - size));
    if (n == 0) break;
    size += n;
  }
  content.resize(size);
  return content;
}

// The limit of the decompressed content for a file of this size.
ByteSource::Options most_content(std::uint64_t file_bytes) {
  return {.progress = {}, .max_bytes = std::max(kContentOfAny, kContentOfAByte * file_bytes)};
}

// Reads a decompressed file. Special steps and step sizes are not stored but computed from the events.
Result<RankFile> parse_content(std::string_view content, const std::string& name) {
  if (!is_rank_file(content)) {
    return Error::at(name, "content")
        .found(content.empty() ? "nothing" : "something else")
        .expected("a rank file, which begins with \"stepcast-rank\"");
  }
  if (!content.starts_with(kHead)) return of_another_version(name, content);
  Columns io{content.substr(kHead.size())};
  std::vector<std::int64_t> letters;
  io.column("texts", Coding::values, letters);
  StringTable texts;
  if (!read_texts(letters, texts)) io.fail("damaged texts");
  RankFile file;
  ColumnFile tables{io, texts};
  all_columns(tables, file);
  io.skip_optional();
  if (io.bytes_left() > 0) io.fail("bytes after the last column");
  if (!io.problem().empty()) return damaged(name, io.problem());
  if (!is_consistent(file.rank) || (file.execution_trace && !is_consistent(*file.execution_trace)))
    return damaged(name, "numbers that are not a valid recording");
  if (file.execution_trace) file.execution_trace->file = name;
  file.rank.file = name;
  detail::tell_steps_apart(file.rank);
  if (file.step)  // only some operators of other steps are in the file
    std::erase_if(file.rank.step_sizes, [&](const StepSize& work) { return work.number != *file.step; });
  return file;
}

}  // namespace

bool is_rank_file(std::string_view beginning) { return beginning.starts_with(kMagic); }

Result<std::string> rank_file_bytes(const RankFile& file) {
  StringTable texts;
  Columns tables, first;
  ColumnFile sink{tables, texts};
  all_columns(sink, const_cast<RankFile&>(file));  // writing does not change it
  std::vector<std::int64_t> letters = spelled(texts);
  first.column("texts", Coding::values, letters);
  return gzip_compress(fmt::format("{}{}{}", kHead, first.bytes(), tables.bytes()));
}

Result<RankFile> read_rank_file(const std::filesystem::path& file) {
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(archive_of(file).value_or(file), unknown);
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, most_content(unknown ? 0 : bytes)));
  STEPCAST_ASSIGN(const std::string content, content_of(source));
  return parse_content(content, file.string());
}

Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name) {
  ByteSource source = ByteSource::from_memory(bytes, name, most_content(bytes.size()));
  STEPCAST_ASSIGN(const std::string content, content_of(source));
  return parse_content(content, name);
}

}  // namespace stepcast
