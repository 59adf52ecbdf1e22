// The pages of docs/reference/: tables of what the code knows, written by the code.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepcast {

struct ReferencePage {
  std::string_view name;     // "presets": the page is docs/reference/presets.md
  std::string_view summary;  // one line
  std::string (*text)();     // the whole page in Markdown
};

[[nodiscard]] std::span<const ReferencePage> reference_pages();
// Of these or of answer_schemas(); nullptr if there is none of this name.
[[nodiscard]] const ReferencePage* find_reference_page(std::string_view name);

}  // namespace stepcast
