// nccl-tests prints, for every collective:
//
//   # nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) ...
//   #  Rank  0 Group  0 Pid  3466 on  node-1 device  0 [0x07] NVIDIA A100-SXM4-80GB
//   #                                                       out-of-place                in-place
//   #       size   count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
//   #        (B)  (elements)                   (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)
//              8       2  float    sum    -1  30.50   0.00   0.00      0  30.32   0.00   0.00      0
//
// Old versions have no `root`, some collectives no `redop`, and `error` replaces `#wrong`. The columns are
// found by the names in the header.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/collective_curve.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast::detail {
namespace {

struct Columns {
  std::size_t size = 0, type = 0, time = 0, algbw = 0, busbw = 0, n = 0;
  std::optional<std::size_t> redop, wrong, error;
};

// Finds the columns in the words of "size count type redop root time algbw busbw #wrong time ...".
std::optional<Columns> find_columns(const std::vector<std::string_view>& names) {
  const auto find = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto it = std::ranges::find(names, name);
    if (it == names.end()) return std::nullopt;
    return static_cast<std::size_t>(it - names.begin());
  };
  const auto size = find("size"), type = find("type"), time = find("time"), algbw = find("algbw"),
             busbw = find("busbw");
  if (!size || !time || !algbw || !busbw) return std::nullopt;
  Columns c{*size,         type.value_or(names.size()),
            *time,         *algbw,
            *busbw,        names.size(),
            find("redop"), find("#wrong"),
            find("error")};
  return c;
}

struct Section {
  RankHeader ranks;
  CollectiveOp named = CollectiveOp::unknown;
  std::uint32_t gpus_of_process = 0;  // nThread x nGpus
  bool has_redop = false;
  double factor_sum = 0;  // busbw / algbw over rows that show enough digits
  std::uint64_t factor_n = 0;
  std::vector<CollectiveSample> samples;
  std::string source;
};

std::string line_at(std::size_t index) { return fmt::format("line {}", index + 1); }

// The collective, if it is not named: the ratio of bus to algorithm bandwidth distinguishes some of them.
Result<CollectiveOp> infer_collective(const Section& section, std::uint32_t n, const std::string& name) {
  if (section.factor_n > 0 && n > 2) {
    const double factor = section.factor_sum / static_cast<double>(section.factor_n);
    if (std::abs(factor / bus_factor(CollectiveOp::all_reduce, n) - 1) < 0.03)
      return CollectiveOp::all_reduce;
    if (std::abs(factor / bus_factor(CollectiveOp::reduce_scatter, n) - 1) < 0.03 && section.has_redop)
      return CollectiveOp::reduce_scatter;
  }
  return Error::at(name, "the log", "does not name the collective")
      .advice("give --collective all_reduce (or what it was), or put all_reduce_perf into the file name");
}

class Reader {
 public:
  Reader(const std::string& name, const MeasurementContext& context) : name_(name), context_(context) {}

