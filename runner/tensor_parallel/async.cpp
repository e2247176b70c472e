#include "tensor_parallel/async.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/functions.h"
#include "autograd/recompute.h"
#include "ops/matmul.h"
#include "ops/scale.h"
#include "tensor_parallel/functions.h"

namespace trainyard::tensor_parallel {
namespace {

/// The parts of a piece that are sums of their own: few, so that products stay large.
std::vector<Rows> parts_of(int64_t tokens) {
  constexpr int64_t kMost = 4, kLeastTokens = 32;
  const int64_t each = std::max((tokens + kMost - 1) / kMost, kLeastTokens);
  std::vector<Rows> parts;
  for (int64_t begin = 0; begin < tokens; begin += each) parts.push_back({begin, std::min(each, tokens - begin)});
  return parts;
}

/// Pieces of all ranks on their way around the ring: this rank's own is there first, then those of the ranks before it.
class Ring {
 public:
  Ring(comm::Communicator& ranks, const Tensor& piece, std::string label)
      : ranks_(ranks),
        label_(std::move(label)),
        tokens_(piece.size(0)),
        whole_(Tensor::empty({ranks.world() * tokens_, piece.size(1)}, piece.dtype(), piece.device())) {
    Tensor own = of_step(0);
    copy(piece, own);
    send(0);
  }

  [[nodiscard]] const Tensor& whole() const { return whole_; }
  [[nodiscard]] bool is_new() const { return step_ == 0; }

  std::optional<Rows> next() {
    if (step_ == ranks_.world()) return std::nullopt;
    if (step_ > 0) {
      arriving_.wait();
      send(step_);
    }
    return rows_of_step(step_++);
  }

 private:
  [[nodiscard]] Rows rows_of_step(int step) const {
    return {(ranks_.rank() - step + ranks_.world()) % ranks_.world() * tokens_, tokens_};
  }
  [[nodiscard]] Tensor of_step(int step) const {
    const Rows rows = rows_of_step(step);
    return whole_.rows(rows.begin, rows.count);
  }
  /// What has come in this step goes on, and what is next comes.
  void send(int step) {
    if (step + 1 == ranks_.world()) return;
    Tensor next = of_step(step + 1);
    arriving_ = ranks_.shift(of_step(step), next, label_);
  }

  comm::Communicator& ranks_;
  std::string label_;
  int64_t tokens_;
  Tensor whole_;
  int step_ = 0;
  comm::Work arriving_;
};

/// A reduce-scatter of tokens that is under way in parts.
class Scatter {
 public:
  Scatter(comm::Communicator& ranks, int64_t tokens, const Tensor& like, int64_t width, std::string label)
      : ranks_(ranks),
        label_(std::move(label)),
        piece_(Tensor::empty({tokens_of_piece(ranks, tokens), width}, like.dtype(), like.device())) {}
  /// The scatter of something shaped as `whole`, which is the way back of a gather.
  Scatter(comm::Communicator& ranks, const Tensor& whole, std::string label)
      : Scatter(ranks, whole.size(0), whole, whole.size(1), std::move(label)) {}

  /// Calls write(to, rows) for rows of all ranks' pieces, and sends them part by part.
  template <typename Write>
  void send(const Write& write) {
    for (const Rows part : parts_of(piece_.size(0))) {
      Tensor all = Tensor::empty({ranks_.world() * part.count, piece_.size(1)}, piece_.dtype(), piece_.device());
      for (int rank = 0; rank < ranks_.world(); ++rank) {
        Tensor to = all.rows(rank * part.count, part.count);
        write(to, Rows{rank * piece_.size(0) + part.begin, part.count});
      }
      Tensor own = piece_.rows(part.begin, part.count);
      leaving_.push_back(ranks_.reduce_scatter(all, own, label_));
      sent_.push_back(std::move(all));
    }
  }
  Tensor wait() {
    for (const comm::Work& each : leaving_) each.wait();
    sent_.clear();
    return piece_;
  }

