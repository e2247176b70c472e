#include "mnist_files.h"

#include <cmath>
#include <fstream>

#include "models/model.h"
#include "parity_case.h"
#include "tensor/safetensors.h"

namespace trainyard::test {
namespace {

/// The upper half of splitmix64's finisher over a counter.
uint32_t scattered(uint64_t index, uint64_t seed) {
  uint64_t x = index + seed * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<uint32_t>(x >> 32U);
}

constexpr uint64_t kSize = 28;

void write_part(const std::filesystem::path& folder, const std::string& part, uint64_t count, uint64_t seed) {
  std::string labels, pixels;
  for (uint64_t image = 0; image < count; ++image) {
    const uint64_t label = scattered(image, seed) % 10;
    labels += static_cast<char>(label);
    for (uint64_t pixel = 0; pixel < kSize * kSize; ++pixel) {
      const uint64_t row = pixel / kSize, column = pixel % kSize;
      const bool is_bar = row / 2 == label + 2 && column >= 4 && column < 24;
      pixels += static_cast<char>(scattered(image * kSize * kSize + pixel, seed + 1) % 64 + (is_bar ? 150 : 0));
    }
  }
  const auto sizes = static_cast<uint32_t>(count);
  std::ofstream(folder / (part + "-images-idx3-ubyte"), std::ios::binary) << idx({sizes, kSize, kSize}, pixels);
  std::ofstream(folder / (part + "-labels-idx1-ubyte"), std::ios::binary) << idx({sizes}, labels);
}

}  // namespace

std::string idx(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string file{0, 0, 8, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(size >> shift);
  return file + values;
}

void write_images(const std::filesystem::path& folder, int64_t training, int64_t test) {
  write_part(folder, "train", static_cast<uint64_t>(training), 100);
  write_part(folder, "t10k", static_cast<uint64_t>(test), 200);
}

void write_mnist_weights(const std::filesystem::path& folder) {
  std::filesystem::copy_file(case_folder("mnist") / "config.json", folder / "config.json");
  const auto model = models::build(models::preset("mnist"));
  std::vector<SafetensorsWriter::Declared> declared;
  for (const nn::Parameter* const parameter : model->parameters())
    declared.push_back({parameter->name(), DType::Float32, parameter->shape()});
  SafetensorsWriter writer(folder / "model.safetensors", declared);
  double bound = 0;
  uint64_t seed = 0;
  for (const nn::Parameter* const parameter : model->parameters()) {
    if (parameter->shape().size() > 1)  // a bias follows its weight, and has its bound
      bound = std::pow(static_cast<double>(parameter->count() / parameter->shape()[0]), -0.5);
    Tensor values = Tensor::empty(parameter->shape(), DType::Float32);
    uint64_t index = 0;
    for (float& value : values.values<float>())
      value = static_cast<float>((static_cast<double>(scattered(index++, seed)) * 0x1p-31 - 1) * bound);
    writer.append(values);
    ++seed;
  }
  writer.finish();
}

}  // namespace trainyard::test
