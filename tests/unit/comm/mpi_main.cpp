#include <fmt/format.h>

#include <cstdlib>
#include <exception>

#include "comm/mpi_runtime.h"
#include "comm/settings.h"
#include "conformance.h"

// The conformance body on the ranks of mpirun; each prints what was wrong. `mpirun -n 4 comm_mpi_conformance`
int main() {
  using namespace trainyard::comm;
  try {
    const auto runtime = MpiRuntime::start();
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
