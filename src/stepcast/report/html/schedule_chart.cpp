#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

// The layout of schedules.
constexpr double kScheduleWidth = 960, kScheduleFrom = 150, kScheduleTo = 950, kScheduleTop = 6,
                 kScheduleAxis = 22;
// The plot is this number of units wide; bars are rounded to whole units.
constexpr double kUnits = 20000;
// The width of the mark for an interval that is left out.
constexpr double kGapUnits = 600;

// The CSS class of a part, in the order of PicturePart.
std::string colour_of(PicturePart part) {
  constexpr std::array<const char*, kPicturePartCount> kColours{
      "p-forward", "p-backward", "p-weight", "p-update", "p-computation", "p-transfer", "p-copy",
      "p-rank",    "p-pipeline", "p-cpu",    "p-stream", "p-idle",        "p-host",     "p-delay"};
  return kColours[static_cast<std::size_t>(part)];
}

// Maps times to units. An interval that is left out takes no room except for a mark.
class TimeAxis {
 public:
  explicit TimeAxis(const StepPicture& picture) {
    if (!picture.gaps.empty()) {
      gap_from_ = picture.gaps.front().from_ms;
      skipped_ = picture.gaps.front().to_ms - gap_from_;
    }
    const double room = skipped_ > 0 ? kUnits - kGapUnits : kUnits;
    scale_ = room / std::max(1e-12, picture.length_ms - skipped_);
  }
  // The position of a time. Times inside the gap are mapped to its end.
  [[nodiscard]] double at(double ms) const {
    if (skipped_ <= 0 || ms <= gap_from_) return ms * scale_;
    return std::max(gap_from_, ms - skipped_) * scale_ + kGapUnits;
  }
  [[nodiscard]] bool has_gap() const { return skipped_ > 0; }
  [[nodiscard]] double gap_units() const { return gap_from_ * scale_; }
  [[nodiscard]] double gap_from_ms() const { return gap_from_; }
  [[nodiscard]] double skipped_ms() const { return skipped_; }
  [[nodiscard]] double scale() const { return scale_; }

 private:
  double gap_from_ = 0, skipped_ = 0, scale_ = 1;
};

// The height of rows and bars, smaller if there are many rows.
struct RowSize {
  double height, bar;
};
RowSize row_size(std::size_t rows) {
  const double height = rows <= 16 ? 28 : rows <= 40 ? 18 : 11;
  return {height, std::round(height * 0.72)};
}

// Draws all bars of one part in a row as one path with a stroke as wide as the bar. `data-n` contains the
// numbers of their micro-batches in the same order, for tooltips.
void draw_part(Markup& svg, const std::vector<PictureBar>& bars, PicturePart part, const TimeAxis& axis,
               double y, double width, std::size_t row) {
  std::string path, numbers;
  for (const PictureBar& bar : bars) {
    if (bar.part != part) continue;
    const auto from = std::llround(axis.at(bar.start_ms));
    const auto to = std::max(from + 1, std::llround(axis.at(bar.start_ms + bar.time_ms)));
    path += fmt::format("M{} {}h{}", from, coordinate(y), to - from);
    if (bar.number >= 0) numbers += fmt::format("{} ", bar.number);
  }
  if (path.empty()) return;
  if (!numbers.empty()) numbers.pop_back();
  svg.leaf("path", {{"class", colour_of(part)},
                    {"d", path},
                    {"stroke-width", width},
                    {"data-row", row},
                    {"data-part", to_string(part)},
                    {"data-n", numbers}});
}

// Draws lines between passes, which would otherwise merge if they follow each other without a gap.
void draw_borders(Markup& svg, const std::vector<PictureBar>& bars, const TimeAxis& axis, double y,
                  double height) {
  std::string path;
  for (const PictureBar& bar : bars) {
    if (bar.number < 0) continue;
    path += fmt::format("M{} {}v{}", std::llround(axis.at(bar.start_ms)), coordinate(y), coordinate(height));
  }
  if (!path.empty()) svg.leaf("path", {{"class", "border"}, {"d", path}});
}

// Draws the numbers of micro-batches inside their bars, where they fit.
void draw_numbers(Markup& svg, const std::vector<PictureBar>& bars, const TimeAxis& axis, double y) {
  constexpr double kDigit = 7;
  for (const PictureBar& bar : bars) {
    if (bar.number < 0) continue;
    const double from = axis.at(bar.start_ms) / kUnits, to = axis.at(bar.start_ms + bar.time_ms) / kUnits;
    const std::string text = std::to_string(bar.number);
    if ((to - from) * (kScheduleTo - kScheduleFrom) < kDigit * static_cast<double>(text.size()) + 3) continue;
    draw_text(svg, "in " + colour_of(bar.part),
              kScheduleFrom + (from + to) / 2 * (kScheduleTo - kScheduleFrom), y, text);
  }
}

