#include "webhook/certificate_keeper.h"

#include <catch2/catch.hpp>
#include <deque>

#include "base/base64.h"
#include "times.h"

using namespace trainyard;
using namespace trainyard::webhook;
using kube::ApiError;
using kube::ErrorKind;
using test::kDay;
using test::kStart;

namespace {

/// The Secret and the configuration of an API server with its rules about versions. Answers wait until `step()`, so
/// that replicas can be made to race.
class Cluster : public CertificateStore {
 public:
  Json secret;  ///< null: there is none
  Json key_secret;
  Json webhooks = {{"metadata", {{"resourceVersion", "1"}}},
                   {"webhooks", {{{"clientConfig", {{"service", {{"name", "op"}, {"namespace", "ns"}}}}}}}}};
  std::optional<ErrorKind> secret_error, write_error, key_error, webhooks_error, patch_error;
  int writes = 0, key_writes = 0, patches = 0;

  void get_secret(Held held, Callback done) override {
    later([this, held, done] {
      const auto& failure = held == Held::Certificates ? secret_error : key_error;
      if (failure) return done(error(*failure));
      content(held).is_null() ? done(error(ErrorKind::NotFound)) : done(content(held));
    });
  }
  void put_secret(Held held, Json next, Callback done) override {
    later([this, held, next = std::move(next), done]() mutable {
      const auto& failure = held == Held::Certificates ? write_error : key_error;
      if (failure) return done(error(*failure));
      const std::string version = text_at(next, "/metadata/resourceVersion");
      if (version.empty() && !content(held).is_null()) return done(error(ErrorKind::AlreadyExists));
      if (version != text_at(content(held), "/metadata/resourceVersion")) return done(error(ErrorKind::Conflict));
      next["metadata"]["resourceVersion"] = std::to_string(++version_);
      content(held) = next;
      ++(held == Held::Certificates ? writes : key_writes);
      done(content(held));
    });
  }
  void get_webhooks(Callback done) override {
    later([this, done] { webhooks_error ? done(error(*webhooks_error)) : done(webhooks); });
  }
  void patch_webhooks(const Json& patch, Callback done) override {
    later([this, patch, done] {
      if (patch_error) return done(error(*patch_error));
      if (text_at(patch, "/metadata/resourceVersion") != text_at(webhooks, "/metadata/resourceVersion"))
        return done(error(ErrorKind::Conflict));
      webhooks.merge_patch(patch);
      webhooks["metadata"]["resourceVersion"] = std::to_string(++version_);
      ++patches;
      done(webhooks);
    });
  }
  bool step() {
    if (waiting_.empty()) return false;
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
    return true;
  }
  [[nodiscard]] std::string bundle() const {
    return base64_decoded(text_at(webhooks, "/webhooks/0/clientConfig/caBundle")).value_or("");
  }

 private:
  Json& content(Held held) { return held == Held::Certificates ? secret : key_secret; }
  static ApiError error(ErrorKind kind) { return {.kind = kind, .message = "as told"}; }
  void later(std::function<void()> task) { waiting_.push_back(std::move(task)); }
  std::deque<std::function<void()>> waiting_;
  int version_ = 1;
};

struct Replica {
  TimePoint now = kStart;
  std::vector<Material> used;
  std::vector<std::chrono::milliseconds> delays;
  std::vector<std::string> troubles;
  CertificateKeeper keeper;
  explicit Replica(Cluster& cluster, const std::string& webhooks = "validator")
      : keeper(cluster, {.place = {"ns", "secret", "key", webhooks}, .service = "op"},
               {.now = [this] { return now; },
                .use = [this](const Material& material) { used.push_back(material); },
                .again_in = [this](std::chrono::milliseconds delay) { delays.push_back(delay); },
                .trouble = [this](const std::string& what, const ApiError&) { troubles.push_back(what); }}) {}
};

void check(Cluster& cluster, Replica& replica) {
  replica.keeper.check();
  while (cluster.step()) {
  }
}

}  // namespace

