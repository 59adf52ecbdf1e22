#include <filesystem>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"
#include "stepcast/trace/readers.h"

namespace stepcast::format_detection_test {
namespace {

using namespace std::string_view_literals;

// The format, or the message of the error.
std::string detect(std::string_view content) {
  const auto file =
      std::filesystem::temp_directory_path() / ("stepcast_detect_" + std::to_string(::getpid()));
  EXPECT_TRUE(write_file(file, content).ok());
  const auto format = detect_trace_format(file);
  std::filesystem::remove(file);
  if (format.ok()) return std::string(to_string(*format));
  const std::string message = format.error().message();
  return message.substr(message.find(": ") + 2);
}

TEST(FormatDetection, GoesByTheContent) {
  EXPECT_EQ(detect(R"J({"schemaVersion": 1, "traceEvents": [)J"), "kineto");
  EXPECT_EQ(detect(R"J({"metadata": {"nodes": [1]}, "traceEvents": [)J"), "kineto");
  EXPECT_EQ(detect(R"J([{"ph": "X", "name": "a"}, )J"), "kineto");
  EXPECT_EQ(detect(R"J({"schema": "1.0.1", "pid": 7, "nodes": [)J"), "execution_trace");
  EXPECT_EQ(detect(R"J({"step_t_base": [1, 2, 3]})J"), "other_json");
  EXPECT_EQ(detect("[1, 2, 3]"), "other_json");
  EXPECT_EQ(detect("[]"), "other_json");
  EXPECT_EQ(detect("\x08\x0a\x06"
                   "0.0.4 "
                   "\x12\x08\x01\x12\x04node"sv),
            "chakra_protobuf");
  EXPECT_EQ(detect("\x25\x12\x05name0"sv), "chakra_protobuf") << "an old file: no metadata, node 0";
  EXPECT_EQ(detect("\x0a\x0b\x12\x09/host:CPU"sv), "xplane");
  EXPECT_EQ(detect("\x0a\x11\x08\x02\x12\x0d/device:GPU:0"sv), "xplane") << "with an id";
  EXPECT_EQ(detect("\x0a\x5b\x12\x09/host:CPU"sv), "xplane") << "a plane of 91 bytes, which is [";
  EXPECT_EQ(detect("\x0a\x7b\x08\x02\x12\x0d/device:GPU:0"sv), "xplane") << "of 123 bytes, which is {";
  EXPECT_EQ(detect("hello, world"), "unknown");
  EXPECT_EQ(detect("\xff\xfe{\x00"sv), "unknown");
}

TEST(FormatDetection, SaysWhyAFileIsNoTrace) {
  EXPECT_EQ(detect(""),
            "found an empty file, expected a trace in JSON; the trace was not written, or not copied");
  EXPECT_EQ(detect(" \n"),
            "found an empty file, expected a trace in JSON; the trace was not written, or not copied");
  EXPECT_EQ(detect("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
            "found a git-LFS pointer instead of the data, expected a trace in JSON; run `git lfs pull` where "
            "the file comes from");
  EXPECT_EQ(detect("\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X"sv),
            "found macOS metadata (AppleDouble), expected a trace in JSON; take the file of the same name "
            "without the leading \"._\"");
  EXPECT_EQ(detect("PK\x03\x04xx"sv),
            "found a zip archive, expected a trace in JSON; name the archive itself, or unpack it");
  const auto twice = gzip_compress(*gzip_compress("[]"));
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(detect(*twice),
            "found gzip data inside gzip data, expected a trace in JSON; decompress it once first");
  std::string tar(1024, '\0');
  tar.replace(0, 5, "a.txt");
  tar.replace(257, 5, "ustar");
  EXPECT_EQ(detect(tar),
            "found a tar archive, expected a trace in JSON; name the archive itself, or unpack it");
  EXPECT_EQ(detect("{\"a\" 1}"), "byte 5: found \"1\", expected ':'");
}

}  // namespace
}  // namespace stepcast::format_detection_test
