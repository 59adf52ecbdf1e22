// Reads the description of a recommendation model from TOML or JSON, and embedding tables from CSV. All
// members are checked against their ranges, since files come from users.
#include "stepcast/recommend/dlrm_job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/toml_document.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/measured_indices.h"

namespace stepcast {
namespace {

// Default batch per rank.
constexpr std::int64_t kSamplesPerRank = 8192;
constexpr std::size_t kMostTables = 100'000;

// A list of layer widths; empty if the key is missing. Error: not a list of whole numbers from 1 to 2^20.
Result<std::optional<std::vector<std::int64_t>>> widths(ObjectReader& keys, std::string_view key) {
  const JsonValue* value = keys.take(key);
  if (value == nullptr) return std::optional<std::vector<std::int64_t>>{};
  const auto numbers = value->numbers();
  if (!numbers) return keys.wrong_kind(key, *value, "a list of widths");
  std::vector<std::int64_t> out;
  for (const double n : *numbers) {
    if (!(n >= 1 && n <= 1 << 20 && n == std::floor(n))) {
      return keys.error(key).found(fmt::format("{}", n)).expected("whole numbers from 1 to 1048576");
    }
    out.push_back(static_cast<std::int64_t>(n));
  }
  return std::optional{std::move(out)};
}

// The optimizer with the name under `key`; `otherwise` if the key is missing.
Result<OptimizerKind> optimizer(ObjectReader& keys, std::string_view key, OptimizerKind otherwise) {
  std::string word;
  STEPCAST_TRY(keys.optional(key, word));
  if (word.empty()) return otherwise;
  if (const std::optional<OptimizerKind> kind = find_table_optimizer(word)) return *kind;
  return keys.error(key).found(fmt::format("`{}`", word)).expected(table_optimizer_names());
}

// TOML, or JSON if the text begins with '{'.
Result<JsonValue> document(std::string_view text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return parse_json(text, name);
  return parse_toml(text, name);
}

}  // namespace

// The cell has 17 numbers joined by '-'.
Result<std::array<double, 17>> read_reuse_shares(const CsvRows& rows) {
  std::string_view cell = rows.cell("reuse");
  std::array<double, 17> shares{};
  std::size_t n = 0;
  double sum = 0;
  while (!cell.empty()) {
    // A share may be written as 1e-05, so a '-' after 'e' does not end it.
    std::size_t end = cell.find('-', 1);
    while (end != std::string_view::npos && (cell[end - 1] == 'e' || cell[end - 1] == 'E'))
      end = cell.find('-', end + 1);
    const std::string_view item = cell.substr(0, end);
    cell = end == std::string_view::npos ? std::string_view{} : cell.substr(end + 1);
    const double share = scan<double>(item).value_or(-1);
    if (!(share >= 0 && share <= 1.01) || n == 17) {
      return rows.error("reuse", "17 shares from 0 to 1 joined by '-'");
    }
    shares[n++] = share;
    sum += share;
  }
  if (n != 17 || std::abs(sum - 1) > 0.05)
    return rows.error("reuse", fmt::format("{} shares that sum to {:.3f}", n, sum))
        .expected("17 that sum to 1");
  return shares;
}

DlrmTraining DlrmJob::training_on(std::int64_t n_ranks) const {
  DlrmTraining out = training;
  out.global_batch =
      global_batch.value_or(batch_per_rank.value_or(kSamplesPerRank) * std::max<std::int64_t>(1, n_ranks));
  return out;
}

// A file counts as one if it has keys of a recommendation model. A broken TOML file counts, too, so that the
// reader can report its error.
bool is_dlrm_job(const std::string& model) {
  if (dlrm_preset(model)) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(model, ignored)) return false;
  const Result<std::string> text = read_file(model);
  if (!text || text->size() > 1 << 20) return false;
  const Result<JsonValue> root = document(*text, model);
  if (!root) return model.ends_with(".toml");
  if (root->find("top_mlp") != nullptr || root->find("bottom_mlp") != nullptr) return true;
  const JsonValue* preset = root->find("model");
  return preset != nullptr && preset->is_text() && dlrm_preset(preset->text()).has_value();
}

// Presets of MLPerf run on HugeCTR with fp16, those of NVIDIA's examples on the stack `nvidia`.
Result<DlrmJob> read_dlrm_job(const std::string& preset_or_file) {
  if (std::optional<Dlrm> preset = dlrm_preset(preset_or_file)) {
    DlrmJob job;
    job.model = std::move(*preset);
    const bool criteo = preset_or_file.find("mlperf") != std::string::npos;
    if (criteo) {
      job.training.stack = DlrmStack::hugectr;
      job.training.dtype = DType::fp16;
    } else if (preset_or_file.find("nvidia") != std::string::npos) {
      job.training.stack = DlrmStack::nvidia;
    }
    if (preset_or_file == "dlrm-dcnv2-mlperf")
      job.training.table_optimizer = job.training.dense_optimizer = OptimizerKind::adagrad;
    return job;
  }
  STEPCAST_ASSIGN(const std::string text, read_file(preset_or_file));
  return parse_dlrm_job(text, preset_or_file, std::filesystem::path{preset_or_file}.parent_path().string());
}

