#include "assemble/exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/text.h"
#include "rendezvous/barrier.h"

namespace trainyard::train {

GatheredScalars::GatheredScalars(comm::Communicator& world, const Tensor& own, const char* label)
    : count_(static_cast<size_t>(own.count())), all_(own.reshape({1, own.count()})) {
  if (world.world() > 1) {
    all_ = Tensor::empty({world.world() * own.count()}, DType::Float64, own.device());
    gathering_ = world.all_gather(own, all_, label);
    gathering_.wait();
    all_ = all_.reshape({world.world(), own.count()});
  }
  on_host_ = all_;
  if (own.device().kind == DeviceKind::Cpu) return;
  on_host_ = Tensor::pinned(all_.shape(), DType::Float64);
  copy_async(all_, on_host_);
  if (!dry_run()) copied_.emplace(own.device());
}

std::span<const double> GatheredScalars::read() const {
  if (copied_) {
    copied_->wait();
    gathering_.wait_on_host();  // if a rank was lost, what was copied is not what it said
    copied_.reset();
  }
  return on_host_.values<double>();
}

double GatheredScalars::sum(size_t index) const {
  double sum = 0;
  for (const double value : column(index)) sum += value;
  return sum;
}

double GatheredScalars::max(size_t index) const {
  return std::ranges::max(column(index));
}

double GatheredScalars::min(size_t index) const {
  return std::ranges::min(column(index));
}

std::vector<double> GatheredScalars::column(size_t index) const {
  const std::span<const double> values = read();
  std::vector<double> column;
  for (size_t at = index; at < values.size(); at += count_) column.push_back(values[at]);
  return column;
}

std::string input_error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::bad_alloc&) {
    throw;  // of which more is to be said than these words
  } catch (const std::exception& failure) {
    if (exit_code_of(failure) != ExitCode::Input) throw;
    return message_of(failure);
  }
  return "";
}

void throw_first(comm::Communicator& world, std::string own) {
  const GatheredScalars lengths(world, std::array{static_cast<double>(own.size())}, "agree");
  int first = 0;
  while (first < world.world() && lengths.at(first, 0) == 0) ++first;
  if (first == world.world()) return;
  Tensor text = Tensor::empty({static_cast<int64_t>(lengths.at(first, 0))}, DType::UInt8);
  const auto bytes = text.values<uint8_t>();
  if (world.rank() == first) std::ranges::copy(own, bytes.begin());
  world.broadcast(text, first, "agree").wait();
  const bool is_of_all = lengths.min(0) > 0;
  const std::string said = (is_of_all ? "" : fmt::format("rank {}: ", first)) + std::string(bytes.begin(), bytes.end());
  throw VerdictError(said, world.rank() == first);
}

void share_from_rank_0(comm::Communicator& world, std::string& bytes, const char* label) {
  Tensor size = Tensor::zeros({1}, DType::Int64);
  size.data<int64_t>()[0] = static_cast<int64_t>(bytes.size());
  world.broadcast(size, 0, label).wait();
  bytes.resize(static_cast<size_t>(size.data<int64_t>()[0]));
  if (bytes.empty()) return;
  Tensor text = Tensor::zeros({static_cast<int64_t>(bytes.size())}, DType::UInt8);
  std::memcpy(text.data<uint8_t>(), bytes.data(), bytes.size());
  world.broadcast(text, 0, label).wait();
  std::memcpy(bytes.data(), text.data<uint8_t>(), bytes.size());
}

void on_rank_0(comm::Communicator& world, const std::function<void()>& act) {
  throw_first(world, world.rank() == 0 ? input_error_of(act) : "");
}

void on_every_rank(comm::Communicator& world, const std::function<void()>& act) {
  throw_first(world, input_error_of(act));
}

namespace {

constexpr std::chrono::seconds kTogether{2};  // ranks that fail alike do so together

/// True where they are; false where they are not and `own` is what this rank has to say. Else throws PeerError, or
/// TerminatedError where a rank is asked to stop before.
bool all_are_here(rendezvous::Barrier& barrier, const std::string& about, std::chrono::milliseconds patience,
                  const std::string& own) try {
  const auto met = barrier.come(own.empty() ? patience : kTogether);
  if (met.called_off && own.empty()) throw TerminatedError("asked to stop: " + about + " was under way");
  const bool all_came = met.missing.empty() && !met.called_off;
  if (all_came || !own.empty()) return all_came;
  throw PeerError(fmt::format("{}: rank {} did not come within {}; see {}, or raise rendezvous.timeout", about,
                              fmt::join(met.missing, ", "), human_duration(patience),
                              met.missing.size() == 1 ? "its log" : "their logs"));
} catch (const PeerError&) {
  if (own.empty()) throw;
  return false;
}

}  // namespace

void on_every_rank(const World& world, const std::string& about, std::chrono::milliseconds patience,
                   const std::function<void(const AskedToStop& asked_to_stop)>& act) {
  rendezvous::Barrier barrier(world.store, about, world.comm.rank(), world.comm.world(), world.asked_to_stop);
  std::string own = input_error_of([&] { act([&] { return barrier.is_called_off(); }); });
  if (world.comm.world() > 1 && !all_are_here(barrier, about, patience, own)) throw InputError(own);
  throw_first(world.comm, std::move(own));
}

}  // namespace trainyard::train
