#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::tokenizer {

/// A token that was added to a vocabulary, and how it is found in text. Names and meaning of the flags are those of
/// Hugging Face `tokenizers`.
struct AddedToken {
  std::string content;
  bool special = false;      ///< plain text, unless special tokens are to be read in text
  bool normalized = false;   ///< looked for in what the normaliser makes of the text
  bool single_word = false;  ///< only where no letter or digit is beside it
  bool lstrip = false;       ///< takes the white space before it in
  bool rstrip = false;       ///< and that behind it
  bool operator==(const AddedToken&) const = default;
};

/// Finds tokens in a text from its left; of those that begin at one place, the longest. Immutable once all are added.
class TokenFinder {
 public:
  /// Whether what is found counts. What does not hides tokens that overlap it all the same, as in `tokenizers`.
  enum class Counts { Yes, No };

  /// Looks for `written` too, which stands for `id` by the flags of `token`. Of two that are written alike the first
  /// stays.
  void add(const std::string& written, int32_t id, const AddedToken& token, Counts counts);

  /// Whether nothing that counts can be found.
  [[nodiscard]] bool is_idle() const { return !has_counting_; }

  /// Hands on the parts of `text`, well-formed UTF-8, in order: tokens by their id, what lies between them without,
  /// none of it empty.
  using Visit = std::function<void(std::string_view part, std::optional<int32_t> token)>;
  void split(std::string_view text, const Visit& visit) const;

  /// Whether the two sides of `cut`, a place between two characters of `text`, have the tokens that they have in the
  /// whole.
  [[nodiscard]] bool is_safe_cut(std::string_view text, size_t cut) const;

  /// Whether `text` has one of them, be it one that does not count.
  [[nodiscard]] bool is_in(std::string_view text) const { return next(text, 0).has_value(); }

  /// Bytes of the longest that is looked for.
  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  struct Sought {
    size_t length;
    int32_t id;
    bool counts, single_word, lstrip, rstrip;
  };
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> next;
    int32_t sought = -1;  ///< what ends here
  };
  struct Found {
    size_t begin, end;
    const Sought* sought;
  };
  [[nodiscard]] const Node* child(const Node& node, char byte) const;
  [[nodiscard]] const Sought* longest_at_front(std::string_view text) const;
  [[nodiscard]] std::optional<Found> next(std::string_view text, size_t from) const;
  [[nodiscard]] size_t next_beginning(std::string_view text, size_t from) const;

  std::vector<Node> nodes_{1};  ///< a trie, the root first
  std::vector<Sought> sought_;
  std::array<bool, 256> begins_{};  ///< one of them with this byte
  size_t beginnings_ = 0;           ///< how many bytes that are
  char only_beginning_ = 0;         ///< where it is one
  size_t longest_ = 0;
  bool has_counting_ = false, has_strips_ = false;
};

}  // namespace trainyard::tokenizer