  Result<MeasuredCollectives> read(std::string_view text) {
    const std::vector<std::string_view> all = lines(text);
    n_lines_ = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) STEPCAST_TRY(line(all[i], i));
    STEPCAST_TRY(finish_section());
    if (!saw_header_) {
      return Error::at(name_, "the log",
                       "lacks the header line '#  size  count  type ... time  algbw  busbw'")
          .advice("keep the lines that begin with '#': they say the columns and the ranks");
    }
    if (result_.curves.empty()) return Error::at(name_, "the log", "has a header but no row with a time");
    result_.format = "nccl-tests text";
    return std::move(result_);
  }

 private:
  Status line(std::string_view text, std::size_t index) {
    const std::vector<std::string_view> w = words(text);
    if (w.empty()) return Ok{};
    if (w[0].starts_with('#')) return comment(text, w, index);
    if (const CollectiveOp op = mentioned_collective(text);
        op != CollectiveOp::unknown && !whole_number(w[0])) {
      return names_collective(op);  // an echoed command line
    }
    if (!whole_number(w[0])) return Ok{};  // messages of MPI and NCCL appear between the rows
    return row(w, index);
  }

  Status comment(std::string_view text, const std::vector<std::string_view>& w, std::size_t index) {
    const auto has = [&](std::string_view word) { return std::ranges::find(w, word) != w.end(); };
    if (has("nThread") || text.find("Collective test starting") != std::string_view::npos) {
      if (!section_.samples.empty()) STEPCAST_TRY(finish_section());
    }
    if (const CollectiveOp op = mentioned_collective(text); op != CollectiveOp::unknown)
      STEPCAST_TRY(names_collective(op));
    if (has("nThread")) {
      section_.gpus_of_process = 1;
      for (std::size_t i = 0; i + 1 < w.size(); ++i) {
        if (w[i] != "nThread" && w[i] != "nGpus") continue;
        const auto n = whole_number(w[i + 1]);
        if (n && *n > 0 && *n <= 4096) section_.gpus_of_process *= static_cast<std::uint32_t>(*n);
      }
      return Ok{};
    }
    if (w.size() > 3 && (w[1] == "Rank" || w[0] == "#Rank")) {
      for (std::size_t i = 0; i + 1 < w.size(); ++i)
        if (w[i] == "on") section_.ranks.hosts.emplace_back(w[i + 1]);
      ++section_.ranks.n_ranks;
      if (const std::size_t bracket = text.find(']'); bracket != std::string_view::npos) {
        std::string_view gpu = text.substr(bracket + 1);
        const std::size_t from = gpu.find_first_not_of(" \t");
        if (from != std::string_view::npos) {
          gpu = gpu.substr(from);
          gpu = gpu.substr(0, gpu.find_last_not_of(" \t\r") + 1);
          section_.ranks.gpu = std::string{gpu};
        }
      }
      return Ok{};
    }
    // "# size ..." or "#size ...": the names of the columns.
    std::vector<std::string_view> names(w.begin(), w.end());
    if (names[0] == "#")
      names.erase(names.begin());
    else if (names[0] == "#size")
      names[0].remove_prefix(1);
    if (const auto found = find_columns(names)) {
      if (!section_.samples.empty()) STEPCAST_TRY(finish_section());
      columns_ = found;
      saw_header_ = true;
      return Ok{};
    }
    if (columns_ && text.find("(B)") != std::string_view::npos) return units(w, index);
    return Ok{};
  }

  // A collective that is named after rows applies to the rows that follow.
  Status names_collective(CollectiveOp op) {
    if (!section_.samples.empty()) STEPCAST_TRY(finish_section());
    next_named_ = op;
    return Ok{};
  }

  Status units(const std::vector<std::string_view>& w, std::size_t index) {
    for (const std::string_view unit : w) {
      if (unit.starts_with('(') && unit != "(B)" && unit != "(elements)" && unit != "(us)" &&
          unit != "(GB/s)") {
        return Error::at(name_, line_at(index), "the units of the columns")
            .found(std::string{unit})
            .expected("(B), (us) and (GB/s), as nccl-tests prints them");
      }
    }
    return Ok{};
  }

  Status row(const std::vector<std::string_view>& w, std::size_t index) {
    if (!columns_) {
      if (w.size() < 6) return Ok{};  // a number in some message
      return Error::at(name_, line_at(index), "a row before the header line '#  size  count  type ... time'")
          .advice("keep the lines that begin with '#': they say the columns and the ranks");
    }
    // A row may end early (in-place columns missing), but not within the out-of-place columns.
    const std::size_t needed =
        std::max({columns_->size, columns_->time, columns_->algbw, columns_->busbw}) + 1;
    if (w.size() < needed && index + 1 == n_lines_ && !section_.samples.empty()) {
      result_.unused.push_back({name_, "the last line breaks off", 1});
      return Ok{};
    }
    if (w.size() < needed) {
      return Error::at(name_, line_at(index), "a row")
          .found(fmt::format("{} columns", w.size()))
          .expected(fmt::format("{}", columns_->n));
    }
    CollectiveSample sample;
    const auto number = [&](std::size_t column, std::string_view what) -> Result<double> {
      const auto value = finite_number(w[column]);
      if (!value) {
        return Error::at(name_, line_at(index), std::string{what})
            .found(std::string{w[column].substr(0, 40)})
            .expected("a number");
      }
      return *value;
    };
    STEPCAST_ASSIGN(sample.message_bytes, number(columns_->size, "the column size"));
    STEPCAST_ASSIGN(sample.time_us, number(columns_->time, "the column time"));
    STEPCAST_ASSIGN(const double algbw, number(columns_->algbw, "the column algbw"));
    STEPCAST_ASSIGN(const double busbw, number(columns_->busbw, "the column busbw"));
    if (sample.message_bytes == 0) {
      ++zero_sizes_;
      return Ok{};
    }
    STEPCAST_TRY(check_sample(sample, name_, line_at(index)));
    if (columns_->type < w.size()) sample.dtype = parse_dtype(w[columns_->type]);
    STEPCAST_TRY(check_results(w, index));
    // Redundant columns must agree: bandwidth is bytes over time.
    const double expected = sample.message_bytes / sample.time_us / 1000;
    if (std::abs(algbw - expected) > 0.03 * expected + 0.0101) {
      return Error::at(name_, line_at(index), "the columns size, time and algbw do not fit together")
          .found(fmt::format("{} B, {} us, {} GB/s", sample.message_bytes, sample.time_us, algbw))
          .expected(fmt::format("{:.2f} GB/s", expected))
          .advice("are the units mixed? size must be in bytes, time in us, algbw in GB/s");
    }
    if (algbw >= 1) {
      section_.factor_sum += busbw / algbw;
      ++section_.factor_n;
    }
    section_.has_redop = columns_->redop && *columns_->redop < w.size() && w[*columns_->redop] != "none";
    section_.samples.push_back(sample);
    return Ok{};
  }

  Status check_results(const std::vector<std::string_view>& w, std::size_t index) const {
    const auto wrong = [&](std::string_view column, std::string_view value) {
      return Error::at(name_, line_at(index), fmt::format("the column {}", column))
          .found(std::string{value.substr(0, 40)})
          .expected("0")
          .advice(
              "the collective gave wrong results, so its times say nothing: find out why and measure again");
    };
    if (columns_->wrong && *columns_->wrong < w.size()) {
      const std::string_view value = w[*columns_->wrong];
      const auto count = finite_number(value);
      if (value != "N/A" && (!count || *count != 0)) return wrong("#wrong", value);
    }
    if (columns_->error && *columns_->error < w.size()) {
      const std::string_view value = w[*columns_->error];
      const auto deviation = finite_number(value);
      if (value != "N/A" && (!deviation || std::abs(*deviation) > 0.1)) return wrong("error", value);
    }
    return Ok{};
  }

  Status finish_section() {
    if (zero_sizes_ > 0) result_.unused.push_back({name_, "size 0", std::exchange(zero_sizes_, 0)});
    if (section_.samples.empty()) return Ok{};
    CollectiveMeasurements curve;
    RankHeader& ranks = section_.ranks;
    if (ranks.n_ranks == 0 && section_.gpus_of_process > 1)
      ranks.n_ranks = context_.n_ranks > 0 ? context_.n_ranks : section_.gpus_of_process;
    if (ranks.hosts.empty() && section_.gpus_of_process > 1 && ranks.n_ranks == section_.gpus_of_process)
      ranks.hosts.emplace_back("localhost");  // one process has all ranks
    STEPCAST_TRY(apply_ranks(ranks, context_, name_, curve));
    curve.collective = context_.collective;
    if (curve.collective == CollectiveOp::unknown) curve.collective = next_named_;
    if (curve.collective == CollectiveOp::unknown) curve.collective = mentioned_collective(name_);
    if (curve.collective == CollectiveOp::unknown) {
      STEPCAST_ASSIGN(curve.collective, infer_collective(section_, curve.n_ranks, name_));
    }
    curve.platform = context_.platform;
    curve.sources = {name_};
    const std::uint64_t n = section_.samples.size();
    if (curve.n_ranks < 2) {
      result_.unused.push_back({curve.name(), "one rank has no other to communicate with", n});
    } else {
      for (const CollectiveSample& s : section_.samples) add_sample(curve, s);
      MeasuredCollectives one;
      one.curves.push_back(std::move(curve));
      result_.add(std::move(one));
    }
    section_ = Section{};
    next_named_ = CollectiveOp::unknown;
    return Ok{};
  }

  const std::string& name_;
  const MeasurementContext& context_;
  std::optional<Columns> columns_;
  bool saw_header_ = false;
  Section section_;
  CollectiveOp next_named_ = CollectiveOp::unknown;
  std::size_t n_lines_ = 0;
  std::uint64_t zero_sizes_ = 0;
  MeasuredCollectives result_;
};

}  // namespace

Result<MeasuredCollectives> parse_nccl_tests_text(std::string_view text, const std::string& name,
                                                  const MeasurementContext& context) {
  return Reader{name, context}.read(text);
}

}  // namespace stepcast::detail
