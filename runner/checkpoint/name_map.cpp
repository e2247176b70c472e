#include "checkpoint/name_map.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMapBytes = size_t{1} << 20;
constexpr size_t kMaxPattern = 1024;

using Words = std::map<std::string, std::string>;  // what each placeholder stands for

/// A pattern taken apart: text, {word}, text, …
struct Piece {
  std::string text;  ///< or the word
  bool is_word = false, takes_dots = false;
};

std::vector<Piece> pieces_of(const std::string& pattern, const std::string& where) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = pattern.find('{', at);
    if (open != at) pieces.push_back({pattern.substr(at, open - at)});
    if (open == std::string::npos) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string::npos || close == open + 1)
      throw InputError(fmt::format("{}: '{}': a {{word}} has no end or no name", where, pattern));
    std::string word = pattern.substr(open + 1, close - open - 1);
    const bool takes_dots = word.ends_with("...");
    if (takes_dots) word.resize(word.size() - 3);
    pieces.push_back({word, true, takes_dots});
    at = close + 1;
  }
  return pieces;
}

/// Matches `name` from `at` on with the pieces from `index` on; leftmost shortest first.
bool matches(const std::vector<Piece>& pieces, size_t index, std::string_view name, Words& words) {
  if (index == pieces.size()) return name.empty();
  const Piece& piece = pieces[index];
  if (!piece.is_word)
    return name.starts_with(piece.text) && matches(pieces, index + 1, name.substr(piece.text.size()), words);
  if (const auto known = words.find(piece.text); known != words.end())
    return name.starts_with(known->second) && matches(pieces, index + 1, name.substr(known->second.size()), words);
  for (size_t length = 1; length <= name.size(); ++length) {
    if (!piece.takes_dots && name[length - 1] == '.') return false;
    words[piece.text] = name.substr(0, length);
    if (matches(pieces, index + 1, name.substr(length), words)) return true;
    words.erase(piece.text);
  }
  return false;
}

std::optional<Words> match(const std::string& pattern, const std::string& name) {
  Words words;
  if (!matches(pieces_of(pattern, pattern), 0, name, words)) return std::nullopt;
  return words;
}

std::string filled(const std::string& pattern, const Words& words) {
  std::string name;
  for (const Piece& piece : pieces_of(pattern, pattern)) name += piece.is_word ? words.at(piece.text) : piece.text;
  return name;
}

/// The YAML of a map, with errors that name file and line.
class MapReader {
 public:
  explicit MapReader(const fs::path& path) : path_(path) {}

  YAML::Node root() const {
    try {
      return YAML::Load(read_file(path_, kMaxMapBytes));
    } catch (const YAML::Exception& error) {
      throw InputError(fmt::format("{}:{}: not YAML: {}", path_.string(), error.mark.line + 1, error.msg));
    }
  }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& what) const {
    throw InputError(fmt::format("{}: {}", where(node), what));
  }
  std::string where(const YAML::Node& node) const { return fmt::format("{}:{}", path_.string(), line_of(node)); }
  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  std::string pattern(const YAML::Node& node, const char* what) const {
    if (!node.IsDefined() || !node.IsScalar() || node.Scalar().empty() || node.Scalar().size() > kMaxPattern)
      throw InputError(fmt::format("{}: {} must be a name", node.IsDefined() ? where(node) : path_.string(), what));
    size_t words = 0;
    for (const Piece& piece : pieces_of(node.Scalar(), where(node))) words += piece.is_word ? 1 : 0;
    if (words > 4) fail(node, "a pattern has at most four words");  // each may stand for any part: time is bounded
    return node.Scalar();
  }
  NameMap::Rule rule(const YAML::Node& node, bool is_split) const {
    if (!node.IsMap() || node.size() != 2) fail(node, "a rule is {from: …, to: …}");
    NameMap::Rule rule{line_of(node), pattern(node["from"], "from"), {}};
    const YAML::Node to = node["to"];
    if (!to.IsDefined() || to.IsSequence() != is_split)
      fail(node, is_split ? "to must be a list of names" : "to must be a name");
    if (is_split)
      for (const YAML::Node& each : to) rule.to.push_back(pattern(each, "to"));
    else
      rule.to.push_back(pattern(to, "to"));
    for (const std::string& target : rule.to) check_words(node, rule.from, target);
    return rule;
  }
  YAML::Node list(const YAML::Node& root, const char* key) const {
    const YAML::Node found = root[key];
    if (found.IsDefined() && !found.IsSequence()) fail(found, fmt::format("{} must be a list", key));
    return found.IsDefined() ? found : YAML::Node(YAML::NodeType::Sequence);
  }

 private:
  void check_words(const YAML::Node& node, const std::string& from, const std::string& to) const {
    std::set<std::string> known;
    for (const Piece& piece : pieces_of(from, where(node)))
      if (piece.is_word) known.insert(piece.text);
    for (const Piece& piece : pieces_of(to, where(node)))
      if (piece.is_word && !known.contains(piece.text))
        fail(node, fmt::format("'{}' has {{{}}}, which '{}' has not", to, piece.text, from));
  }

  const fs::path& path_;
};

