#include "stepcast/platform/provenance.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

constexpr auto kFigureSourceNames = names<FigureSource>({{FigureSource::assumed, "assumed"},
                                                         {FigureSource::data_sheet, "data_sheet"},
                                                         {FigureSource::measured, "measured"},
                                                         {FigureSource::fitted, "fitted"}});

// Bits of a row hash, and those that earlier versions of the files had: the upper 24 of the 32 are today's
// hash.
constexpr unsigned kHashBits = 24, kEarlierHashBits = 32;

}  // namespace

std::string_view to_string(FigureSource source) { return kFigureSourceNames[source]; }

std::optional<FigureSource> parse_figure_source(std::string_view text) {
  return kFigureSourceNames.find(text);
}

// The hashes are ascending, so a binary search finds a row.
bool Provenance::used_row(std::uint32_t hash) const {
  return std::ranges::binary_search(row_hashes.all(), hash);
}

std::uint32_t row_hash(std::span<const std::string_view> cells) {
  // FNV-1a with 64 bits, folded. The separator distinguishes ("ab", "c") from ("a", "bc").
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto feed = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const std::string_view cell : cells) {
    for (const char c : cell) feed(static_cast<unsigned char>(c));
    feed(0x1f);
  }
  hash ^= hash >> 29U;  // the high bits of FNV are mixed least
  hash *= 0xbf58476d1ce4e5b9U;
  return static_cast<std::uint32_t>(hash >> (64U - kHashBits));
}

std::uint32_t row_hash(std::initializer_list<std::string_view> cells) {
  return row_hash(std::span<const std::string_view>{cells.begin(), cells.size()});
}

RowHashes::RowHashes(std::vector<std::uint32_t> hashes) {
  const auto repeat = std::ranges::adjacent_find(hashes, std::greater_equal<>{});
  if (repeat != hashes.end()) {  // not as in files
    std::ranges::sort(hashes);
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  }
  // Hashes of earlier versions; the order stays, repeats may appear.
  if (!hashes.empty() && hashes.back() >> kHashBits != 0) {
    for (std::uint32_t& hash : hashes) hash >>= kEarlierHashBits - kHashBits;
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  }
  hashes_ = std::move(hashes);
}

const Provenance* Sources::find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second;
}

// A figure without a source has an empty provenance, so that callers need no case for it.
const Provenance& Sources::of(std::string_view key) const {
  static const Provenance kNotStated{};
  const Provenance* found = find(key);
  return found != nullptr ? *found : kNotStated;
}

void Sources::set(std::string_view key, Provenance provenance) {
  by_key_.insert_or_assign(std::string{key}, std::move(provenance));
}

void Sources::erase(std::string_view key) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) by_key_.erase(found);
}

}  // namespace stepcast
