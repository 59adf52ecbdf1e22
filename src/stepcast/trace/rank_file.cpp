#include "stepcast/trace/rank_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/content_hash.h"
#include "stepcast/base/file.h"
#include "stepcast/trace/detail/rank_file_parts.h"
#include "stepcast/trace/detail/shared_bytes.h"
#include "stepcast/trace/detail/step_signs.h"

namespace stepcast {
namespace {

constexpr std::string_view kMagic = "stepcast-rank ", kVersion = "2\n";
constexpr std::size_t kFrame = 41;                               // bytes before the name of the base
constexpr std::size_t kLongestName = 255;                        // of a file
constexpr std::uint64_t kMostContent = std::uint64_t{1} << 34U;  // bytes
constexpr std::int64_t kLatest = std::int64_t{1} << 61U;         // of times, in ns: sums of two stay in range

using detail::Column;
using detail::parts_of;

template <class Value>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

// A value as a whole number and back.
template <class Value>
std::int64_t number_of(const Value& value) {
  if constexpr (std::is_same_v<Value, Nanoseconds>)
    return value.count();
  else if constexpr (kIsId<Value>)
    return value.valid() ? std::int64_t{value.index()} + 1 : 0;
  else if constexpr (std::is_same_v<Value, float>)
    return std::bit_cast<std::int32_t>(value);
  else
    return static_cast<std::int64_t>(value);
}

// False where the value has no such number.
template <class Value>
bool set_number(std::int64_t number, Value& value) {
  if constexpr (std::is_same_v<Value, Nanoseconds>) {
    value = Nanoseconds{number};
    return number > -kLatest && number < kLatest;
  } else if constexpr (kIsId<Value>) {
    value = number == 0 ? Value{} : Value{static_cast<std::uint32_t>(number - 1)};
    return number >= 0 && number < std::numeric_limits<std::uint32_t>::max();
  } else if constexpr (std::is_same_v<Value, float>) {
    value = std::bit_cast<float>(static_cast<std::int32_t>(number));
    return number == static_cast<std::int32_t>(number) && !std::isnan(value);
  } else {
    value = static_cast<Value>(number);
    return static_cast<std::int64_t>(value) == number;
  }
}

// Which names are in use, in the order of use, and what all times are multiples of.
class Survey {
 public:
  void unit() {}
  void text(const std::string&) {}
  template <class Number>
  void number(const Number&) {}
  template <class Number>
  void optional(const std::optional<Number>&) {}
  template <class Row>
  void length(const std::vector<Row>&) {}
  template <class Number>
  void numbers(const std::vector<Number>&) {}
  void counts(const std::map<std::string, std::uint64_t>&) {}
  void names(const StringTable& table) { new_id_.assign(table.size(), 0); }
  template <class Row, class Value>
  void column(const std::vector<Row>& rows, Value Row::*field, Column = Column::plain) {
    for (const Row& row : rows) {
      if constexpr (std::is_same_v<Value, NameId>) {
        const NameId name = row.*field;
        if (!name.valid() || new_id_[name.index()] != 0) continue;
        in_use_.push_back(name);
        new_id_[name.index()] = static_cast<std::int64_t>(in_use_.size());
      } else if constexpr (std::is_same_v<Value, Nanoseconds>) {
        unit_ = std::gcd(unit_, (row.*field).count());
      }
    }
  }

  template <class Row, class Value>
  void column(const std::vector<Row>&, Value Row::*, Value Row::*) {}
  template <class Row>
  void by_name(const std::vector<Row>& rows, NameId Row::*field) {
    column(rows, field);
  }
  template <class Row, class Value>
  void few(const std::vector<Row>&, Value Row::*) {}

  [[nodiscard]] std::int64_t unit_ns() const { return std::max<std::int64_t>(unit_, 1); }
  [[nodiscard]] const std::vector<NameId>& in_use() const { return in_use_; }
  [[nodiscard]] std::int64_t id_of(NameId name) const { return name.valid() ? new_id_[name.index()] : 0; }

 private:
  std::int64_t unit_ = 0;
  std::vector<NameId> in_use_;
  std::vector<std::int64_t> new_id_;  // [index of the name] from 1
};

class Writer {
 public:
  explicit Writer(const Survey& survey, std::string& out) : survey_(survey), out_(out) {}

