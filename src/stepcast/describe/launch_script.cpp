#include "stepcast/describe/launch_script.h"

#include "stepcast/describe/detail/shell/script.h"

namespace stepcast {

Result<std::vector<std::string>> words_of_launch_script(std::string_view script) {
  return detail::launch_words(script);
}

}  // namespace stepcast
