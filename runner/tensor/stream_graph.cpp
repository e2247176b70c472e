#include "tensor/stream_graph.h"

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "tensor/accelerator.h"
#include "tensor/capture.h"

namespace trainyard {
namespace {

/// Nothing is done while work is captured, so no stream comes past anything.
class NeverPassed final : public Fence {
 public:
  bool has_passed() override { return false; }
  void wait() override { throw std::logic_error("a graph that is being made waits for work in it"); }
};

}  // namespace

/// Blocks of the device's memory, of the stream that the graph is launched on: what that had in them before is done by
/// then.
class StreamGraph::Source final : public MemorySource {
 public:
  explicit Source(Device device) : device_(device), stream_(current_stream(device)) {}
  void* take(size_t bytes) override {
    void* const segment = memory_of(device_).allocate(bytes, kKind, stream_);
    taken_.emplace(segment, bytes);
    return segment;
  }
  void give_back(void* segment) noexcept override { memory_of(device_).free(segment, taken_.at(segment), kKind); }
  std::unique_ptr<Fence> fence(StreamId) override { return std::make_unique<NeverPassed>(); }

 private:
  static constexpr MemoryKind kKind = MemoryKind::Activations;  // as most of it is
  Device device_;
  StreamId stream_;
  std::unordered_map<void*, size_t> taken_;  // bytes of the segments
};

/// The thread as it was before it began with the graph.
class StreamGraph::Outside {
 public:
  explicit Outside(StreamGraph& graph) : graph_(graph), memory_(graph.device_, nullptr), stream_(graph.outer_) {}
  ~Outside() { graph_being_captured() = &graph_; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  StreamGraph& graph_;
  DeviceMemoryScope memory_;
  StreamScope stream_;
};

StreamGraph::StreamGraph(Device device, const std::function<void()>& work,
                         std::vector<std::shared_ptr<Storage>> results)
    : device_(device),
      outer_(current_stream(device)),
      memory_(std::make_shared<DeviceMemory>(to_string(device), std::make_unique<Source>(device))) {
  Accelerator& provider = *accelerator();
  const Stream stream(device);  // as a default stream is not to be written down
  const DeviceMemoryScope memory_scope(device, memory_);
  const StreamScope stream_scope(stream);
  provider.begin_capture(stream.id());
  graph_being_captured() = this;
  try {
    work();
  } catch (...) {
    graph_being_captured() = nullptr;
    provider.abandon_capture(stream.id());
    throw;
  }
  graph_being_captured() = nullptr;
  const Accelerator::Graph made = provider.end_capture(stream.id());
  handle_ = made.handle, operations_ = made.operations;
  memory_->seal();
  for (auto& storage : results) results_.push_back({storage, storage->data()});
}

StreamGraph::~StreamGraph() {
  accelerator()->drop_graph(handle_);
}

void StreamGraph::launch() {
  accelerator()->launch(current_stream(device_), handle_);
  for (const Result& result : results_)
    if (!result.storage->is_materialized()) result.storage->materialize_at(result.address, memory_);
}

bool StreamGraph::is_capturing() {
  return graph_being_captured() != nullptr;
}

void StreamGraph::outside(const std::function<void()>& work) {
  if (!graph_being_captured()) return work();
  const Outside scope(*std::exchange(graph_being_captured(), nullptr));
  work();
}

void StreamGraph::keep(const Tensor& tensor) {
  if (graph_being_captured()) graph_being_captured()->kept_.push_back(tensor);
}

}  // namespace trainyard