/// Stored tensors under the model's names.
class MappedWeights final : public Weights {
 public:
  MappedWeights(std::unique_ptr<Weights> stored, const NameMap& map, const std::vector<Wanted>& wanted);

  bool has(const std::string& name) const override { return sources_.contains(name); }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, source] : sources_) names.push_back(name);
    return names;
  }
  Shape shape(const std::string& name) const override {
    const Source& source = find(name);
    if (source.is_transposed) return {source.rows, stored_->shape(source.stored).at(0)};
    Shape shape = stored_->shape(source.stored);
    shape.at(0) = source.rows;
    return shape;
  }
  std::string stored_dtype(const std::string& name) const override { return stored_->stored_dtype(find(name).stored); }
  fs::path path_of(const std::string& name) const override { return stored_->path_of(find(name).stored); }
  Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;
  std::optional<std::string> find_damage(int part, int parts) const override {
    return stored_->find_damage(part, parts);
  }
  bool may_lack_rows() const override { return stored_->may_lack_rows(); }

 private:
  struct Source {
    std::string stored;
    int64_t first_row = 0, rows = 0;  ///< of the stored tensor as the model wants it: after the transposition
    bool is_transposed = false;
  };
  void add(const std::string& name, Source source);
  void split(const std::string& stored, const NameMap::Rule& rule, const Words& words);
  [[nodiscard]] int64_t rows_of(const std::string& stored, bool is_transposed) const;
  [[nodiscard]] const Source& find(const std::string& name) const;
  [[nodiscard]] std::string at(const NameMap::Rule& rule) const {
    return fmt::format("{}:{}", map_.path().string(), rule.line);
  }

  std::unique_ptr<Weights> stored_;
  NameMap map_;
  std::map<std::string, Shape> wanted_;
  std::map<std::string, Source> sources_;
};

MappedWeights::MappedWeights(std::unique_ptr<Weights> stored, const NameMap& map, const std::vector<Wanted>& wanted)
    : stored_(std::move(stored)), map_(map) {
  for (const Wanted& each : wanted) wanted_.emplace(each.name, each.shape);
  std::vector<const NameMap::Rule*> unused;
  for (const NameMap::Rule& rule : map_.rules()) unused.push_back(&rule);
  for (const std::string& name : stored_->names()) {
    const NameMap::Rule* taken = nullptr;
    Words words;
    for (const NameMap::Rule& rule : map_.rules()) {
      auto found = match(rule.from, name);
      if (!found) continue;
      if (taken)
        throw InputError(fmt::format("{}: '{}' is matched by the rule of line {} too", at(rule), name, taken->line));
      taken = &rule;
      words = std::move(*found);
    }
    if (taken) {
      std::erase(unused, taken);
      split(name, *taken, words);
    } else if (!stored_->shape(name).empty()) {
      const bool is_transposed = map_.is_transposed(name);
      add(name, {name, 0, rows_of(name, is_transposed), is_transposed});
    }
  }
  if (!unused.empty())
    throw InputError(fmt::format("{}: '{}' matches no tensor; those of {} are such as '{}'", at(*unused[0]),
                                 unused[0]->from, stored_->path_of(stored_->names().at(0)).string(),
                                 stored_->names().at(0)));
}

