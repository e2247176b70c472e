#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "comm/bench.h"

namespace trainyard::cli {
namespace {

constexpr size_t kLineBytes = 256;

/// nccl-tests' spelling, by powers of two: "8", "64K", "128M", "1G".
int64_t bytes_of(const char* flag, const std::string& text) {
  std::string number = text;
  int shift = 0;
  if (const size_t unit = std::string("KMG").find(text.empty() ? ' ' : static_cast<char>(std::toupper(text.back())));
      unit != std::string::npos) {
    shift = 10 * static_cast<int>(unit + 1);
    number.pop_back();
  }
  const auto value = parse_int(number);
  if (!value || *value < 0 || *value > (int64_t{1} << 40) >> shift)
    throw InputError(fmt::format("comm-bench: {} {}: not a size; write 8, 64K, 128M or 1G, up to 1024G", flag, text));
  return *value << shift;
}

/// A line of every rank, printed by rank 0: who takes part, and what carries its bytes.
void print_ranks(const train::World& world) {
  std::array<char, 64> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string own = fmt::format("#  Rank {:>2} Pid {:>6} on {}: {}", world.comm.rank(), ::getpid(), host.data(),
                                      world.comm.transport())
                              .substr(0, kLineBytes);
  Tensor line = Tensor::zeros({static_cast<int64_t>(kLineBytes)}, DType::UInt8);
  std::ranges::copy(own, line.values<uint8_t>().begin());
  Tensor lines = Tensor::zeros({static_cast<int64_t>(kLineBytes) * world.comm.world()}, DType::UInt8);
  world.comm.all_gather(line, lines).wait();
  if (!world.is_main()) return;
  fmt::print("# {} rank{}\n", world.comm.world(), world.comm.world() == 1 ? "" : "s");
  for (int rank = 0; rank < world.comm.world(); ++rank) {
    const auto bytes = lines.values<uint8_t>().subspan(static_cast<size_t>(rank) * kLineBytes, kLineBytes);
    fmt::print("{}\n", std::string(bytes.begin(), std::ranges::find(bytes, uint8_t{0})));
  }
}

constexpr std::pair<const char*, comm::Collective> kCollectives[] = {
    {"all_gather", comm::Collective::AllGather}, {"reduce_scatter", comm::Collective::ReduceScatter},
    {"all_reduce", comm::Collective::AllReduce}, {"broadcast", comm::Collective::Broadcast},
    {"all_to_all", comm::Collective::AllToAll},
};

comm::Collective collective_of(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [text, collective] : kCollectives) {
    if (name == text) return collective;
    known.emplace_back(text);
  }
  const auto near = nearest(name, known);
  throw InputError(fmt::format("comm-bench: unknown collective '{}'{}; there are {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
}

/// Whose memory the backend called so moves: that of devices where there is one, unless another is named.
DeviceKind device_of(const std::string& backend) {
  if (backend == "nccl") return DeviceKind::Cuda;
  return backend == "auto" && cuda_devices() > 0 ? DeviceKind::Cuda : DeviceKind::Cpu;
}

config::Backend backend_of(const std::string& name) {
  return name == "gloo" ? config::Backend::Gloo : name == "mpi" ? config::Backend::Mpi : config::Backend::Auto;
}

/// The options as they are written, before their texts are read.
struct Flags {
  std::vector<std::string> collectives{"all_gather", "reduce_scatter", "all_reduce"};
  std::string min_bytes = "8", max_bytes = "128M", step_bytes = "0", type = "float", backend = "auto";
  bool without_shared_memory = false;
  int registers = 0;
  int checks = 1;
  comm::BenchPlan plan;
};

void add_options(CLI::App& app, Flags& flags) {
  app.add_option("collectives", flags.collectives,
                 "all_gather, reduce_scatter, all_reduce (these three where none is named), broadcast, all_to_all");
  app.add_option("-b,--minbytes", flags.min_bytes, "smallest size: 8, 64K, 128M, 1G");
  app.add_option("-e,--maxbytes", flags.max_bytes, "largest size");
  app.add_option("-f,--stepfactor", flags.plan.factor, "each size is so many times the one before");
  app.add_option("-i,--stepbytes", flags.step_bytes, "or so many bytes more");
  add_count(app, "-n,--iters", flags.plan.iterations, {1, 1'000'000}, "timed of each size");
  add_count(app, "-w,--warmup_iters", flags.plan.warmup, {1, 1'000'000}, "before them; the first is what is checked");
  add_count(app, "-c,--check", flags.checks, {0, 1}, "1: compare every element with what it must be; 0: do not");
  add_word(app, "-d,--datatype", flags.type, {"float", "bfloat16"}, "of the elements");
  add_word(app, "--backend", flags.backend, {"auto", "nccl", "gloo", "mpi"}, "auto: nccl where there are GPUs");
  add_count(app, "-R,--local_register", flags.registers, {0, 1},
            "1: over NCCL in registered buffers (comm.user_buffers)");
  app.add_flag("--no-shared-memory", flags.without_shared_memory, "TCP between ranks of one host, too");
}

comm::BenchPlan plan_of(const Flags& flags) {
  comm::BenchPlan plan = flags.plan;
  for (const std::string& name : flags.collectives) plan.collectives.push_back(collective_of(name));
  plan.min_bytes = bytes_of("--minbytes", flags.min_bytes);
  plan.max_bytes = bytes_of("--maxbytes", flags.max_bytes);
  plan.step_bytes = bytes_of("--stepbytes", flags.step_bytes);
  plan.dtype = flags.type == "bfloat16" ? DType::BFloat16 : DType::Float32;
  plan.checks = flags.checks == 1;
  comm::check_bench(plan);
  return plan;
}

}  // namespace

int run_comm_bench(const Arguments& arguments, const Launched* launched) {
  CLI::App app(
      "How fast the ranks exchange tensors: nccl-tests' table. Start it as a training is started:\n"
      "  trainyard launch --nproc-per-node 2 comm-bench all_reduce -b 8 -e 128M -f 2",
      "trainyard comm-bench");
  Flags flags;
  add_options(app, flags);
  if (const auto code = parse(app, arguments)) return *code;
  comm::BenchPlan plan = plan_of(flags);

  SessionSettings session{.device = device_of(flags.backend),
                          .takes_what_is_there = flags.backend == "auto",
                          .config_text = "comm-bench",
                          .launched = launched};
  session.comm.backend = backend_of(flags.backend);
  session.comm.shared_memory = !flags.without_shared_memory;
  session.comm.user_buffers = flags.registers == 1;
  int64_t wrong = 0;
  const int code = run_in_world(with_name("comm-bench", arguments), session, [&](const train::World& world) {
    print_ranks(world);
    plan.device = world.device;
    wrong = comm::run_bench(world.comm, plan, [](const std::string& line) {
      fmt::print("{}\n", line);
      std::fflush(stdout);
    });
  });
  if (wrong > 0) throw std::logic_error(fmt::format("comm-bench: {} elements are not what they must be", wrong));
  return code;
}

}  // namespace trainyard::cli
