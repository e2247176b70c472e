#pragma once

#include <map>
#include <string>
#include <vector>

namespace trainyard::local {

/// This machine's GPUs, dealt out to the pods of a run: the least used first. Where pods ask for more than there are,
/// they share.
class Gpus {
 public:
  explicit Gpus(const std::vector<std::string>& all) {
    for (const std::string& gpu : all) pods_on_[gpu] = 0;
  }
  /// It gives `count` of them, and at most all.
  std::vector<std::string> take(size_t count);
  void give_back(const std::vector<std::string>& taken);
  [[nodiscard]] size_t count() const { return pods_on_.size(); }
  [[nodiscard]] bool are_shared() const;

 private:
  std::map<std::string, int> pods_on_;
};

}  // namespace trainyard::local
