#include "stepcast/operation/collective_kind.h"

#include <string>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

// A spelling and its operation.
struct Spelling {
  std::string_view text;
  CollectiveOp op;
};

// Lower-case letters only. A longer name comes before its prefixes ("reducescatter" before "reduce").
constexpr Spelling kSpellings[] = {
    {"allreduce", CollectiveOp::all_reduce},
    {"allgather", CollectiveOp::all_gather},
    {"alltoall", CollectiveOp::all_to_all},
    {"reducescatter", CollectiveOp::reduce_scatter},
    {"broadcast", CollectiveOp::broadcast},
    {"bcast", CollectiveOp::broadcast},
    {"barrier", CollectiveOp::barrier},
    {"sendrecv", CollectiveOp::send_receive},
    {"sendreceive", CollectiveOp::send_receive},
    {"batchisendirecv", CollectiveOp::send_receive},
    {"reduce", CollectiveOp::reduce},
    {"gather", CollectiveOp::gather},
    {"scatter", CollectiveOp::scatter},
    {"isend", CollectiveOp::send},
    {"send", CollectiveOp::send},
    {"irecv", CollectiveOp::receive},
    {"receive", CollectiveOp::receive},
    {"recv", CollectiveOp::receive},
};

// Suffixes that frameworks append to the name of a collective.
constexpr std::string_view kSuffixes[] = {
    "coalesced"sv, "intotensor"sv, "tensor"sv, "single"sv, "base"sv, "sparse"sv, "oop"sv,
    "inplace"sv,   "anysource"sv,  "async"sv,  "uneven"sv, "out"sv,  "v"sv,      "x"sv};

// Whether a text consists only of such suffixes.
bool only_suffixes(std::string_view rest) {
  while (!rest.empty()) {
    bool stripped = false;
    for (const std::string_view suffix : kSuffixes) {
      if (rest.starts_with(suffix)) {
        rest.remove_prefix(suffix.size());
        stripped = true;
        break;
      }
    }
    if (!stripped) return false;
  }
  return true;
}

// Removes a prefix if it is present; returns whether it was.
bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The letters of a text in lower case.
std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const char l = lower(c);
    if (l >= 'a' && l <= 'z') letters += l;
  }
  return letters;
}

constexpr auto kCollectiveOpNames = names<CollectiveOp::barrier>(
    {"unknown", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather",
     "scatter", "send", "receive", "send_receive", "barrier"});

}  // namespace

std::string_view to_string(CollectiveOp op) { return kCollectiveOpNames[op]; }

CollectiveOp parse_collective_op(std::string_view text) {
  // Longer texts are not names.
  if (text.size() > 4096) return CollectiveOp::unknown;
  // Kernels: ncclDevKernel_AllReduce_Sum_f32_RING_LL(...), ncclKernel_SendRecv_...,
  // ncclAllReduceRingLLKernel_sum_f32(...). The first word after the prefix is the collective; "Generic"
  // (RCCL) does not contain it.
  std::string_view kernel = text;
  strip_prefix(kernel, "void "sv);
  if ((kernel.starts_with("nccl"sv) || kernel.starts_with("rccl"sv)) && kernel.size() > 4 &&
      kernel[4] != ':') {
    kernel.remove_prefix(4);
    if (!strip_prefix(kernel, "DevKernel_"sv) && !strip_prefix(kernel, "SymDevKernel_"sv) &&
        !strip_prefix(kernel, "SymKernel_"sv)) {
      strip_prefix(kernel, "Kernel_"sv);
    }
    const std::string word = letters_of(kernel.substr(0, kernel.find_first_of("_(<")));
    for (const Spelling& s : kSpellings)
      if (word.starts_with(s.text)) return s.op;
    return CollectiveOp::unknown;
  }
  for (const std::string_view prefix :
       {"nccl:"sv, "rccl:"sv, "gloo:"sv, "c10d::"sv, "_c10d_functional::"sv, "c10d_functional::"sv}) {
    strip_prefix(text, prefix);
  }
  text = text.substr(0, text.find(' '));  // "nccl:send 0->1"
  if (text.find_first_of("(<:.") != std::string_view::npos) return CollectiveOp::unknown;
  const std::string word = letters_of(text);
  for (const Spelling& s : kSpellings)
    if (word.starts_with(s.text) && only_suffixes(std::string_view{word}.substr(s.text.size()))) return s.op;
  return CollectiveOp::unknown;
}

}  // namespace stepcast
