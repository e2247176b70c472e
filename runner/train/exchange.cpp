#include "train/exchange.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace trainyard::train {

Answers::Answers(comm::Communicator& world, std::span<const double> own, const char* label) : count_(own.size()) {
  const auto count = static_cast<int64_t>(own.size());
  const Tensor mine = Tensor::from<double>(own, {count});
  Tensor all = Tensor::empty({world.world() * count}, DType::Float64);
  world.all_gather(mine, all, label).wait();
  const auto values = all.values<double>();
  values_.assign(values.begin(), values.end());
}

double Answers::sum(size_t index) const {
  double sum = 0;
  for (size_t at = index; at < values_.size(); at += count_) sum += values_[at];
  return sum;
}

double Answers::max(size_t index) const {
  double largest = values_[index];
  for (size_t at = index; at < values_.size(); at += count_) largest = std::max(largest, values_[at]);
  return largest;
}

double Answers::min(size_t index) const {
  double least = values_[index];
  for (size_t at = index; at < values_.size(); at += count_) least = std::min(least, values_[at]);
  return least;
}

std::vector<double> Answers::column(size_t index) const {
  std::vector<double> column;
  for (size_t at = index; at < values_.size(); at += count_) column.push_back(values_[at]);
  return column;
}

void on_rank_0(comm::Communicator& world, const std::function<void()>& act) {
  std::string error;
  if (world.rank() == 0) try {
      act();
    } catch (const InputError& failure) {
      error = failure.what();
    }
  Tensor length = Tensor::from<int64_t>(std::array{static_cast<int64_t>(error.size())}, {1});
  world.broadcast(length, 0, "agree").wait();
  error.resize(static_cast<size_t>(length.values<int64_t>()[0]));
  if (error.empty()) return;
  Tensor text = Tensor::empty({static_cast<int64_t>(error.size())}, DType::UInt8);
  const auto bytes = text.values<uint8_t>();
  if (world.rank() == 0) std::ranges::copy(error, bytes.begin());
  world.broadcast(text, 0, "agree").wait();
  throw InputError(std::string(bytes.begin(), bytes.end()));
}

}  // namespace trainyard::train
