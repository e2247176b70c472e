// The runtime of tensor/cuda/ on the stand-in of tests/support/host_cuda, whose failures are ordered.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "support/support.h"
#include "tensor/accelerator.h"
#include "tensor/cuda/check.h"
#include "tensor/device_memory.h"
#include "tensor/tensor.h"

namespace trainyard {
namespace {

constexpr Device kCuda{DeviceKind::Cuda, 0};
constexpr size_t kMiB = size_t{1} << 20;

std::string error_of(int index) {
  try {
    require_device({DeviceKind::Cuda, index});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Tensor numbers(int64_t count) {
  Tensor made = Tensor::empty({count}, DType::Int32);
  for (int64_t i = 0; i < count; ++i) made.data<int32_t>()[i] = static_cast<int32_t>(i);
  return made;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The machine as the next test expects it.
struct Restored {
  ~Restored() {
    host_cuda::set_devices(1);
    host_cuda::set_driver(13010);
    host_cuda::set_capability(9, 0);
    host_cuda::set_memory(size_t{1} << 30);
    host_cuda::set_others(0);
  }
};

}  // namespace

TEST_CASE("cuda: the driver's thread takes no signal that the process waits for", "[cuda]") {
  REQUIRE(cuda_devices() == 1);
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (text_of(task.path() / "comm") != "cuda driver\n") continue;
    ++threads;
    const std::string status = text_of(task.path() / "status");
    const uint64_t blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
      CAPTURE(signal);
      CHECK((blocked >> (signal - 1) & 1) == 1);
    }
  }
  CHECK(threads == 1);
  sigset_t of_this{};
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &of_this) == 0);
  CHECK(::sigismember(&of_this, SIGTERM) == 0);
}

TEST_CASE("cuda: what is missing is told apart", "[cuda]") {
  const Restored restored;
  host_cuda::set_driver(0);
  CHECK(error_of(5) == "there is no NVIDIA driver on this machine (libcuda.so.1)");
  CHECK(cuda_devices() == 0);
  CHECK(describe_cuda() == "13.0, there is no NVIDIA driver on this machine (libcuda.so.1)");
  host_cuda::set_driver(12040);
  CHECK(error_of(5) == "the NVIDIA driver here is for CUDA 12.4, and this build needs one for 13.0");
  host_cuda::set_driver(13010);
  host_cuda::set_devices(0);
  CHECK(error_of(5) == "the NVIDIA driver shows no device");
  host_cuda::set_devices(2);
  CHECK(error_of(2) == "there is no cuda:2: the NVIDIA driver shows 2 devices");
  host_cuda::fail_next("cudaGetDeviceCount", cudaErrorSystemDriverMismatch);
  CHECK(error_of(5) == "the NVIDIA driver does not work: an error of the test (cudaErrorOfTest)");
  host_cuda::set_capability(7, 5);
  CHECK(error_of(1) == "cuda:1, host, has compute capability 7.5, and the kernels of this build are for 80 90a 100");
  host_cuda::set_capability(9, 0);
  CHECK(error_of(1) == "");
  CHECK(properties_of(kCuda).multiprocessors == 4);
  CHECK(describe_cuda() == "13.0, driver for 13.1, host");
}

TEST_CASE("cuda: each rank of a node has a device to itself, or is told how many there are", "[cuda]") {
  const Restored restored;
  host_cuda::set_devices(2);
  CHECK(device_of_rank(DeviceKind::Cuda, 1, 2) == Device{DeviceKind::Cuda, 1});
  CHECK(device_of_rank(DeviceKind::Cpu, 3, 4) == Device{});
  const std::string too_few =
      "LOCAL_WORLD_SIZE is 4, but the ranks of this node see 2 GPUs, and each needs one to itself; start at "
      "most 2 here (launch: --nproc-per-node gpu), or show them more with CUDA_VISIBLE_DEVICES";
  CHECK_THROWS_WITH(device_of_rank(DeviceKind::Cuda, 0, 4), too_few);
  CHECK_THROWS_WITH(require_devices(DeviceKind::Cuda, 4), too_few);
  CHECK_NOTHROW(require_devices(DeviceKind::Cpu, 4));
  CHECK(properties_of({DeviceKind::Cuda, 0}).uuid != properties_of({DeviceKind::Cuda, 1}).uuid);
  CHECK(properties_of(kCuda).uuid.size() == 32);
  host_cuda::set_devices(1);
  CHECK(device_of_rank(DeviceKind::Cuda, 3, 4) == kCuda);
  CHECK_THROWS_AS(require_devices(DeviceKind::Cuda, 2), InputError);
}

