#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "comm/settings.h"
#include "rendezvous/store_client.h"

// A rank that gathers without end, until a peer is lost: what peer_loss_test.cpp kills and stops.
//   comm_peer RANK WORLD STORE_PORT shared|tcp TIMEOUT_MS
int main(int argc, char** argv) {
  using namespace trainyard;
  if (argc != 6) return 2;
  const int rank = std::stoi(argv[1]), world = std::stoi(argv[2]);
  const bool shared_memory = std::string(argv[4]) == "shared";
  try {
    rendezvous::StoreClient store({.master = {.host = "127.0.0.1", .port = static_cast<uint16_t>(std::stoi(argv[3]))},
                                   .credentials = {},
                                   .timeout = std::chrono::seconds(30)});
    const auto comm = comm::connect({.rank = rank,
                                     .world = world,
                                     .host = fmt::format("pod-{}", rank),
                                     .store = &store,
                                     .timeout = std::chrono::milliseconds(std::stoi(argv[5])),
                                     .address = "127.0.0.1",
                                     .shared_memory = shared_memory});
    constexpr int64_t kRows = int64_t{4} << 20;  // 16 MB a rank: most of the time is spent in the middle of one
    auto part = Tensor::zeros({kRows}, DType::Float32), whole = Tensor::zeros({kRows * world}, DType::Float32);
    for (bool is_first = true;; is_first = false) {
      comm->all_gather(part, whole, "layers.17").wait();
      if (is_first) fmt::print("ready\n"), std::fflush(stdout);
    }
  } catch (const PeerError& error) {
    fmt::print("{}\n", error.what());
    return static_cast<int>(ExitCode::PeerLost);
  } catch (const std::exception& error) {
    fmt::print("unexpected: {}\n", error.what());
    return 1;
  }
}
