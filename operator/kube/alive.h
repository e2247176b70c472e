#pragma once

#include <memory>
#include <utility>

namespace trainyard::kube {

/// A member of what hands out callbacks: those made by `guard` do nothing once it has ended. One thread.
class Alive {
 public:
  template <typename Function>
  [[nodiscard]] auto guard(Function function) const {
    return [token = std::weak_ptr<char>(token_), function = std::move(function)](auto&&... arguments) mutable {
      if (!token.expired()) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// What was handed out before does nothing any more.
  void renew() { token_ = std::make_shared<char>(); }

 private:
  std::shared_ptr<char> token_ = std::make_shared<char>();
};

}  // namespace trainyard::kube
