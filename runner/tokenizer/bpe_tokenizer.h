#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_model.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/splitter.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/workspaces.h"

namespace trainyard::tokenizer {

/// What a file's reader hands over: everything of a byte-level BPE but where it came from.
struct BpeParts {
  BpeModel model;
  Splitter splitter;
  std::vector<Normalization> normalization;
  bool add_prefix_space = false;  ///< in front of a text that begins with none
  SpecialTokens special;
  std::string fingerprint;
};

/// Byte-level BPE: normalise, split, encode each piece, with what recent pieces gave at hand.
class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts);
  ~BpeTokenizer() override;

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const override;
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override;
  [[nodiscard]] int64_t vocab_size() const override { return vocab_size_; }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return eos_; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return bos_; }
  [[nodiscard]] std::string fingerprint() const override { return parts_.fingerprint; }

 private:
  struct Workspace;
  void encode_piece(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;
  [[nodiscard]] std::optional<int32_t> find_token(const std::string& written) const;

  BpeParts parts_;
  int64_t vocab_size_;
  std::optional<int32_t> eos_, bos_;
  std::unique_ptr<Workspaces<Workspace>> workspaces_;
};

}  // namespace trainyard::tokenizer
