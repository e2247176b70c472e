// comm/cuda/ on the stand-ins of tests/support/host_cuda: ranks are threads, each with a device of its own.
#include <fcntl.h>
#include <nccl.h>

#include <catch2/catch.hpp>

#include <latch>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "comm/bench.h"
#include "comm/cuda/nccl_group.h"
#include "comm/nccl.h"
#include "comm/settings.h"
#include "conformance.h"
#include "rendezvous/memory_store.h"
#include "support/ranks.h"
#include "support/support.h"
#include "tensor/device_memory.h"

namespace trainyard::comm {
namespace {

using namespace std::chrono_literals;

/// Ranks that meet at one store. Destroyed after all of them.
class Job {
 public:
  explicit Job(int world, std::chrono::milliseconds timeout = 60s) : world_(world), timeout_(timeout) {
    host_cuda::set_devices(8);
  }
  ~Job() { host_cuda::set_devices(1); }

  [[nodiscard]] Settings settings(int rank) {
    return {.device = device(rank),
            .rank = rank,
            .world = world_,
            .host = "pod-" + std::to_string(rank),
            .store = &store_,
            .timeout = timeout_,
            .address = "127.0.0.1"};
  }
  /// Over the host alone.
  [[nodiscard]] Settings without_nccl(int rank) {
    Settings plain = settings(rank);
    plain.device = {};
    return plain;
  }
  static Device device(int rank) { return {DeviceKind::Cuda, rank}; }

  /// As the master notes it when a process has ended.
  void lose(int rank) {
    const auto host = "pod-" + std::to_string(rank);
    store_.set("silent",
               nlohmann::json::array({{{"rank", rank}, {"host", host}, {"silent_ms", 1}, {"gone", true}}}).dump());
  }
  rendezvous::Store& store() { return store_; }

  /// What each rank's `run` returned.
  template <typename Run>
  auto run(Run&& run) {
    return test::run_threads(world_, std::forward<Run>(run));
  }

 private:
  const int world_;
  const std::chrono::milliseconds timeout_;
  rendezvous::MemoryStore store_;
};

template <typename Error, typename Function>
std::string error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another type of error: ") + error.what();
  }
  return "no error";
}

Work gather(Communicator& comm, Device device, const char* label) {
  const Tensor part = Tensor::zeros({4}, DType::Float32, device);
  Tensor whole = Tensor::empty({4 * comm.world()}, DType::Float32, device);
  return comm.all_gather(part, whole, label);
}

TEST_CASE("nccl: every collective gives what its formula says", "[comm]") {
  const int world = GENERATE(2, 3, 4, 8);
  const bool is_on_device = GENERATE(true, false);
  CAPTURE(world, is_on_device);
  Job job(world);
  const auto ranks = job.run([&](int rank) {
    const auto comm = connect(job.settings(rank));
    // Host memory has the transport of a run without devices, and its promises.
    auto problems = is_on_device ? conformance::check_all(*comm, {.rank_order = false, .device = Job::device(rank)})
                                 : conformance::check_all(*comm, {.rank_order = true});
    comm->close(std::chrono::steady_clock::now() + 30s);
    return problems;
  });
  for (const auto& problems : ranks) CHECK(problems == std::vector<std::string>{});
}

TEST_CASE("a rank alone on a device: every collective gives what its formula says", "[comm]") {
  Job job(1);
  const auto alone = connect(job.settings(0));
  CHECK(conformance::check_all(*alone, {.device = Job::device(0)}) == std::vector<std::string>{});
}

TEST_CASE("nccl: comm-bench measures the device's collectives, and finds every element right", "[comm]") {
  Job job(3);
  std::vector<std::string> lines;
  const auto wrong = job.run([&](int rank) {
    const auto comm = connect(job.settings(rank));
    const BenchPlan plan{.collectives = {Collective::AllReduce, Collective::AllGather, Collective::AllToAll},
                         .min_bytes = 64,
                         .max_bytes = 4096,
                         .factor = 8,
                         .iterations = 2,
                         .warmup = 1,
                         .device = Job::device(rank)};
    const int64_t count = run_bench(*comm, plan, [&](const std::string& line) { lines.push_back(line); });
    if (rank == 0) lines.push_back(comm->transport());
    comm->close(std::chrono::steady_clock::now() + 30s);
    return count;
  });
  CHECK(wrong == std::vector<int64_t>{0, 0, 0});
  CHECK(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("  "); }) == 9);
  CHECK(lines.back() == "NCCL 2.28.9 from cuda:0 (host); of host memory shared memory to ranks 1, 2");
}

