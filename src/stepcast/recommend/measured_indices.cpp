// Measures how often rows are looked up in recorded batches. Files are read table by table, so that only one
// table's indices are in memory at a time. Sizes are checked before memory is allocated, since files come
// from users.
#include "stepcast/recommend/measured_indices.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/npz_file.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostMeasuredTables = 100'000;
constexpr std::uint64_t kMostBags = std::uint64_t{1} << 32, kMostSamples = 1 << 24;
constexpr std::uint64_t kMostLookupsOfATable = std::uint64_t{1} << 28;

// Accumulates reuse factors over tables and batches: rows and lookups per bin.
class Totals {
 public:
  void add(const ReuseFactors& one) {
    for (std::size_t k = 0; k < kReuseBins; ++k) {
      rows_[k] += one.of_rows[k] * static_cast<double>(one.distinct_rows);
      lookups_[k] += one.of_lookups[k] * static_cast<double>(one.lookups);
    }
    sum_.lookups += one.lookups;
    sum_.distinct_rows += one.distinct_rows;
    sum_.hottest = std::max(sum_.hottest, one.hottest);
  }
  // The mean over `batches` batches. Shares are weighted by rows and by lookups.
  [[nodiscard]] ReuseFactors mean(std::uint64_t batches = 1) const {
    ReuseFactors mean = sum_;
    for (std::size_t k = 0; k < kReuseBins; ++k) {
      mean.of_rows[k] = sum_.distinct_rows > 0 ? rows_[k] / static_cast<double>(sum_.distinct_rows) : 0;
      mean.of_lookups[k] = sum_.lookups > 0 ? lookups_[k] / static_cast<double>(sum_.lookups) : 0;
    }
    mean.lookups /= std::max<std::uint64_t>(1, batches);
    mean.distinct_rows /= std::max<std::uint64_t>(1, batches);
    return mean;
  }

 private:
  ReuseHistogram rows_{}, lookups_{};
  ReuseFactors sum_;
};

