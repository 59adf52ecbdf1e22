// stepcast calibrate collectives: curves from nccl-tests logs, PARAM logs and CSV files.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/cost/related_systems.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/collective_fit.h"
#include "calibrate/collective_measurements.h"
#include "calibrate/curve_plot.h"
#include "calibrate/moved_curve.h"
#include "calibrate/plausible_measurements.h"
#include "calibrate/protocol_switch.h"
#include "calibration_answers.h"
#include "curve_effect.h"
#include "option_list.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateCollectivesOptions : PlatformCalibration {
  std::string measured_on, collective;
  std::uint32_t ranks = 0, gpus_per_node = 0;
  std::size_t min_sizes = CollectiveFitOptions{}.min_sizes;
  bool points = false, row_hashes = false, no_plot = false;
};

// Commands for groups of the platform that were not measured and that predictions would have to scale.
std::vector<std::string> missing_commands(const Platform& platform,
                                          const std::vector<const CollectiveMeasurements*>& fitted) {
  const std::uint32_t n = platform.node.gpus_per_node;
  std::vector<std::string> commands;
  using enum CollectiveOp;
  for (const CollectiveOp op : {all_reduce, all_gather, reduce_scatter, all_to_all}) {
    if (n > 1) {
      const bool measured = std::ranges::any_of(fitted, [&](const CollectiveMeasurements* m) {
        return m->collective == op && m->n_nodes == 1 && m->n_ranks == n;
      });
      if (!measured) commands.push_back(measuring_command(op, 1, n));
    }
    if (platform.node.network) {
      const bool measured = std::ranges::any_of(
          fitted, [&](const CollectiveMeasurements* m) { return m->collective == op && m->n_nodes > 1; });
      if (!measured) commands.push_back(measuring_command(op, 2, n));
    }
  }
  return commands;
}

ReportDocument document_of(const CalibratedCollectives& answer, bool plot) {
  ReportTable table{
      "curve< | samples | sizes | from | to | start-up\nus | peak bus\nGB/s | error\n% | p90\n% | outliers"};
  table.indent = 0;
  for (const auto& [name, fit] : answer.curves) {
    table
        .row({name, table_count(fit.n_samples), table_count(fit.n_sizes),
              table_bytes(std::exp2(fit.measured_from)), table_bytes(std::exp2(fit.measured_to))})
        .numbers({fit.form.startup().value(), fit.form.max_bus_bandwidth().value() / 1e9, fit.mape_pct,
                  fit.p90_ape_pct},
                 1)
        .cell(table_count(fit.n_outliers));
  }
  ReportDocument document{.title = "Collectives of " + answer.platform};
  ReportSection& curves = document.add("Curves", {std::move(table)});
  curves.opening.emplace();
  for (const CalibratedCollectives::Curve& c : answer.curves) {
    if (plot) {
      curves.add(TerminalText{"\n"});
      curves.add(ReportText{c.name + ": bus bandwidth, o measured, . fitted, @ both", 0});
      curves.add(ReportCode{"", bandwidth_plot(c.fit)});
    }
    if (const std::string weak = c.weakness(); !weak.empty()) curves.add(ReportText{c.name + ": " + weak, 0});
  }
  const auto list = [&](std::string heading, const std::vector<std::string>& lines) {
    document.add(std::move(heading), {ReportList{lines, "  "}});
  };
  list("Too few sizes for a fit: uses the curve of measured nodes of other machines, shifted to these points",
       answer.moved);
  list("Refused", answer.refused);
  std::vector<std::string> unused;
  for (const UnusedRows& u : answer.unused)
    unused.push_back(fmt::format("{} rows of {} left out: {}", u.n, u.what, u.why));
  list("", unused);
  list("NCCL changes protocol between two measured sizes. To see where:", answer.denser_sizes);
  list("Not measured; predictions will scale other curves and say so. To measure:", answer.not_measured);
  list("Warning: no forecast that was tried uses it", answer.used_by_nothing);
  if (!answer.changes.empty()) list("Changes stepcast predict", {answer.changes});
  return document;
}

Result<MeasuredCollectives> read_files(const CalibrateCollectivesOptions& options) {
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
  MeasuredCollectives all;
  for (const std::string& file : options.files) {
    STEPCAST_ASSIGN(MeasuredCollectives one, read_collective_measurements(file, context));
    all.add(std::move(one));
  }
  return all;
}

// Keeps the rows of one machine: files may contain several machines, and only one is calibrated at a time.
Status keep_one_machine(std::vector<CollectiveMeasurements>& curves, const Platform& base,
                        std::string wanted) {
  std::set<std::string> platforms;
  for (const CollectiveMeasurements& m : curves) platforms.insert(m.platform);
  if (wanted.empty() && platforms.size() == 1) wanted = *platforms.begin();
  if (wanted.empty()) {
    for (const std::string& p : platforms)
      if (base.matches_name(p)) wanted = p;
  }
  if (!platforms.contains(wanted)) {
    return Error{"the files have measurements of several machines, or none of the one you asked for"}
        .found(fmt::format("{}", fmt::join(platforms, ", ")))
        .advice("choose one with --measured-on");
  }
  std::erase_if(curves, [&](const CollectiveMeasurements& m) { return m.platform != wanted; });
  return Ok{};
}

Provenance provenance_of(const CollectiveMeasurements& m, const CalibrateCollectivesOptions& options) {
  Provenance provenance = options.provenance();
  if (options.row_hashes) {
    std::vector<std::uint32_t> hashes;
    for (const CollectiveSample& s : m.samples) hashes.push_back(s.hash);
    provenance.row_hashes = RowHashes{std::move(hashes)};
  }
  return provenance;
}

