// gloo's own collectives, for bench/collectives: one rank, started by `trainyard launch -- bin/gloo_own FOLDER …`.
// Usage: gloo_own FOLDER COLLECTIVE ITERATIONS BYTES…     FOLDER: empty, the same for all ranks, where they meet
// Prints, on rank 0, "BYTES SECONDS" for each size: float32, the whole side, as the slowest rank saw it.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using ContextPointer = std::shared_ptr<gloo::rendezvous::Context>;

int from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

ContextPointer connect(const std::string& folder) {
  const auto context =
      std::make_shared<gloo::rendezvous::Context>(from_environment("RANK"), from_environment("WORLD_SIZE"));
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  gloo::rendezvous::FileStore store(folder);
  auto device = gloo::transport::tcp::CreateDevice(address);
  context->connectFullMesh(store, device);
  return context;
}

void all_reduce(const ContextPointer& context, float* values, size_t count, gloo::AllreduceOptions::Func sum) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values, count);
  options.setReduceFunction(std::move(sum));
  gloo::allreduce(options);
}

/// One collective over `whole`, each time it is called.
std::function<void()> collective_of(const std::string& name, const ContextPointer& context, std::vector<float>& whole,
                                    std::vector<float>& part) {
  const gloo::AllreduceOptions::Func sum =
      static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>);
  if (name == "all_gather") {
    return [&, context] {
      gloo::AllgatherOptions options(context);
      options.setInput(part.data(), part.size());
      options.setOutput(whole.data(), whole.size());
      gloo::allgather(options);
    };
  }
  if (name == "reduce_scatter") {
    const std::vector<int> parts(static_cast<size_t>(context->size), static_cast<int>(part.size()));
    const auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context, std::vector<float*>{whole.data()}, static_cast<int>(whole.size()), parts);
    return [algorithm] { algorithm->run(); };
  }
  return [&, context, sum] { all_reduce(context, whole.data(), whole.size(), sum); };
}

double seconds_of(const ContextPointer& context, int iterations, const std::function<void()>& collective) {
  collective();  // connections, buffers
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  const auto begun = Clock::now();
  for (int i = 0; i < iterations; ++i) collective();
  float seconds = std::chrono::duration<float>(Clock::now() - begun).count() / static_cast<float>(iterations);
  all_reduce(context, &seconds, 1, static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::max<float>));
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: gloo_own FOLDER COLLECTIVE ITERATIONS BYTES...\n");
    return 2;
  }
  const ContextPointer context = connect(argv[1]);
  for (int i = 4; i < argc; ++i) {
    const size_t ranks = static_cast<size_t>(context->size), elements = std::stoul(argv[i]) / sizeof(float) / ranks;
    std::vector<float> part(elements, 1), whole(elements * ranks, 1);
    const double seconds = seconds_of(context, std::atoi(argv[3]), collective_of(argv[2], context, whole, part));
    if (context->rank == 0) std::printf("%zu %.9f\n", whole.size() * sizeof(float), seconds);
  }
  std::fflush(stdout);
  return 0;
}