// One .npz file, read table by table.
class IndexFile {
 public:
  // Opens the arrays and determines the numbers of tables and samples. `known`: the tables of the model, or
  // null. Errors: missing arrays, sizes that do not match, too many tables or samples.
  static Result<IndexFile> of(const NpzFile& npz, const std::vector<EmbeddingTable>* known) {
    const std::string& name = npz.name();
    if (!npz.has("indices")) {
      std::vector<std::string> arrays = npz.arrays();
      arrays.resize(std::min<std::size_t>(arrays.size(), 8));
      return Error::at(name, "the archive")
          .found(arrays.empty() ? "no arrays" : fmt::format("the arrays {}", fmt::join(arrays, ", ")))
          .expected("indices, and lengths or offsets (docs/dlrm.md)");
    }
    STEPCAST_ASSIGN(NpzArray indices, npz.array("indices"));
    IndexFile out{name, std::move(indices)};
    const bool has_lengths = npz.has("lengths");
    if (!has_lengths && !npz.has("offsets")) {
      return Error::at(name, "the archive")
          .found("neither lengths nor offsets")
          .expected("one of them, to separate the bags (docs/dlrm.md)");
    }
    STEPCAST_ASSIGN(out.bags_, npz.array(has_lengths ? "lengths" : "offsets"));
    out.has_lengths_ = has_lengths;
    const std::uint64_t numbers = out.bags_->count();
    std::uint64_t tables = known != nullptr ? known->size() : 1;
    if (out.bags_->shape.size() == 2) tables = static_cast<std::uint64_t>(out.bags_->shape[0]);
    if (npz.has("tables")) {
      STEPCAST_ASSIGN(NpzArray count, npz.array("tables"));
      std::vector<std::int64_t> value(1);
      STEPCAST_TRY(count.read(value));
      tables = value[0] > 0 ? static_cast<std::uint64_t>(value[0]) : 0;
    }
    if (tables < 1 || tables > static_cast<std::uint64_t>(kMostMeasuredTables) || numbers > kMostBags) {
      return Error::at(name, "the archive")
          .found(fmt::format("{} tables and {} bags", tables, numbers))
          .expected("1 to 100000 tables of at most 2^32 bags");
    }
    // Offsets of tables x samples + 1 numbers include the end, which is the number of indices.
    const bool closed = !has_lengths && numbers % tables == 1 % tables && out.bags_->shape.size() == 1 &&
                        (tables > 1 || numbers > 1);
    const std::uint64_t bags = closed ? numbers - 1 : numbers;
    if (bags % tables != 0 || bags == 0) {
      return Error::at(name, has_lengths ? "array lengths" : "array offsets")
          .found(fmt::format("{} numbers for {} tables", numbers, tables))
          .expected(has_lengths ? "one per table and sample" : "tables x samples + 1")
          .advice("give their number as the array `tables`, or shape [tables, samples]");
    }
    if (bags / tables > kMostSamples) {
      return Error::at(name, "the archive")
          .found(fmt::format("{} samples", bags / tables))
          .expected(fmt::format("at most {}", kMostSamples));
    }
    out.tables_ = tables;
    out.samples_ = bags / tables;
    out.closed_ = closed;
    if (!has_lengths) {
      std::vector<std::int64_t> first(1);
      STEPCAST_TRY(out.bags_->read(first));
      if (first[0] != 0) {
        return Error::at(name, "array offsets").found(fmt::format("{} first", first[0])).expected("0");
      }
    }
    return out;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t tables() const { return tables_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }

  // Reads the next table: the lengths of its bags, and its indices, which are appended to `indices`. Errors:
  // negative lengths, falling offsets, more lookups than indices.
  Status next(std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& indices) {
    lengths.resize(samples_);
    if (has_lengths_) {
      STEPCAST_TRY(bags_->read(lengths));
    } else {
      ++read_tables_;
      const bool end_is_missing = !closed_ && read_tables_ == tables_;
      STEPCAST_TRY(bags_->read(std::span{lengths}.first(samples_ - (end_is_missing ? 1 : 0))));
      if (end_is_missing) lengths.back() = static_cast<std::int64_t>(indices_.count());
      for (std::int64_t& end : lengths) {
        const std::int64_t from = std::exchange(last_offset_, end);
        if (end < from || end > static_cast<std::int64_t>(indices_.count())) {
          return Error::at(name_, "array offsets")
              .found(fmt::format("{} behind {}", end, from))
              .expected(fmt::format("offsets that do not decrease, up to {}", indices_.count()));
        }
        end -= from;
      }
    }
    std::uint64_t sum = 0;
    for (const std::int64_t length : lengths) {
      if (length < 0) {
        return Error::at(name_, "array lengths").found(fmt::format("{}", length)).expected("0 and more");
      }
      sum += static_cast<std::uint64_t>(length);
      if (sum > kMostLookupsOfATable || sum > indices_.count() - read_indices_) {
        return Error::at(name_, has_lengths_ ? "array lengths" : "array offsets")
            .found(fmt::format("more lookups than the {} indices", indices_.count()))
            .expected("lengths with this sum, at most 2^28 per table");
      }
    }
    const std::size_t before = indices.size();
    indices.resize(before + sum);
    read_indices_ += sum;
    return indices_.read(std::span{indices}.subspan(before));
  }

  // Error if the file has more indices than the lengths describe.
  [[nodiscard]] Status finish() const {
    if (read_indices_ == indices_.count()) return Ok{};
    return Error::at(name_, "array indices")
        .found(fmt::format("{} indices", indices_.count()))
        .expected(fmt::format("the {} of lengths or offsets", read_indices_));
  }

 private:
  IndexFile(std::string name, NpzArray indices) : name_(std::move(name)), indices_(std::move(indices)) {}

  std::string name_;
  NpzArray indices_;
  std::optional<NpzArray> bags_;
  // Form of the bags: lengths or offsets; and whether the offsets include the end.
  bool has_lengths_ = true, closed_ = false;
  std::uint64_t tables_ = 0, samples_ = 0, read_tables_ = 0, read_indices_ = 0;
  std::int64_t last_offset_ = 0;
};

// Totals of a whole file and over its batches.
struct Sums {
  Totals all, batches;
};

// Statistics of one table from its bags.
MeasuredTable table_of(std::string name, std::span<const std::int64_t> lengths,
                       std::span<const std::int64_t> indices, const ReuseFactors& reuse) {
  MeasuredTable t;
  t.name = std::move(name);
  t.reuse = reuse;
  t.lookups_per_sample = static_cast<double>(indices.size()) / static_cast<double>(lengths.size());
  t.longest_bag = *std::max_element(lengths.begin(), lengths.end());
  t.empty_share = static_cast<double>(std::count(lengths.begin(), lengths.end(), 0)) /
                  static_cast<double>(lengths.size());
  if (!indices.empty()) t.highest_index = *std::max_element(indices.begin(), indices.end());
  return t;
}

// Adds the reuse factors of each complete batch of `batch_samples` samples of one table to `sums`.
Status add_batches(std::int64_t batch_samples, std::span<const std::int64_t> lengths,
                   std::span<const std::int64_t> indices, std::int64_t rows, Sums& sums) {
  std::size_t from = 0;
  const auto batch = static_cast<std::size_t>(batch_samples);
  for (std::size_t s = 0; s + batch <= lengths.size(); s += batch) {
    std::size_t lookups = 0;
    for (std::size_t i = 0; i < batch; ++i) lookups += static_cast<std::size_t>(lengths[s + i]);
    STEPCAST_ASSIGN(const ReuseFactors part, reuse_factors(indices.subspan(from, lookups), rows));
    sums.batches.add(part);
    from += lookups;
  }
  return Ok{};
}

// Measures all files at once, table by table. With several files, the last result is that of all files
// together.
Result<std::vector<MeasuredIndices>> measure(std::vector<IndexFile> files, const MeasureOptions& options) {
  const std::uint64_t tables = files.front().tables();
  for (const IndexFile& file : files) {
    if (file.tables() != tables) {
      return Error::at(file.name(), "the archive")
          .found(fmt::format("{} tables", file.tables()))
          .expected(fmt::format("the {} of {}", tables, files.front().name()));
    }
    if (options.tables != nullptr && options.tables->size() != tables) {
      return Error::at(file.name(), "the archive")
          .found(fmt::format("{} tables", tables))
          .expected(fmt::format("the {} of the model", options.tables->size()));
    }
  }
  const std::size_t n = files.size();
  std::vector<MeasuredIndices> out(n == 1 ? 1 : n + 1);
  std::vector<Sums> sums(out.size());
  std::vector<std::int64_t> lengths, indices, all_lengths, all_indices;
  for (std::uint64_t t = 0; t < tables; ++t) {
    const EmbeddingTable* known = options.tables != nullptr ? &(*options.tables)[t] : nullptr;
    const std::string name = known != nullptr ? known->name : fmt::format("table_{}", t);
    const std::int64_t rows = known != nullptr ? known->rows : std::int64_t{1} << 42;
    all_lengths.clear();
    all_indices.clear();
    for (std::size_t f = 0; f < n; ++f) {
      indices.clear();
      STEPCAST_TRY(files[f].next(lengths, indices));
      Result<ReuseFactors> reuse = reuse_factors(indices, rows);
      if (!reuse) {
        return Error::at(files[f].name(), fmt::format("indices of {}", name), reuse.error().message());
      }
      sums[f].all.add(*reuse);
      out[f].tables.push_back(table_of(name, lengths, indices, *reuse));
      if (options.batch_samples > 0)
        STEPCAST_TRY(add_batches(options.batch_samples, lengths, indices, rows, sums[f]));
      if (n == 1) continue;
      all_lengths.insert(all_lengths.end(), lengths.begin(), lengths.end());
      all_indices.insert(all_indices.end(), indices.begin(), indices.end());
    }
    if (n == 1) continue;
    STEPCAST_ASSIGN(const ReuseFactors reuse, reuse_factors(all_indices, rows));
    sums[n].all.add(reuse);
    out[n].tables.push_back(table_of(name, all_lengths, all_indices, reuse));
  }
  for (std::size_t f = 0; f < n; ++f) {
    STEPCAST_TRY(files[f].finish());
    out[f].file = files[f].name();
    out[f].samples = static_cast<std::int64_t>(files[f].samples());
    if (n > 1) out[n].samples += out[f].samples;
    if (options.batch_samples > 0) out[f].batches = out[f].samples / options.batch_samples;
    out[f].mean_batch = sums[f].batches.mean(static_cast<std::uint64_t>(out[f].batches));
  }
  for (std::size_t f = 0; f < out.size(); ++f) out[f].all = sums[f].all.mean();
  if (n > 1) out[n].file = "all files";
  return out;
}

}  // namespace