  void raw(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    std::uint64_t left = (bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0);
    for (; left >= 0x80; left >>= 7U) out_ += static_cast<char>(left | 0x80U);
    out_ += static_cast<char>(left);
  }
  void unit() { raw(survey_.unit_ns()); }
  void text(std::string_view text) {
    raw(static_cast<std::int64_t>(text.size()));
    out_ += text;
  }
  template <class Number>
  void number(const Number& value) {
    raw(number_of(value));
  }
  template <class Number>
  void optional(const std::optional<Number>& value) {
    raw(value ? 1 : 0);
    if (value) raw(number_of(*value));
  }
  template <class Row>
  void length(const std::vector<Row>& rows) {
    raw(static_cast<std::int64_t>(rows.size()));
  }
  template <class Number>
  void numbers(const std::vector<Number>& values) {
    length(values);
    for (const Number& value : values) raw(number_of(value));
  }
  void counts(const std::map<std::string, std::uint64_t>& counts) {
    raw(static_cast<std::int64_t>(counts.size()));
    for (const auto& [what, n] : counts) {
      text(what);
      raw(number_of(n));
    }
  }
  void names(const StringTable& table) {
    length(survey_.in_use());
    for (const NameId name : survey_.in_use()) text(table.text(name));
  }
  template <class Row, class Value>
  void column(const std::vector<Row>& rows, Value Row::*field, Column how = Column::plain) {
    std::uint64_t before = 0;  // of a list that does not ascend the difference may wrap around
    const std::int64_t known = newest_;
    for (const Row& row : rows) {
      std::int64_t value = 0;
      if constexpr (std::is_same_v<Value, NameId>)
        value = id_of(row.*field) - known;
      else if constexpr (std::is_same_v<Value, Nanoseconds>)
        value = (row.*field).count() / survey_.unit_ns();
      else
        value = number_of(row.*field);
      raw(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - before));
      if (how == Column::ascending) before = static_cast<std::uint64_t>(value);
    }
  }

  // As the difference to another field of the row, unless more rows are like the one before.
  template <class Row, class Value>
  void column(const std::vector<Row>& rows, Value Row::*field, Value Row::*base) {
    const auto same = std::ranges::count_if(rows, [&](const Row& row) { return row.*field == row.*base; });
    std::ptrdiff_t repeated = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) repeated += rows[i].*field == rows[i - 1].*field ? 1 : 0;
    raw(same > repeated ? 1 : 0);
    if (same <= repeated) return column(rows, field, Column::ascending);
    for (const Row& row : rows)
      raw(static_cast<std::int64_t>(static_cast<std::uint64_t>(row.*field) -
                                    static_cast<std::uint64_t>(row.*base)));
  }
  // As 0 where the row before of that name had the same.
  template <class Row>
  void by_name(const std::vector<Row>& rows, NameId Row::*field) {
    std::vector<std::int64_t> last(survey_.in_use().size() + 1, 0);
    const std::int64_t known = newest_;
    for (const Row& row : rows) {
      const std::int64_t value = id_of(row.*field);
      std::int64_t& before = last[static_cast<std::size_t>(survey_.id_of(row.name))];
      const std::int64_t from_known = value - known;
      raw(value == before ? 0 : from_known >= 0 ? from_known + 1 : from_known);
      before = value;
    }
  }
  // As places in a list of the values that there are.
  template <class Row, class Value>
  void few(const std::vector<Row>& rows, Value Row::*field) {
    std::map<std::int64_t, std::int64_t> places;
    std::vector<std::int64_t> values;
    for (const Row& row : rows)
      if (places.emplace(number_of(row.*field), static_cast<std::int64_t>(places.size())).second)
        values.push_back(number_of(row.*field));
    numbers(values);
    for (const Row& row : rows) raw(places.at(number_of(row.*field)));
  }

 private:
  std::int64_t id_of(NameId name) {
    const std::int64_t id = survey_.id_of(name);
    newest_ = std::max(newest_, id);
    return id;
  }