// Draws the time axis.
void draw_ticks(Markup& svg, const StepPicture& picture, const TimeAxis& axis, double bottom) {
  constexpr int kTicks = 8;
  svg.open("g", {{"class", "ticks"}});
  const double shown = picture.length_ms - axis.skipped_ms();
  std::vector<double> ticks = round_ticks(0, shown, kTicks);
  for (const double tick : ticks) {
    // Behind the gap, ticks show the times that they have in the step.
    const double ms = axis.has_gap() && tick > axis.gap_from_ms() ? tick + axis.skipped_ms() : tick;
    const double x = kScheduleFrom + axis.at(ms) / kUnits * (kScheduleTo - kScheduleFrom);
    draw_line(svg, "grid", x, x, kScheduleTop, bottom);
    draw_text(svg, "tick", x, bottom + 15, tick_text(ms));
  }
  svg.close();
  draw_text(svg, "unit", 0, bottom + 15, "ms");
}

// Draws the mark for the interval that is left out.
void draw_gap(Markup& svg, const TimeAxis& axis, double bottom) {
  if (!axis.has_gap()) return;
  draw_rect(svg, "gap", axis.gap_units(), 0, kGapUnits, bottom - kScheduleTop);
}

// Sentences about what the picture does not show: the middle of the step, short activities, further rows.
std::string left_out(const StepPicture& picture) {
  std::string text;
  if (!picture.gaps.empty()) {
    const PictureGap& gap = picture.gaps.front();
    text += fmt::format("Left out in the middle: {} ms with {} repeated passes. ",
                        table_number(gap.to_ms - gap.from_ms, 1), table_count(gap.passes));
  }
  if (picture.slot_ms > 0)
    text += fmt::format("Drawn in slots of {:.3g} ms, each with its longest activity. ", picture.slot_ms);
  if (picture.rows_left_out > 0) text += fmt::format("{} more rows are not drawn. ", picture.rows_left_out);
  if (!text.empty()) text.pop_back();
  return text;
}

// The legend: the parts that occur. Idle time is the background and needs no entry.
std::vector<LegendEntry> entries_of(const std::array<bool, kPicturePartCount>& used) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < kPicturePartCount; ++part)
    if (used[part] && part != static_cast<std::size_t>(PicturePart::idle))
      entries.push_back({colour_of(static_cast<PicturePart>(part)),
                         std::string{to_string(static_cast<PicturePart>(part))}});
  return entries;
}

}  // namespace

Markup schedule_chart(const StepPicture& picture) {
  Markup out;
  if (picture.rows.empty() || !(picture.length_ms > 0) || !std::isfinite(picture.length_ms)) return out;
  const TimeAxis axis{picture};
  const RowSize size = row_size(picture.rows.size());
  const double plot = size.height * static_cast<double>(picture.rows.size()), bottom = kScheduleTop + plot;
  out.open("div", {{"class", "plot schedule"}});
  out.open(
      "svg",
      {{"viewBox", fmt::format("0 0 {} {}", coordinate(kScheduleWidth), coordinate(bottom + kScheduleAxis))},
       {"role", "group"},
       {"data-length", fmt::format("{:.9g}", picture.length_ms)},
       {"data-scale", fmt::format("{:.9g}", axis.scale())},
       {"data-gap", axis.has_gap()
                        ? fmt::format("{:.9g} {:.9g} {:.9g}", axis.gap_units(), kGapUnits, axis.skipped_ms())
                        : std::string{}}});
  draw_ticks(out, picture, axis, bottom);
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    // Small rows: only every fourth one has a name.
    if (size.height < 12 && r % 4 != 0) continue;
    const double middle = kScheduleTop + size.height * (static_cast<double>(r) + 0.5);
    out.element("text", {{"class", "row"}, {"x", kScheduleFrom - 10}, {"y", middle + 4}, {"data-row", r}},
                shorten(picture.rows[r].name, 20));
  }
  out.open("svg", {{"class", "bars"},
                   {"x", kScheduleFrom},
                   {"y", kScheduleTop},
                   {"width", kScheduleTo - kScheduleFrom},
                   {"height", plot},
                   {"viewBox", fmt::format("0 0 {} {}", coordinate(kUnits), coordinate(plot))},
                   {"preserveAspectRatio", "none"}});
  std::array<bool, kPicturePartCount> used{};
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    const PictureRow& row = picture.rows[r];
    const double middle = size.height * (static_cast<double>(r) + 0.5);
    for (std::size_t part = 0; part < kPicturePartCount; ++part) {
      if (part == static_cast<std::size_t>(PicturePart::idle)) continue;  // the background
      draw_part(out, row.bars, static_cast<PicturePart>(part), axis, middle, size.bar, r);
    }
    // Transfers are drawn as a thin strip below the bars.
    const double strip = std::max(2.0, size.height - size.bar - 2) / 2 + 1;
    draw_part(out, row.transfers, PicturePart::transfer, axis, middle + size.bar / 2 + strip / 2, strip, r);
    draw_borders(out, row.bars, axis, middle - size.bar / 2, size.bar);
    for (const PictureBar& bar : row.bars) used[static_cast<std::size_t>(bar.part)] = true;
    if (!row.transfers.empty()) used[static_cast<std::size_t>(PicturePart::transfer)] = true;
  }
  draw_gap(out, axis, bottom);
  out.close();
  out.open("g", {{"class", "numbers"}});
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    draw_numbers(out, picture.rows[r].bars, axis,
                 kScheduleTop + size.height * (static_cast<double>(r) + 0.5) + 4);
  }
  out.close().close().close();
  out.append(legend(entries_of(used)));
  if (const std::string text = left_out(picture); !text.empty()) out.element("p", {{"class", "small"}}, text);
  return out;
}

}  // namespace stepcast
