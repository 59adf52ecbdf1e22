// stepcast calibrate collectives: curves from nccl-tests logs, PARAM logs and CSV files.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/cost/related_systems.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/text_table.h"

#include "calibrate.h"
#include "calibrate/collective_fit.h"
#include "calibrate/collective_measurements.h"
#include "calibrate/curve_plot.h"
#include "calibrate/moved_curve.h"
#include "calibrate/protocol_switch.h"
#include "option_values.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string base;
  std::string output;
  std::string name;
  std::string measured_on;
  std::string collective;
  std::uint32_t ranks = 0, gpus_per_node = 0;
  std::string document, date, software;
  std::size_t min_sizes = CollectiveFitOptions{}.min_sizes;
  bool points = false;
  bool row_hashes = false;
  bool no_plot = false;
  bool json = false;
};

struct Fitted {
  const CollectiveMeasurements* measured;
  CollectiveFit fit;
};

// What the report tells beside the curves.
struct Remarks {
  // Curves of too few sizes to fit: what other systems suggest, moved through them.
  std::vector<std::string> moved;
  std::vector<std::string> refused;
  std::vector<UnusedRows> unused;
  std::vector<std::string> missing;  // commands
  std::vector<std::string> denser;   // commands for sizes where NCCL changes protocol
};

// What a reader of the curve should know about where it is weak.
std::string weakness(const CollectiveFit& fit) {
  std::string text;
  if (fit.measured_from > 16) text += "start-up not measured (begin at 8 B); ";
  if (fit.measured_to < 26) text += "full bandwidth not measured (go on to 1 GiB); ";
  if (fit.n_outliers > 0) text += fmt::format("{} outliers; ", fit.n_outliers);
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

// Groups of the platform that nobody measured and that predictions would have to scale.
std::vector<std::string> missing_commands(const Platform& platform, const std::vector<Fitted>& fitted) {
  const std::uint32_t n = platform.node.gpus_per_node;
  std::vector<std::string> commands;
  using enum CollectiveOp;
  for (const CollectiveOp op : {all_reduce, all_gather, reduce_scatter, all_to_all}) {
    if (n > 1) {
      const bool measured = std::any_of(fitted.begin(), fitted.end(), [&](const Fitted& f) {
        return f.measured->collective == op && f.measured->n_nodes == 1 && f.measured->n_ranks == n;
      });
      if (!measured) commands.push_back(measuring_command(op, 1, n));
    }
    if (platform.node.network) {
      const bool measured = std::any_of(fitted.begin(), fitted.end(), [&](const Fitted& f) {
        return f.measured->collective == op && f.measured->n_nodes > 1;
      });
      if (!measured) commands.push_back(measuring_command(op, 2, n));
    }
  }
  return commands;
}

std::string report_json(const Platform& platform, const std::vector<Fitted>& fitted, const Remarks& remarks) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.calibrate_collectives/1").field("version", version());
  json.field("platform", platform.name);
  json.key("curves").begin_array();
  for (const Fitted& f : fitted) {
    const StartupForm& form = f.fit.form;
    json.begin_object();
    json.field("curve", f.measured->name());
    json.field("n_samples", f.fit.n_samples)
        .field("n_sizes", f.fit.n_sizes)
        .field("n_outliers", f.fit.n_outliers);
    json.field("message_bytes_min", std::exp2(f.fit.measured_from));
    json.field("message_bytes_max", std::exp2(f.fit.measured_to));
    json.field("startup_us", form.startup().value());
    json.field("max_bus_bandwidth_GBps", form.max_bus_bandwidth().value() / 1e9);
    json.field("mape_pct", f.fit.mape_pct).field("p90_ape_pct", f.fit.p90_ape_pct);
    json.field("form_mape_pct", f.fit.form_mape_pct);
    json.field("weakness", weakness(f.fit));
    json.end_object();
  }
  json.end_array();
  json.key("moved").begin_array();
  for (const std::string& m : remarks.moved) json.value(m);
  json.end_array();
  json.key("refused").begin_array();
  for (const std::string& r : remarks.refused) json.value(r);
  json.end_array();
  json.key("skipped").begin_array();
  for (const UnusedRows& u : remarks.unused) {
    json.begin_object();
    json.field("what", u.what).field("why", u.why).field("n", u.n);
    json.end_object();
  }
  json.end_array();
  json.key("denser_sizes").begin_array();
  for (const std::string& d : remarks.denser) json.value(d);
  json.end_array();
  json.key("not_measured").begin_array();
  for (const std::string& m : remarks.missing) json.value(m);
  json.end_array();
  json.end_object();
  return std::move(json).text();
}

