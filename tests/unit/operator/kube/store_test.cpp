#include "kube/store.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

struct Thing {
  std::string ns, name, uid;
  uint64_t version = 0;
  std::string status;
};

Thing parse_thing(const Json& object) {
  const ObjectId id = id_of(object);
  return {text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"), id.uid, id.version,
          text_at(object, "/status")};
}

Json object_of(const std::string& name, const std::string& uid, uint64_t version) {
  return {
      {"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
}

/// A store whose handler writes down what it is told, as "+a:u1@5", "~a:u1@5>6", "-a:u1@6".
struct Recorded {
  std::vector<std::string> said;
  Store<Thing> store{
      parse_thing, [this](const auto& old_thing, const auto& new_thing) {
        const Thing& thing = new_thing ? *new_thing : *old_thing;
        std::string line = (!old_thing ? "+" : new_thing ? "~" : "-") + thing.name + ":" + thing.uid + "@";
        if (old_thing && new_thing) line += std::to_string(old_thing->version) + ">";
        said.push_back(line + std::to_string(thing.version));
      }};
  std::chrono::steady_clock::time_point now{};

  void list(uint64_t version, const std::vector<Json>& objects) {
    for (const Json& object : objects) store.stage(object);
    REQUIRE(store.begin_list(version, WatchTarget::IfStale::Refuse) == WatchTarget::ListAge::Current);
    store.take_page();
    store.end_list();
  }
  void event(WatchEvent::Type type, const Json& object) { store.apply({type, object}, now); }
  std::vector<std::string> take() { return std::exchange(said, {}); }
};

using Said = std::vector<std::string>;
using Type = WatchEvent::Type;

TEST_CASE("each change is told once, with the state before it", "[kube]") {
  Recorded it;
  CHECK_FALSE(it.store.is_synced());
  it.list(10, {object_of("a", "u1", 5), object_of("b", "u2", 7)});
  CHECK(it.store.is_synced());
  CHECK(it.take() == Said{"+a:u1@5", "+b:u2@7"});
  it.event(Type::Modified, object_of("a", "u1", 11));
  it.event(Type::Modified, object_of("a", "u1", 11));
  it.event(Type::Deleted, object_of("b", "u2", 12));
  it.event(Type::Added, object_of("b", "u3", 13));
  CHECK(it.take() == Said{"~a:u1@5>11", "-b:u2@7", "+b:u3@13"});
  CHECK(it.store.find("ns", "b")->uid == "u3");
  CHECK(it.store.find("ns", "c") == nullptr);
}

TEST_CASE("events that come again, and events of before a deletion, change nothing", "[kube]") {
  Recorded it;
  it.list(10, {});
  it.event(Type::Added, object_of("a", "u1", 11));
  it.event(Type::Deleted, object_of("a", "u1", 12));
  it.take();
  it.event(Type::Added, object_of("a", "u1", 11));
  it.event(Type::Deleted, object_of("a", "u1", 12));
  CHECK(it.take().empty());
  CHECK(it.store.version() == 12);
}

TEST_CASE("a list after a gap tells of what vanished, changed and came", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5), object_of("b", "u2", 6), object_of("c", "u3", 7), object_of("d", "u4", 8)});
  it.take();
  it.list(20, {object_of("a", "u1", 5), object_of("b", "u2", 15), object_of("c", "u5", 16), object_of("e", "u6", 17)});
  CHECK(it.take() == Said{"~b:u2@6>15", "-c:u3@7", "+c:u5@16", "+e:u6@17", "-d:u4@8"});
}

TEST_CASE("a list that was broken off leaves no trace", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.take();
  it.store.stage(object_of("b", "u2", 12));
  it.store.begin_list(15, WatchTarget::IfStale::Refuse);
  it.store.drop_page();
  it.list(20, {object_of("a", "u1", 5)});
  CHECK(it.take().empty());
}

TEST_CASE("our own write is there at once, and its event is no second change", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.take();
  it.store.learn(object_of("a", "u1", 14));
  it.store.learn(object_of("b", "u2", 15));
  CHECK(it.take() == Said{"~a:u1@5>14", "+b:u2@15"});
  it.event(Type::Modified, object_of("a", "u1", 12));  // somebody else's, before ours
  it.list(13, {object_of("a", "u1", 12)});             // a list from between does not take it away either
  it.event(Type::Modified, object_of("a", "u1", 14));
  it.event(Type::Added, object_of("b", "u2", 15));
  CHECK(it.take().empty());
}

TEST_CASE("the reply to our own write is believed over a watch that leaves something out of the same state", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.event(Type::Modified, object_of("a", "u1", 14));
  it.take();
  Json whole = object_of("a", "u1", 14);
  whole["status"] = "as it was written";
  it.store.learn(whole);
  CHECK(it.take() == Said{"~a:u1@14>14"});
  it.event(Type::Modified, object_of("a", "u1", 14));
  CHECK(it.store.find("ns", "a")->status == "as it was written");
  it.store.learn(object_of("a", "u0", 14));  // of an object that had the name before
  CHECK(it.store.find("ns", "a")->uid == "u1");
  CHECK(it.take().empty());
}

