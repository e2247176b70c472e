#include "comm/mpi_runtime.h"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace trainyard::comm {

bool MpiRuntime::is_launched() {
  // Open MPI's own, and what the launchers of other schedulers set.
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

std::string MpiRuntime::version() {
  return fmt::format("{}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
}

std::shared_ptr<MpiRuntime> MpiRuntime::start() {
  if (!is_launched())
    throw InputError(
        "comm.backend is mpi, but this process was not started by mpirun; start it as: mpirun -n 4 trainyard train …");
  int is_initialized = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) throw std::logic_error("MPI was started in this process before");
  // A failed call comes back as a code and not as the end of the process only for communicators of ours; an MPI that
  // cannot start ends the process itself, with mpirun's message.
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  std::shared_ptr<MpiRuntime> runtime(new MpiRuntime);
  if (provided < MPI_THREAD_SERIALIZED)
    throw InputError("comm.backend is mpi, but this Open MPI is built without threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &runtime->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &runtime->world_);
  return runtime;
}

MpiRuntime::~MpiRuntime() {
  if (!is_given_up_) MPI_Finalize();
  // Not freed: MPI, and over shared memory its peers, may write there for as long as the process lives.
  if (is_given_up_) static_cast<void>(new std::vector(std::move(held_back_)));
}

void MpiRuntime::give_up(std::shared_ptr<const void> memory) {
  const MutexLock lock(mutex_);
  is_given_up_ = true;
  if (memory) held_back_.push_back(std::move(memory));
}

size_t MpiRuntime::held_back() const {
  const MutexLock lock(mutex_);
  return held_back_.size();
}

std::string MpiRuntime::broadcast(const std::string& text) {
  const MutexLock lock(mutex_);
  auto bytes = static_cast<int>(text.size());
  MPI_Bcast(&bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string all = text;
  all.resize(static_cast<size_t>(bytes));
  MPI_Bcast(all.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  return all;
}

}  // namespace trainyard::comm
