#include "data/corpus.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/cache_file.h"
#include "data/columns/open_column.h"
#include "data/corpus_files.h"
#include "data/documents.h"
#include "data/unpacking.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using tokenizer::Fingerprint;
using tokenizer::Tokenizer;

/// What ends a document; none where it is not asked for or the tokenizer has none.
std::optional<int32_t> end_of_document(const Tokenizer& tokenizer, bool append_eos) {
  return append_eos ? tokenizer.eos_id() : std::nullopt;
}

std::string eos_text(std::optional<int32_t> eos) {
  return eos ? fmt::format("eos {}", *eos) : "no eos";
}

/// The keys of a corpus by what is found of added tokens in it. Where that is nothing its ids are those of a tokenizer
/// without them, and it has that key.
using Keys = std::array<std::string, 3>;

Keys keys_of(Fingerprint& all_else) {
  return {all_else.hex(), all_else.add("added tokens are found").hex(),
          all_else.add("special tokens are parsed").hex()};
}

const std::string& key_in(const Keys& keys, tokenizer::Added found) {
  return keys.at(static_cast<size_t>(found));
}

Cutter cutter_of(const Tokenizer& tokenizer, const CorpusOptions& options) {
  return {[&](std::string_view document, size_t at) { return tokenizer.is_border(document, at); },
          fmt::format("the tokenizer {}", options.tokenizer)};
}

/// What a corpus' key calls a file. A packed file is known by its packed bytes, a table by all of it: each rank reads
/// them, and unpacking costs more than that.
const char* kind_of(const fs::path& file) {
  switch (document_in(file)) {
    case DocumentIs::File:
      return "txt";
    case DocumentIs::Line:
      return is_packed(file) ? "jsonl packed" : "jsonl";
    case DocumentIs::Row:
      return "table";
  }
  return "";
}

void add_file(Fingerprint& key, const MappedFile& content, const Tokenising& how) {
  key.add(kind_of(content.path()));
  key.add(content.text(), [&] { stop_if_asked(how, "reading " + content.path().string()); });
}

Keys keys_of(const std::vector<fs::path>& files, const CorpusOptions& options, const Tokenizer& tokenizer) {
  Fingerprint key;
  const Cutter cutter = cutter_of(tokenizer, options);
  const auto eos = end_of_document(tokenizer, options.append_eos);
  bool has_empty = false, was_cut = false;
  key.add("corpus 1").add(tokenizer.fingerprint()).add(eos_text(eos));
  for (const fs::path& file : files) {
    key.add(document_in(file) == DocumentIs::File ? "" : options.field);
    const MappedFile content(file);
    add_file(key, content, options.how);
    if (is_packed(file) || is_table(file)) continue;  // no former version read it
    has_empty = has_empty || (eos && has_empty_document(content, options.field));
    was_cut = was_cut || was_cut_elsewhere(content, options.field, cutter.is_border);
  }
  if (has_empty) key.add("empty documents end");  // which they once did not: such a corpus has other ids now
  if (was_cut) key.add("cut at borders alone");  // likewise
  return keys_of(key);
}

std::optional<fs::path> user_cache_folder() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "trainyard";
  if (const char* const home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "trainyard";
  return std::nullopt;
}