TEST_CASE("keeper: from nothing to served and published, and a second round changes nothing", "[certificates]") {
  Cluster cluster;
  Replica replica(cluster);
  check(cluster, replica);
  REQUIRE(replica.used.size() == 1);
  CHECK(material_of(cluster.secret) == replica.used[0]);
  CHECK(cluster.bundle() == replica.used[0].authorities);
  check(cluster, replica);
  CHECK(replica.used.size() == 1);
  CHECK(cluster.writes == 1);
  CHECK(cluster.key_writes == 1);
  CHECK(material_of(cluster.key_secret) == Material{.token_key = replica.used[0].token_key});
  CHECK(cluster.patches == 1);
  CHECK(replica.delays == std::vector<std::chrono::milliseconds>(2, CertificateKeeper::kInterval));
}

TEST_CASE("keeper: replicas that race end with one authority", "[certificates]") {
  Cluster cluster;
  const bool secret_is_there = GENERATE(false, true);
  if (secret_is_there) cluster.secret = {{"metadata", {{"resourceVersion", "1"}}}};
  Replica first(cluster), second(cluster), third(cluster);
  first.keeper.check(), second.keeper.check(), third.keeper.check();  // all read before anyone writes
  while (cluster.step()) {
  }
  CHECK(cluster.writes == 1);
  CHECK(cluster.key_writes == 1);
  CHECK(cluster.patches == 1);
  REQUIRE(first.used.size() == 1);
  CHECK(second.used == first.used);
  CHECK(third.used == first.used);
  CHECK(cluster.bundle() == first.used[0].authorities);
}

TEST_CASE("keeper: a certificate that is due is renewed by one and taken by all, with no new bundle",
          "[certificates]") {
  Cluster cluster;
  Replica first(cluster), second(cluster);
  check(cluster, first);
  check(cluster, second);
  first.now = second.now = kStart + 61 * kDay;
  first.keeper.check(), second.keeper.check();
  while (cluster.step()) {
  }
  CHECK(cluster.writes == 2);
  CHECK(cluster.patches == 1);
  REQUIRE(first.used.size() == 2);
  CHECK(second.used == first.used);
  CHECK(first.used[1].authorities == first.used[0].authorities);
  CHECK(first.used[1].serving.certificate != first.used[0].serving.certificate);
}

TEST_CASE("keeper: a certificate that is due before the next round is looked at when it is due", "[certificates]") {
  Cluster cluster;
  Replica replica(cluster);
  check(cluster, replica);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
  const auto due = facts_of(replica.used.back().serving.certificate)->rotate_at();
  replica.now = due - std::chrono::seconds(90);
  check(cluster, replica);
  CHECK(replica.delays.back() == std::chrono::seconds(90));
  replica.now = due;
  check(cluster, replica);
  CHECK(replica.used.size() == 2);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
}

TEST_CASE("keeper: a caBundle that somebody changed is set right", "[certificates]") {
  Cluster cluster;
  Replica replica(cluster);
  check(cluster, replica);
  cluster.webhooks["webhooks"][0]["clientConfig"]["caBundle"] = "eA==";
  check(cluster, replica);
  CHECK(cluster.bundle() == replica.used[0].authorities);
}

TEST_CASE("keeper: without a right on the Secret it serves with a certificate of its own and publishes nothing",
          "[certificates]") {
  Cluster cluster;
  const bool may_read = GENERATE(false, true);
  (may_read ? cluster.write_error : cluster.secret_error) = ErrorKind::Forbidden;
  Replica replica(cluster);
  check(cluster, replica);
  check(cluster, replica);
  REQUIRE(replica.used.size() == 1);
  CHECK(is_signed_by(replica.used[0].serving.certificate, replica.used[0].authorities));
  CHECK(replica.used[0].token_key.size() == 32);
  CHECK(cluster.patches == 0);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
  replica.now += 61 * kDay;
  check(cluster, replica);
  CHECK(replica.used.size() == 2);  // rotated in memory

  cluster.write_error = cluster.secret_error = std::nullopt;  // the right is granted
  check(cluster, replica);
  CHECK(cluster.bundle() == replica.used.back().authorities);
  CHECK(material_of(cluster.secret) == replica.used.back());
}

