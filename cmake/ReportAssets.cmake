# stepcast_report_assets(OUTPUT STYLE SCRIPT): a source file with the texts of both and the hash of the script, in base64
# as browsers want it.
function(stepcast_report_assets output style script)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${style}" "${script}")
  file(READ "${style}" style_text)
  file(READ "${script}" script_text)
  file(SHA256 "${script}" hex)
  # Three bytes, six hexadecimal digits, are four characters; 32 bytes leave two bytes and a '='.
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(hash "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}0000" ${at} 6 digits)
    math(EXPR bits "0x${digits}")
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR place "(${bits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${place} 1 character)
      string(APPEND hash "${character}")
    endforeach()
  endforeach()
  string(SUBSTRING "${hash}" 0 43 hash)
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [=[
// Made by cmake/ReportAssets.cmake.
#include "stepcast/report/html/assets.h"

namespace stepcast {

std::string_view report_style() {
  return R"asset(@style_text@)asset";
}
std::string_view report_script() {
  return R"asset(@script_text@)asset";
}
std::string_view report_script_hash() { return "sha256-@hash@="; }

}  // namespace stepcast
]=])
endfunction()