bool can_be_written(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

/// Where this corpus' cache is, or is to be: the first folder that has it, else the first that can be written.
fs::path cache_file(const CorpusOptions& options, const std::string& key) {
  std::vector<fs::path> folders;
  if (!options.cache_dir.empty()) {
    folders.push_back(options.cache_dir);
  } else {
    folders.push_back(folder_of(options.path) / ".trainyard");
    if (auto user = user_cache_folder()) folders.push_back(*user);
  }
  const std::string name = key + ".tokens";
  for (const fs::path& folder : folders)
    if (fs::exists(folder / name)) return folder / name;
  for (const fs::path& folder : folders)
    if (can_be_written(folder)) return folder / name;
  throw InputError(fmt::format("{}: this folder for the tokenised corpus cannot be written; set data.cache_dir",
                               folders.back().string()));
}

/// A line now and then on a long way.
class Telling {
 public:
  Telling(const std::vector<fs::path>& files, std::string name) : name_(std::move(name)) {
    for (const fs::path& file : files) all_ += fs::file_size(file);
  }

  void read(size_t bytes) {
    read_ += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kInterval) return;
    last_ = now;
    spdlog::info("{}: {} of text are tokenised so far, of files of {}", name_, human_bytes(read_), human_bytes(all_));
  }

 private:
  static constexpr std::chrono::seconds kInterval{30};
  std::string name_;
  uint64_t all_ = 0, read_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What a stretch of a file became.
struct Tokenised {
  std::vector<int32_t> ids = {};
  uint64_t documents = 0;
  size_t bytes = 0;
  tokenizer::Added found = tokenizer::Added::None;
};

/// How the documents of a corpus become ids.
class Documents {
 public:
  Documents() = default;
  virtual ~Documents() = default;
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  [[nodiscard]] virtual Keys keys(const std::vector<fs::path>& files) const = 0;
  /// The most that is found of added tokens in any of them.
  [[nodiscard]] virtual tokenizer::Added sought() const = 0;
  /// The header of an empty cache file.
  [[nodiscard]] virtual CacheHeader header() const = 0;
  virtual void for_each_stretch(const fs::path& file, const std::function<void(const Stretch&)>& visit) const = 0;
  [[nodiscard]] virtual Tokenised tokenise(const fs::path& file, const Stretch& stretch,
                                           const Workers& workers) const = 0;
};

class Texts final : public Documents {
 public:
  Texts(const CorpusOptions& options, const Tokenizer& tokenizer) : options_(options), tokenizer_(tokenizer) {}

  [[nodiscard]] Keys keys(const std::vector<fs::path>& files) const override {
    return keys_of(files, options_, tokenizer_);
  }
  [[nodiscard]] tokenizer::Added sought() const override { return tokenizer_.sought(); }
  [[nodiscard]] CacheHeader header() const override {
    return {.bytes_an_id = tokenizer_.vocab_size() <= 1 << 16 ? 2U : 4U};
  }
  void for_each_stretch(const fs::path& file, const std::function<void(const Stretch&)>& visit) const override {
    data::for_each_stretch(file, options_.field, cutter_of(tokenizer_, options_), visit);
  }

  [[nodiscard]] Tokenised tokenise(const fs::path& file, const Stretch& stretch,
                                   const Workers& workers) const override {
    const auto eos = end_of_document(tokenizer_, options_.append_eos);
    Tokenised done{.bytes = stretch.bytes()};
    for_each_part(file, stretch, options_.field, cutter_of(tokenizer_, options_), [&](const TextPart& part) {
      if (workers.are_ending()) throw TerminatedError("nobody waits for this any more");
      if (!part.text.empty()) {
        const std::vector<int32_t> ids = tokenizer_.encode_after(part.before, part.text);
        done.ids.insert(done.ids.end(), ids.begin(), ids.end());
        if (done.found < tokenizer_.sought()) done.found = std::max(done.found, tokenizer_.found_in(part.text));
      }
      if (!part.is_last) return;
      ++done.documents;
      if (eos) done.ids.push_back(*eos);
    });
    return done;
  }

 private:
  const CorpusOptions& options_;
  const Tokenizer& tokenizer_;
};

class Lines final : public Documents {
 public:
  Lines(const CorpusOptions& options, const LineReading& reading) : options_(options), reading_(reading) {}

  [[nodiscard]] Keys keys(const std::vector<fs::path>& files) const override {
    Fingerprint key;
    key.add("lines 1").add(reading_.description());
    for (const fs::path& file : files) {
      if (document_in(file) == DocumentIs::File)
        throw InputError(fmt::format("{}: {} come from .jsonl files and tables", file.string(), reading_.name()));
      add_file(key, MappedFile(file), options_.how);
    }
    return keys_of(key);
  }
  [[nodiscard]] tokenizer::Added sought() const override { return tokenizer::Added::None; }
  [[nodiscard]] CacheHeader header() const override {
    return {.magic = reading_.counting() == Counting::SomeIds ? kSomeCount : kAllCount};
  }
  void for_each_stretch(const fs::path& file, const std::function<void(const Stretch&)>& visit) const override {
    for_each_record_stretch(file, reading_.columns(), visit);
  }

  [[nodiscard]] Tokenised tokenise(const fs::path& file, const Stretch& stretch,
                                   const Workers& workers) const override {
    Tokenised done{.bytes = stretch.bytes()};
    for_each_line(file, stretch, [&](std::string_view line, const std::string& where) {
      if (workers.are_ending()) throw TerminatedError("nobody waits for this any more");
      const std::vector<int32_t> ids = reading_.ids(line, where);
      done.ids.insert(done.ids.end(), ids.begin(), ids.end());
      ++done.documents;
    });
    return done;
  }

 private:
  const CorpusOptions& options_;
  const LineReading& reading_;
};

/// Returns what of added tokens was found.
tokenizer::Added tokenise(const std::vector<fs::path>& files, const CorpusOptions& options, const Documents& documents,
                          CacheWriter& writer) {
  tokenizer::Added found = tokenizer::Added::None;
  Telling telling(files, options.path.string());
  for (const fs::path& path : files) {
    InOrder<Tokenised> parts(options.how, "tokenising " + options.path.string(), [&](const Tokenised& part) {
      writer.append(part.ids);
      writer.count_documents(part.documents);
      telling.read(part.bytes);
      found = std::max(found, part.found);
    });
    documents.for_each_stretch(path, [&](const Stretch& stretch) {
      parts.add([&, stretch](const Workers& workers) { return documents.tokenise(path, stretch, workers); });
    });
    parts.finish();
  }
  if (writer.header().ids == 0) throw InputError(fmt::format("{}: the corpus is empty", options.path.string()));
  return found;
}

void build(const fs::path& cached, const Keys& keys, const std::vector<fs::path>& files, const CorpusOptions& options,
           const Documents& documents) {
  auto writer = CacheWriter::begin(cached, documents.header(), options.timeout, options.how);
  if (!writer) return;
  writer->set_key(key_in(keys, tokenise(files, options, documents, *writer)));
  writer->commit();
  spdlog::info("{}: {} tokens in {} documents, kept in {}", options.path.string(),
               with_thousands(static_cast<int64_t>(writer->header().ids)),
               with_thousands(static_cast<int64_t>(writer->header().documents)), cached.string());
}

/// Whether the file is whole, and that of the corpus its name stands for: it may have been copied or renamed.
bool is_right(const fs::path& cached, const Keys& keys, const std::string& name) {
  try {
    if (std::ranges::find(keys, TokenArray::map(cached, name).fingerprint()) != keys.end()) return true;
    spdlog::warn("{}: holds another corpus than its name says; the corpus is tokenised again", cached.string());
    return false;
  } catch (const InputError& error) {
    spdlog::warn("{}; the corpus is tokenised again", error.what());
    return false;
  }
}

TokenArray open(const CorpusOptions& options, const Documents& documents) {
  const auto files = corpus_files(options.path, options.how.notes);
  const Keys keys = documents.keys(files);
  const std::string name = options.path.string();
  const fs::path cached = cache_file(options, key_in(keys, documents.sought()));
  if (fs::exists(cached) && !is_right(cached, keys, name)) fs::remove(cached);
  if (!fs::exists(cached)) build(cached, keys, files, options, documents);
  return TokenArray::map(cached, name);
}

/// Lines that are not empty; two at most are counted.
int lines_in(std::string_view lines) {
  int documents = 0;
  while (!lines.empty() && documents < 2) {
    const size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    documents += trim(lines.substr(0, end)).empty() ? 0 : 1;
    lines.remove_prefix(end);
  }
  return documents;
}

/// The documents of a file; two at most are counted.
int documents_in(const fs::path& file, const std::string& field) {
  switch (document_in(file)) {
    case DocumentIs::File:
      return fs::file_size(file) > 0 ? 1 : 0;
    case DocumentIs::Row:
      return static_cast<int>(std::min<int64_t>(open_text_column(file, field)->rows(), 2));
    case DocumentIs::Line:
      break;
  }
  int documents = 0;
  GroupsOfLines groups(file);
  while (documents < 2) {
    const auto lines = groups.next();
    if (!lines) break;
    documents += lines_in(lines->text);
  }
  return documents;
}

}  // namespace

TokenArray open_corpus(const CorpusOptions& options, const Tokenizer& tokenizer) {
  return open(options, Texts(options, tokenizer));
}

TokenArray open_corpus(const CorpusOptions& options, const LineReading& reading) {
  return open(options, Lines(options, reading));
}

bool has_several_documents(const CorpusOptions& options) {
  int documents = 0;
  for (const fs::path& path : corpus_files(options.path, Notes::Unsaid)) {
    documents += documents_in(path, options.field);
    if (documents > 1) return true;
  }
  return false;
}

TokenArray tokenise_text(std::string_view text, const Tokenizer& tokenizer, bool append_eos, std::string name) {
  tokenizer::require_utf8(text, name);
  if (text.empty()) throw InputError(fmt::format("{}: the corpus is empty", name));
  std::vector<int32_t> ids = tokenizer.encode(text);
  const auto eos = end_of_document(tokenizer, append_eos);
  if (eos) ids.push_back(*eos);
  Fingerprint fingerprint;
  fingerprint.add("text 1").add(tokenizer.fingerprint()).add(eos_text(eos)).add(text);
  return {std::move(ids), std::move(name), key_in(keys_of(fingerprint), tokenizer.found_in(text))};
}

}  // namespace trainyard::data