TEST_CASE("cuda: threads that have used no device make no context on another than the process uses", "[cuda]") {
  const Restored restored;
  host_cuda::set_devices(2);
  const auto on_a_thread = [](const auto& act) { std::jthread(act).join(); };
  host_cuda::forget_contexts();
  std::optional<Event> event;
  Tensor first, second;
  on_a_thread([&] {
    const Device device = device_of_rank(DeviceKind::Cuda, 1, 2);
    const Tensor there = on_device(numbers(4), device);
    event.emplace(device);
  });
  on_a_thread([&] { first = Tensor::pinned({30 << 20}, DType::UInt8); });
  on_a_thread([&] { event->wait(); });
  bool has_passed = false;
  on_a_thread([&] { has_passed = event->has_passed(); });
  CHECK(has_passed);
  on_a_thread([&] { event.reset(); });
  on_a_thread([&] { second = Tensor::pinned({40 << 20}, DType::UInt8); });
  first = second = {};
  on_a_thread([&] { pinned_memory()->allocator().trim(); });
  CHECK(host_cuda::contexts() == std::set{1});
  accelerator()->use_device(kCuda.index);
}

TEST_CASE("cuda: that an event has not passed is no error that a later call finds", "[cuda]") {
  const Stream side(kCuda);
  host_cuda::hold(static_cast<cudaStream_t>(side.id().handle));
  const StreamScope scope(side);
  const Event event(kCuda);
  CHECK_FALSE(event.has_passed());
  CHECK(cudaGetLastError() == cudaSuccess);
  event.wait();
}

TEST_CASE("cuda: kernels run on what they are compiled for", "[cuda]") {
  using cuda::runs_on;
  CHECK(runs_on("80 90a 100", 8, 0));
  CHECK(runs_on("80 90a 100", 8, 9));
  CHECK(runs_on("80 90a 100", 12, 0));
  CHECK_FALSE(runs_on("80 90a 100", 7, 5));
  CHECK(runs_on("90a", 9, 0));
  CHECK_FALSE(runs_on("90a", 10, 0));
  CHECK_FALSE(runs_on("90a", 8, 0));
  CHECK(runs_on("80-real", 8, 6));
  CHECK_FALSE(runs_on("80-real", 9, 0));
  CHECK(runs_on("80-virtual", 9, 0));
}

TEST_CASE("cuda: an error is the user's, the device's or ours, and names call and device", "[cuda]") {
  const auto code_of = [](cudaError_t error) {
    try {
      cuda::check(error, "cudaStreamSynchronize", 3);
    } catch (const std::exception& thrown) {
      return std::pair(exit_code_of(thrown), std::string(thrown.what()));
    }
    return std::pair(ExitCode::Done, std::string());
  };
  CHECK(code_of(cudaSuccess).first == ExitCode::Done);
  CHECK(code_of(cudaErrorECCUncorrectable).second ==
        "cuda:3: cudaStreamSynchronize: uncorrectable ECC error encountered (cudaErrorECCUncorrectable); the kernel's "
        "log (dmesg, lines with Xid) and nvidia-smi tell more");
  for (const cudaError_t error :
       {cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorIllegalAddress, cudaErrorLaunchFailure,
        cudaErrorUnknown, cudaErrorDevicesUnavailable, cudaErrorContained, cudaErrorTensorMemoryLeak,
        cudaErrorMpsClientTerminated, cudaErrorExternalDevice})
    CHECK(code_of(error).first == ExitCode::DeviceFault);
  CHECK(code_of(cudaErrorMemoryAllocation).first == ExitCode::Input);
  CHECK(code_of(cudaErrorInvalidValue).first == ExitCode::Defect);
}

TEST_CASE("cuda: tensors go to a device, are zeroed and copied there, and come back", "[cuda]") {
  const Tensor here = numbers(1000);
  const Tensor there = on_device(here, kCuda);
  CHECK(there.device() == kCuda);
  CHECK_THROWS_WITH(there.data<int32_t>(), "Tensor: elements on cuda:0 read by the host");
  const Tensor second = Tensor::zeros({1000}, DType::Int32, kCuda);
  Tensor half = second.rows(0, 500);
  copy(there.rows(0, 500), half);
  const Tensor back = on_device(second, {});
  CHECK(back.values<int32_t>()[499] == 499);
  CHECK(back.values<int32_t>()[500] == 0);
  Tensor wrong = Tensor::empty({1000}, DType::Float32, kCuda);
  CHECK_THROWS_WITH(copy(here, wrong), Catch::Contains("int32 [1000] to float32 [1000]"));
}

