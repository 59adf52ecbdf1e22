// Encodes lists of integers as columns. Differences between neighbours and a common divisor make cells small;
// writing the lowest bytes of all cells first lets gzip find repetitions.
#include "stepcast/trace/detail/columns.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stepcast/trace/detail/quote.h"

namespace stepcast::detail {
namespace {

// Signed comparison of cells, which are stored as unsigned numbers.
bool is_less(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
}

}  // namespace

void Columns::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  left_ = {};
}

void Columns::column(std::string_view name, Coding coding, std::vector<std::int64_t>& values) {
  if (reading_)
    read(name, values);
  else
    write(name, coding, values);
}

// Computes the head of a column, then writes its cells byte plane by byte plane.
void Columns::write(std::string_view name, Coding coding, const std::vector<std::int64_t>& values) {
  std::vector<std::uint64_t> cells(values.begin(), values.end());
  Head head{.name = name, .coding = static_cast<std::uint64_t>(coding), .count = cells.size()};
  if (!cells.empty()) {
    if (coding == Coding::changes) {
      std::adjacent_difference(cells.begin(), cells.end(), cells.begin());
      head.first = std::exchange(cells.front(), 0);
    }
    head.least = *std::ranges::min_element(cells, is_less);
    head.unit = 0;
    for (std::uint64_t& cell : cells) head.unit = std::gcd(head.unit, cell -= head.least);
    head.unit = std::max<std::uint64_t>(head.unit, 1);
    for (std::uint64_t& cell : cells) cell /= head.unit;
    const auto bits = static_cast<unsigned>(std::bit_width(*std::ranges::max_element(cells)));
    head.width = std::max(1U, (bits + 7) / 8);
  }
  put_number(name.size());
  bytes_ += name;
  for (const std::uint64_t number : {head.coding, head.count, head.first, head.least, head.unit, head.width})
    put_number(number);
  for (std::uint64_t b = 0; b < head.width; ++b)
    for (const std::uint64_t cell : cells) bytes_ += static_cast<char>((cell >> (8 * b)) & 255U);
}

// Writes a varint.
void Columns::put_number(std::uint64_t number) {
  for (; number >= 128; number >>= 7U) bytes_ += static_cast<char>((number & 127U) | 128U);
  bytes_ += static_cast<char>(number);
}

// Takes n bytes of the input; fewer with an error if the input ends early.
std::string_view Columns::take_bytes(std::uint64_t n) {
  if (n > left_.size()) fail("columns that end early");
  const std::string_view taken = left_.substr(0, static_cast<std::size_t>(n));
  left_.remove_prefix(taken.size());
  return taken;
}

// Takes a varint; 0 with an error if the input ends early.
std::uint64_t Columns::take_number() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::string_view byte = take_bytes(1);
    if (byte.empty()) return 0;
    number |= (static_cast<std::uint64_t>(byte.front()) & 127U) << shift;
    if ((static_cast<unsigned char>(byte.front()) & 128U) == 0) break;
  }
  return number;
}

void Columns::skip_optional() {
  while (left_.size() > 1 && left_[1] == '?') {  // after the length byte of a name
    const Head head = take_head();
    take_bytes(head.count * head.width);
  }
}

// Reads and checks the head of a column. Arithmetic on damaged values cannot overflow the buffer, since the
// number of cells is compared with the bytes left.
Columns::Head Columns::take_head() {
  Head head{.name = take_bytes(take_number())};
  for (std::uint64_t* number : {&head.coding, &head.count, &head.first, &head.least, &head.unit, &head.width})
    *number = take_number();
  const bool has_cells = head.width > 0 && head.width <= 8 && head.count <= left_.size() / head.width;
  if (head.coding <= static_cast<std::uint64_t>(Coding::changes) && (has_cells || head.count == 0))
    return head;
  fail(fmt::format("a damaged header of column {}", quote_for_message(head.name)));
  return {};
}

// Reads a column, skipping optional ones. An error is recorded if the next column has another name.
void Columns::read(std::string_view name, std::vector<std::int64_t>& values) {
  values.clear();
  Head head;
  std::string_view cells;
  do {
    head = take_head();
    cells = take_bytes(head.count * head.width);
  } while (head.name.starts_with('?'));
  if (head.name != name)
    return fail(fmt::format("column {} where `{}` is expected", quote_for_message(head.name), name));
  const auto n = static_cast<std::size_t>(head.count);
  values.reserve(n);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t cell = 0;
    for (std::size_t b = head.width; b-- > 0;)
      cell = cell << 8U | static_cast<unsigned char>(cells[b * n + i]);
    cell = cell * head.unit + head.least;
    if (static_cast<Coding>(head.coding) == Coding::changes) cell = i == 0 ? head.first : last + cell;
    values.push_back(static_cast<std::int64_t>(last = cell));
  }
}

}  // namespace stepcast::detail
