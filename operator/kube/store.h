#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/object_id.h"
#include "kube/watch.h"

namespace trainyard::kube {

/// What lists and watches are told to, in the order in which the server says it.
class WatchTarget {
 public:
  using Now = std::chrono::steady_clock::time_point;
  /// Stale: the list is older than what was seen before, and not wanted. Restored: it is, but the server insists: its
  /// store was set back, and what is held is no measure any more.
  enum class ListAge { Current, Stale };
  enum class IfStale { Refuse, Believe };

  virtual ~WatchTarget() = default;
  /// An item of a page that is being read. Nothing comes of it before take_page().
  virtual void stage(const Json& object) = 0;
  /// It is called before the first page is taken.
  virtual ListAge begin_list(uint64_t version, IfStale if_stale) = 0;
  virtual void take_page() = 0;
  virtual void drop_page() = 0;
  /// What the list did not have is gone.
  virtual void end_list() = 0;
  virtual void apply(const WatchEvent& event, Now now) = 0;
  /// Where a watch goes on.
  [[nodiscard]] virtual uint64_t version() const = 0;
};

/// The present state of a kind's objects as T, put together of lists, watch events and the replies to our own writes,
/// which overtake each other: an object's state only ever goes forward. The handler is told of each change once, after
/// it has been made: (null, new), (old, new) or (old, null); a name that passes to another object is the last and then
/// the first of these. A reply that comes after the watch has told of the same state is told of again. T has the
/// members `uid`, `ns` and `name`; `parse` does not throw. Pure.
template <typename T>
class Store final : public WatchTarget {
 public:
  using Pointer = std::shared_ptr<const T>;
  using Parse = std::function<T(const Json&)>;
  using Handler = std::function<void(const Pointer& old_object, const Pointer& new_object)>;

  /// A watch is behind a reply by less than this; and no more tombstones than this are kept.
  static constexpr std::chrono::seconds kTombstoneAge{60};
  static constexpr size_t kTombstones = 20'000;

  Store(Parse parse, Handler handler) : parse_(std::move(parse)), handler_(std::move(handler)) {}

  [[nodiscard]] Pointer find(std::string_view ns, std::string_view name) const {
    const auto found = entries_.find(key_of(ns, name));
    return found == entries_.end() ? nullptr : found->second.object;
  }
  template <typename Function>
  void for_each(Function&& function) const {
    for (const auto& [key, entry] : entries_) function(entry.object);
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] bool is_synced() const { return is_synced_; }
  [[nodiscard]] uint64_t version() const override { return version_; }

  /// The object as the reply to our own write has it, also where the watch was faster: one that began before the
  /// object's definition was changed leaves out what the old definition did not have.
  void learn(const Json& object) {
    const ObjectId id = id_of(object);
    if (id.version == 0) return;
    const auto found = entries_.find(id.key);
    // The watch is past it and the object is not there: it has been deleted since.
    if (is_synced_ && id.version <= version_ && found == entries_.end()) return;
    auto learned = std::make_shared<const T>(parse_(object));
    const bool is_held = found != entries_.end() && found->second.object->uid == id.uid;
    if (!is_held || found->second.version != id.version) return put(id, std::move(learned));
    found->second.is_doubtful = false;
    const Pointer old_object = std::exchange(found->second.object, learned);
    handler_(old_object, learned);
  }

  /// The object is gone, as the reply to our own delete has it. Earlier states that are still on their way don't
  /// bring it back.
  void forget(std::string_view ns, std::string_view name, const std::string& uid, Now now) {
    const auto found = entries_.find(key_of(ns, name));
    const bool is_held = found != entries_.end() && found->second.object->uid == uid;
    bury(uid, is_held ? found->first : "", is_held ? found->second.version : 0, now);
    if (is_held) remove(found);
  }

  void stage(const Json& object) override {
    staged_.emplace_back(id_of(object), std::make_shared<const T>(parse_(object)));
  }

  ListAge begin_list(uint64_t version, IfStale if_stale) override {
    if (version < version_) {
      if (if_stale == IfStale::Refuse) return ListAge::Stale;
      for (auto& [key, entry] : entries_) entry.is_doubtful = true;
      graves_.clear();
      floors_.clear();
      burials_.clear();
    }
    ++list_;
    list_version_ = version;
    return ListAge::Current;
  }