TEST_CASE("a reply that comes after the watch has seen the object deleted does not bring it back", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.event(Type::Deleted, object_of("a", "u1", 12));
  it.take();
  it.store.learn(object_of("a", "u1", 11));
  CHECK(it.take().empty());
}

TEST_CASE("what we deleted is not brought back by events that are still on their way", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.store.forget("ns", "a", "u1", it.now);
  CHECK(it.take() == Said{"+a:u1@5", "-a:u1@5"});
  it.event(Type::Modified, object_of("a", "u1", 11));
  it.store.learn(object_of("a", "u1", 12));
  CHECK(it.take().empty());
  it.store.learn(object_of("a", "u2", 15));  // its successor is another object
  CHECK(it.take() == Said{"+a:u2@15"});
  it.event(Type::Deleted, object_of("a", "u1", 13));
  CHECK(it.take().empty());
}

TEST_CASE("events of an earlier object of the same name do not come through after two of ours", "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.store.learn(object_of("a", "u2", 15));  // somebody deleted the first one at 14
  it.store.forget("ns", "a", "u2", it.now);
  CHECK(it.take() == Said{"+a:u1@5", "-a:u1@5", "+a:u2@15", "-a:u2@15"});
  it.event(Type::Modified, object_of("a", "u1", 13));
  it.event(Type::Deleted, object_of("a", "u1", 14));
  it.event(Type::Added, object_of("a", "u2", 15));
  it.event(Type::Deleted, object_of("a", "u2", 16));
  it.event(Type::Added, object_of("a", "u3", 17));
  CHECK(it.take() == Said{"+a:u3@17"});
}

TEST_CASE("an object that was forgotten by mistake comes back once the watch has gone on without its deletion",
          "[kube]") {
  Recorded it;
  it.list(10, {object_of("a", "u1", 5)});
  it.store.forget("ns", "a", "u1", it.now);
  it.event(Type::Modified, object_of("a", "u1", 11));
  it.take();
  it.now += 30s;
  it.event(Type::Bookmark, object_of("", "", 20));
  CHECK(it.take().empty());
  it.now += 31s;
  it.event(Type::Bookmark, object_of("", "", 30));
  CHECK(it.take() == Said{"+a:u1@11"});
}

TEST_CASE("tombstones are bounded", "[kube]") {
  Recorded it;
  it.list(10, {});
  for (size_t number = 0; number <= Store<Thing>::kTombstones; ++number)
    it.store.forget("ns", "a", "u" + std::to_string(number), it.now);
  it.event(Type::Added, object_of("a", "u0", 11));
  CHECK(it.take() == Said{"+a:u0@11"});
}

TEST_CASE("a list older than what was seen is refused, until the server's store is taken to be set back", "[kube]") {
  Recorded it;
  it.list(100, {object_of("a", "u1", 90), object_of("b", "u2", 95), object_of("c", "u3", 20)});
  it.take();
  CHECK(it.store.begin_list(50, WatchTarget::IfStale::Refuse) == WatchTarget::ListAge::Stale);
  it.store.stage(object_of("a", "u1", 40));
  it.store.stage(object_of("c", "u3", 20));
  CHECK(it.store.begin_list(50, WatchTarget::IfStale::Believe) == WatchTarget::ListAge::Current);
  it.store.take_page();
  it.store.end_list();
  CHECK(it.take() == Said{"~a:u1@90>40", "-b:u2@95"});
  CHECK(it.store.version() == 50);
  it.event(Type::Modified, object_of("a", "u1", 51));
  CHECK(it.take() == Said{"~a:u1@40>51"});
}

/// What a server has gone through: every state of every object, by version.
class History {
 public:
  explicit History(std::mt19937& random) : random_(random) {}

  struct Change {
    Type type;
    Json object;
    uint64_t version;
  };

  const Change& step() {
    const std::string name(1, static_cast<char>('a' + random_() % 4));
    const auto found = live_.find(name);
    ++version_;
    if (found == live_.end()) {
      live_[name] = object_of(name, "u" + std::to_string(version_), version_);
      changes_.push_back({Type::Added, live_[name], version_});
    } else {
      found->second["metadata"]["resourceVersion"] = std::to_string(version_);
      const bool deletes = random_() % 3 == 0;
      changes_.push_back({deletes ? Type::Deleted : Type::Modified, found->second, version_});
      if (deletes) live_.erase(found);
    }
    past_.push_back(live_);
    return changes_.back();
  }
  [[nodiscard]] uint64_t version() const { return version_; }
  [[nodiscard]] const Change& change(uint64_t version) const { return changes_.at(version - 1); }
  [[nodiscard]] const std::map<std::string, Json>& state(uint64_t version) const { return past_.at(version); }