TEST_CASE("cuda: memory is counted by kind for the rank and for the device, and is used again", "[cuda]") {
  MemoryLedger& of_device = memory_of(kCuda).ledger();
  const size_t before = of_device.held_bytes();
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  const MemoryKindScope kind(MemoryKind::Gathered);
  Tensor tensor = Tensor::empty({1 << 20}, DType::Float32, kCuda);
  const std::byte* const address = tensor.raw();
  CHECK(ledger->held()[MemoryKind::Gathered] == 4 * kMiB);
  CHECK(of_device.held_bytes() - before == 4 * kMiB);
  tensor.storage()->set_kind(MemoryKind::Gradients);
  CHECK(of_device.held()[MemoryKind::Gradients] == 4 * kMiB);
  tensor.storage()->release();
  CHECK(ledger->held_bytes() == 0);
  CHECK(of_device.held_bytes() == before);
  tensor.storage()->materialize();
  CHECK(tensor.raw() == address);
}

namespace {

class NotedSource final : public MemorySource {
 public:
  void* take(size_t bytes) override {
    void* const segment = accelerator()->take_memory(kCuda.index, bytes);
    if (segment) ++segments;
    return segment;
  }
  void give_back(void* segment) noexcept override {
    --segments;
    accelerator()->give_memory_back(kCuda.index, segment);
  }
  std::unique_ptr<Fence> fence(StreamId stream) override { return fence_of(stream); }

  int segments = 0;
};

/// No device has room for this: whatever is unused is given back before it says so.
void ask_for_too_much() {
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 40}, DType::UInt8, kCuda), OutOfMemoryError);
}

}  // namespace

TEST_CASE("cuda: what is gathered may have memory apart, of which all is counted as of one device", "[cuda]") {
  const Restored restored;
  static NotedSource source;
  DeviceMemory& memory = memory_of(kCuda);
  ask_for_too_much();
  const size_t before = process_bytes(kCuda);
  memory.gather_in(&source);
  Tensor other = Tensor::empty({30 << 20}, DType::UInt8, kCuda);
  CHECK(source.segments == 0);
  const MemoryKindScope kind(MemoryKind::Gathered);
  Tensor gathered = Tensor::empty({30 << 20}, DType::UInt8, kCuda), more = Tensor::empty({1}, DType::UInt8, kCuda);
  CHECK(source.segments == 2);
  CHECK(process_bytes(kCuda) - before == 62 * kMiB);
  gathered.storage()->set_kind(MemoryKind::Other);  // it lies where it did
  gathered.storage()->release();
  SECTION("memory that is unused apart is there for the rest") {
    host_cuda::set_memory(host_cuda::taken_bytes());
    const MemoryKindScope rest(MemoryKind::Other);
    CHECK_NOTHROW(Tensor::empty({20 << 20}, DType::UInt8, kCuda));
    CHECK(source.segments == 1);
  }
  SECTION("and the other way round") {
    other = {};
    host_cuda::set_memory(host_cuda::taken_bytes());
    CHECK_NOTHROW(Tensor::empty({50 << 20}, DType::UInt8, kCuda));
    CHECK(source.segments == 2);
  }
  SECTION("until it has not") {
    memory.gather_in(nullptr);
    const int segments = source.segments;
    CHECK_NOTHROW(Tensor::empty({40 << 20}, DType::UInt8, kCuda));
    CHECK(source.segments == segments);
  }
  gathered = more = {};
  ask_for_too_much();
  CHECK(source.segments == 0);
  memory.gather_in(nullptr);
}

