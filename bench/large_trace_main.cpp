// Writes a synthetic profiler trace of a given size: measure_large_trace FILE [MEGABYTES]. A name that ends
// in ".gz" is compressed, in members of 64 MB.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "stepcast/base/file.h"

#include "large_trace.h"

namespace {

int write_trace(const std::string& name, double megabytes) {
  std::FILE* file = std::fopen(name.c_str(), "wb");
  if (file == nullptr) {
    fmt::print(stderr, "cannot write {}\n", name);
    return 1;
  }
  bool good = true;
  const auto put = [&](std::string& text) {
    if (name.ends_with(".gz")) {
      auto packed = stepcast::gzip_compress(text, 4);
      good = good && packed.ok() && std::fwrite(packed->data(), 1, packed->size(), file) == packed->size();
    } else {
      good = good && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    }
    text.clear();
  };
  stepcast::bench::LargeTrace trace(1);
  std::string text = trace.header();
  for (double written = 0; written < megabytes * 1e6 && good;) {
    const std::string step = trace.step();
    written += static_cast<double>(step.size());
    text += step;
    if (text.size() > 64'000'000) put(text);
  }
  text += trace.footer();
  put(text);
  good = std::fclose(file) == 0 && good;
  if (!good) fmt::print(stderr, "cannot write {}\n", name);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    fmt::print(
        "usage: {} FILE [MEGABYTES]   writes a synthetic profiler trace; 1000 MB unless told otherwise\n",
        argv[0]);
    return 0;
  }
  return write_trace(argv[1], argc > 2 ? std::atof(argv[2]) : 1000);
}