std::string report_text(const std::vector<Fitted>& fitted, const Remarks& remarks, bool plot) {
  std::string text;
  TextTable table{{{"curve", TextTable::Align::left},
                   {"samples"},
                   {"sizes"},
                   {"from"},
                   {"to"},
                   {"start-up\nus"},
                   {"peak bus\nGB/s"},
                   {"error\n%"},
                   {"p90\n%"},
                   {"outliers"}}};
  for (const Fitted& f : fitted) {
    table.row({f.measured->name(), table_count(f.fit.n_samples), table_count(f.fit.n_sizes),
               table_bytes(std::exp2(f.fit.measured_from)), table_bytes(std::exp2(f.fit.measured_to)),
               table_number(f.fit.form.startup().value(), 1),
               table_number(f.fit.form.max_bus_bandwidth().value() / 1e9, 1), table_number(f.fit.mape_pct, 1),
               table_number(f.fit.p90_ape_pct, 1), table_count(f.fit.n_outliers)});
  }
  if (!table.empty()) text += table.text();
  for (const Fitted& f : fitted) {
    if (plot) {
      text += fmt::format("\n{}: bus bandwidth, o measured, . fitted, @ both\n{}", f.measured->name(),
                          bandwidth_plot(f.fit));
    }
    if (const std::string weak = weakness(f.fit); !weak.empty())
      text += fmt::format("{}: {}\n", f.measured->name(), weak);
  }
  if (!remarks.moved.empty()) {
    text +=
        "\nToo few sizes for a fit: the curve that measured nodes of other machines suggest, moved through "
        "them\n";
  }
  for (const std::string& m : remarks.moved) text += fmt::format("  {}\n", m);
  if (!remarks.refused.empty()) text += "\nRefused\n";
  for (const std::string& r : remarks.refused) text += fmt::format("  {}\n", r);
  for (const UnusedRows& u : remarks.unused)
    text += fmt::format("  {} rows of {} left out: {}\n", u.n, u.what, u.why);
  if (!remarks.denser.empty()) {
    text += "\nNCCL changes protocol between sizes that are a factor of 2 apart. To see where:\n";
  }
  for (const std::string& d : remarks.denser) text += fmt::format("  {}\n", d);
  if (!remarks.missing.empty())
    text += "\nNot measured; predictions will scale other curves and say so. To measure:\n";
  for (const std::string& m : remarks.missing) text += fmt::format("  {}\n", m);
  return text;
}

// A gigabyte in a tenth of a millisecond is another unit, or another machine: what every GPU receives at least goes
// through its links.
Status check_against_links(const CollectiveMeasurements& m, const Platform& base) {
  constexpr double kLargeBytes = 1 << 24;  // times of less are startup
  constexpr double kMostTimesTheLink = 2;  // counters and clocks differ; units differ by a thousand
  const double link = base.node.intra.bandwidth_per_gpu.value();
  if (!(link > 0) || m.n_ranks < 2) return Ok{};
  const bool is_split =
      m.collective == CollectiveOp::all_gather || m.collective == CollectiveOp::all_reduce ||
      m.collective == CollectiveOp::reduce_scatter || m.collective == CollectiveOp::all_to_all;
  const double share = is_split ? 1 - 1.0 / m.n_ranks : 1;
  for (const CollectiveSample& s : m.samples) {
    const double rate = s.message_bytes * share / (s.time_us * 1e-6);
    if (s.message_bytes < kLargeBytes || rate <= kMostTimesTheLink * link) continue;
    return Error::at("", m.name(), "faster than the links of the platform")
        .found(fmt::format("{} in {:.4g} us, {:.0f} GB/s into every GPU", table_bytes(s.message_bytes),
                           s.time_us, rate * 1e-9))
        .expected(
            fmt::format("at most {} times the {:.0f} GB/s of {}", kMostTimesTheLink, link * 1e-9, base.name))
        .advice("check the unit of the times and the platform; nothing was written");
  }
  return Ok{};
}