TEST_CASE("keeper: without a right on the configuration, or without one, it serves all the same", "[certificates]") {
  Cluster cluster;
  cluster.webhooks_error = GENERATE(ErrorKind::Forbidden, ErrorKind::NotFound);
  Replica replica(cluster);
  check(cluster, replica);
  CHECK(replica.used.size() == 1);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
}

TEST_CASE("keeper: told not to publish it does not even look", "[certificates]") {
  Cluster cluster;
  cluster.webhooks_error = ErrorKind::Server;
  Replica replica(cluster, "");
  check(cluster, replica);
  CHECK(replica.delays == std::vector<std::chrono::milliseconds>{CertificateKeeper::kInterval});
}

TEST_CASE("keeper: a server in trouble is asked again, more and more slowly", "[certificates]") {
  Cluster cluster;
  cluster.secret_error = ErrorKind::Server;
  Replica replica(cluster);
  for (int i = 0; i < 8; ++i) check(cluster, replica);
  using std::chrono::seconds;
  CHECK(replica.delays == std::vector<std::chrono::milliseconds>{seconds(1), seconds(2), seconds(4), seconds(8),
                                                                 seconds(16), seconds(32), seconds(60), seconds(60)});
  CHECK(replica.used.empty());
  CHECK(replica.troubles == std::vector<std::string>(8, "the Secret secret"));
  cluster.secret_error = std::nullopt;
  cluster.patch_error = ErrorKind::Unknown;
  check(cluster, replica);
  CHECK(replica.used.size() == 1);  // served already
  CHECK(replica.delays.back() == seconds(60));
  CHECK(replica.troubles.back() == "the configuration validator");
  cluster.patch_error = std::nullopt;
  check(cluster, replica);
  CHECK(cluster.bundle() == replica.used[0].authorities);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
}

TEST_CASE("keeper: answers that come after its end are not heard", "[certificates]") {
  Cluster cluster;
  {
    Replica replica(cluster);
    replica.keeper.check();
  }
  CHECK(cluster.step());
  CHECK_FALSE(cluster.step());
}

TEST_CASE("keeper: whoever deletes the certificates gets new ones, and jobs keep their tokens", "[certificates]") {
  Cluster cluster;
  Replica before(cluster);
  check(cluster, before);
  cluster.secret = nullptr;
  Replica after(cluster);  // the operator was started anew
  check(cluster, after);
  REQUIRE(after.used.size() == 1);
  CHECK(after.used[0].authorities != before.used[0].authorities);
  CHECK(after.used[0].token_key == before.used[0].token_key);
  CHECK(material_of(cluster.secret) == after.used[0]);
  CHECK(cluster.key_writes == 1);
}

TEST_CASE("keeper: the key's own Secret is made of the key that is in use, and wins", "[certificates]") {
  Cluster cluster;
  Replica replica(cluster);
  check(cluster, replica);
  const Material first = replica.used[0];
  SECTION("it was deleted") {
    cluster.key_secret = nullptr;
    check(cluster, replica);
    CHECK(replica.used.size() == 1);
  }
  SECTION("the certificates' Secret was put back from an older time") {
    cluster.secret["data"]["token.key"] = base64_encoded("another");
    check(cluster, replica);
    CHECK(replica.used.size() == 1);
    CHECK(material_of(cluster.secret) == first);
  }
  CHECK(material_of(cluster.key_secret).token_key == first.token_key);
}

TEST_CASE("keeper: without a right on the key's Secret the key is kept with the certificates", "[certificates]") {
  Cluster cluster;
  cluster.key_error = ErrorKind::Forbidden;
  Replica replica(cluster);
  check(cluster, replica);
  REQUIRE(replica.used.size() == 1);
  CHECK(material_of(cluster.secret).token_key.size() == 32);
  CHECK(cluster.patches == 1);
  CHECK(replica.delays.back() == CertificateKeeper::kInterval);
}
