#include <algorithm>
#include <numeric>
#include <utility>

#include "tensor/memory.h"

namespace trainyard {
namespace {

thread_local std::shared_ptr<MemoryLedger> t_ledger;
thread_local MemoryKind t_kind = MemoryKind::Other;

}  // namespace

std::string_view name_of(MemoryKind kind) {
  constexpr std::array<std::string_view, kMemoryKinds> kNames{"other",    "parameters",  "gradients", "optimizer",
                                                              "gathered", "activations", "offloaded"};
  return kNames.at(static_cast<size_t>(kind));
}

size_t MemoryUse::total() const {
  return std::accumulate(of.begin(), of.end(), size_t{0});
}

void MemoryLedger::add(size_t bytes, MemoryKind kind) {
  const MutexLock lock(mutex_);
  change(kind, 0, bytes);
  note(kind);
}

void MemoryLedger::remove(size_t bytes, MemoryKind kind) {
  const MutexLock lock(mutex_);
  change(kind, bytes, 0);
}

void MemoryLedger::move(size_t bytes, MemoryKind from, MemoryKind to) {
  const MutexLock lock(mutex_);
  change(from, bytes, 0);
  change(to, 0, bytes);
  note(to);
}

void MemoryLedger::change(MemoryKind kind, size_t less, size_t more) {
  held_[kind] = held_[kind] - less + more;
  if (std::ranges::find(apart_, kind) == apart_.end()) total_ = total_ - less + more;
}

void MemoryLedger::note(MemoryKind kind) {
  most_[kind] = std::max(most_[kind], held_[kind]);
  if (total_ <= peak_) return;
  peak_ = total_;
  at_peak_ = held_;
}

size_t MemoryLedger::held_bytes() const {
  const MutexLock lock(mutex_);
  return total_;
}

size_t MemoryLedger::peak_bytes() const {
  const MutexLock lock(mutex_);
  return peak_;
}

MemoryUse MemoryLedger::held() const {
  const MutexLock lock(mutex_);
  return held_;
}

MemoryUse MemoryLedger::at_peak() const {
  const MutexLock lock(mutex_);
  return at_peak_;
}

MemoryUse MemoryLedger::most() const {
  const MutexLock lock(mutex_);
  return most_;
}

void MemoryLedger::restart_peak() {
  const MutexLock lock(mutex_);
  peak_ = total_;
  at_peak_ = most_ = held_;
}

MemoryScope::MemoryScope(std::shared_ptr<MemoryLedger> ledger) : outer_(std::exchange(t_ledger, std::move(ledger))) {}
MemoryScope::~MemoryScope() {
  t_ledger = std::move(outer_);
}
const std::shared_ptr<MemoryLedger>& current_ledger() {
  return t_ledger;
}

MemoryKindScope::MemoryKindScope(MemoryKind kind) : outer_(std::exchange(t_kind, kind)) {}
MemoryKindScope::~MemoryKindScope() {
  t_kind = outer_;
}
MemoryKind current_memory_kind() {
  return t_kind;
}

}  // namespace trainyard
