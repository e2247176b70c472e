#include "ops/determinism.h"

#include <utility>

namespace trainyard::ops {
namespace {

thread_local bool t_is_deterministic = true;

}  // namespace

DeterminismScope::DeterminismScope(bool is_deterministic)
    : outer_(std::exchange(t_is_deterministic, is_deterministic)) {}
DeterminismScope::~DeterminismScope() {
  t_is_deterministic = outer_;
}

bool is_deterministic() {
  return t_is_deterministic;
}

}  // namespace trainyard::ops