Result<std::vector<MeasuredIndices>> measure_indices(const std::vector<std::string>& files,
                                                     const MeasureOptions& options) {
  std::vector<IndexFile> opened;
  for (const std::string& file : files) {
    STEPCAST_ASSIGN(NpzFile npz, NpzFile::open(file));
    STEPCAST_ASSIGN(IndexFile indices, IndexFile::of(npz, options.tables));
    opened.push_back(std::move(indices));
  }
  return measure(std::move(opened), options);
}

Result<std::vector<MeasuredIndices>> measure_indices(
    const std::vector<std::pair<std::string, std::string>>& contents, const MeasureOptions& options) {
  std::vector<IndexFile> opened;
  for (const auto& [name, content] : contents) {
    STEPCAST_ASSIGN(NpzFile npz, NpzFile::from_memory(content, name));
    STEPCAST_ASSIGN(IndexFile indices, IndexFile::of(npz, options.tables));
    opened.push_back(std::move(indices));
  }
  return measure(std::move(opened), options);
}

Status use_indices(const MeasuredIndices& measured, Dlrm& model) {
  if (measured.tables.size() != model.tables.size()) {
    return Error::at(measured.file, "the archive")
        .found(fmt::format("{} tables", measured.tables.size()))
        .expected(fmt::format("the {} of the model", model.tables.size()));
  }
  for (std::size_t t = 0; t < model.tables.size(); ++t) {
    EmbeddingTable& table = model.tables[t];
    const MeasuredTable& m = measured.tables[t];
    table.pooling = m.lookups_per_sample;
    table.longest_bag = static_cast<double>(m.longest_bag);
    if (m.reuse.lookups == 0) continue;
    table.reuse = m.reuse.of_rows;
    table.reuse_of_lookups = m.reuse.of_lookups;
    table.reuse_lookups = static_cast<double>(m.reuse.lookups);
    table.reuse_distinct_rows = static_cast<double>(m.reuse.distinct_rows);
    table.reuse_hottest = static_cast<double>(m.reuse.hottest);
  }
  return Ok{};
}

Status read_indices(const std::string& file, Dlrm& model) {
  STEPCAST_ASSIGN(const std::vector<MeasuredIndices> measured,
                  measure_indices(std::vector<std::string>{file}, {.tables = &model.tables}));
  return use_indices(measured.front(), model);
}

}  // namespace stepcast