  const Survey& survey_;
  std::int64_t newest_ = 0;  // name that was meant
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view content) : left_(content) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

  std::int64_t raw() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80)
        return static_cast<std::int64_t>((value >> 1U) ^ ((value & 1U) != 0 ? ~std::uint64_t{0} : 0));
    }
    failed_ = true;
    return 0;
  }
  void unit() {
    unit_ns_ = raw();
    if (unit_ns_ < 1 || unit_ns_ > kLatest) failed_ = true;
  }
  void text(std::string& text) {
    const std::size_t size = count();
    text = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  template <class Number>
  void number(Number& value) {
    if (!set_number(raw(), value)) failed_ = true;
  }
  template <class Number>
  void optional(std::optional<Number>& value) {
    if (raw() != 0) number(value.emplace());
  }
  // A row takes a byte for each of its fields, so that a list cannot claim memory that the file does not pay for.
  template <class Row>
  void length(std::vector<Row>& rows) {
    constexpr std::size_t kLeast = std::max<std::size_t>(sizeof(Row) / 16, 1);
    const std::size_t n = count();
    if (n > left_.size() / kLeast) failed_ = true;
    rows.resize(failed_ ? 0 : n);
  }
  template <class Number>
  void numbers(std::vector<Number>& values) {
    length(values);
    for (Number& value : values) number(value);
  }
  void counts(std::map<std::string, std::uint64_t>& counts) {
    for (std::size_t n = count(); n > 0 && !failed_; --n) {
      std::string what;
      text(what);
      number(counts[what]);
    }
  }
  void names(StringTable& table) {
    const std::size_t n = count();
    std::string name;
    for (std::size_t i = 0; i < n && !failed_; ++i) {
      text(name);
      if (table.intern(name).index() != i) failed_ = true;  // twice
    }
    n_names_ = static_cast<std::int64_t>(table.size());
  }
  template <class Row, class Value>
  void column(std::vector<Row>& rows, Value Row::*field, Column how = Column::plain) {
    std::uint64_t before = 0;
    const std::int64_t known = newest_;
    for (Row& row : rows) {
      if (failed_) return;
      auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(raw()) + before);
      if (how == Column::ascending) before = static_cast<std::uint64_t>(value);
      if constexpr (std::is_same_v<Value, NameId>) {
        value = id_of(value, known);
      } else if constexpr (std::is_same_v<Value, Nanoseconds>) {
        if (value > kLatest / unit_ns_ || value < -kLatest / unit_ns_) failed_ = true;
        if (!failed_) value *= unit_ns_;
      }
      if (!set_number(value, row.*field)) failed_ = true;
    }
  }

  template <class Row, class Value>
  void column(std::vector<Row>& rows, Value Row::*field, Value Row::*base) {
    if (raw() == 0) return column(rows, field, Column::ascending);
    for (Row& row : rows)
      row.*field =
          static_cast<Value>(static_cast<std::uint64_t>(raw()) + static_cast<std::uint64_t>(row.*base));
  }
  template <class Row>
  void by_name(std::vector<Row>& rows, NameId Row::*field) {
    std::vector<std::int64_t> last(static_cast<std::size_t>(n_names_) + 1, 0);
    const std::int64_t known = newest_;
    for (Row& row : rows) {
      const std::int64_t told = raw();
      std::int64_t& before = last[row.name.valid() ? row.name.index() + 1 : 0];
      if (told != 0) before = id_of(told > 0 ? told - 1 : told, known);
      if (failed_) return;
      static_cast<void>(set_number(before, row.*field));
    }
  }
  template <class Row, class Value>
  void few(std::vector<Row>& rows, Value Row::*field) {
    std::vector<std::int64_t> values;
    numbers(values);
    for (Row& row : rows) {
      const auto place = static_cast<std::uint64_t>(raw());
      if (failed_ || place >= values.size() || !set_number(values[place], row.*field)) failed_ = true;
      if (failed_) return;
    }
  }

 private:
  // Of a name from the newest that was meant before the column.
  std::int64_t id_of(std::int64_t from_known, std::int64_t known) {
    if (from_known < -known || from_known > n_names_ - known) failed_ = true;
    const std::int64_t id = failed_ ? 0 : known + from_known;
    newest_ = std::max(newest_, id);
    return id;
  }
  // Of things that take a byte each, at least.
  std::size_t count() {
    const std::int64_t n = raw();
    if (n < 0 || static_cast<std::uint64_t>(n) > left_.size()) failed_ = true;
    return failed_ ? 0 : static_cast<std::size_t>(n);
  }

  std::string_view left_;
  std::int64_t unit_ns_ = 1;
  std::int64_t n_names_ = 0, newest_ = 0;
  bool failed_ = false;
};

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

