#include "train/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

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

std::string input_error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& failure) {
    return failure.what();
  }
  return "";
}

void throw_first(comm::Communicator& world, std::string own) {
  const Answers lengths(world, std::array{static_cast<double>(own.size())}, "agree");
  int first = 0;
  while (first < world.world() && lengths.at(first, 0) == 0) ++first;
  if (first == world.world()) return;
  Tensor text = Tensor::empty({static_cast<int64_t>(lengths.at(first, 0))}, DType::UInt8);
  const auto bytes = text.values<uint8_t>();
  if (world.rank() == first) std::ranges::copy(own, bytes.begin());
  world.broadcast(text, first, "agree").wait();
  const bool is_of_all = lengths.min(0) > 0;
  const std::string said = (is_of_all ? "" : fmt::format("rank {}: ", first)) + std::string(bytes.begin(), bytes.end());
  if (world.rank() == first) throw InputError(said);
  throw SaidByAnother(said);
}

void on_rank_0(comm::Communicator& world, const std::function<void()>& act) {
  throw_first(world, world.rank() == 0 ? input_error_of(act) : "");
}

void on_every_rank(comm::Communicator& world, const std::function<void()>& act) {
  throw_first(world, input_error_of(act));
}

}  // namespace trainyard::train