 private:
  comm::Communicator& ranks_;
  std::string label_;
  Tensor piece_;
  std::vector<comm::Work> leaving_;
  std::vector<Tensor> sent_;
};

class ArrivingTokens final : public autograd::Arrival {
 public:
  ArrivingTokens(comm::Communicator& ranks, const Variable& piece, const std::string& label)
      : ranks_(ranks), label_(label), ring_(ranks, piece.value(), label), dpiece_(piece.gradient()) {}

  [[nodiscard]] Variable variable(autograd::Tape* tape) {
    const Variable whole(ring_.whole(), tape);
    dwhole_ = whole.gradient();
    return whole;
  }
  [[nodiscard]] bool claim() override { return ring_.is_new() && !std::exchange(is_claimed_, true); }
  std::optional<Rows> next() override { return ring_.next(); }

  void give_back(std::function<void(Tensor& to, Rows rows, bool accumulate)> add_rows,
                 std::function<void()> afterwards) override {
    const Tensor others = dwhole_->take();  // what other products have added
    Scatter scatter(ranks_, ring_.whole(), label_);
    scatter.send([&](Tensor& to, Rows rows) {
      if (others.defined()) copy(others.rows(rows.begin, rows.count), to);
      add_rows(to, rows, others.defined());
    });
    afterwards();
    dpiece_->add(scatter.wait());
  }

 private:
  comm::Communicator& ranks_;
  std::string label_;
  Ring ring_;
  std::shared_ptr<autograd::Gradient> dpiece_, dwhole_;
  bool is_claimed_ = false;
};

}  // namespace

Variable gather_tokens_by_ring(comm::Communicator& ranks, const Variable& piece, const std::string& label) {
  const auto arrival = std::make_shared<ArrivingTokens>(ranks, piece, label);
  const Variable whole = arrival->variable(piece.tape());
  if (piece.tape())  // of a gradient that nothing has given back
    piece.tape()->record(whole, [&ranks, label, dpiece = piece.gradient()](const Tensor& gradient) {
      Scatter scatter(ranks, gradient, label);
      scatter.send([&](Tensor& to, Rows rows) { copy(gradient.rows(rows.begin, rows.count), to); });
      dpiece->add(scatter.wait());
    });
  return whole.arriving_by(arrival);
}

Variable product_scattered_in_parts(comm::Communicator& ranks, const Variable& input, autograd::Parameter& weight,
                                    const std::string& label) {
  if (weight.float8()) return scatter_token_sums(ranks, autograd::linear(input, weight), label);
  const Variable x = autograd::cast(input, weight.compute_dtype());
  const Tensor& value = x.value();
  const int64_t tokens = value.size(0);
  const auto outputs = autograd::kept([&] {
    Scatter scatter(ranks, tokens, value, weight.shape()[0], label);
    scatter.send([&](Tensor& to, Rows rows) {
      const int64_t count = std::clamp<int64_t>(tokens - rows.begin, 0, rows.count);
      Tensor filled = to.rows(0, count), padding = to.rows(count, rows.count - count);
      if (count > 0) ops::matmul(value.rows(rows.begin, count), weight.value(), filled, {.b = ops::Transpose::Yes});
      if (count < rows.count) ops::set_zero(padding);
    });
    return std::vector{scatter.wait()};
  });
  const Variable y(outputs[0], x.tape());
  if (x.tape())
    x.tape()->record(y, [&ranks, &weight, label, value, tokens, dx = x.gradient()](const Tensor& gradient) {
      Ring ring(ranks, gradient, label);
      Tensor to = empty_like(value);
      while (const auto rows = ring.next()) {
        const int64_t count = std::clamp<int64_t>(tokens - rows->begin, 0, rows->count);
        if (count == 0) continue;
        Tensor place = to.rows(rows->begin, count);
        ops::matmul(ring.whole().rows(rows->begin, count), weight.value(), place);
      }
      dx->add(std::move(to));
      if (weight.is_frozen()) return;
      const autograd::Parameter::GradientSum dw = weight.gradient_sum();
      ops::matmul(ring.whole().rows(0, tokens), value, dw.sum, {.a = ops::Transpose::Yes, .accumulate = dw.accumulate});
    });
  return y;
}

}  // namespace trainyard::tensor_parallel
