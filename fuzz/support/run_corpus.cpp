// Feeds every file below the folders of the command line to a fuzz target once: the seeds, and the inputs
// that once made it crash, stay good in builds without libFuzzer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      std::fprintf(stderr, "no seeds: %s is not a folder\n", argv[i]);
      return 1;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());

  for (const auto& file : files) {
    std::ifstream in{file, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    std::printf("%s (%zu bytes)\n", file.c_str(), text.size());
    std::fflush(stdout);  // the last line names the input that crashes
    const std::vector<std::uint8_t> exact{text.begin(), text.end()};  // no byte behind the end: overruns show
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  return files.empty() ? 1 : 0;
}
