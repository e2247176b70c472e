// The classifier of PyTorch's MNIST example (pytorch/examples, mnist), which the DDP examples on Kubernetes train: two
// convolutions, max pooling, two linear layers, under its names.
#include <fmt/format.h>

#include "base/error.h"
#include "models/family.h"
#include "models/model.h"
#include "nn/layers.h"

namespace trainyard::models {
namespace {

using nn::Variable;
using ops::ImageShape;

constexpr int64_t kKernel = 3, kWindow = 2;

/// What becomes of images on their way.
struct Sizes {
  ImageShape image, first, second, pooled;

  Sizes(const CnnConfig& c, int64_t images)
      : image{images, c.image_size, c.image_size, 1},
        first(ops::convolved(image, kKernel, c.channels1)),
        second(ops::convolved(first, kKernel, c.channels2)),
        pooled(ops::pooled(second, kWindow)) {}

  /// Features that the linear layers see of an image.
  [[nodiscard]] int64_t flat() const { return pooled.height * pooled.width * pooled.channels; }
};

/// Reads of a batch: features [rows, height, width], targets [rows].
class Mnist : public Model {
 public:
  explicit Mnist(const ModelConfig& c)
      : Model(""),
        config_(c),
        conv1_("conv1", 1, c.cnn.channels1, kKernel),
        conv2_("conv2", c.cnn.channels1, c.cnn.channels2, kKernel),
        fc1_(nn::uniform_linear("fc1", Sizes(c.cnn, 1).flat(), c.hidden_size, nn::Bias::Yes)),
        fc2_(nn::uniform_linear("fc2", c.hidden_size, c.cnn.classes, nn::Bias::Yes)),
        dropout1_("dropout1"),
        dropout2_("dropout2") {
    add_child(conv1_), add_child(conv2_), add_child(fc1_), add_child(fc2_);
  }

  [[nodiscard]] Inputs inputs(const Batch& batch) const override {
    check(batch);
    return {batch, device()};
  }

  ops::Loss loss(const Inputs& inputs, const Pass& pass) override {
    ops::Loss result;
    run_root(pass.tape, [&] {
      result = autograd::cross_entropy(logits(inputs, pass), inputs.targets.values_on(device()), pass.gradient_scale);
    });
    return result;
  }

  [[nodiscard]] std::vector<nn::Module*> blocks() override { return {&conv1_, &conv2_, &fc1_}; }
  [[nodiscard]] const ModelConfig& config() const override { return config_; }

 private:
  void check(const Batch& batch) const {
    const int64_t size = config_.cnn.image_size;
    if (!batch.features.defined()) throw InputError("a mnist model learns from labelled images: data.images");
    if (const Shape& shape = batch.features.shape(); shape != Shape{batch.targets.count(), size, size})
      throw InputError(
          fmt::format("images of {} x {}, but the model takes {} x {}", shape.at(1), shape.at(2), size, size));
  }

  /// [rows, classes]
  [[nodiscard]] Variable logits(const Inputs& inputs, const Pass& pass) const {
    const auto relu = [](const Variable& x) { return autograd::activation(ops::Activation::Relu, x); };
    const Sizes sizes(config_.cnn, inputs.features.size(0));
    Variable x(inputs.features.reshape({sizes.image.pixels(), 1}), pass.tape);
    x = relu(conv1_(x, sizes.image));
    x = relu(conv2_(x, sizes.first));
    x = autograd::max_pool(x, sizes.second, kWindow);
    x = dropout1_(x, dropout_of(config_.dropout, inputs, pass));
    x = autograd::channels_first(x, sizes.pooled);
    x = relu(fc1_(x));
    x = dropout2_(x, dropout_of(config_.cnn.hidden_dropout, inputs, pass));
    return fc2_(x);
  }

  ModelConfig config_;
  nn::Convolution conv1_, conv2_;
  nn::Linear fc1_, fc2_;
  nn::DropoutSite dropout1_, dropout2_;
};

ModelConfig read_mnist(const Fields& fields) {
  ModelConfig c;
  c.hidden_size = fields.size("hidden_size", 128);
  c.layers = 4;
  c.cnn.image_size = fields.size("image_size", 28);
  c.cnn.channels1 = fields.size("conv1_channels", 32);
  c.cnn.channels2 = fields.size("conv2_channels", 64);
  c.cnn.classes = fields.size("num_labels", 10);
  c.dropout = fields.rate("dropout1", 0.25);
  c.cnn.hidden_dropout = fields.rate("dropout2", 0.5);
  c.cnn.image_mean = fields.number("image_mean", 0.1307);
  c.cnn.image_std = fields.number("image_std", 0.3081);
  constexpr int64_t kLeast = 2 * (kKernel - 1) + kWindow, kMost = 1024;
  if (c.cnn.image_size < kLeast || c.cnn.image_size > kMost)
    fields.fail("image_size", fmt::format("is {}; from {} to {} is possible", c.cnn.image_size, kLeast, kMost));
  return c;
}

nlohmann::json write_mnist(const ModelConfig& c) {
  return {{"image_size", c.cnn.image_size},   {"conv1_channels", c.cnn.channels1}, {"conv2_channels", c.cnn.channels2},
          {"hidden_size", c.hidden_size},     {"num_labels", c.cnn.classes},       {"dropout1", c.dropout},
          {"dropout2", c.cnn.hidden_dropout}, {"image_mean", c.cnn.image_mean},    {"image_std", c.cnn.image_std}};
}

/// 6 for each weight and each pixel, or image, that it multiplies.
double mnist_flops_per_row(const ModelConfig& c, const RowLengths&) {
  const Sizes sizes(c.cnn, 1);
  const int64_t patch = kKernel * kKernel;
  const int64_t products = sizes.first.pixels() * patch * c.cnn.channels1 +
                           sizes.second.pixels() * patch * c.cnn.channels1 * c.cnn.channels2 +
                           c.hidden_size * (sizes.flat() + c.cnn.classes);
  return 6.0 * static_cast<double>(products);
}

}  // namespace

const Family& mnist() {
  static const Family family{
      .name = "mnist",
      .architecture = "Net",
      .block_class = "Conv2d",
      .presets = {{"mnist", {.family = "mnist", .hidden_size = 128, .layers = 4, .dropout = 0.25}}},
      .read = read_mnist,
      .write = write_mnist,
      .build = [](const ModelConfig& config) -> std::unique_ptr<Model> { return std::make_unique<Mnist>(config); },
      .trains_with = {"dropout1", "dropout2"},
      .learns_from = LearnsFrom::Images,
      .flops_per_row = mnist_flops_per_row};
  return family;
}

}  // namespace trainyard::models
