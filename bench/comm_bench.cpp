// How fast collectives run between ranks that are processes of this host: shared memory beside TCP over loopback.
// Usage: comm_bench [ranks] [shared|tcp]; without arguments 2 and 4 ranks, both ways. GB/s counts the bytes that a rank
// receives, the slowest rank's time; each figure is the best of several runs. The copy beside it is what memory gives.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/settings.h"
#include "rendezvous/store_client.h"
#include "rendezvous/store_server.h"

namespace trainyard::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto begun = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

/// The best of some rounds of `repeats` each, as the slowest rank saw it.
double best_seconds(comm::Communicator& comm, int repeats, const std::function<void()>& collective) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    comm.barrier();
    auto slowest = Tensor::from<double>(std::vector<double>{seconds_of([&] {
                                                              for (int i = 0; i < repeats; ++i) collective();
                                                            }) /
                                                            repeats},
                                        {1});
    comm.all_reduce(slowest, comm::ReduceOp::Max).wait();
    best = std::min(best, slowest.data<double>()[0]);
  }
  return best;
}

void run_sizes(comm::Communicator& comm, const std::string& channel) {
  if (comm.rank() == 0)
    fmt::print("\n{} ranks, {}: bytes are of the whole side\n{:>12} {:>22} {:>22} {:>22}\n", comm.world(), channel,
               "bytes", "all_gather", "reduce_scatter", "all_reduce");
  for (int64_t bytes = 1 << 10; bytes <= int64_t{64} << 20; bytes *= 4) {
    const int64_t rows = bytes / 4 / comm.world();
    auto part = Tensor::zeros({rows}, DType::Float32), whole = Tensor::zeros({rows * comm.world()}, DType::Float32);
    const auto received = static_cast<double>(rows * 4 * (comm.world() - 1));
    const int repeats = static_cast<int>(std::clamp<int64_t>((int64_t{32} << 20) / bytes, 2, 200));
    const double gather = best_seconds(comm, repeats, [&] { comm.all_gather(part, whole).wait(); });
    const double scatter = best_seconds(comm, repeats, [&] { comm.reduce_scatter(whole, part).wait(); });
    const double reduce = best_seconds(comm, repeats, [&] { comm.all_reduce(whole).wait(); });
    const auto cell = [](double seconds, double moved) {
      return fmt::format("{:.1f} us {:.2f} GB/s", seconds * 1e6, moved / seconds / 1e9);
    };
    if (comm.rank() == 0)
      fmt::print("{:>12} {:>22} {:>22} {:>22}\n", bytes, cell(gather, received), cell(scatter, received),
                 cell(reduce, 2 * received));
  }
}

void run_rank(int rank, int world, const std::string& channel, uint16_t port) {
  rendezvous::StoreClient store({.master = {.host = "127.0.0.1", .port = port}});
  const auto comm = comm::connect({.rank = rank,
                                   .world = world,
                                   .host = "here",
                                   .store = &store,
                                   .address = "127.0.0.1",
                                   .shared_memory = channel == "shared"});
  run_sizes(*comm, channel);
  comm->close(Clock::now() + std::chrono::seconds(30));
}

/// Starts a process for each rank before the store's threads are there.
void run_world(int world, const std::string& channel) {
  auto* const port =
      static_cast<volatile uint16_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::fflush(stdout);
  for (int rank = 0; rank < world; ++rank) {
    if (::fork() != 0) continue;
    while (*port == 0) ::usleep(1000);
    run_rank(rank, world, channel, *port);
    std::fflush(stdout);
    ::_exit(0);
  }
  rendezvous::StoreServer server({.host = "127.0.0.1"});
  *port = server.port();
  while (::wait(nullptr) > 0) {
  }
}

void print_copy_speed() {
  std::vector<char> from(size_t{64} << 20, 1), to(from.size());
  double best = 1e9;
  for (int i = 0; i < 5; ++i)
    best = std::min(best, seconds_of([&] { std::memcpy(to.data(), from.data(), from.size()); }));
  fmt::print("copying 64 MB in one process: {:.2f} GB/s\n", static_cast<double>(from.size()) / best / 1e9);
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  using namespace trainyard::bench;
  print_copy_speed();
  const std::vector<int> worlds = argc > 1 ? std::vector<int>{std::stoi(argv[1])} : std::vector<int>{2, 4};
  const std::vector<std::string> channels =
      argc > 2 ? std::vector<std::string>{argv[2]} : std::vector<std::string>{"shared", "tcp"};
  for (const int world : worlds)
    for (const auto& channel : channels) run_world(world, channel);
}
