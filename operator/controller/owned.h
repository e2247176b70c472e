#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace trainyard::controller {

/// Objects of one kind by the uid of the job that controls them. One thread.
template <typename T>
class Owned {
 public:
  using Pointer = std::shared_ptr<const T>;

  /// Follows one change: either may be null.
  void change(const Pointer& before, const Pointer& after) {
    if (before && before->controller) remove(*before);
    if (after && after->controller) by_owner_[after->controller->uid][after->name] = after;
  }
  /// The objects in the order of their names.
  [[nodiscard]] std::vector<const T*> of(const std::string& owner_uid) const {
    std::vector<const T*> objects;
    const auto found = by_owner_.find(owner_uid);
    if (found == by_owner_.end()) return objects;
    for (const auto& [name, object] : found->second) objects.push_back(object.get());
    return objects;
  }

 private:
  void remove(const T& object) {
    const auto found = by_owner_.find(object.controller->uid);
    if (found == by_owner_.end()) return;
    const auto entry = found->second.find(object.name);
    if (entry != found->second.end() && entry->second->uid == object.uid) found->second.erase(entry);
    if (found->second.empty()) by_owner_.erase(found);
  }

  std::unordered_map<std::string, std::map<std::string, Pointer>> by_owner_;
};

}  // namespace trainyard::controller
