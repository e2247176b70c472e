#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files.h"
#include "data/in_order.h"
#include "data/line_reading.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::data {

/// The ids of a corpus in order, documents one after another, each with its end-of-text token where that was asked for.
/// Some may be no targets. Read-only: mapped from a cache file, 2 or 4 bytes an id, or held in memory. Copies share.
/// Threads may read at once.
class TokenArray {
 public:
  /// Holds `ids`; where only some count, those that do not are given as their complement.
  TokenArray(std::vector<int32_t> ids, std::string name, std::string fingerprint, Counting counting = Counting::AllIds);
  /// Maps a cache file that open_corpus() wrote. Throws InputError where it is no such file.
  static TokenArray map(const std::filesystem::path& cache_file, std::string name);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int32_t operator[](int64_t index) const;
  /// Ids [begin, begin + ids.size()), which must be there (std::out_of_range).
  void copy(int64_t begin, std::span<int32_t> ids) const;
  /// The same, kIgnored in place of each id that is no target; the number of those that are.
  int64_t copy_targets(int64_t begin, std::span<int32_t> targets) const;
  [[nodiscard]] Counting counting() const { return counting_; }

  /// Its ids [begin, end), which must be there (std::out_of_range), under a fingerprint of their own.
  [[nodiscard]] TokenArray part(int64_t begin, int64_t end) const;

  /// What messages call it: the path the user gave.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Equal for equal text, tokenizer, end-of-text rule, and what was found of added tokens.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

 private:
  TokenArray() = default;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const std::vector<int32_t>> held_;
  std::variant<std::span<const uint16_t>, std::span<const int32_t>> ids_;
  void copy_stored(int64_t begin, std::span<int32_t> ids) const;

  int64_t size_ = 0;
  Counting counting_ = Counting::AllIds;
  std::string name_, fingerprint_;
};

struct CorpusOptions {
  /// .txt (a document a file), .jsonl or .json (a document a line; packed as .gz or .zst, too), .parquet or .arrow (a
  /// document a row), a folder of them, or a pattern of several
  std::filesystem::path path;
  std::string field = "text";  ///< of each JSON line, or the column of a table
  bool append_eos = true;      ///< after each document, where the tokenizer has an end of text
  std::string tokenizer = "data.tokenizer";  ///< what messages call it: its file or folder
  std::filesystem::path
      cache_dir;  ///< "" = .trainyard beside the corpus, or the user's cache folder where that is read-only
  /// Another process that tokenises it is waited for, however long it takes, until it has written nothing for so long.
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};
  Tokenising how = {};
};

/// The corpus as ids. The first to ask for it tokenises it, in bounded memory, into a file in the cache folder that is
/// whole or not there; others, on this machine or on a shared file system, wait for it. The file's name is a hash of
/// the content, the tokenizer and the options, so a changed corpus is another file. A corpus in which no added token
/// was found has the fingerprint that it has without them. Throws InputError for a path, an encoding (file and byte
/// offset), a JSON line (file and line) or a folder that the user has to mend, for a document that is too long to be
/// taken as a whole and has no place to be cut (file and line, and the tokenizer), and for a corpus without a single id;
/// PeerError where another process holds the lock and has written nothing for the time-out; TerminatedError where it is
/// asked to stop: what was written then goes.
TokenArray open_corpus(const CorpusOptions& options, const tokenizer::Tokenizer& tokenizer);

/// The same of a corpus whose lines or rows are no texts but what `reading` makes ids of: the field, the end of
/// documents and the tokenizer of the options are not looked at. Throws InputError for a .txt file, and what `reading`
/// throws.
TokenArray open_corpus(const CorpusOptions& options, const LineReading& reading);

/// Whether the corpus has more than one document; no line is read as JSON for that. Throws as open_corpus() does.
bool has_several_documents(const CorpusOptions& options);

/// The same as open_corpus() of a text in memory, one document, without a cache. `name` is what messages call it.
TokenArray tokenise_text(std::string_view text, const tokenizer::Tokenizer& tokenizer, bool append_eos,
                         std::string name);

/// The fingerprint of a part [begin, end) of data with this fingerprint.
std::string part_fingerprint(const std::string& whole, int64_t begin, int64_t end);

/// Throws InputError, naming corpus, position and id, where an id is not in [0, vocab_size). Reads every id once.
void check_ids(const TokenArray& tokens, int64_t vocab_size, const Tokenising& how = {});

}  // namespace trainyard::data