TEST_CASE("nccl: a host far ahead of its device takes no more memory than one that waits", "[comm]") {
  Job job(2);
  const auto grown = job.run([&](int rank) {
    const auto comm = connect(job.settings(rank));
    const Device device = Job::device(rank);
    const auto gather = [&] {
      const Tensor part = Tensor::zeros({int64_t{1} << 20}, DType::Float32, device);
      Tensor whole = Tensor::empty({2 * part.count()}, DType::Float32, device);
      comm->all_gather(part, whole, "layer").wait();
    };
    const auto reserved = [&] { return memory_of(device).allocator().statistics().reserved; };
    gather();
    comm->barrier();
    host_cuda::hold_all(true);  // of what follows, nothing is seen to end
    comm->barrier();
    const size_t before = reserved();
    for (int layer = 0; layer < 20; ++layer) gather();
    const size_t after = reserved();
    comm->barrier();
    host_cuda::hold_all(false);
    comm->close(std::chrono::steady_clock::now() + 30s);
    return after - before;
  });
  CHECK(grown == std::vector<size_t>{0, 0});
}

/// Ranks that connect with registered buffers, and what each returns. No rule of NCCL's is broken meanwhile, and at the
/// end nothing is registered.
template <typename Rank>
auto run_with_user_buffers(int world, Rank&& rank) {
  static_cast<void>(host_nccl::misuses());
  Job job(world);
  auto seen = job.run([&](int number) {
    Settings settings = job.settings(number);
    settings.user_buffers = true;
    const auto comm = connect(settings);
    auto result = rank(*comm, Job::device(number));
    comm->close(std::chrono::steady_clock::now() + 30s);
    return result;
  });
  CHECK(host_nccl::misuses() == std::vector<std::string>{});
  CHECK(host_nccl::registrations() == 0);
  return seen;
}

/// Rank r gives r + 1; whether all came.
bool gathers(Communicator& comm, Device device) {
  const MemoryKindScope scope(MemoryKind::Gathered);
  const std::vector<float> own(100, static_cast<float>(comm.rank() + 1));
  const Tensor part = on_device(Tensor::from<float>(own, {100}), device);
  Tensor whole = Tensor::empty({100 * comm.world()}, DType::Float32, device);
  comm.all_gather(part, whole, "layer").wait();
  const Tensor back = on_device(whole, {});
  for (int64_t i = 0; i < back.count(); ++i)
    if (back.values<float>()[static_cast<size_t>(i)] != static_cast<float>(i / 100 + 1)) return false;
  return true;
}

TEST_CASE("nccl: a buffer is registered once with each communicator that uses it, until either ends", "[comm]") {
  const auto seen = run_with_user_buffers(2, [](Communicator& world, Device device) {
    const auto shard = world.split(0, "shard");
    std::vector<size_t> registered;
    bool is_right = true;
    const auto after = [&](const auto& step) {
      is_right = step() && is_right;
      world.barrier();
      registered.push_back(host_nccl::registrations());
      world.barrier();
    };
    after([&] { return gathers(world, device) && gathers(world, device); });
    after([&] { return gather(world, device, "of other memory").wait(), true; });
    after([&] { return gathers(*shard, device); });
    after([&] {  // what is unused goes before the device is said to be full
      const MemoryKindScope scope(MemoryKind::Gathered);
      const auto error = error_of<OutOfMemoryError>([&] { Tensor::empty({int64_t{1} << 40}, DType::Float32, device); });
      return error.find("out of memory") != std::string::npos;
    });
    after([&] { return gathers(*shard, device); });
    shard->close(std::chrono::steady_clock::now() + 30s);
    return std::pair(is_right, registered);
  });
  for (const auto& [is_right, registered] : seen) {
    CHECK(is_right);
    CHECK(registered == std::vector<size_t>{4, 4, 8, 0, 4});  // two buffers of two ranks
  }
}

TEST_CASE("nccl: every collective in registered buffers gives what its formula says", "[comm]") {
  const auto ranks = run_with_user_buffers(3, [](Communicator& comm, Device device) {
    const MemoryKindScope scope(MemoryKind::Gathered);
    return conformance::check_all(comm, {.rank_order = false, .device = device});
  });
  for (const auto& problems : ranks) CHECK(problems == std::vector<std::string>{});
}

