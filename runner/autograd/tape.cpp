#include "autograd/tape.h"

#include <stdexcept>

#include "ops/add.h"

namespace trainyard::autograd {

void Gradient::add(Tensor gradient) {
  if (!gathered_.defined()) {
    gathered_ = std::move(gradient);
  } else if (gathered_.storage().use_count() == 1) {
    ops::add(gathered_, gradient, gathered_);
  } else {  // a residual stream hands one tensor to both its branches: adding in place would change the other's
    Tensor sum = empty_like(gathered_);
    ops::add(gathered_, gradient, sum);
    gathered_ = std::move(sum);
  }
}

void Gradient::add(const Tensor& like, const std::function<void(Tensor& to, bool accumulate)>& write) {
  if (gathered_.defined() && gathered_.storage().use_count() == 1) return write(gathered_, true);
  Tensor gradient = empty_like(like);
  write(gradient, false);
  add(std::move(gradient));
}

void Tape::record(const Variable& y, std::function<void(Tensor)> backward) {
  record([dy = y.gradient(), backward = std::move(backward)] {
    if (Tensor gradient = dy->take(); gradient.defined()) backward(std::move(gradient));
  });
}

void Tape::backward() {
  if (std::exchange(has_gone_back_, true))
    throw std::logic_error(
        "Tape::backward: this tape has gone back already and kept nothing; record the forward pass anew");
  while (!steps_.empty()) {
    const std::function<void()> step = std::move(steps_.back());
    steps_.pop_back();
    step();
  }
}

}  // namespace trainyard::autograd