  void take_page() override {
    for (auto& [id, object] : std::exchange(staged_, {})) {
      put(id, std::move(object));
      const auto found = entries_.find(id.key);
      if (found != entries_.end() && found->second.object->uid == id.uid) found->second.list = list_;
    }
  }

  void drop_page() override { staged_.clear(); }

  void end_list() override {
    std::vector<std::string> vanished;
    for (const auto& [key, entry] : entries_)
      if (has_vanished(entry)) vanished.push_back(key);
    version_ = list_version_;
    is_synced_ = true;
    for (const std::string& key : vanished)  // asked again: a handler may have learned something
      if (const auto found = entries_.find(key); found != entries_.end() && has_vanished(found->second)) remove(found);
  }

  void apply(const WatchEvent& event, Now now) override {
    if (event.type == WatchEvent::Type::Error) return;
    const ObjectId id = id_of(event.object);
    if (id.version <= version_) return;  // again what has been seen
    version_ = id.version;
    if (event.type == WatchEvent::Type::Deleted) {
      apply_deletion(id);
    } else if (event.type != WatchEvent::Type::Bookmark) {
      put(id, std::make_shared<const T>(parse_(event.object)));
    }
    open_old_graves(now);
  }

 private:
  struct Entry {
    Pointer object;
    uint64_t version = 0;
    uint64_t list = 0;         ///< the last list that had it
    bool is_doubtful = false;  ///< from before the server's store was set back
  };
  struct Grave {
    ObjectId id;
    Pointer object;  ///< the newest state that came after all; null: none
  };
  struct Burial {
    Now time;
    std::string uid, key;  ///< no key where it was not held
  };
  using Entries = std::unordered_map<std::string, Entry>;

  [[nodiscard]] bool has_vanished(const Entry& entry) const {
    return entry.list != list_ && (entry.is_doubtful || entry.version <= list_version_);
  }

  void put(const ObjectId& id, Pointer object) {
    if (const auto grave = graves_.find(id.uid); grave != graves_.end()) {
      if (id.version > grave->second.id.version) grave->second = {id, std::move(object)};
      return;
    }
    const auto found = entries_.find(id.key);
    if (found == entries_.end()) {
      if (const auto floor = floors_.find(id.key); floor != floors_.end() && id.version <= floor->second) return;
    } else {
      Entry& entry = found->second;
      const bool is_news = entry.is_doubtful ? id.version != entry.version : id.version > entry.version;
      entry.is_doubtful = false;
      if (!is_news) return;
      if (entry.object->uid != id.uid) {
        remove(found);
      } else {
        entry.version = id.version;
        const Pointer old_object = std::exchange(entry.object, object);
        return handler_(old_object, object);
      }
    }
    entries_.insert_or_assign(id.key, Entry{object, id.version});
    handler_(nullptr, object);
  }

  void apply_deletion(const ObjectId& id) {
    graves_.erase(id.uid);
    const auto found = entries_.find(id.key);
    if (found != entries_.end() && found->second.object->uid == id.uid) remove(found);
  }

  void remove(typename Entries::iterator entry) {
    const Pointer old_object = std::move(entry->second.object);
    entries_.erase(entry);
    handler_(old_object, nullptr);
  }

  void bury(const std::string& uid, const std::string& key, uint64_t version, Now now) {
    if (!graves_.try_emplace(uid).second) return;
    burials_.push_back({now, uid, key});
    if (!key.empty()) floors_[key] = version;
    if (burials_.size() > kTombstones) open_oldest_grave();
  }

  /// What has not been said to be deleted for so long, with the watch going on, is alive.
  void open_old_graves(Now now) {
    while (!burials_.empty() && now - burials_.front().time >= kTombstoneAge) open_oldest_grave();
  }

  void open_oldest_grave() {
    const auto grave = graves_.extract(burials_.front().uid);
    if (!burials_.front().key.empty()) floors_.erase(burials_.front().key);
    burials_.pop_front();
    if (grave && grave.mapped().object) put(grave.mapped().id, grave.mapped().object);
  }

  Parse parse_;
  Handler handler_;
  Entries entries_;
  uint64_t version_ = 0, list_ = 0, list_version_ = 0;
  bool is_synced_ = false;
  std::vector<std::pair<ObjectId, Pointer>> staged_;
  std::unordered_map<std::string, Grave> graves_;  ///< by uid
  /// The version of what was forgotten, by its key: older states are of objects that had the name before.
  std::unordered_map<std::string, uint64_t> floors_;
  std::deque<Burial> burials_;
};

}  // namespace trainyard::kube
