#include "assemble/pace.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "data/images.h"
#include "data/loaders.h"

namespace trainyard::train {
namespace {

/// A corpus of so many windows of 4 ids, cut into steps of `rows` × `world`.
std::unique_ptr<data::Loader> packed(int64_t windows, int64_t rows, int world) {
  std::vector<int32_t> ids(static_cast<size_t>(windows * 4 + 1), 1);
  return data::packed_loader(data::TokenArray(std::move(ids), "corpus", "same"),
                             {.place = {0, world}, .sequence_length = 4, .batch_size = rows});
}

/// The loader of another size that goes on after `steps` of `before`.
std::unique_ptr<data::Loader> gone_on(data::Loader& before, int64_t steps, std::unique_ptr<data::Loader> after) {
  for (int64_t step = 0; step < steps; ++step) before.skip();
  after->load_state(before.state());
  return after;
}

}  // namespace

TEST_CASE("pace: epochs are as many passes over the data at any size of a step, and at another one after a resume",
          "[train]") {
  const auto two = packed(100, 5, 2);
  CHECK(Pace(*two).steps_until(3) == 30);
  CHECK(Pace(*two).epochs(19) == 1);
  CHECK(Pace(*two).steps_of_epoch(19) == 9);
  CHECK(Pace(*two, 0).steps_until(3) == 30);

  const auto four = gone_on(*two, 18, packed(100, 5, 4));  // 180 of 300 rows are taken
  const Pace faster(*four, 18);
  CHECK(faster.steps_until(3) == 18 + 6);
  CHECK(faster.epochs(18) == 1);
  CHECK(faster.epochs(19) == 2);
  CHECK(faster.steps_of_epoch(18) == 4);

  const auto one = gone_on(*four, 2, packed(100, 5, 1));  // 220 of 300
  CHECK(Pace(*one, 20).steps_until(3) == 20 + 16);
  CHECK(Pace(*one, 20).steps_until(1) == 20);  // more than that is done
}

TEST_CASE("pace: a part of an epoch ends with the step that completes it", "[train]") {
  const auto loader = packed(100, 5, 2);
  CHECK(Pace(*loader).steps_until(0.5) == 5);
  CHECK(Pace(*loader).steps_until(0.51) == 6);
  CHECK(Pace(*loader).steps_until(2.5) == 25);
  CHECK(Pace(*loader).steps_until(1e-9) == 1);
  CHECK(Pace(*loader).steps_until(1e300) > 0);  // past what can be counted
}

TEST_CASE("pace: the short end of an epoch of images counts as a whole micro-batch", "[train]") {
  const auto images = std::make_shared<data::Images>();
  images->count = 10, images->height = images->width = 1;
  images->pixels.resize(10), images->labels.resize(10);
  const auto loader = [&](int64_t rows) { return data::image_loader(images, {.batch_size = rows, .shuffle = false}); };
  const auto fours = loader(4);
  CHECK(Pace(*fours).steps_until(2) == 6);
  const auto twos = gone_on(*fours, 4, loader(2));  // an epoch and 4 images
  CHECK(Pace(*twos, 4).epochs(4) == 1);
  CHECK(Pace(*twos, 4).steps_until(2) == 4 + 3);
}

}  // namespace trainyard::train
