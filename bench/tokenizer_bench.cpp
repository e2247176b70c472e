// How fast tokenizers encode: MB/s of one thread's CPU time, so that what else the machine does shows least.
// Usage: tokenizer_bench DATA_FOLDER: the folder that holds qwen2_tokenizer/, tinyshakespeare/ and the rest.
// "cold" is the first call, with no word known yet; "warm" the best of those after it.
// Or: tokenizer_bench TOKENIZER CORPUS THREADS: seconds from the corpus to its cache file (bench/compare_tokenizers).
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/corpus.h"
#include "tokenizer/bpe/trainer.h"
#include "tokenizer/tokenizer.h"

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

/// Measures what a training does: it reads the corpus, tokenises it, and writes the tokens durably.
void measure_corpus(const std::filesystem::path& tokenizer_path, const std::filesystem::path& corpus, int threads) {
  const auto tokenizer = tokenizer::load_tokenizer(tokenizer_path);
  const std::filesystem::path cache = corpus.string() + ".cache";
  std::filesystem::remove_all(cache);
  const auto start = std::chrono::steady_clock::now();
  const auto tokens = data::open_corpus({.path = corpus, .cache_dir = cache, .how = {.threads = threads}}, *tokenizer);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{:.4f} {}\n", seconds.count(), tokens.size());
  std::filesystem::remove_all(cache);
}

int threads_of(const char* text) {
  const auto threads = parse_int(text);
  if (!threads || *threads < 1 || *threads > 1024)
    throw InputError(fmt::format("THREADS is '{}', must be 1 to 1024", text));
  return static_cast<int>(*threads);
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4)
    return fmt::print(stderr, "usage: tokenizer_bench DATA_FOLDER, or tokenizer_bench TOKENIZER CORPUS THREADS\n"), 2;
  try {
    if (argc == 4)
      trainyard::bench::measure_corpus(argv[1], argv[2], trainyard::bench::threads_of(argv[3]));
    else
      trainyard::bench::run(argv[1]);
  } catch (const std::exception& error) {
    return fmt::print(stderr, "tokenizer_bench: {}\n", error.what()), 1;
  }
}