// The writer and the survey only look.
template <class Trace>
void write(const Trace& trace, std::string& out) {
  Survey survey;
  parts_of(survey, const_cast<Trace&>(trace));
  Writer writer{survey, out};
  parts_of(writer, const_cast<Trace&>(trace));
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

std::string rank_file_content(const RankFile& file) {
  std::string out;
  Survey nothing;
  Writer{nothing, out}.optional(file.step);
  write(file.rank, out);
  out += file.execution_trace ? '\1' : '\0';
  if (file.execution_trace) write(*file.execution_trace, out);
  return out;
}

Result<RankFile> parse_rank_file_content(std::string_view content, const std::string& name) {
  RankFile file;
  Reader reader{content};
  reader.optional(file.step);
  parts_of(reader, file.rank);
  bool good = !reader.failed() && reader.left() > 0 && is_consistent(file.rank);
  if (good && content[content.size() - reader.left()] == '\1') {
    Reader rest{content.substr(content.size() - reader.left() + 1)};
    parts_of(rest, file.execution_trace.emplace());
    good = !rest.failed() && rest.left() == 0 && is_consistent(*file.execution_trace);
    file.execution_trace->file = name;
  } else if (good) {
    good = content.substr(content.size() - reader.left()) == std::string_view{"\0", 1};
  }
  if (!good) return damaged(name, "numbers that make no recording");
  file.rank.file = name;
  file.rank.special_steps = detail::special_steps(file.rank);
  return file;
}

Result<std::string> rank_file_bytes(const RankFile& file, const RankBase* like) {
  const std::string content = rank_file_content(file);
  const std::string base = like != nullptr ? std::filesystem::path{like->file}.filename().string() : "";
  if (base.size() > kLongestName)
    return Error::at(base, "").found("a name of more bytes than a rank file holds");
  STEPCAST_ASSIGN(
      const std::string packed,
      gzip_compress(like != nullptr ? detail::bytes_without(like->content, content) : content, 9));
  return fmt::format("{}{}{}{}{}{}{}{}", kMagic, kVersion, eight_bytes(content.size()),
                     eight_bytes(content_hash(content)),
                     eight_bytes(like != nullptr ? content_hash(like->content) : 0),
                     static_cast<char>(base.size()), base, packed);
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
    const std::string_view line = bytes.substr(0, std::min<std::size_t>(bytes.find('\n'), kFrame));
    return Error::at(name, "version")
        .found(fmt::format("`{}`", line))
        .expected(fmt::format("`{}2`", kMagic))
        .advice("import the trace with this stepcast, or read the file with a newer one");
  }
  if (bytes.size() < kFrame)
    return damaged(name, fmt::format("a file that ends after {} bytes", bytes.size()));
  const auto length = static_cast<unsigned char>(bytes[kFrame - 1]);
  if (bytes.size() < kFrame + length) return damaged(name, "a name that ends early");
  return std::string{bytes.substr(kFrame, length)};
}

// Everything of a compressed content, which is of at most so many bytes.
Result<std::string> unpacked(std::string_view packed, const std::string& name, std::uint64_t most) {
  ByteSource source = ByteSource::from_memory(packed, name, {.max_bytes = most + 1});
  std::string content;
  std::size_t read = 0;
  for (;;) {
    if (content.size() == read) content.resize(std::min<std::uint64_t>(2 * read + (1U << 16U), most + 1));
    const Result<std::size_t> n = source.read(content.data() + read, content.size() - read);
    if (!n) return damaged(name, fmt::format("{} bytes, then no more", read));
    if (*n == 0) break;
    read += *n;
    if (read > most) return damaged(name, "more than it says that it holds");
  }
  content.resize(read);
  return content;
}

Result<std::string> content_of(std::string_view bytes, const std::string& name, const RankBase* base) {
  STEPCAST_ASSIGN(const std::string wanted, base_of(bytes, name));
  constexpr std::size_t kNumbers = kMagic.size() + kVersion.size();
  const std::uint64_t size = eight_bytes_at(bytes, kNumbers), hash = eight_bytes_at(bytes, kNumbers + 8);
  if (size > kMostContent) return damaged(name, fmt::format("a length of {} bytes", size));
  // With nothing in common it is a little longer.
  STEPCAST_ASSIGN(std::string content, unpacked(bytes.substr(kFrame + wanted.size()), name,
                                                wanted.empty() ? size : size + size / 4 + 64));
  if (!wanted.empty()) {
    if (base == nullptr || content_hash(base->content) != eight_bytes_at(bytes, kNumbers + 16)) {
      return Error::at(name, "content")
          .found(base == nullptr ? fmt::format("no `{}` next to it", wanted)
                                 : fmt::format("another `{}` than it was imported with", wanted))
          .expected("the rank file that it was imported with --like")
          .advice("copy that one into the folder, too");
    }
    std::optional<std::string> whole = detail::bytes_with(base->content, content, size);
    if (!whole) return damaged(name, "copies of bytes that are not there");
    content = *std::move(whole);
  }
  if (content.size() < size)
    return damaged(name, fmt::format("{} of {} bytes, then the end of the file", content.size(), size));
  if (content_hash(content) != hash)
    return damaged(name, "a content that was changed: its checksum is another");
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
  STEPCAST_ASSIGN(std::string content, content_of(bytes, file.string(), nullptr));
  return RankBase{file.string(), std::move(content)};
}

Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name, const RankBase* base) {
  STEPCAST_ASSIGN(const std::string content, content_of(bytes, name, base));
  return parse_rank_file_content(content, name);
}

Result<RankFile> read_rank_file(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string bytes, read_file(file, kMostContent));
  STEPCAST_ASSIGN(const std::string like, base_of(bytes, file.string()));
  const std::filesystem::path beside = file.parent_path() / std::filesystem::path{like}.filename();
  if (like.empty() || !std::filesystem::exists(beside)) return parse_rank_file(bytes, file.string());
  STEPCAST_ASSIGN(const RankBase base, read_rank_base(beside));
  return parse_rank_file(bytes, file.string(), &base);
}

}  // namespace stepcast
