// `stepcast calibrate experts`: measured expert layers and token exchanges in, the records of their closed forms for all
// measured devices out (platforms/kernels/experts.json, which platforms of devices extend).
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/expert_fit.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateExpertsOptions {
  std::vector<std::string> files;
  std::string output, document;
};

// Exchanges are measured among the GPUs of nodes of so many.
constexpr std::int64_t kGpusOfNode = 8;

ModelRecord record_of(std::string_view kind, JsonValue parameters, const std::string& document,
                      std::uint64_t n_rows) {
  ModelRecord record;
  record.name = record.kind = kind;
  record.parameters = std::move(parameters);
  record.provenance.source = FigureSource::fitted;
  record.provenance.document = document;
  record.provenance.n_rows = n_rows;
  return record;
}

// Shipped platforms by the GPU of rows; says once of each GPU that none describes it.
class ShippedPlatforms {
 public:
  const Platform* of(const std::string& gpu) {
    const auto [at, is_new] = platforms_.try_emplace(gpu);
    if (is_new) {
      if (auto choice = platform_for({.gpu = gpu, .gpus_per_node = kGpusOfNode}))
        at->second = std::move(choice->platform);
      else
        print("{}: no shipped platform describes it\n", gpu);
    }
    return at->second ? &*at->second : nullptr;
  }

 private:
  std::map<std::string, std::optional<Platform>> platforms_;
};

struct Fitted {
  ExpertKernels kernels;
  ExpertExchange exchange;
};

Fitted fit(const ExpertMeasurements& all) {
  std::map<std::pair<std::string, DType>, std::vector<const MeasuredExpertLayer*>> layers;
  for (const MeasuredExpertLayer& m : all.layers) layers[{m.gpu, m.dtype}].push_back(&m);
  std::map<std::string, std::vector<const MeasuredExchange*>> exchanges;
  for (const MeasuredExchange& m : all.exchanges) exchanges[m.gpu].push_back(&m);
  ShippedPlatforms platforms;
  Fitted fitted;
  for (const auto& [key, rows] : layers) {
    const Platform* platform = platforms.of(key.first);
    if (platform == nullptr || !platform->device.peak(key.second)) continue;
    fitted.kernels.measured.push_back(fit_expert_rates(rows, platform->device, key.second));
  }
  for (const auto& [gpu, rows] : exchanges) {
    const Platform* platform = platforms.of(gpu);
    if (platform == nullptr) continue;
    for (const bool combine : {false, true})
      fitted.exchange.measured.push_back(fit_exchange_rates(rows, platform->device, platform->node, combine));
  }
  borrow_network_rates(fitted.exchange.measured);
  return fitted;
}

ReportDocument document_of(const Fitted& fitted) {
  ReportTable table{"device< | what | rows | p10 % | p90 %"};
  table.indent = 0;
  const auto row = [&](const auto& rates, std::string what) {
    table.row({rates.device, std::move(what), table_count(rates.n_rows),
               fmt::format("{:+.1f}", 100 * rates.log_p10), fmt::format("{:+.1f}", 100 * rates.log_p90)});
  };
  for (const ExpertRates& r : fitted.kernels.measured) row(r, fmt::format("layers, {}", to_string(r.dtype)));
  for (const ExchangeRates& r : fitted.exchange.measured) row(r, r.combine ? "combine" : "dispatch");
  ReportDocument document{.title = "Expert layers and the exchange of their tokens"};
  document.add("", {std::move(table)});
  return document;
}

Result<int> run_calibrate_experts(const CalibrateExpertsOptions& options) {
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
    STEPCAST_ASSIGN(output, OutputFile::at(options.output, input_files(files)));
  }
  ExpertMeasurements all;
  for (const std::string& file : options.files) STEPCAST_TRY(read_expert_measurements(file, all));
  const auto [kernels, exchange] = fit(all);
  if (kernels.measured.empty() && exchange.measured.empty())
    return Error::at(options.files.front(), "the rows").found("no GPU that a platform describes");
  print("{}", report_text(document_of({kernels, exchange})));
  if (!output) return kSuccess;
  Platform part;
  part.name = "experts";
  part.description =
      "Expert layers and the exchange of their tokens, for platform files that extend this one";
  if (!kernels.measured.empty())
    part.set(record_of(ExpertKernels::kRecordKind, kernels.write(), options.document, all.layers.size()));
  if (!exchange.measured.empty()) {
    part.set(
        record_of(ExpertExchange::kRecordKind, exchange.write(), options.document, all.exchanges.size()));
  }
  STEPCAST_TRY(output->write(platform_extension_json(part, Platform{}, {})));
  print("\nWritten to {}\n", options.output);
  return kSuccess;
}

}  // namespace

Calibration experts_calibration() {
  return {"experts", "expert layers and the exchange of their tokens, from measured ones of all devices",
          [](CLI::App& app) -> Action {
            auto options = std::make_shared<CalibrateExpertsOptions>();
            app.add_option("FILES", options->files,
                           "CSV files of expert layers or exchanges, of several GPUs")
                ->required();
            add_output_option(app, "-o,--output", options->output,
                              "the platform file to write; without it nothing is written");
            app.add_option("--document", options->document,
                           "where the measurements are from, for the provenance");
            return [options] { return run_calibrate_experts(*options); };
          }};
}

}  // namespace stepcast::cli
