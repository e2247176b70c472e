#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/files/json_file.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"

namespace trainyard::tokenizer {
namespace {

constexpr size_t kMaxTokenBytes = 1024;  ///< published vocabularies stay below 260

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> decode_base64(std::string_view written) {
  if (written.empty() || written.size() % 4 != 0) return std::nullopt;
  const size_t padding = written.ends_with("==") ? 2 : written.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    const int value = i < written.size() - padding ? base64_value(written[i]) : 0;
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 == 3)
      for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

struct Ranked {
  std::string bytes;
  int64_t rank;
};

std::optional<Ranked> parse_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  auto bytes = decode_base64(line.substr(0, space));
  const auto rank = parse_int(line.substr(space + 1));
  if (!bytes || !rank || *rank < 0 || *rank >= kMaxVocab || bytes->size() > kMaxTokenBytes) return std::nullopt;
  return Ranked{std::move(*bytes), *rank};
}

std::vector<std::optional<std::string>> read_pieces(std::string_view content, const std::string& where) {
  std::vector<std::optional<std::string>> pieces;
  for (size_t line_number = 1; !content.empty(); ++line_number) {
    const size_t end = content.find('\n');
    const std::string_view line = trim(content.substr(0, end));
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.empty()) continue;
    auto ranked = parse_line(line);
    if (!ranked)
      throw InputError(fmt::format("{}:{}: must be a token in base64, a space and its rank", where, line_number));
    const auto at = static_cast<size_t>(ranked->rank);
    if (at >= pieces.size()) pieces.resize(at + 1);
    if (pieces[at]) throw InputError(fmt::format("{}:{}: rank {} stands there twice", where, line_number, at));
    pieces[at] = std::move(ranked->bytes);
  }
  return pieces;
}

using Ids = std::unordered_map<std::string_view, int32_t>;

Ids index_of(const std::vector<std::optional<std::string>>& pieces, const std::string& where) {
  Ids ids;
  for (size_t id = 0; id < pieces.size(); ++id)
    if (pieces[id] && !ids.emplace(*pieces[id], static_cast<int32_t>(id)).second)
      throw InputError(fmt::format("{}: ranks {} and {} are the same token", where, ids.at(*pieces[id]), id));
  return ids;
}

/// tiktoken joins the neighbours whose union has the lowest rank. So every way to cut a token in two tokens is a merge,
/// and the tokens in order of their rank are the merges in order of theirs.
std::vector<Merge> merges_of(const std::vector<std::optional<std::string>>& pieces, const Ids& ids) {
  std::vector<Merge> merges;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id]) continue;
    const std::string_view whole = *pieces[id];
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = ids.find(whole.substr(0, cut)), right = ids.find(whole.substr(cut));
      if (left != ids.end() && right != ids.end())
        merges.push_back({left->second, right->second, static_cast<int32_t>(id)});
    }
  }
  return merges;
}

struct Family {
  size_t ranks;
  const char* pattern;
  bool nfc;
};
// cl100k_base differs from Llama 3's pattern only in how it is written.
constexpr std::array kFamilies{Family{128000, kLlama3Pattern, false}, Family{151643, kQwen2Pattern, true},
                               Family{100256, kLlama3Pattern, false}};

AddedToken special_token(const std::string& text) {
  return {.content = text, .special = true};
}

/// Llama 3's 256 special tokens lie behind the ranks; the published file does not hold them.
void add_llama3_tokens(SpecialTokens& special) {
  constexpr int32_t kFirst = 128000;
  std::vector<std::string> texts{"<|begin_of_text|>", "<|end_of_text|>"};
  int reserved = 0;
  const auto add_reserved = [&](size_t up_to) {
    while (texts.size() < up_to) texts.push_back(fmt::format("<|reserved_special_token_{}|>", reserved++));
  };
  add_reserved(6);
  texts.insert(texts.end(), {"<|start_header_id|>", "<|end_header_id|>"});
  add_reserved(9);
  texts.emplace_back("<|eot_id|>");
  add_reserved(256);
  for (size_t i = 0; i < texts.size(); ++i)
    special.added.emplace(kFirst + static_cast<int32_t>(i), special_token(texts[i]));  // the folder's own names win
  if (!special.eos) special.eos = "<|end_of_text|>";
  if (!special.bos) special.bos = "<|begin_of_text|>";
}

void add_known_tokens(size_t ranks, SpecialTokens& special) {
  const auto add = [&](std::initializer_list<std::pair<int32_t, const char*>> tokens) {
    for (const auto& [id, text] : tokens) special.added.emplace(id, special_token(text));
  };
  if (ranks == 128000) add_llama3_tokens(special);
  if (ranks == 151643) add({{151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}});
  if (ranks == 100256)
    add({{100257, "<|endoftext|>"},
         {100258, "<|fim_prefix|>"},
         {100259, "<|fim_middle|>"},
         {100260, "<|fim_suffix|>"},
         {100276, "<|endofprompt|>"}});
}

}  // namespace

bool looks_like_tiktoken(std::string_view content) {
  return parse_line(trim(content.substr(0, content.find('\n')))).has_value();
}

std::unique_ptr<Tokenizer> read_tiktoken(std::string_view content, const std::string& where, SpecialTokens special) {
  BpeModel::Vocabulary vocabulary;
  vocabulary.pieces = read_pieces(content, where);
  const Ids ids = index_of(vocabulary.pieces, where);
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const auto found = ids.find(std::string_view(&text, 1));
    if (found == ids.end())
      throw InputError(fmt::format("{}: no token for the byte 0x{:02x}; the file is not complete", where, byte));
    vocabulary.byte_ids[byte] = found->second;
  }
  vocabulary.merges = merges_of(vocabulary.pieces, ids);
  vocabulary.whole_piece = WholePiece::First;
  const size_t ranks = ids.size();
  const auto family = std::ranges::find(kFamilies, ranks, &Family::ranks);
  const Family& rules = family == kFamilies.end() ? kFamilies[0] : *family;
  add_known_tokens(ranks, special);
  const std::string fingerprint = Fingerprint().add("tiktoken 1").add(content).add(special.content).hex();
  const TextSteps steps{.normalization = rules.nfc ? std::vector{Normalization::Nfc} : std::vector<Normalization>{},
                        .rules = {{rules.pattern}}};
  return std::make_unique<BpeTokenizer>(BpeParts{.model = BpeModel(std::move(vocabulary)),
                                                 .splitter = PieceSplitter(steps, where),
                                                 .normalization = steps.normalization,
                                                 .special = std::move(special),
                                                 .fingerprint = fingerprint});
}

}  // namespace trainyard::tokenizer
