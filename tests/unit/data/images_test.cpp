#include "data/images.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "support/support.h"

namespace trainyard::data {
namespace {

/// `count` images of 1 x 2, whose first pixel is their number and whose label is that % 3.
void write_images(const std::filesystem::path& folder, const std::string& part, int count, int labels) {
  const auto number = [](int value) { return std::string({0, 0, 0, static_cast<char>(value)}); };
  std::string pixels = std::string({0, 0, 8, 3}) + number(count) + number(1) + number(2);
  std::string classes = std::string({0, 0, 8, 1}) + number(labels);
  for (int i = 0; i < count; ++i) pixels += {static_cast<char>(i), static_cast<char>(255)};
  for (int i = 0; i < labels; ++i) classes += static_cast<char>(i % 3);
  std::ofstream(folder / (part + "-images-idx3-ubyte"), std::ios::binary) << pixels;
  std::ofstream(folder / (part + "-labels-idx1-ubyte"), std::ios::binary) << classes;
}

std::shared_ptr<const Images> numbered(int count) {
  const test::TemporaryFolder folder;
  write_images(folder.path(), "train", count, count);
  return read_images(folder.path(), Part::Training, 3);
}

ImageLoaderOptions image_options(int64_t rank, int64_t world, bool shuffle = false, Repeat repeat = Repeat::Forever) {
  return {.place = {rank, world}, .batch_size = 2, .seed = 5, .shuffle = shuffle, .repeat = repeat};
}

/// The numbers of the images in the next micro-batch.
std::vector<int> next(Loader& loader) {
  const Batch batch = loader.next();
  std::vector<int> numbers;
  for (int64_t row = 0; row < batch.targets.count(); ++row) {
    const float pixel = batch.features.values<float>()[static_cast<size_t>(2 * row)];
    numbers.push_back(static_cast<int>(std::lround(pixel * 255)));
    CHECK(batch.targets.values<int32_t>()[static_cast<size_t>(row)] == numbers.back() % 3);
  }
  CHECK(batch.valid_tokens == static_cast<int64_t>(numbers.size()));
  CHECK(batch.sequences.size() == numbers.size());
  return numbers;
}

using Numbers = std::vector<int>;

}  // namespace

TEST_CASE("images: pixels are normed, labels are targets", "[data]") {
  ImageLoaderOptions normed = image_options(0, 1);
  normed.mean = 0.1307F, normed.std = 0.3081F;
  const Batch batch = image_loader(numbered(3), normed)->next();
  CHECK(batch.features.shape() == Shape{2, 1, 2});
  const auto pixels = batch.features.values<float>();
  CHECK(pixels[0] == (0.0F - 0.1307F) / 0.3081F);
  CHECK(pixels[2] == (1.0F / 255.0F - 0.1307F) / 0.3081F);
  CHECK(pixels[3] == (1.0F - 0.1307F) / 0.3081F);
  CHECK(batch.targets.values<int32_t>()[1] == 1);
}

TEST_CASE("images: each epoch is dealt and padded as DistributedSampler does, and ends with a short batch", "[data]") {
  // What DataLoader(range(7), batch_size=2, sampler=DistributedSampler(shuffle=False)) gives, by rank.
  const auto images = numbered(7);
  const auto first = image_loader(images, image_options(0, 2)), second = image_loader(images, image_options(1, 2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(next(*first) == Numbers{0, 2});
    CHECK(next(*second) == Numbers{1, 3});
    CHECK(next(*first) == Numbers{4, 6});
    CHECK(next(*second) == Numbers{5, 0});
  }
  const auto third = image_loader(numbered(5), image_options(2, 3));
  CHECK(next(*third) == Numbers{2, 0});
  CHECK(next(*third) == Numbers{2, 0});
  CHECK(third->rows_per_epoch() == 6);
  CHECK(third->sequences_per_epoch() == 5);
}

TEST_CASE("images: an epoch's shuffled order has every image once, whatever the number of ranks", "[data]") {
  const auto images = numbered(12);
  const auto order_of = [&](int64_t world) {
    std::vector<std::unique_ptr<Loader>> ranks;
    for (int64_t rank = 0; rank < world; ++rank)
      ranks.push_back(image_loader(images, image_options(rank, world, true)));
    Numbers order;
    while (std::ssize(order) < 24) {
      std::vector<Numbers> rows;
      for (const auto& rank : ranks) rows.push_back(next(*rank));
      for (size_t row = 0; row < rows[0].size(); ++row)
        for (const Numbers& each : rows) order.push_back(each[row]);
    }
    return order;
  };
  const Numbers alone = order_of(1);
  CHECK(std::set(alone.begin(), alone.begin() + 12).size() == 12);
  CHECK_FALSE(std::equal(alone.begin(), alone.begin() + 12, alone.begin() + 12));
  CHECK(order_of(2) == alone);
  CHECK(order_of(3) == alone);
}

TEST_CASE("images: a pass without repetition has each image once, the last ranks fewer", "[data]") {
  const auto images = numbered(5);
  const auto first = image_loader(images, image_options(0, 2, false, Repeat::Never)),
             second = image_loader(images, image_options(1, 2, false, Repeat::Never));
  CHECK(next(*first) == Numbers{0, 2});
  CHECK(next(*second) == Numbers{1, 3});
  CHECK(next(*first) == Numbers{4});
  CHECK(next(*second).empty());
  CHECK(next(*first).empty());
}

TEST_CASE("images: a run goes on where it was, also at another number of ranks, and not with other images", "[data]") {
  const auto images = numbered(11);
  const auto alone = image_loader(images, image_options(0, 1, true));
  for (int i = 0; i < 8; ++i) next(*alone);  // an epoch of six, and four images of the next
  const auto state = alone->state();
  const auto first = image_loader(images, image_options(0, 2, true)),
             second = image_loader(images, image_options(1, 2, true));
  first->load_state(state), second->load_state(state);
  const Numbers a = next(*first), b = next(*second), whole = next(*alone), more = next(*alone);
  CHECK(Numbers{a[0], b[0], a[1], b[1]} == Numbers{whole[0], whole[1], more[0], more[1]});
  CHECK_THROWS_WITH(image_loader(numbered(10), image_options(0, 1, true))->load_state(state),
                    Catch::Contains("images is"));
}

TEST_CASE("images: skipping is as taking", "[data]") {
  const auto images = numbered(7);
  const auto taking = image_loader(images, image_options(1, 2, true)),
             skipping = image_loader(images, image_options(1, 2, true));
  for (int i = 0; i < 3; ++i) next(*taking), skipping->skip();
  CHECK(taking->state() == skipping->state());
  CHECK(next(*taking) == next(*skipping));
}

TEST_CASE("images: files that are missing, do not fit each other or hold unknown labels are named", "[data]") {
  const test::TemporaryFolder folder;
  const auto error_of = [&](Part part, int64_t classes) -> std::string {
    try {
      read_images(folder.path(), part, classes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string place = folder.path().string();
  CHECK(error_of(Part::Training, 3) ==
        place + ": neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz is there");
  write_images(folder.path(), "train", 4, 5);
  CHECK(error_of(Part::Training, 3) ==
        place + "/train-images-idx3-ubyte holds 4 images, but " + place + "/train-labels-idx1-ubyte 5 labels");
  write_images(folder.path(), "train", 4, 4);
  CHECK(error_of(Part::Training, 3) == "no error");
  CHECK(error_of(Part::Training, 2) ==
        place + "/train-labels-idx1-ubyte: byte 10: label 2, but the model has 2 classes (0 to 1)");
  CHECK_THAT(error_of(Part::Test, 3), Catch::Contains("neither t10k-images-idx3-ubyte"));
  write_images(folder.path(), "t10k", 0, 0);
  CHECK(error_of(Part::Test, 3) == place + "/t10k-images-idx3-ubyte: holds no image");
}

TEST_CASE("images: where torchvision puts them they are found too", "[data]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "MNIST" / "raw");
  write_images(folder.path() / "MNIST" / "raw", "t10k", 4, 4);
  CHECK(read_images(folder.path(), Part::Test, 3)->count == 4);
}

}  // namespace trainyard::data
