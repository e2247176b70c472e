#include "tensor/stream_graph.h"

#include <stdexcept>
#include <unordered_map>

#include "tensor/accelerator.h"

namespace trainyard {
namespace {

thread_local std::vector<Tensor>* t_kept = nullptr;  // of the graph that this thread is making

/// Nothing is done while work is written down, so no stream comes past anything.
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

StreamGraph::StreamGraph(Device device, const std::function<void()>& work,
                         std::vector<std::shared_ptr<Storage>> results)
    : device_(device), memory_(std::make_shared<DeviceMemory>(to_string(device), std::make_unique<Source>(device))) {
  Accelerator& provider = *accelerator();
  const Stream stream(device);  // as a default stream is not to be written down
  const DeviceMemoryScope memory_scope(device, memory_);
  const StreamScope stream_scope(stream);
  provider.begin_capture(stream.id());
  t_kept = &kept_;
  try {
    work();
  } catch (...) {
    t_kept = nullptr;
    provider.abandon_capture(stream.id());
    throw;
  }
  t_kept = nullptr;
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

bool StreamGraph::is_being_made() {
  return t_kept != nullptr;
}

void StreamGraph::keep(const Tensor& tensor) {
  if (t_kept) t_kept->push_back(tensor);
}

}  // namespace trainyard
