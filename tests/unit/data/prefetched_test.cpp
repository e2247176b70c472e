#include "data/prefetched.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::data {
namespace {

/// Micro-batch n says n; the one after `last` is an error.
class CountingLoader : public Loader {
 public:
  CountingLoader(std::atomic<int>& made, int64_t last) : made_(made), last_(last) {}
  Batch next() override {
    if (at_ == last_) throw InputError("the data ends here");
    ++made_;
    return {Tensor::from<int32_t>(std::vector{static_cast<int32_t>(at_++)}, {1, 1}), {}};
  }
  void skip() override { ++at_; }
  [[nodiscard]] nlohmann::json state() const override { return {{"at", at_}}; }
  void load_state(const nlohmann::json& state) override { at_ = state.at("at"); }
  [[nodiscard]] int64_t sequences_seen() const override { return at_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return last_; }
  [[nodiscard]] int64_t sequences_per_step() const override { return 1; }
  [[nodiscard]] int64_t sequence_length() const override { return 1; }

 private:
  std::atomic<int>& made_;
  int64_t last_, at_ = 0;
};

struct Fixture {
  std::atomic<int> made = 0;
  std::unique_ptr<Loader> loader(const Prefetched& options, int64_t last = 1000) {
    return prefetched([this, last] { return std::make_unique<CountingLoader>(made, last); }, options);
  }
};

int32_t said(const Batch& batch) {
  return batch.input_ids.values<int32_t>()[0];
}

}  // namespace

TEST_CASE("prefetched: the order, the state and a resumed run are those of one loader, at any number of threads",
          "[data]") {
  Fixture fixture;
  const auto workers = GENERATE(as<int64_t>(), 1, 2, 3, 5);
  const auto ahead = GENERATE(as<int64_t>(), 1, 4);
  const auto loader = fixture.loader({.workers = workers, .ahead = ahead});
  for (int32_t n = 0; n < 17; ++n) {
    CHECK(loader->sequences_seen() == n);
    CHECK(loader->state() == nlohmann::json{{"at", n}});
    CHECK(said(loader->next()) == n);
  }
  loader->load_state({{"at", 4}});
  for (int32_t n = 4; n < 12; ++n) CHECK(said(loader->next()) == n);
  const auto other = fixture.loader({.workers = workers % 3 + 1});
  other->load_state(loader->state());
  CHECK(said(other->next()) == 12);
}

TEST_CASE("prefetched: no more is made than the threads may hold ready", "[data]") {
  Fixture fixture;
  const auto loader = fixture.loader({.workers = 3, .ahead = 2});
  for (int taken = 1; taken <= 20; ++taken) {
    static_cast<void>(loader->next());
    CHECK(fixture.made <= taken + 3 * 2);
  }
}

TEST_CASE("prefetched: an error comes where the batch would have come, and again when asked again", "[data]") {
  Fixture fixture;
  const auto workers = GENERATE(as<int64_t>(), 1, 2, 4);
  const auto loader = fixture.loader({.workers = workers, .ahead = 8}, 3);
  for (int32_t n = 0; n < 3; ++n) CHECK(said(loader->next()) == n);
  CHECK_THROWS_WITH(loader->next(), "the data ends here");
  CHECK_THROWS_WITH(loader->next(), "the data ends here");
}

}  // namespace trainyard::data
