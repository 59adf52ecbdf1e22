# stepcast_shipped_tables(OUTPUT FILE...): a source file with the texts of tables that are data and no code, by their names.
function(stepcast_shipped_tables output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(tables "")
  foreach(file IN LISTS ARGN)
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME)
    string(APPEND tables "    {\"${name}\", R\"table(${text})table\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [=[
// Made by cmake/ShippedTables.cmake.
#include "stepcast/base/shipped_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stepcast {
namespace {
constexpr std::pair<std::string_view, std::string_view> kTables[] = {
@tables@};
}  // namespace

std::string_view shipped_table(std::string_view file) {
  const auto* const found = std::ranges::find(kTables, file, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kTables) ? std::string_view{} : found->second;
}

std::vector<std::string_view> shipped_tables(std::string_view ending) {
  std::vector<std::string_view> texts;
  for (const auto& [file, text] : kTables)
    if (file.ends_with(ending)) texts.push_back(text);
  return texts;
}

}  // namespace stepcast
]=])
endfunction()