namespace {

Status read_interaction(ObjectReader& keys, Dlrm& model) {
  std::string word;
  STEPCAST_TRY(keys.optional("interaction", word));
  if (!word.empty()) {
    bool found = false;
    for (const Interaction i : {Interaction::dot, Interaction::cross, Interaction::concatenate}) {
      if (to_string(i) == word) model.interaction = i, found = true;
    }
    if (!found)
      return keys.error("interaction").found(fmt::format("`{}`", word)).expected("dot, cross or concatenate");
  }
  STEPCAST_TRY(keys.optional("cross_layers", model.cross_layers));
  STEPCAST_TRY(keys.optional("cross_rank", model.cross_rank));
  if (model.cross_layers > 1000 || model.cross_rank < 1 || model.cross_rank > 1 << 20) {
    return keys.error("cross_layers").expected("at most 1000 layers of rank 1 to 1048576");
  }
  return Ok{};
}

Status read_model(ObjectReader& keys, const std::string& name, const std::string& folder, Dlrm& model) {
  STEPCAST_TRY(keys.optional("name", model.name));
  if (model.name.empty()) model.name = std::filesystem::path{name}.stem().string();
  STEPCAST_TRY(keys.optional("dense_features", model.dense_features));
  STEPCAST_ASSIGN(auto bottom, widths(keys, "bottom_mlp"));
  if (bottom) model.bottom_mlp = std::move(*bottom);
  STEPCAST_ASSIGN(auto top, widths(keys, "top_mlp"));
  if (top) model.top_mlp = std::move(*top);
  STEPCAST_TRY(read_interaction(keys, model));
  std::string tables, indices;
  STEPCAST_TRY(keys.optional("tables", tables));
  if (!tables.empty()) {
    const std::filesystem::path file = std::filesystem::path{folder} / tables;
    STEPCAST_ASSIGN(model.tables, read_embedding_tables(file.string()));
  }
  STEPCAST_TRY(keys.optional("indices", indices));
  if (indices.empty()) return Ok{};
  const std::filesystem::path file = std::filesystem::path{folder} / indices;
  return read_indices(file.string(), model);
}

Status read_training(ObjectReader& keys, DlrmTraining& training) {
  std::string stack, type, exchanged, implementation;
  STEPCAST_TRY(keys.optional("stack", stack));
  if (!stack.empty()) {
    const std::optional<DlrmStack> known = parse_dlrm_stack(stack);
    if (!known)
      return keys.error("stack")
          .found(fmt::format("`{}`", stack))
          .expected("pytorch, nvidia, torchrec, hugectr or hugectr-2");
    training.stack = *known;
  }
  std::string release;
  STEPCAST_TRY(keys.optional("release", release));
  if (!release.empty()) {
    const std::optional<std::int32_t> known = parse_dlrm_release(release);
    if (!known)
      return keys.error("release")
          .found(fmt::format("`{}`", release))
          .expected("year and month of a container, 21.09, or a round of MLPerf Training, v0.7 to v4.1");
    training.release = *known;
  }
  STEPCAST_TRY(keys.optional("cuda_graphs", training.cuda_graphs));
  STEPCAST_TRY(keys.optional("dtype", type));
  if (!type.empty()) {
    const DType dtype = parse_dtype(type);
    if (dtype != DType::fp32 && dtype != DType::tf32 && dtype != DType::fp16 && dtype != DType::bf16) {
      return keys.error("dtype").found(fmt::format("`{}`", type)).expected("fp32, tf32, fp16 or bf16");
    }
    training.dtype = dtype;
  }
  STEPCAST_TRY(keys.optional("exchange_dtype", exchanged));
  if (!exchanged.empty()) {
    constexpr std::array kExchanged{DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::int8};
    training.exchange_dtype = parse_dtype(exchanged);
    if (std::ranges::find(kExchanged, training.exchange_dtype) == kExchanged.end())
      return keys.error("exchange_dtype")
          .found(fmt::format("`{}`", exchanged))
          .expected("fp32, fp16, bf16, fp8 or int8");
  }
  STEPCAST_ASSIGN(training.dense_optimizer, optimizer(keys, "dense_optimizer", training.dense_optimizer));
  STEPCAST_TRY(keys.optional("dense_optimizer_implementation", implementation));
  if (implementation == "for_loop") {
    training.dense_optimizer_implementation = OptimizerImplementation::for_loop;
  } else if (!implementation.empty() && implementation != "foreach") {
    return keys.error("dense_optimizer_implementation")
        .found(fmt::format("`{}`", implementation))
        .expected("foreach or for_loop");
  }
  STEPCAST_ASSIGN(training.table_optimizer, optimizer(keys, "table_optimizer", training.table_optimizer));
  return Ok{};
}

}  // namespace

// The settings are put into a JSON object, so that the reader of files checks them.
Status set_training(const std::vector<std::pair<std::string, std::string>>& settings,
                    DlrmTraining& training) {
  JsonValue said = JsonValue::object();
  for (const auto& [key, value] : settings) said.add(key, JsonValue{value});
  const std::string name = "the settings of the training";
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(said, "", name));
  STEPCAST_TRY(read_training(keys, training));
  return keys.finish();
}

