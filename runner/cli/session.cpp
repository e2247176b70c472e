#include "cli/session.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "assemble/exchange.h"
#include "base/error.h"
#include "checkpoint/checksum.h"
#include "comm/in_process.h"
#include "comm/mpi_runtime.h"
#include "comm/settings.h"
#include "launch/agent.h"
#include "launch/resources.h"
#include "launch/termination_log.h"
#include "launch/world.h"
#include "rendezvous/membership.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/place.h"
#include "rendezvous/stop.h"
#include "run/flight_recorder.h"

namespace trainyard::cli {
namespace {

constexpr std::chrono::seconds kFarewell{10};
constexpr std::chrono::seconds kShortestReply{5};  // a busy host is no lost one

using Body = std::function<void(const train::World&)>;

/// Tells jobs apart in folders that they share, without telling their secret.
std::string job_digest() {
  const std::string token = rendezvous::job_token(rendezvous::process_environment());
  return token.empty() ? "" : checkpoint::checksum_of("trainyard job " + token);
}

/// The operator counts generations from 1, and its pods may be started again; so may what a launcher restarts. Whoever
/// starts ranks by hand means this start.
bool may_have_saved(const rendezvous::Place& place) {
  return place.generation > 0 || place.restart > 0;
}

/// Where the operator that started this job wants to hear of it; none where no operator did, or an older one.
std::optional<metrics::ProgressTarget> progress_target(const rendezvous::Place& place) {
  const rendezvous::Environment environment = rendezvous::process_environment();
  const auto url = environment.find("TRAINYARD_PROGRESS_URL"), ca = environment.find("TRAINYARD_PROGRESS_CA");
  if (url == environment.end() || url->second.empty()) return std::nullopt;
  return metrics::ProgressTarget{.url = url->second,
                                 .token = rendezvous::job_token(environment),
                                 .ca = ca == environment.end() ? "" : ca->second,
                                 .generation = place.generation};
}

/// The kubelet tells every container where the API is, and nobody else does: the local operator's pods are none.
bool is_in_pod() {
  return rendezvous::process_environment().contains("KUBERNETES_SERVICE_HOST");
}

std::vector<int> numbers_of(const std::vector<rendezvous::SilentRank>& silent) {
  std::vector<int> ranks;
  for (const rendezvous::SilentRank& one : silent) ranks.push_back(one.rank);
  return ranks;
}

/// Logs what NCCL logs as "comm … rank 0 nranks 2 … Init COMPLETE".
void log_communicator(const comm::Communicator& communicator, const std::string& how) {
  spdlog::info("NCCL_DEBUG=INFO: the communicator of rank {} of {} is made: process {}, {}", communicator.rank(),
               communicator.world(), ::getpid(), how);
}

std::string reached_by(const rendezvous::Member& self, const std::string& transport) {
  return fmt::format("host {}, address {}; {}", self.host, self.address, transport);
}

/// The one rank of a world of one needs no port and nobody's consent.
void run_alone(const rendezvous::Place& place, const SessionSettings& settings, const rendezvous::SignalWatch& signals,
               const Body& body) {
  rendezvous::MemoryStore store;
  const auto communicators = comm::make_in_process(1, settings.comm.timeout);
  if (place.logs_communicator) log_communicator(*communicators.front(), "no peers");
  body({.comm = *communicators.front(),
        .store = store,
        .device = device_of_rank(settings.device, place.local_rank, place.local_world),
        .generation = place.generation,
        .job = job_digest(),
        .may_have_saved = may_have_saved(place),
        .in_pod = is_in_pod(),
        .summarizes_collectives = place.summarizes_collectives,
        .progress = progress_target(place),
        .asked_to_stop = [&] { return signals.is_requested(); }});
}

rendezvous::JoinSettings join_settings(const SessionSettings& settings, const rendezvous::SignalWatch& signals) {
  rendezvous::JoinSettings join;
  join.timeout = settings.rendezvous_timeout;
  // A master that stands still is lost as any peer is. Its store is asked for the last words, too.
  join.reply_timeout = std::clamp<std::chrono::milliseconds>(settings.comm.timeout, kShortestReply, join.reply_timeout);
  join.environment = rendezvous::process_environment();
  join.token = rendezvous::job_token(join.environment);
  // Where device.kind is auto and one node's driver is gone, its ranks take the CPU, and nobody could talk to them.
  const std::string device = settings.device == DeviceKind::Cpu ? "cpu" : "cuda";
  join.config = settings.config_hash + device;
  join.config_text = fmt::format("{}\nwhat it computes on = {}", settings.config_text, device);
  join.interrupted = [&signals] { return signals.is_requested(); };
  return join;
}

void refuse_threads(const config::Comm& comm, int processes) {
  if (comm.backend == config::Backend::InProcess && processes > 1)
    throw InputError(
        fmt::format("comm.backend is in_process, which joins threads, but {} processes were started; use "
                    "auto, gloo or mpi",
                    processes));
}

/// `auto` is mpi where mpirun started this rank.
bool is_over_mpi(const rendezvous::Place& place, const config::Comm& comm) {
  refuse_threads(comm, place.world);
  return comm.backend == config::Backend::Mpi || (comm.backend == config::Backend::Auto && place.under_mpirun);
}

comm::Settings comm_settings(const config::Comm& comm, const rendezvous::Membership& membership, Device device,
                             std::shared_ptr<comm::MpiRuntime> mpi) {
  comm::Settings settings;
  settings.device = device;
  settings.transport = mpi ? comm::Transport::Mpi : comm::Transport::Gloo;
  settings.rank = membership.rank();
  settings.world = membership.world();
  settings.host = membership.self().host;
  settings.store = &membership.store();
  settings.timeout = comm.timeout;
  settings.local_world = membership.place().local_world;
  settings.address = membership.self().address;
  settings.shared_memory = comm.shared_memory;
  settings.user_buffers = comm.user_buffers;
  settings.mpi = std::move(mpi);
  return settings;
}

enum class Printed { Here, Elsewhere };

/// What another rank ended with, of its own fault, ends this one too: with the same code.
[[noreturn]] void throw_verdict(const std::string& text, Printed printed, ExitCode code) {
  const bool is_here = printed == Printed::Here;
  if (code == ExitCode::Defect) throw DefectElsewhere(text, is_here);
  throw VerdictError(text, is_here);
}

/// A rank whose own fault ends it says so before its communicator goes.
void with_last_words(rendezvous::Membership& membership, const std::function<void()>& act) {
  try {
    act();
  } catch (const VerdictError&) {
    throw;
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    if (code == ExitCode::Input || code == ExitCode::Defect) membership.leave_last_words(message_of(error), code);
    throw;
  }
}

/// Where act() loses a peer, what the store knows of it is thrown. Who ended of its own fault is not lost: a restart
/// would meet the same.
void knowing_who_is_lost(const rendezvous::Membership& membership, const std::optional<train::FlightRecorder>& recorder,
                         const std::function<void()>& act) {
  try {
    act();
  } catch (const PeerError& error) {
    if (const auto words = membership.last_words())
      throw_verdict(fmt::format("rank {}: {}", words->rank, words->text), Printed::Elsewhere, words->code);
    std::string text = error.what();
    if (const std::string silent = membership.describe_silent(); !silent.empty()) text += "; " + silent;
    if (const auto file = recorder ? recorder->write(text) : ""; !file.empty())
      text += fmt::format("; its last collectives are in {}", file.string());
    throw PeerError(text);
  }
}

void run_as_member(const rendezvous::Place& place, const SessionSettings& settings, const Body& body) {
  const rendezvous::SignalWatch signals;
  const auto start = std::chrono::steady_clock::now();
  std::optional<train::FlightRecorder> recorder;
  if (!settings.flight_folder.empty()) recorder.emplace(settings.flight_folder, place.rank, place.world);
  if (place.world == 1) return run_alone(place, settings, signals, body);
  const Device device = device_of_rank(settings.device, place.local_rank, place.local_world);
  std::shared_ptr<comm::MpiRuntime> mpi;
  if (is_over_mpi(place, settings.comm)) mpi = comm::MpiRuntime::start();
  rendezvous::JoinSettings join = join_settings(settings, signals);
  if (mpi && !place.master) join.share_from_rank_0 = [&mpi](const std::string& text) { return mpi->broadcast(text); };
  rendezvous::Membership membership = rendezvous::join(place, join);
  const auto run_connected = [&] {
    std::unique_ptr<comm::Communicator> communicator;
    with_last_words(membership,
                    [&] { communicator = comm::connect(comm_settings(settings.comm, membership, device, mpi)); });
    if (place.logs_communicator)
      log_communicator(*communicator, reached_by(membership.self(), communicator->transport()));
    if (recorder) recorder->attach(communicator->flight_record());
    const train::World world{.comm = *communicator,
                             .store = membership.store(),
                             .device = device,
                             .local_world = place.local_world,
                             .local_rank = place.local_rank,
                             .meeting = std::chrono::steady_clock::now() - start,
                             .generation = place.generation,
                             .job = job_digest(),
                             .may_have_saved = may_have_saved(place),
                             .logs_collectives = place.logs_collectives,
                             .in_pod = is_in_pod(),
                             .summarizes_collectives = place.summarizes_collectives,
                             .progress = progress_target(place),
                             .silent_ranks = [&membership] { return numbers_of(membership.silent_ranks()); },
                             .leave_word = launch::write_termination_log,
                             .asked_to_stop = [&] { return signals.is_requested(); }};
    with_last_words(membership, [&] { body(world); });
    communicator->close(std::chrono::steady_clock::now() + kFarewell);
  };
  try {
    knowing_who_is_lost(membership, recorder, run_connected);
  } catch (const TerminatedError&) {
    membership.leave(kFarewell);  // an orderly end too
    throw;
  } catch (const std::exception&) {
    membership.let_others_hear();
    throw;
  }
  membership.leave(kFarewell);
}

/// A device's error names the device, and here whose it is. A rank alone in its pod has a log of its own, in which
/// people look for the reason too.
void run_as_rank(const rendezvous::Place& place, const SessionSettings& settings, const Body& body) {
  try {
    run_as_member(place, settings, body);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("rank {}: {}", place.rank, error.what()));
  } catch (const VerdictError& error) {
    if (place.local_world > 1) throw;
    throw_verdict(error.what(), Printed::Here, exit_code_of(error));
  }
}

/// A rank for each GPU of a machine whose GPUs cannot be used would go without, and nobody might see it.
void check_gpus_are_used(const Launched& ranks, const SessionSettings& settings) {
  if (!settings.takes_what_is_there || settings.device != DeviceKind::Cpu) return;
  if (launch::resources_here(ranks.environment).gpus == 0) return;
  const std::string& processes = ranks.options.node.processes;
  try {
    require_device({DeviceKind::Cuda, 0});
  } catch (const InputError& missing) {
    if (processes == "gpu")
      throw InputError(
          fmt::format("there shall be a rank for each GPU of this machine, but {}; on the CPU: --device cpu "
                      "and a number of ranks",
                      missing.what()));
    if (processes == "auto")
      spdlog::warn("this machine has GPUs, and its ranks compute on the CPU: {}", missing.what());
  }
}

/// A mistake that all ranks would make is told of once. Ranks of other nodes may see other files.
int start_ranks(const Launched& ranks, const SessionSettings& settings) {
  check_gpus_are_used(ranks, settings);
  const rendezvous::NodePlace& node = ranks.options.node;
  const int count = launch::ranks_of(node.processes, launch::resources_here(ranks.environment));
  require_devices(settings.device, count);
  if (node.max_nodes == 1) {
    refuse_threads(settings.comm, count);
    if (settings.check) settings.check(count);
  }
  return launch::launch_ranks(ranks.options, ranks.environment);
}

}  // namespace

int run_in_world(const Arguments& command, const SessionSettings& settings, const Body& body) {
  if (settings.launched) {
    launch::LaunchOptions options = settings.launched->options;
    options.command = command;
    return start_ranks({options, settings.launched->environment}, settings);
  }
  const rendezvous::Environment environment = rendezvous::process_environment();
  rendezvous::Place place = rendezvous::place_of(environment);
  if (place.kind == rendezvous::Place::Kind::Node && settings.is_alone_in_a_pod) place = {};
  if (place.kind == rendezvous::Place::Kind::Node) {
    const launch::LaunchOptions options = launch::options_of(place, command, environment, settings.rendezvous_timeout);
    const auto only_rank = launch::only_rank_of(place, options, environment);
    if (!only_rank) return start_ranks({options, environment}, settings);
    place = *only_rank;
  }
  run_as_rank(place, settings, body);
  return 0;
}

}  // namespace trainyard::cli
