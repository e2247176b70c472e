// How fast tokenizers encode: MB/s of one thread's CPU time, so that what else the machine does shows least.
// Usage: tokenizer_bench DATA_FOLDER: the folder that holds qwen2_tokenizer/, tinyshakespeare/ and the rest.
// "cold" is the first call, with no word known yet; "warm" the best of those after it.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/trainer.h"

namespace trainyard::bench {
namespace {

constexpr int kRuns = 5;

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Run>
double seconds_of(const Run& run) {
  const double start = now();
  run();
  return now() - start;
}

void measure(const std::filesystem::path& data, const std::string& folder, const std::string& file) {
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  const double load = seconds_of([&] { tokenizer = tokenizer::load_tokenizer(data / folder); });
  const std::string text = read_file(data / file);
  size_t ids = 0;
  const auto encode = [&] { ids = tokenizer->encode(text).size(); };
  const double cold = seconds_of(encode);
  double warm = cold;
  for (int run = 0; run < kRuns; ++run) warm = std::min(warm, seconds_of(encode));
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("{:<22} {:<28} {:>8} {:>10.1f} {:>10.1f} {:>9.0f}\n", folder, file, ids, megabytes / cold,
             megabytes / warm, 1e3 * load);
}

void measure_training(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  const double seconds = seconds_of([&] {
    tokenizer::BpeTrainer trainer;
    trainer.add(text, file.string());
    static_cast<void>(trainer.train(8192));
  });
  fmt::print("training of 8,192 tokens on {}: {:.2f} s\n", file.filename().string(), seconds);
}

void run(const std::filesystem::path& data) {
  fmt::print("{:<22} {:<28} {:>8} {:>10} {:>10} {:>9}\n", "tokenizer", "text", "ids", "cold MB/s", "warm MB/s",
             "load ms");
  for (const char* const folder :
       {"qwen2_tokenizer", "llama3_tokenizer", "torchtitan_tokenizer", "llama2_tokenizer", "t5_tokenizer"})
    for (const char* const file : {"tinyshakespeare/input.txt", "wikitext-2/wiki.test.txt"})
      measure(data, folder, file);
  measure_training(data / "tinyshakespeare/input.txt");
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: tokenizer_bench DATA_FOLDER\n"), 2;
  try {
    trainyard::bench::run(argv[1]);
  } catch (const std::exception& error) {
    return fmt::print(stderr, "tokenizer_bench: {}\n", error.what()), 1;
  }
}
