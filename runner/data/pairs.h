#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/in_order.h"
#include "data/loaders.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::data {

/// What to do with a text of more tokens than its limit.
enum class Overlong { Truncate, Refuse };

struct PairOptions {
  std::filesystem::path path;  ///< a file of JSON lines, a table, or a folder of them
  std::string source_field;
  std::string target_field;  ///< one name, or several with commas between: the first that a line, or a table, has
  std::string prefix;        ///< before each source: "summarize: "
  int64_t max_source_length = 512, max_target_length = 128;  ///< tokens, the end of text included
  Overlong overlong = Overlong::Truncate;
  int64_t max_samples = 0;  ///< of the beginning; 0: all
  Tokenising how = {};
};

/// A text and what is to be said about it.
struct PairText {
  std::string source, target;  ///< the source without the prefix
};

/// The lines of the files, or rows of the tables, in order. Throws InputError, naming file and line or row, where a
/// line is no JSON object or lacks a field, what open_text_column() throws, and for a corpus without a pair.
std::vector<PairText> read_pairs(const PairOptions& options);

/// Pairs as ids, each text with its end of text, held in memory. Copies share.
class PairArray {
 public:
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] std::span<const int32_t> source(int64_t pair) const { return text(2 * pair); }
  [[nodiscard]] std::span<const int32_t> target(int64_t pair) const { return text(2 * pair + 1); }
  [[nodiscard]] const std::string& name() const { return data_->name; }
  /// Equal for equal ids.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  /// Its pairs [begin, end), which must be there, under a fingerprint of their own.
  [[nodiscard]] PairArray part(int64_t begin, int64_t end) const;

 private:
  friend PairArray tokenise_pairs(const PairOptions& options, const tokenizer::Tokenizer& tokenizer);
  struct Data {
    std::vector<int32_t> ids;
    std::vector<size_t> ends;  // of source, target, source, …
    std::string name;
  };
  [[nodiscard]] std::span<const int32_t> text(int64_t index) const {
    const auto at = static_cast<size_t>(2 * begin_ + index);
    const size_t begin = at == 0 ? 0 : data_->ends[at - 1];
    return std::span(data_->ids).subspan(begin, data_->ends[at] - begin);
  }
  std::shared_ptr<const Data> data_;
  int64_t begin_ = 0, size_ = 0;
  std::string fingerprint_;
};

/// The ids of a corpus of pairs. Throws InputError for what read_pairs() refuses, a text over its limit where that is
/// not to be truncated (file and pair are named), and a tokenizer without an end of text.
PairArray tokenise_pairs(const PairOptions& options, const tokenizer::Tokenizer& tokenizer);

/// How the rows of a micro-batch come to one length.
enum class Padding {
  MaxLength,  ///< all to the limits, as `padding="max_length"`
  Longest,    ///< to the longest of a rank's micro-batch
  Bucket,     ///< as Longest, in an order in which pairs of like length are neighbours
};

/// `tokens` and so many more that `multiple` divides it.
inline int64_t padded_length(int64_t tokens, int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

struct PairLoaderOptions {
  Place place;
  int64_t batch_size = 8;  ///< rows a rank and micro-batch
  int64_t accumulation_steps = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  Padding padding = Padding::Bucket;
  int64_t max_source_length = 512, max_target_length = 128;
  int64_t pad_to_multiple_of = 1;  ///< lengths of rows, sources and targets, by padded_length(), also beyond the limits
  int32_t pad_token = 0;
  Repeat repeat = Repeat::Forever;
};

/// Sources padded with the pad token (input_ids, input_lengths), targets with kIgnored. The order is as
/// packed_loader's: one endless sequence of epochs, each with an order of its own, that depends on the seed alone and
/// is dealt round robin; so no pair is lost or given out twice, and a run goes on at any number of ranks. Bucket: an
/// epoch's order is cut into windows of 1024 pairs, each is sorted by length, cut into runs of 32, and the runs are
/// shuffled: micro-batches of up to 32 rows over all ranks then hold pairs of like length.
std::unique_ptr<Loader> pair_loader(PairArray pairs, const PairLoaderOptions& options);

}  // namespace trainyard::data