TEST_CASE("nccl: where buffers cannot be registered every rank says so", "[comm]") {
  Job job(2, 1s);
  const auto with_user_buffers = [&](int rank) {
    Settings settings = job.settings(rank);
    settings.user_buffers = true;
    return connect(settings);
  };
  SECTION("NCCL is too old") {
    const auto seen = job.run([&](int rank) {
      host_nccl::set_version(21805);
      return error_of<InputError>([&] { static_cast<void>(with_user_buffers(rank)); });
    });
    for (const auto& error : seen)
      CHECK(error ==
            "rank 0 (pod-0): comm.user_buffers is true, but NCCL 2.18.5 registers no buffers; use 2.19.3 or newer");
  }
  SECTION("a rank's are refused: its word ends the others") {
    const auto seen = job.run([&](int rank) {
      const auto comm = with_user_buffers(rank);
      comm->barrier();  // both have connected
      if (rank == 0) host_nccl::fail_next("ncclCommRegister", ncclInvalidUsage);
      const auto issue = [&] { static_cast<void>(gathers(*comm, Job::device(rank))); };
      return rank == 0 ? error_of<InputError>(issue) : error_of<PeerError>(issue);
    });
    CHECK(seen[0] == "rank 0: all_gather of layer: NCCL: an error of the test");
    CHECK_THAT(seen[1], Catch::StartsWith("rank 1: all_gather of layer"));
  }
}

TEST_CASE("nccl: who does not come to connect is named after the time-out", "[comm]") {
  Job job(3, 800ms);
  std::latch done(2);
  const auto seen = job.run([&](int rank) {
    if (rank < 2) {
      const auto error = error_of<PeerError>([&] { static_cast<void>(connect(job.settings(rank))); });
      done.count_down();
      return error;
    }
    const auto plain = connect(job.without_nccl(rank));
    job.store().set("comm/nccl/hello/2", "pod-2\n\n\n22809\n" + std::string(NCCL_UNIQUE_ID_BYTES, '\0'));
    done.wait();
    return std::string();
  });
  const std::string late = "connecting waited 800 ms for rank 2 (pod-2); see that pod's log, or raise comm.timeout";
  CHECK((seen[0] == "rank 0: " + late || seen[1] == "rank 1: " + late));  // whoever gives up first says so to the other
  for (const auto& error : seen) CHECK((error.empty() || error.find("rank 2 (pod-2)") != std::string::npos));
}

/// Three ranks connect and gather; then rank 2 is lost by `lose`, and the others say what they see of a gather that
/// they have issued, and of the call after it.
template <typename Lose>
std::vector<std::string> errors_after(Job& job, Lose&& lose) {
  std::latch done(2);
  return job.run([&](int rank) -> std::string {
    const auto comm = connect(job.settings(rank));
    gather(*comm, Job::device(rank), "layers.16").wait_on_host();
    comm->barrier();  // all have seen it end
    if (rank == 2) {
      lose();
      done.wait();
      return "";
    }
    const auto error = error_of<PeerError>([&] { gather(*comm, Job::device(rank), "layers.17").wait_on_host(); });
    const auto later = error_of<PeerError>([&] { gather(*comm, Job::device(rank), "layers.18").wait(); });
    done.count_down();
    return later == error ? error : error + " and later " + later;
  });
}

TEST_CASE("nccl: a rank whose process has ended is named long before the time-out", "[comm]") {
  Job job(3);
  const auto seen = errors_after(job, [&] { job.lose(2); });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string lost = "rank " + std::to_string(rank) + ": all_gather of layers.17 lost rank 2 (pod-2): ";
    const std::string first = rank == 0 ? "so says rank 1 (pod-1)" : "so says rank 0 (pod-0)";
    CAPTURE(seen[rank]);
    CHECK((seen[rank] == lost + "its process ended; see that pod's log" ||
           seen[rank] == lost + first + "; see that pod's log"));
  }
}

TEST_CASE("nccl: a rank that does not issue the collective is named after the time-out", "[comm]") {
  Job job(3, 800ms);
  const auto seen = errors_after(job, [] {});
  const std::string waited =
      "all_gather of layers.17 waited 800 ms for rank 2 (pod-2); see that pod's log, or raise comm.timeout";
  CHECK((seen[0] == "rank 0: " + waited || seen[1] == "rank 1: " + waited));
  for (int rank = 0; rank < 2; ++rank) {
    CHECK_THAT(seen[rank], Catch::Contains("rank 2 (pod-2)"));
    CHECK_THAT(seen[rank], !Catch::Contains("and later"));
  }
}