void MappedWeights::add(const std::string& name, Source source) {
  const auto [known, is_new] = sources_.emplace(name, source);
  if (!is_new)
    throw InputError(fmt::format("{}: both '{}' and '{}' become '{}'", map_.path().string(), known->second.stored,
                                 source.stored, name));
}

/// One name, or several that share the stored rows as the model's shapes divide them.
void MappedWeights::split(const std::string& stored, const NameMap::Rule& rule, const Words& words) {
  const bool is_transposed = map_.is_transposed(filled(rule.to[0], words));
  const int64_t rows = rows_of(stored, is_transposed);
  if (rule.to.size() == 1) return add(filled(rule.to[0], words), {stored, 0, rows, is_transposed});
  int64_t next = 0;
  for (const std::string& to : rule.to) {
    const std::string name = filled(to, words);
    const auto shape = wanted_.find(name);
    if (shape == wanted_.end())
      throw InputError(fmt::format("{}: the model has no '{}', so nobody knows how many rows of '{}' it takes",
                                   at(rule), name, stored));
    add(name, {stored, next, shape->second.at(0), is_transposed});
    next += shape->second.at(0);
  }
  if (next != rows)
    throw InputError(
        fmt::format("{}: '{}' has {} rows, the tensors that it is split into have {}", at(rule), stored, rows, next));
}

int64_t MappedWeights::rows_of(const std::string& stored, bool is_transposed) const {
  const Shape shape = stored_->shape(stored);
  if (is_transposed && shape.size() != 2)
    throw InputError(
        fmt::format("{}: '{}' of shape {} cannot be transposed", map_.path().string(), stored, to_string(shape)));
  if (shape.empty()) throw InputError(fmt::format("{}: '{}' is a single number", map_.path().string(), stored));
  return is_transposed ? shape[1] : shape[0];
}

const MappedWeights::Source& MappedWeights::find(const std::string& name) const {
  const auto found = sources_.find(name);
  if (found == sources_.end())
    throw InputError(
        fmt::format("{}: no tensor becomes '{}'; add a rule for the name it has there", map_.path().string(), name));
  return found->second;
}

Tensor MappedWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const Source& source = find(name);
  if (begin < 0 || count < 0 || count > source.rows - begin)
    throw InputError(fmt::format("{}: tensor '{}': {} rows from {} on of {}", map_.path().string(), name, count, begin,
                                 source.rows));
  if (!source.is_transposed) return stored_->read_rows(source.stored, source.first_row + begin, count);
  // Columns of the stored tensor, a row of it at a time: never more than that beside the result.
  const int64_t columns = stored_->shape(source.stored)[0];
  Tensor rows = Tensor::empty({count, columns}, DType::Float32);
  for (int64_t column = 0; column < columns && count > 0; ++column) {
    const Tensor line = stored_->read_rows(source.stored, column, 1);
    for (int64_t row = 0; row < count; ++row)
      rows.data<float>()[row * columns + column] = line.data<float>()[source.first_row + begin + row];
  }
  return rows;
}

}  // namespace

NameMap::NameMap(const fs::path& file) : path_(file) {
  const MapReader reader(path_);
  const YAML::Node root = reader.root();
  if (!root.IsMap())
    throw InputError(fmt::format("{}: a map of names is rename:, split: and transpose:", file.string()));
  for (const auto& entry : root)
    if (const std::string key = entry.first.Scalar(); key != "rename" && key != "split" && key != "transpose")
      reader.fail(entry.first, fmt::format("'{}' is none of rename, split and transpose", key));
  for (const YAML::Node& node : reader.list(root, "rename")) rules_.push_back(reader.rule(node, false));
  for (const YAML::Node& node : reader.list(root, "split")) rules_.push_back(reader.rule(node, true));
  for (const YAML::Node& node : reader.list(root, "transpose"))
    transposed_.push_back(reader.pattern(node, "an entry of transpose"));
}

bool NameMap::is_transposed(const std::string& name) const {
  return std::ranges::any_of(transposed_, [&](const std::string& pattern) { return match(pattern, name).has_value(); });
}

std::unique_ptr<Weights> mapped(std::unique_ptr<Weights> stored, const NameMap& map,
                                const std::vector<Wanted>& wanted) {
  return std::make_unique<MappedWeights>(std::move(stored), map, wanted);
}

}  // namespace trainyard::checkpoint