namespace {

Status read_batch(ObjectReader& keys, DlrmJob& job) {
  for (const auto& [key, out] :
       {std::pair{"global_batch", &job.global_batch}, std::pair{"batch_per_rank", &job.batch_per_rank}}) {
    std::int64_t batch = 0;
    STEPCAST_TRY(keys.optional(key, batch));
    if (keys.has(key) && (batch < 1 || batch > std::int64_t{1} << 30)) {
      return keys.error(key).found(fmt::format("{}", batch)).expected("1 to 1073741824 samples");
    }
    if (keys.has(key)) *out = batch;
  }
  if (!job.global_batch || !job.batch_per_rank) return Ok{};
  return keys.error("batch_per_rank", "given together with global_batch").advice("keep one of the two");
}

}  // namespace

Result<DlrmJob> parse_dlrm_job(std::string_view text, const std::string& name, const std::string& folder) {
  STEPCAST_ASSIGN(const JsonValue root, document(text, name));
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(root, "", name));
  DlrmJob job;
  std::string preset;
  STEPCAST_TRY(keys.optional("model", preset));
  if (!preset.empty()) {
    if (!dlrm_preset(preset)) {
      return keys.error("model")
          .found(fmt::format("`{}`", preset))
          .expected(fmt::format("one of {}", fmt::join(dlrm_names(), ", ")));
    }
    STEPCAST_ASSIGN(job, read_dlrm_job(preset));
  }
  STEPCAST_TRY(read_model(keys, name, folder, job.model));
  STEPCAST_TRY(read_training(keys, job.training));
  STEPCAST_TRY(read_batch(keys, job));
  STEPCAST_TRY(keys.finish());
  if (!job.model.tables.empty()) {
    Status sound = job.model.check();
    if (!sound.ok()) return std::move(sound).error().in_file(name);
  }
  return job;
}

bool looks_like_embedding_tables(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  return header.find("pooling_factor") != std::string_view::npos &&
         header.find("rows") != std::string_view::npos && header.find('{') == std::string_view::npos;
}

Result<std::vector<EmbeddingTable>> read_embedding_tables(const std::string& file) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse_embedding_tables(text, file);
}

Result<std::vector<EmbeddingTable>> parse_embedding_tables(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  for (const std::string_view column : {"rows", "dim", "pooling_factor"}) {
    if (!rows.has(column)) {
      return Error::at(name, "the header")
          .found(fmt::format("no column {}", column))
          .expected("rows, dim and pooling_factor (docs/dlrm.md)");
    }
  }
  constexpr std::array<std::string_view, 9> kColumns{
      "name", "rows", "dim", "pooling_factor", "dtype", "skew", "reuse", "reuse_lookups", "longest_bag"};
  for (const std::string_view column : rows.columns()) {
    if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end()) {
      return Error::at(name, "the header", "unknown column")
          .found(fmt::format("`{}`", column.substr(0, 40)))
          .expected("name, rows, dim, pooling_factor, dtype, skew, reuse, reuse_lookups, longest_bag");
    }
  }
  std::vector<EmbeddingTable> tables;
  std::unordered_set<std::string> names;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    if (tables.size() == kMostTables)
      return Error::at(name, fmt::format("line {}", rows.line()))
          .expected(fmt::format("at most {} tables", kMostTables));
    EmbeddingTable t;
    t.name = rows.has("name") ? std::string{rows.cell("name")} : fmt::format("table_{}", tables.size());
    STEPCAST_ASSIGN(t.rows, rows.extent("rows"));
    STEPCAST_ASSIGN(t.dim, rows.extent("dim"));
    STEPCAST_ASSIGN(t.pooling, rows.number("pooling_factor", 0));
    STEPCAST_ASSIGN(t.skew, rows.number("skew", 0, t.skew));
    STEPCAST_ASSIGN(t.longest_bag, rows.number("longest_bag", 0, 0));
    if (const std::string_view dtype = rows.cell("dtype"); !dtype.empty()) {
      t.dtype = parse_dtype(dtype);
      if (element_size(t.dtype).value() <= 0) return rows.error("dtype").expected("fp32, fp16, bf16 or int8");
    }
    if (!rows.cell("reuse").empty()) {
      STEPCAST_ASSIGN(const auto shares, read_reuse_shares(rows));
      STEPCAST_ASSIGN(t.reuse_lookups, rows.number("reuse_lookups", 1));
      t.reuse = shares;
    }
    if (!names.insert(t.name).second) return rows.error("name", "a second table of this name");
    // The same bounds as for every model, with the place in this file.
    Dlrm alone{.top_mlp = {1}, .tables = {t}};
    const Status sound = alone.check();
    if (!sound.ok()) return Error::at(name, fmt::format("line {}", rows.line()), sound.error().message());
    tables.push_back(std::move(t));
  }
  if (tables.empty())
    return Error::at(name, "the file").found("no tables").expected("one line per embedding table");
  return tables;
}

}  // namespace stepcast
