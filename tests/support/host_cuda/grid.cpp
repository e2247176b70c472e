#include <cuda_runtime.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HOST_CUDA_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOST_CUDA_ASAN
#endif
#endif
#ifdef HOST_CUDA_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

// The threads of kernels.
namespace {

// A kernel switches millions of times, so the jumps are the compiler's own: those of the C library do more. AddressSanitizer
// would clear the shadow of a whole stack in its longjmp and before each call that does not return; it knows of each switch
// by StackSwitch, so the functions with jumps are not instrumented.
using Place = void* [5];
#define HOST_CUDA_SAVE(place) __builtin_setjmp(place)
#define HOST_CUDA_JUMPS __attribute__((noinline, no_sanitize("address")))
[[noreturn]] HOST_CUDA_JUMPS void go_to(Place& place) {
  __builtin_longjmp(place, 1);
}

/// What AddressSanitizer must be told when a stack is left for another.
struct StackSwitch {
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake = nullptr;

  /// Leaves the stack of this one for that of `next`.
  void leave_for(const StackSwitch& next) {
#ifdef HOST_CUDA_ASAN
    __sanitizer_start_switch_fiber(&fake, next.bottom, next.bytes);
#else
    static_cast<void>(next);
#endif
  }
  /// Is back, or here for the first time; `from` learns where its stack is.
  void arrive(StackSwitch* from) {
#ifdef HOST_CUDA_ASAN
    __sanitizer_finish_switch_fiber(fake, from ? &from->bottom : nullptr, from ? &from->bytes : nullptr);
#else
    static_cast<void>(from);
#endif
  }
};

/// The threads of one block, each on a stack of its own from its first stop on. They take turns: a thread runs until
/// it has to wait for others. Every second block goes through its threads from the last, so that what only the order of
/// threads keeps right shows.
class Block {
 public:
  static constexpr size_t kStack = size_t{64} << 10, kWarp = 32;

  void run(unsigned threads, bool is_backward, const std::function<void()>& body) {
    body_ = &body;
    threads_ = threads;
    is_backward_ = is_backward;
    started_ = finished_ = arrived_ = round_ = 0;
    warps_.assign((threads + kWarp - 1) / kWarp, {});
    for (size_t next = 0; started_ < threads_; ++next) {
      if (next == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
      resume(*fibers_[next]);
    }
    while (finished_ < threads_) {
      const unsigned before = finished_ + steps_;
      for (const auto& fiber : fibers_)
        if (fiber->is_active) resume(*fiber);
      if (finished_ + steps_ == before) stuck();
    }
  }

  void meet_block() {
    const unsigned mine = round_;
    ++steps_;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++round_;
    }
    while (round_ == mine) yield();
  }

  uint32_t exchange(uint32_t bits, unsigned lane) {
    const auto values = meet_warp(bits);
    return values[lane < values.size() ? lane : threadIdx.x % kWarp];
  }

  uint32_t ballot(bool is_set) {
    uint32_t lanes = 0, bit = 1;
    for (const uint32_t each : meet_warp(is_set ? 1 : 0)) {
      if (each) lanes |= bit;
      bit <<= 1U;
    }
    return lanes;
  }

 private:
  struct Fiber {
    std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStack);
    StackSwitch known{stack.get(), kStack};
    Place at;
    dim3 thread;
    bool is_active = false, is_begun = false;
  };
  struct Warp {
    std::array<std::array<uint32_t, kWarp>, 2> values;
    size_t arrived = 0;
    unsigned round = 0;
  };

  /// What the lanes of this thread's warp have left there, once all have.
  std::span<const uint32_t> meet_warp(uint32_t bits) {
    const unsigned thread = threadIdx.x;
    Warp& warp = warps_[thread / kWarp];
    const unsigned mine = warp.round;
    const size_t lanes = std::min<size_t>(kWarp, threads_ - thread / kWarp * kWarp);
    ++steps_;
    warp.values[mine % 2][thread % kWarp] = bits;
    if (++warp.arrived == lanes) {
      warp.arrived = 0;
      ++warp.round;
    }
    while (warp.round == mine) yield();
    return std::span(warp.values[mine % 2]).first(lanes);
  }

  HOST_CUDA_JUMPS void resume(Fiber& fiber) {
    current_ = &fiber;
    fiber.is_active = true;
    threadIdx = fiber.thread;
    if (HOST_CUDA_SAVE(scheduler_) != 0) return scheduler_stack_.arrive(nullptr);
    scheduler_stack_.leave_for(fiber.known);
    if (fiber.is_begun) go_to(fiber.at);
    fiber.is_begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    entering_ = this;
    makecontext(&context, &Block::enter, 0);
    setcontext(&context);
  }

  HOST_CUDA_JUMPS void yield() {
    Fiber& mine = *current_;
    mine.thread = threadIdx;
    if (HOST_CUDA_SAVE(mine.at) == 0) {
      mine.known.leave_for(scheduler_stack_);
      go_to(scheduler_);
    }
    current_->known.arrive(&scheduler_stack_);
  }

  static void enter() { entering_->work(); }

  /// A stack serves thread after thread as long as none of them stops, and then the next block.
  [[noreturn]] void work() {
    current_->known.arrive(&scheduler_stack_);
    for (;;) {
      Fiber& mine = *current_;
      while (started_ < threads_) {
        const unsigned index = started_++;
        threadIdx = {is_backward_ ? threads_ - 1 - index : index, 0, 0};
        (*body_)();
        ++finished_;
      }
      mine.is_active = false;
      yield();
    }
  }

  [[noreturn]] void stuck() const {
    std::fprintf(stderr, "host_cuda: %u of %u threads of block %u wait for the others, which have ended\n",
                 threads_ - finished_, threads_, blockIdx.x);
    std::abort();
  }

  static thread_local Block* entering_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  Place scheduler_;
  StackSwitch scheduler_stack_;
  Fiber* current_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  unsigned threads_ = 0, started_ = 0, finished_ = 0, arrived_ = 0, round_ = 0, steps_ = 0;
  bool is_backward_ = false;
};
thread_local Block* Block::entering_ = nullptr;

thread_local Block t_block;

}  // namespace

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {

cudaError_t run_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  if (const cudaError_t error = ordered("cudaLaunchKernelEx")) return error;
  constexpr unsigned kMostX = 0x7FFFFFFF, kMostY = 65535, kMostThreads = 1024;
  if (grid.x == 0 || grid.x > kMostX || grid.y == 0 || grid.y > kMostY || block.x == 0 || block.x > kMostThreads ||
      block.y != 1)
    return cudaErrorInvalidConfiguration;
  blockDim = block, gridDim = grid;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) t_block.run(block.x, blockIdx.x % 2 == 1, thread);
  return cudaSuccess;
}

void meet_block() {
  t_block.meet_block();
}
uint32_t exchange(uint32_t bits, unsigned lane) {
  return t_block.exchange(bits, lane);
}
uint32_t ballot(bool is_set) {
  return t_block.ballot(is_set);
}

}  // namespace host_cuda