TEST_CASE("nccl: a broken connection is told, with the rank where the master knows it by then", "[comm]") {
  const bool is_known = GENERATE(true, false);
  CAPTURE(is_known);
  Job job(3, 2s);
  const auto seen = errors_after(job, [&] {
    host_nccl::break_connections();
    if (is_known) job.lose(2);
  });
  for (int rank = 0; rank < 2; ++rank)
    CHECK_THAT(seen[rank],
               Catch::Contains(is_known ? "all_gather of layers.17 lost rank 2 (pod-2): "
                                        : "all_gather of layers.17: NCCL: remote process exited or there was "
                                          "a network error; NCCL_DEBUG=WARN says more"));
}

TEST_CASE("nccl: an error names the dimension of the mesh, and ends the other dimensions too", "[comm]") {
  Job job(4, 1s);
  const auto seen = job.run([&](int rank) -> std::string {
    const auto world = connect(job.settings(rank));
    const auto shard = world->split(rank / 2, "shard");
    if (rank != 0) {
      const auto error = error_of<PeerError>([&] { gather(*world, Job::device(rank), "all").wait_on_host(); });
      return error;
    }
    const auto error = error_of<PeerError>([&] { gather(*shard, Job::device(rank), "layers.0").wait_on_host(); });
    return error + "\n" + error_of<PeerError>([&] { gather(*world, Job::device(rank), "all").wait(); });
  });
  // Rank 0 waits for rank 1 in their shard group, and all others for rank 0 in the world.
  const size_t line = seen[0].find('\n');
  CHECK_THAT(seen[0], Catch::StartsWith("rank 0: all_gather of layers.0 (shard) "));
  CHECK(seen[0].substr(0, line) == seen[0].substr(line + 1));
}

TEST_CASE("nccl: what is under way on several dimensions ends at once, though to abort one waits for the others",
          "[comm]") {
  Job job(2, 60s);
  std::latch done(1);
  const auto seen = job.run([&](int rank) {
    const auto world = connect(job.settings(rank));
    const auto shard = world->split(0, "shard");
    gather(*world, Job::device(rank), "all").wait_on_host();  // a first one waits for its peers where it is issued
    gather(*shard, Job::device(rank), "layers.0").wait_on_host();
    world->barrier();
    if (rank == 1) {
      job.lose(1);
      done.wait();
      return 0s;
    }
    const Work one = gather(*world, Job::device(rank), "all"), other = gather(*shard, Job::device(rank), "layers.0");
    static_cast<void>(error_of<PeerError>([&] { one.wait_on_host(); }));
    const auto begin = std::chrono::steady_clock::now();
    cudaSetDevice(rank), cudaDeviceSynchronize();
    done.count_down();
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  });
  CHECK(seen[0] < 5s);
}

