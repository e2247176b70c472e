#include "train/exchange.h"

#include <algorithm>

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

}  // namespace trainyard::train
