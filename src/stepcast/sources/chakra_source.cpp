// Source kind "chakra": Chakra execution traces. Each file contains the operation graph of one rank. A node
// may or may not have a duration, so a file can be timed fully, partly or not at all.
#include <algorithm>
#include <array>
#include <utility>

#include "stepcast/rebuild/graph_program.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {

SourceKind chakra_source();

namespace {

// True if at least one node of one graph has a positive duration.
bool any_timed(const std::vector<OperationGraph>& graphs) {
  return std::any_of(graphs.begin(), graphs.end(), [](const OperationGraph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const GraphNode& node) { return node.duration_us > 0; });
  });
}

// One step per rank, taken from the graphs. There are no profiler traces, so `traces()` contains only the
// name.
class ChakraSource : public RecordedSource {
 public:
  ChakraSource(TraceSet named, std::vector<OperationGraph> graphs)
      : RecordedSource(std::move(named)), graphs_(std::move(graphs)) {}

  // Nodes without a duration keep their description, so that `platform` can price them. Error: no platform is
  // given and no node of any rank has a duration.
  [[nodiscard]] Result<RecordedProgram> program(const RebuildOptions& /*how*/,
                                                const Platform* platform) const override {
    STEPCAST_ASSIGN(RecordedProgram program, graph_program(graphs_));
    if (platform != nullptr || any_timed(graphs_)) return program;
    return Error{"no node of these Chakra traces has a duration"}
        .in_file(graphs_.front().file)
        .advice("`stepcast predict --trace ... --platform NAME` uses models of a platform");
  }

 private:
  std::vector<OperationGraph> graphs_;
};

// Reads all graphs that `options.ranks` selects. The files are Chakra protobufs, one per rank.
Result<std::unique_ptr<RecordedSource>> open_chakra(const TraceListing& listing,
                                                    const TraceSetOptions& options) {
  STEPCAST_ASSIGN(std::vector<OperationGraph> graphs, read_operation_graphs(listing, options));
  TraceSet named;
  named.name = listing.name;
  return std::unique_ptr<RecordedSource>{std::make_unique<ChakraSource>(std::move(named), std::move(graphs))};
}

// Requests that need either step marks or operators of PyTorch, which a Chakra graph does not record.
constexpr std::array kNeedProfiler{TraceAsk::second_trace, TraceAsk::step, TraceAsk::all_steps,
                                   TraceAsk::shapes_of_step};
constexpr std::array kChakraRefusals{
    Refusal{"Chakra traces have one step and no PyTorch operators, but {} needs them",
            "leave it out, or give profiler traces of the same ranks", kNeedProfiler}};

}  // namespace

SourceKind chakra_source() {
  return {
      .called = "Chakra traces",
      .times = RecordedTimes::some,
      .names_gpu = false,
      .has_launches = true,
      .is_one_file = false,
      .refusals = kChakraRefusals,
      .holds = [](TraceFormat format, std::string_view) { return format == TraceFormat::chakra_protobuf; },
      .open = open_chakra};
}

}  // namespace stepcast
