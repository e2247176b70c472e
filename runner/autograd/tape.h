#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/float8_input.h"
#include "tensor/chunk.h"
#include "tensor/tensor.h"

namespace trainyard::autograd {

class Tape;

/// Where the gradient of one value gathers on the way back. What a step of the tape keeps of a value that it does not
/// need again is this and not the value, so the value's memory goes as soon as nobody needs it.
class Gradient {
 public:
  /// Adds `gradient` (shape and dtype of the value). Takes the tensor over where it is the first.
  void add(Tensor gradient);
  /// The same with what `write(to, accumulate)` makes, of the shape, dtype and device of `like`: it adds to what has
  /// gathered where nobody else holds that, and writes new memory where it is not to accumulate.
  void add(const Tensor& like, const std::function<void(Tensor& to, bool accumulate)>& write);
  /// What has gathered, given away; undefined where nothing came: then nothing downstream depends on the value.
  [[nodiscard]] Tensor take() { return std::exchange(gathered_, {}); }

 private:
  Tensor gathered_;
};

/// Rows of a value that are still on their way from other ranks (tensor_parallel/async.h). The first product that takes
/// the value computes with those that are there, beside the exchange of the next.
class Arrival {
 public:
  virtual ~Arrival() = default;
  /// True once: for the first product that takes the value, if no other operation has waited for it.
  [[nodiscard]] virtual bool claim() = 0;
  /// Waits for the next rows and gives them; none: all are there.
  virtual std::optional<Rows> next() = 0;
  /// On the way back: what a product adds to the value's gradient comes by `add_rows`, some rows at a time, and is sent
  /// at once; `afterwards` is computed beside that. For the product
  /// that has claimed the value, and so is the last on the way back.
  virtual void give_back(std::function<void(Tensor& to, Rows rows, bool accumulate)> add_rows,
                         std::function<void()> afterwards) = 0;
};

/// A value on its way through the model. Copies share all that it has. Without a tape nothing is recorded.
class Variable {
 public:
  Variable() = default;
  explicit Variable(Tensor value, Tape* tape = nullptr)
      : Variable(std::move(value), tape, tape ? std::make_shared<Gradient>() : nullptr) {}
  /// A variable on `tape`, with the gradient of the same value on another: what is recorded again adds to it where it
  /// first would.
  Variable(Tensor value, Tape* tape, std::shared_ptr<Gradient> gradient)
      : value_(std::move(value)),
        tape_(tape),
        gradient_(std::move(gradient)),
        float8_input_(tape ? std::make_shared<Float8Input>() : nullptr) {}

  /// Waits for what is not there yet.
  [[nodiscard]] const Tensor& value() const {
    if (arrival_)
      while (arrival_->next()) {
      }
    return value_;
  }
  [[nodiscard]] Tape* tape() const { return tape_; }
  /// The value as its rows arrive: the same memory, of which only what `arrival` has given may be read. Null: it is
  /// there.
  [[nodiscard]] const Tensor& arriving() const { return value_; }
  [[nodiscard]] const std::shared_ptr<Arrival>& arrival() const { return arrival_; }
  /// The same variable, of which `value`, its memory or the first rows of it, is still to come.
  [[nodiscard]] Variable arriving_by(std::shared_ptr<Arrival> arrival) const {
    Variable same = *this;
    same.arrival_ = std::move(arrival);
    return same;
  }
  [[nodiscard]] const std::shared_ptr<Gradient>& gradient() const { return gradient_; }  ///< null without a tape
  [[nodiscard]] Float8Input* float8_input() const { return float8_input_.get(); }        ///< null without a tape

 private:
  Tensor value_;
  Tape* tape_ = nullptr;
  std::shared_ptr<Gradient> gradient_;
  std::shared_ptr<Float8Input> float8_input_;
  std::shared_ptr<Arrival> arrival_;
};

/// What a forward pass did, in order; backward() undoes it from the end. A list and no graph: the order of a
/// transformer's forward is a valid order for its backward, and a fixed order makes runs repeat bit for bit and gives
/// the sharding engine its places between blocks.
/// Each step is dropped when done, and with it what it kept for backward. One thread. Outlives the variables on it.
class Tape {
 public:
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// A step that runs whatever happens, as hooks do.
  void record(std::function<void()> backward) { steps_.push_back(std::move(backward)); }
  /// A step that hands on the gradient of `y`. Left out where none has come: the loss does not depend on y.
  void record(const Variable& y, std::function<void(Tensor)> backward);
  /// Runs what was recorded, last first, and leaves the tape empty. Once: what it kept is gone then, so another call
  /// throws std::logic_error.
  void backward();

 private:
  std::vector<std::function<void()>> steps_;
  bool has_gone_back_ = false;
};

}  // namespace trainyard::autograd