TEST_CASE("cuda: what another stream still uses is not given out, and an event tells when it may", "[cuda]") {
  const Stream side(kCuda);
  Tensor tensor = Tensor::empty({3 << 20}, DType::UInt8, kCuda);
  const std::byte* const address = tensor.raw();
  auto* const handle = static_cast<cudaStream_t>(side.id().handle);
  host_cuda::hold(handle);
  {
    const StreamScope scope(side);
    CHECK(current_stream(kCuda) == side.id());
    const Event reached(kCuda);
    CHECK_FALSE(reached.has_passed());
    CHECK_NOTHROW(reached.gate());
    Tensor first = Tensor::view(tensor.storage(), 0, {1}, DType::Int32);
    copy_async(numbers(1), first);  // announces the stream by itself
  }
  CHECK(current_stream(kCuda) == StreamId{0, nullptr});
  tensor = Tensor();
  CHECK(Tensor::empty({3 << 20}, DType::UInt8, kCuda).raw() != address);
  host_cuda::release(handle);
  CHECK(Tensor::empty({3 << 20}, DType::UInt8, kCuda).raw() == address);
}

TEST_CASE("cuda: pinned memory waits for the copies from it", "[cuda]") {
  Tensor pinned = Tensor::pinned({3 << 20}, DType::UInt8);
  CHECK(pinned.device() == Device{});
  pinned.values<uint8_t>()[5] = 9;
  const uint8_t* const address = pinned.data<uint8_t>();
  Tensor there = Tensor::empty({3 << 20}, DType::UInt8, kCuda);
  const Stream side(kCuda);
  host_cuda::hold(static_cast<cudaStream_t>(side.id().handle));
  {
    const StreamScope scope(side);
    copy_async(pinned, there);
  }
  pinned = Tensor();
  CHECK(Tensor::pinned({3 << 20}, DType::UInt8).data<uint8_t>() != address);
  host_cuda::release(static_cast<cudaStream_t>(side.id().handle));
  CHECK(Tensor::pinned({3 << 20}, DType::UInt8).data<uint8_t>() == address);
  CHECK(on_device(there, {}).values<uint8_t>()[5] == 9);
}

TEST_CASE("cuda: out of memory names the device and what holds its memory, the most first", "[cuda]") {
  const Restored restored;
  memory_of(kCuda).allocator().trim();
  const size_t memory = host_cuda::taken_bytes() + 130 * kMiB;
  const size_t elsewhere = host_cuda::taken_bytes() - memory_of(kCuda).statistics().reserved + 30 * kMiB;
  host_cuda::set_memory(memory);
  host_cuda::set_others(30 * kMiB);
  const MemoryKindScope other(MemoryKind::Parameters);
  const Tensor parameters = Tensor::empty({20 << 20}, DType::UInt8, kCuda);
  const MemoryKindScope kind(MemoryKind::Activations);
  const Tensor activations = Tensor::empty({60 << 20}, DType::UInt8, kCuda);
  try {
    static_cast<void>(Tensor::empty({30 << 20}, DType::UInt8, kCuda));
    FAIL("there is no room");
  } catch (const OutOfMemoryError& error) {
    CHECK(exit_code_of(error) == ExitCode::Input);
    CHECK_THAT(error.what(), Catch::StartsWith("cuda:0: out of memory: 30.0 MiB for activations do not fit; "));
    CHECK_THAT(error.what(), Catch::Contains("activations 60.0 MiB, parameters 20.0 MiB"));
    CHECK_THAT(error.what(), Catch::EndsWith(fmt::format("; the driver and other processes hold {} of its {}",
                                                         human_bytes(elsewhere), human_bytes(memory))));
  }
  CHECK_NOTHROW(Tensor::empty({10 << 20}, DType::UInt8, kCuda));
}

TEST_CASE("cuda: a failure of the device is a DeviceError from whichever call finds it", "[cuda]") {
  const Tensor there = on_device(numbers(4), kCuda);
  host_cuda::fail_next("cudaStreamSynchronize", cudaErrorIllegalAddress);
  CHECK_THROWS_AS(on_device(there, {}), DeviceError);
  host_cuda::fail_next("cudaMemcpyAsync", cudaErrorECCUncorrectable);
  CHECK_THROWS_AS(on_device(there, {}), DeviceError);
  host_cuda::fail_next("cudaMalloc", cudaErrorECCUncorrectable);
  CHECK_THROWS_AS(Tensor::empty({200 << 20}, DType::UInt8, kCuda), DeviceError);
  host_cuda::fail_next("cudaHostAlloc", cudaErrorMemoryAllocation);
  CHECK_NOTHROW(Tensor::pinned({50 << 20}, DType::UInt8));  // there is room at the second try
}

}  // namespace trainyard