TEST_CASE("nccl: the flight record tells a collective that runs from one that has ended", "[comm]") {
  Job job(2, 1s);
  const test::TemporaryFolder folder;
  std::latch done(1);
  job.run([&](int rank) {
    const auto comm = connect(job.settings(rank));
    gather(*comm, Job::device(rank), "layers.16").wait_on_host();
    if (rank == 1) return done.wait();
    static_cast<void>(error_of<PeerError>([&] { gather(*comm, Job::device(rank), "layers.17").wait_on_host(); }));
    const UniqueFd file(::open((folder / "record").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    comm->flight_record()->write(file.get());
    done.count_down();
  });
  const auto entries = nlohmann::json::parse(read_file(folder / "record"));
  const auto entry_of = [&](const char* label) {
    return *std::ranges::find_if(entries, [&](const auto& each) { return each.at("label") == label; });
  };
  CHECK(entry_of("layers.16").at("ended").is_number());
  CHECK(entry_of("layers.16").at("bytes") == 32);
  CHECK(entry_of("layers.17").at("begun").is_number());
  CHECK(entry_of("layers.17").at("ended").is_null());
}

TEST_CASE("nccl: a rank that drops its communicator waits for nobody, and the others hear of it", "[comm]") {
  Job job(2, 1s);
  std::latch dropped(1);
  const auto seen = job.run([&](int rank) {
    auto comm = connect(job.settings(rank));
    gather(*comm, Job::device(rank), "layers.0").wait_on_host();
    comm->barrier();  // all have seen it end
    if (rank == 1) {
      dropped.wait();
      return error_of<PeerError>([&] { gather(*comm, Job::device(rank), "loss").wait_on_host(); });
    }
    const Work work = gather(*comm, Job::device(rank), "loss");
    comm.reset();
    dropped.count_down();
    return error_of<PeerError>([&] { work.wait_on_host(); });
  });
  CHECK(seen[0] == "rank 0: all_gather of loss was abandoned: this rank aborted");
  CHECK_THAT(seen[1], Catch::StartsWith("rank 1: all_gather of loss: NCCL: remote process exited"));
}

TEST_CASE("nccl: one error on every rank where they cannot talk, which one of them prints", "[comm]") {
  Job job(3);
  const auto error_with = [](const Settings& settings) -> std::string {
    try {
      static_cast<void>(connect(settings));
    } catch (const VerdictError& error) {
      return (error.is_printed_here() ? "" : "not printed: ") + std::string(error.what());
    }
    return "no error";
  };
  std::vector<std::string> seen;
  std::string wanted;
  SECTION("versions differ") {
    seen = job.run([&](int rank) {
      host_nccl::set_version(rank == 2 ? 22703 : 22809);
      return error_with(job.settings(rank));
    });
    wanted =
        "the ranks have different versions of NCCL: rank 0 (pod-0) has 2.28.9, rank 2 (pod-2) has 2.27.3; all need "
        "the same libnccl.so.2";
  }
  SECTION("a rank has no device") {
    seen = job.run([&](int rank) {
      Settings settings = job.settings(rank);
      if (rank == 1) settings.device.index = 9;
      return error_with(settings);
    });
    wanted = "rank 1 (pod-1): there is no cuda:9: the NVIDIA driver shows 8 devices";
  }
  SECTION("two ranks of a node have one device") {
    seen = job.run([&](int rank) {
      Settings settings = job.settings(rank);
      settings.local_world = 3;
      settings.device.index = rank == 0 ? 1 : 0;
      return error_with(settings);
    });
    wanted =
        "ranks 1 (pod-1), 2 (pod-2): LOCAL_WORLD_SIZE is 3, but the ranks of this node see 1 GPU, and each needs one "
        "to "
        "itself; start at most 1 here (launch: --nproc-per-node gpu), or show them more with CUDA_VISIBLE_DEVICES";
  }
  CHECK(seen == std::vector{wanted, "not printed: " + wanted, "not printed: " + wanted});
}

TEST_CASE("nccl: what NCCL refuses is told with its own words", "[comm]") {
  Job job(2, 1s);
  const auto seen = job.run([&](int rank) {
    if (rank == 0) host_nccl::fail_next("ncclCommInitRankConfig", ncclInvalidUsage);
    return error_of<InputError>([&] { static_cast<void>(connect(job.settings(rank))); });
  });
  CHECK(seen[0] == "rank 0: connecting: NCCL: an error of the test");
}

TEST_CASE("nccl: what CUDA or the machine refuses NCCL is the device's fault, but for memory that there is not",
          "[comm]") {
  Job job(2, 1s);
  const auto error_with = [&](const char* detail, auto error, ncclResult_t result = ncclUnhandledCudaError) {
    host_nccl::set_last_error(detail);
    const auto seen = job.run([&](int rank) {
      if (rank == 0) host_nccl::fail_next("ncclCommInitRankConfig", result);
      const auto connects = [&] { static_cast<void>(connect(job.settings(rank))); };
      return rank == 0 ? error_of<decltype(error)>(connects) : error_of<PeerError>(connects);
    });
    host_nccl::set_last_error("");
    return seen[0];
  };
  SECTION("a device that fails") {
    CHECK(error_with("Cuda failure 'unspecified launch failure'", DeviceError("")) ==
          "cuda:0: connecting: NCCL: an error of the test (Cuda failure 'unspecified launch failure')");
  }
  SECTION("a device that is full") {
    CHECK(
        error_with("Cuda failure 2 'out of memory'", OutOfMemoryError("")) ==
        "cuda:0: connecting: NCCL: an error of the test (Cuda failure 2 'out of memory'); its buffers need room beside "
        "what the run has taken: a smaller batch leaves more");
  }
  SECTION("a container's shared memory that is full") {
    CHECK_THAT(
        error_with("Error while creating shared memory segment /dev/shm/nccl-Ab (size 33030528), error: No space "
                   "left on device (28)",
                   InputError(""), ncclSystemError),
        Catch::StartsWith("rank 0: connecting: NCCL: ") && Catch::Contains("docker run --shm-size 1g"));
  }
}

TEST_CASE("nccl: a group that is not started yet is under way, and one that has ended is of no use", "[comm]") {
  host_cuda::set_devices(1);
  ncclUniqueId id;
  REQUIRE(nccl().get_unique_id(&id) == ncclSuccess);
  NcclGroup group(roster_of_threads(0, 1), "", "");
  CHECK(group.state() == ncclInProgress);
  CHECK(group.join(id) == ncclSuccess);
  CHECK(group.state() == ncclSuccess);
  group.abort();
  CHECK(group.state() == ncclInvalidUsage);
}

}  // namespace
}  // namespace trainyard::comm
