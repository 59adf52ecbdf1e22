// Any forecast as a page: whatever its texts hold, the page has the elements that we wrote and no others, and the answer
// can be read out of it again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/report/forecast_document.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/html/page.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  require(stepcast::escape_markup(text).find_first_of("<>\"'") == std::string::npos);
  stepcast::Forecast forecast;
  if (auto read = stepcast::forecast_from_json(text, "fuzz.json"); read.ok()) {
    forecast = *read;
  } else {
    forecast.model = forecast.gpu = std::string{text};
    forecast.notes = {std::string{text}};
  }
  const stepcast::ReportDocument document = stepcast::forecast_document(forecast);
  const std::string page = stepcast::report_html(document);
  require(count(page, "<script") == 2 && count(page, "</script>") == 2 && count(page, "<img") == 0);
  const auto json = stepcast::embedded_json(page);
  require(json.has_value());
  const auto back = stepcast::forecast_from_json(*json, "page");
  if (back.ok()) {
    // A page replaces bytes that are no UTF-8; what it gave once it gives again.
    const auto again = stepcast::embedded_json(stepcast::report_html(stepcast::forecast_document(*back)));
    require(again.has_value());
    const auto twice = stepcast::forecast_from_json(*again, "page");
    require(twice.ok() && stepcast::forecast_json(*twice) == stepcast::forecast_json(*back));
  }
  require(count(stepcast::report_markdown(document), "\n## ") <= 1);
  return 0;
}
