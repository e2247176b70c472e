#include <fmt/format.h>

#include <cstdlib>
#include <exception>

#include "base/error.h"
#include "comm/mpi_runtime.h"
#include "comm/settings.h"
#include "conformance.h"

namespace {

using namespace trainyard::comm;

/// Rank 0 begins a sum that nobody else begins. Ends without MPI_Finalize, so mpirun says that something is wrong.
int give_up(const std::shared_ptr<MpiRuntime>& runtime) {
  const auto comm = connect({.transport = Transport::Mpi,
                             .rank = runtime->rank(),
                             .world = runtime->world(),
                             .host = "pod-" + std::to_string(runtime->rank()),
                             .timeout = std::chrono::milliseconds(200),
                             .mpi = runtime});
  if (runtime->rank() != 0) return EXIT_SUCCESS;  // and waits in MPI_Finalize until mpirun ends it
  try {
    trainyard::Tensor values = trainyard::Tensor::zeros({1 << 20}, trainyard::DType::BFloat16);
    comm->all_reduce(values).wait();
  } catch (const trainyard::PeerError& error) {
    fmt::print("memory of {} collective is held: {}\n", runtime->held_back(), error.what());
  }
  return EXIT_SUCCESS;
}

}  // namespace

// The conformance body on the ranks of mpirun; each prints what was wrong. `mpirun -n 4 comm_mpi_conformance`
int main(int count, char**) {
  try {
    const auto runtime = MpiRuntime::start();
    if (count > 1) return give_up(runtime);
    const std::string greeting = runtime->broadcast(runtime->rank() == 0 ? "store at 127.0.0.1:29500" : "");
    if (greeting != "store at 127.0.0.1:29500") throw std::runtime_error("broadcast gave '" + greeting + "'");
    const auto comm = connect({.transport = Transport::Mpi,
                               .rank = runtime->rank(),
                               .world = runtime->world(),
                               .host = "pod-" + std::to_string(runtime->rank()),
                               .timeout = std::chrono::seconds(60),
                               .mpi = runtime});
    // MPI chooses the order of the sum by itself.
    const auto problems = conformance::check_all(*comm, {.rank_order = false});
    for (const auto& problem : problems) fmt::print(stderr, "{}\n", problem);
    comm->close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
    return problems.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return EXIT_FAILURE;
  }
}