 private:
  std::mt19937& random_;
  uint64_t version_ = 0;
  std::map<std::string, Json> live_;
  std::vector<Change> changes_;
  std::vector<std::map<std::string, Json>> past_{{}};
};

/// Fails on what a handler must never be told.
struct Judge {
  std::map<std::string, uint64_t> held;       // by "name:uid"
  std::map<std::string, std::string> holder;  // by name
  std::vector<std::string> complaints;

  void hear(const Store<Thing>::Pointer& old_thing, const Store<Thing>::Pointer& new_thing) {
    const Thing& thing = new_thing ? *new_thing : *old_thing;
    const std::string id = thing.name + ":" + thing.uid;
    const bool was_held = held.contains(id);
    if (was_held != (old_thing != nullptr)) complaints.push_back(id + ": wrong state before");
    if (old_thing && held[id] != old_thing->version) complaints.push_back(id + ": another version before");
    if (old_thing && new_thing && new_thing->version < old_thing->version) complaints.push_back(id + ": went back");
    if (!old_thing && holder.contains(thing.name)) complaints.push_back(id + ": two of one name");
    if (new_thing) {
      held[id] = new_thing->version;
      holder[thing.name] = thing.uid;
    } else {
      held.erase(id);
      holder.erase(thing.name);
      if (!buried.insert({id, true}).second) complaints.push_back(id + ": deleted twice");
    }
    if (new_thing && buried.contains(id)) complaints.push_back(id + ": came back");
  }
  std::map<std::string, bool> buried;
};

TEST_CASE("random histories, with lists, watches that break, replies in any order: in the end the server's state",
          "[kube]") {
  const uint32_t seed = GENERATE(range(0U, 400U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  History history(random);
  Judge judge;
  Store<Thing> store(parse_thing, [&judge](const auto& a, const auto& b) { judge.hear(a, b); });
  std::vector<uint64_t> replies;  // our own writes whose replies are on their way
  std::optional<uint64_t> watch;  // the next version it gives
  std::chrono::steady_clock::time_point now{};

  const auto reply = [&](size_t index) {
    const auto& change = history.change(replies.at(index));
    replies.erase(replies.begin() + static_cast<std::ptrdiff_t>(index));
    if (change.type == Type::Deleted)
      store.forget("ns", text_at(change.object, "/metadata/name"), text_at(change.object, "/metadata/uid"), now);
    else
      store.learn(change.object);
  };
  const auto list = [&](bool breaks_off) {
    const uint64_t version =
        std::max(store.version(), history.version() - std::min<uint64_t>(history.version(), random() % 5));
    std::vector<Json> objects;
    for (const auto& [name, object] : history.state(version)) objects.push_back(object);
    const size_t first_page = objects.empty() ? 0 : random() % objects.size();
    for (size_t index = 0; index < first_page; ++index) store.stage(objects[index]);
    REQUIRE(store.begin_list(version, WatchTarget::IfStale::Refuse) == WatchTarget::ListAge::Current);
    store.take_page();
    while (!replies.empty() && random() % 2 == 0) reply(random() % replies.size());
    if (breaks_off) return;
    for (size_t index = first_page; index < objects.size(); ++index) store.stage(objects[index]);
    store.take_page();
    store.end_list();
    watch = store.version() + 1;
  };
  const auto next_event = [&] {
    if (*watch > history.version()) return;
    const auto& change = history.change(*watch);
    store.apply({change.type, change.object}, now);
    ++*watch;
  };
  for (int turn = 0; turn < 300; ++turn) {
    now += 10ms;
    switch (random() % 8) {
      case 0:
      case 1:
        history.step();
        break;
      case 2:
        replies.push_back(history.step().version);
        break;
      case 3:
        if (!replies.empty()) reply(random() % replies.size());
        break;
      case 4:
        if (random() % 8 == 0) list(random() % 3 == 0);
        break;
      case 5:  // it resumes, or a faulty one gives again what it gave
        if (watch && random() % 4 == 0) watch = store.version() + 1 - std::min<uint64_t>(random() % 4, store.version());
        break;
      default:
        if (watch) next_event();
    }
  }
  while (!replies.empty()) reply(replies.size() - 1);
  list(false);
  while (*watch <= history.version()) next_event();

  CHECK(judge.complaints == std::vector<std::string>{});
  std::map<std::string, uint64_t> expected, seen;
  for (const auto& [name, object] : history.state(history.version())) expected[name] = id_of(object).version;
  store.for_each([&seen](const auto& thing) { seen[thing->name] = thing->version; });
  CHECK(seen == expected);
}

}  // namespace
}  // namespace trainyard::kube
