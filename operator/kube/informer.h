#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "kube/reflector.h"
#include "kube/store.h"

namespace trainyard::kube {

/// The present objects of a selection, kept up to date from the API server, and told of: see Store for what the handler
/// is promised. Only T stays in memory. One thread: the loop's. A reply to an own write is to be learned before
/// anything is decided from here again.
template <typename T>
class Informer {
 public:
  using Pointer = typename Store<T>::Pointer;
  using Parse = typename Store<T>::Parse;
  using Handler = typename Store<T>::Handler;

  /// Nothing is asked for before start().
  Informer(Client& client, Selection selection, Parse parse, Handler handler)
      : store_(std::move(parse), std::move(handler)), reflector_(client, std::move(selection), store_) {}

  void start() { reflector_.start(); }
  /// Lists anew; what is held stays until then.
  void refresh() { reflector_.restart(); }
  /// Every failure of its requests, so that somebody says it (once).
  void set_on_trouble(Reflector::OnTrouble on_trouble) { reflector_.set_on_trouble(std::move(on_trouble)); }
  /// It is called after each complete list, the first included.
  void set_on_listed(std::function<void()> on_listed) { reflector_.set_on_listed(std::move(on_listed)); }

  /// The first list has been taken.
  [[nodiscard]] bool is_synced() const { return store_.is_synced(); }
  /// What is held is no older than the last start() or refresh().
  [[nodiscard]] bool is_current() const { return reflector_.has_listed(); }
  /// Null where there is none.
  [[nodiscard]] Pointer find(std::string_view ns, std::string_view name) const { return store_.find(ns, name); }
  template <typename Function>
  void for_each(Function&& function) const {
    store_.for_each(std::forward<Function>(function));
  }
  [[nodiscard]] size_t size() const { return store_.size(); }

  /// The object of the reply to our own create, patch or graceful delete.
  void learn(const Json& object) { store_.learn(object); }
  /// It is called after a delete whose reply says that the object is gone: is_gone() of kube/reply.h.
  void forget(std::string_view ns, std::string_view name, const std::string& uid) {
    store_.forget(ns, name, uid, EventLoop::now());
  }

 private:
  Store<T> store_;
  Reflector reflector_;
};

}  // namespace trainyard::kube