// Stores the records of `fit` in `calibrated`, replacing all curves of its group.
void set_curve(const CollectiveFit& fit, const Provenance& provenance, bool keeps_points,
               Platform& calibrated) {
  std::vector<CollectiveCurve> records = fit.records(provenance);
  if (keeps_points) {
    records.resize(1);
    std::vector<CurveKnot>& knots = records[0].fit.edit().knots;
    knots.clear();
    for (const FitPoint& p : fit.points) knots.push_back({p.message_bytes, p.measured_us});
  }
  // Curves for a single element type would have precedence over the new curve for any type.
  std::erase_if(calibrated.curves, [&](const CollectiveCurve& old) {
    const CollectiveCurve& now = records.front();
    return old.collective == now.collective && old.variant == now.variant && old.n_nodes == now.n_nodes &&
           old.gpus_per_node == now.gpus_per_node && old.n_ranks == now.n_ranks;
  });
  for (CollectiveCurve& record : records) calibrated.set(std::move(record));
}

// Fits each curve into `calibrated` and returns the ones that could be fitted. Curves with too few sizes use
// the shape of curves of related systems.
Result<std::vector<const CollectiveMeasurements*>> fit_curves(
    const std::vector<CollectiveMeasurements>& curves, const Platform& base,
    const CalibrateCollectivesOptions& options, Platform& calibrated, CalibratedCollectives& answer) {
  std::vector<const CollectiveMeasurements*> fitted;
  const std::optional<RelatedSystems> related = RelatedSystems::of(base);
  for (const CollectiveMeasurements& m : curves) {
    if (!options.force) {
      STEPCAST_TRY(check_measured_on(m.gpu, base.device));
      STEPCAST_TRY(check_plausible(m, base));
    }
    auto fit = fit_collective(m, {.min_sizes = options.min_sizes});
    const Provenance provenance = provenance_of(m, options);
    if (fit) {
      set_curve(*fit, provenance, options.points, calibrated);
      answer.curves.push_back({m.name(), std::move(fit).value()});
      fitted.push_back(&m);
      continue;
    }
    auto record = related ? record_of_few_sizes(m, *related, base.device, base.node, provenance)
                          : Result<CollectiveCurve>{Error{"the platform carries no related systems"}};
    if (record) {
      calibrated.set(std::move(*record));
      answer.moved.push_back(m.name());
    } else {
      answer.refused.push_back(fit.error().message());
    }
  }
  if (fitted.empty() && answer.moved.empty())
    return Error{"no curve could be fitted"}.advice(answer.refused.empty() ? "" : answer.refused.front());
  return fitted;
}

Result<int> run_calibrate_collectives(const CalibrateCollectivesOptions& options) {
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files));
  STEPCAST_ASSIGN(MeasuredCollectives all, read_files(options));
  STEPCAST_TRY(keep_one_machine(all.curves, base, options.measured_on));

  Platform calibrated = output.begin(base, options.name);
  CalibratedCollectives answer{.platform = calibrated.name, .unused = std::move(all.unused)};
  STEPCAST_ASSIGN(const std::vector<const CollectiveMeasurements*> fitted,
                  fit_curves(all.curves, base, options, calibrated, answer));
  STEPCAST_TRY(output.write(calibrated, base));
  for (const CollectiveMeasurements* m : fitted) {
    std::string command = denser_sizes_command(*m, base.device, base.node);
    if (!command.empty() && std::ranges::find(answer.denser_sizes, command) == answer.denser_sizes.end())
      answer.denser_sizes.push_back(std::move(command));
  }
  answer.not_measured = missing_commands(base, fitted);
  CurveEffects effects = effects_of_curves(base, calibrated);
  answer.changes = std::move(effects.largest);
  answer.used_by_nothing = std::move(effects.unused);
  options.answer(calibration_json(answer), document_of(answer, !options.no_plot), output);
  return kSuccess;
}

}  // namespace

Calibration collectives_calibration() {
  return {"collectives", "curves from nccl-tests logs, PARAM logs or CSV files", [](CLI::App& app) -> Action {
            auto options = std::make_shared<CalibrateCollectivesOptions>();
            app.add_option("FILES", options->files, "nccl-tests text or JSON, PARAM COMMS-RES logs, CSV")
                ->required();
            options->add_platform(
                app, "measured platform: a name or a file",
                "platform file to write (may be that of --platform); without it nothing is written");
            app.add_option("--measured-on", options->measured_on,
                           "use only rows of this platform from CSV files");
            app.add_option("--collective", options->collective,
                           "measured collective, if the log does not name it");
            app.add_option("--ranks", options->ranks, "number of ranks, if the log does not give it")
                ->check(above_zero);
            app.add_option("--gpus-per-node", options->gpus_per_node,
                           "ranks per node, if the log does not give it")
                ->check(above_zero);
            options->add_origin(app, "measurements", "made", "\"NCCL 2.23.4\"");
            app.add_option("--min-sizes", options->min_sizes, "reject curves with fewer message sizes")
                ->capture_default_str();
            app.add_flag("--points", options->points,
                         "keep the measured medians as knots instead of smoothed ones");
            app.add_flag("--row-hashes", options->row_hashes,
                         "store the hash of every row, so that validation skips rows used for the fit");
            app.add_flag("--no-plot", options->no_plot, "tables only");
            options->add_force(app);
            app.add_flag("--json", options->json, "print one JSON object (docs/collectives.md)");
            return [options] { return run_calibrate_collectives(*options); };
          }};
}

}  // namespace stepcast::cli