Result<int> run(const Options& options) {
  MeasurementContext context;
  context.n_ranks = options.ranks;
  context.gpus_per_node = options.gpus_per_node;
  if (!options.collective.empty()) {
    context.collective = parse_collective_op(options.collective);
    if (context.collective == CollectiveOp::unknown) {
      return Error{"--collective"}
          .found(options.collective)
          .expected("all_reduce, all_gather, alltoall, ...");
    }
  }
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files));
  MeasuredCollectives all;
  for (const std::string& file : options.files) {
    STEPCAST_ASSIGN(MeasuredCollectives one, read_collective_measurements(file, context));
    all.add(std::move(one));
  }
  // Files of several machines: only one is calibrated at a time.
  std::set<std::string> platforms;
  for (const CollectiveMeasurements& m : all.curves) platforms.insert(m.platform);
  std::string wanted = options.measured_on;
  if (wanted.empty() && platforms.size() == 1) wanted = *platforms.begin();
  if (wanted.empty() && platforms.size() > 1) {
    for (const std::string& p : platforms) {
      if (base.matches_name(p)) wanted = p;
    }
  }
  if (!platforms.contains(wanted)) {
    std::string names;
    for (const std::string& p : platforms) names += fmt::format("{}{}", names.empty() ? "" : ", ", p);
    return Error{"the files hold measurements of several machines, or not of the one asked for"}
        .found(names)
        .advice("choose one with --measured-on");
  }

  std::vector<Fitted> fitted;
  std::vector<std::string> refused, moved;
  const std::optional<RelatedSystems> related = RelatedSystems::of(base);
  Platform calibrated = output.begin(base, options.name);
  for (const CollectiveMeasurements& m : all.curves) {
    if (m.platform != wanted) continue;
    STEPCAST_TRY(check_against_links(m, base));
    auto fit = fit_collective(m, {.min_sizes = options.min_sizes});
    Provenance provenance;
    provenance.document = options.document;
    if (provenance.document.empty()) {
      for (const std::string& file : options.files) {
        provenance.document +=
            (provenance.document.empty() ? "" : ", ") + std::filesystem::path{file}.filename().string();
      }
    }
    provenance.date = options.date;
    provenance.software = options.software;
    if (options.row_hashes) {
      for (const CollectiveSample& s : m.samples) provenance.row_hashes.push_back(s.hash);
      normalize_row_hashes(provenance.row_hashes);
    }
    if (!fit) {
      auto record = related ? record_of_few_sizes(m, *related, base.device, base.node, provenance)
                            : Result<CollectiveCurve>{Error{"the platform carries no related systems"}};
      if (record) {
        calibrated.set(std::move(*record));
        moved.push_back(m.name());
      } else {
        refused.push_back(fit.error().message());
      }
      continue;
    }
    std::vector<CollectiveCurve> records = fit->records(provenance);
    if (options.points) {
      records.resize(1);
      records[0].knots.clear();
      for (const FitPoint& p : fit->points) records[0].knots.push_back({p.message_bytes, p.measured_us});
    }
    for (CollectiveCurve& record : records) calibrated.set(std::move(record));
    fitted.push_back({&m, std::move(fit).value()});
  }
  if (fitted.empty() && moved.empty()) {
    return Error{"no curve could be fitted"}.advice(refused.empty() ? "" : refused.front());
  }
  STEPCAST_TRY(output.write(calibrated, base));
  std::vector<std::string> denser;
  for (const Fitted& f : fitted) {
    std::string command = denser_sizes_command(*f.measured, base.device, base.node);
    if (!command.empty() && std::ranges::find(denser, command) == denser.end())
      denser.push_back(std::move(command));
  }
  const Remarks remarks{std::move(moved), std::move(refused), std::move(all.unused),
                        missing_commands(base, fitted), std::move(denser)};
  if (options.json) {
    print("{}", report_json(calibrated, fitted, remarks));
  } else {
    print("{}", report_text(fitted, remarks, !options.no_plot));
    if (!options.output.empty()) print("\n{}\n", output.note());
  }
  return kSuccess;
}

}  // namespace

Calibration collectives_calibration() {
  return {
      "collectives", "curves from nccl-tests logs, PARAM logs or CSV files", [](CLI::App& app) -> Action {
        auto options = std::make_shared<Options>();
        app.add_option("FILES", options->files, "nccl-tests text or JSON, PARAM COMMS-RES logs, CSV")
            ->required();
        app.add_option("--platform", options->base, "the platform that was measured: a name or a file")
            ->required();
        add_output_option(
            app, "-o,--output", options->output,
            "the platform file to write (may be that of --platform); without it nothing is written");
        app.add_option("--name", options->name, "name of the new platform (default: of the file)");
        app.add_option("--measured-on", options->measured_on,
                       "take only rows of this platform from CSV files");
        app.add_option("--collective", options->collective, "what was measured, where a log does not say it");
        app.add_option("--ranks", options->ranks, "how many ranks took part, where a log does not say it")
            ->check(above_zero);
        app.add_option("--gpus-per-node", options->gpus_per_node,
                       "ranks per node, where a log does not say it")
            ->check(above_zero);
        app.add_option("--document", options->document,
                       "where the measurements are from, for the provenance");
        app.add_option("--date", options->date, "when they were made: 2024, 2024-05 or 2024-05-31");
        app.add_option("--software", options->software, "\"NCCL 2.23.4\"");
        app.add_option("--min-sizes", options->min_sizes, "refuse curves with fewer message sizes")
            ->capture_default_str();
        app.add_flag("--points", options->points,
                     "keep the measured medians as knots instead of smoothed ones");
        app.add_flag("--row-hashes", options->row_hashes,
                     "note the hash of every row, so that validation never scores a row that was fitted on");
        app.add_flag("--no-plot", options->no_plot, "tables only");
        app.add_flag("--json", options->json, "print one JSON object (docs/collectives.md)");
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
