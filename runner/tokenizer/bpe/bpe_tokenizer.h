#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/files/special_tokens.h"
#include "tokenizer/text/added_tokens.h"
#include "tokenizer/text/text_steps.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/workspaces.h"

namespace trainyard::tokenizer {

/// What a file's reader hands over: everything of a byte-level BPE but where it came from.
struct BpeParts {
  BpeModel model;
  PieceSplitter splitter;
  std::vector<Normalization> normalization = {};
  SpecialTokens special;
  std::map<int32_t, std::string> unspelled = {};  ///< tokens that no text comes to, as they are written
  std::string fingerprint;
};

/// Byte-level BPE: find added tokens, normalise, split, encode each piece, with what recent pieces gave at hand.
class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts);
  ~BpeTokenizer() override;

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const override;
  [[nodiscard]] Added sought() const override { return added_.sought(); }
  [[nodiscard]] Added found_in(std::string_view text) const override { return added_.found_in(text); }
  [[nodiscard]] bool is_border(std::string_view document, size_t at) const override;
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override;
  [[nodiscard]] int64_t vocab_size() const override { return vocab_size_; }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return eos_; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return bos_; }
  [[nodiscard]] std::string fingerprint() const override { return parts_.fingerprint; }

 private:
  struct Workspace;
  void encode_stretch(std::string_view text, Place place, Workspace& workspace, std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;
  [[nodiscard]] std::optional<int32_t> find_token(const std::string& written) const;

  BpeParts parts_;
  AddedTokens added_;
  int64_t vocab_size_;
  std::optional<int32_t> eos_, bos_;
  std::unique_ptr<Workspaces<Workspace>> workspaces_;
};

}  // namespace trainyard::tokenizer
