#include <catch2/catch.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/splitter.h"
#include "tokenizer/tokenizer.h"

// Each format by a small file made here: what is read out of it, and what is said of a damaged one.
namespace trainyard::tokenizer {
namespace {
namespace fs = std::filesystem;

using Ids = std::vector<int32_t>;

/// A tokenizer.json around `model`, `pre_tokenizer` and `normalizer`.
std::string tokenizer_json(const std::string& model,
                           const std::string& pre = R"({"type": "ByteLevel", "add_prefix_space": false})",
                           const std::string& normalizer = "null") {
  return R"({"normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre + R"(, "model": )" + model + "}";
}

std::unique_ptr<Tokenizer> read_json(const std::string& content) {
  return read_hugging_face(content, "tokenizer.json", {});
}

constexpr const char* kAbc =
    R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5, "Ġ": 6, "1": 7, "2": 8}, "merges": ["b c", "a b", "ab c"]})";

}  // namespace

TEST_CASE("tokenizer.json: merges go by rank, leftmost first, and bytes without a token vanish", "[tokenizer]") {
  const auto tokenizer = read_json(tokenizer_json(kAbc));
  CHECK(tokenizer->encode("abc") == Ids{0, 5});  // "b c" comes before "a b"
  CHECK(tokenizer->encode("abab") == Ids{3, 3});
  CHECK(tokenizer->encode("a x b") == Ids{0, 6, 6, 1});
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->decode(Ids{3, 6, 5}) == "ab bc");
  CHECK(tokenizer->vocab_size() == 9);
  CHECK_FALSE(tokenizer->eos_id());
}

TEST_CASE("tokenizer.json: with ignore_merges a whole piece in the vocabulary is the token", "[tokenizer]") {
  std::string model = kAbc;
  model.insert(1, R"("ignore_merges": true, )");
  const auto tokenizer = read_json(tokenizer_json(model));
  CHECK(tokenizer->encode("abc") == Ids{4});
  CHECK(tokenizer->encode("abcab") == Ids{0, 5, 3});
}

TEST_CASE("tokenizer.json: an unknown token stands for bytes without one, fused or each", "[tokenizer]") {
  const std::string vocab = R"("unk_token": "?", "vocab": {"a": 0, "?": 1}, "merges": []})";
  CHECK(read_json(tokenizer_json(R"({"type": "BPE", "fuse_unk": false, )" + vocab))->encode("axya") == Ids{0, 1, 1, 0});
  CHECK(read_json(tokenizer_json(R"({"type": "BPE", "fuse_unk": true, )" + vocab))->encode("axya") == Ids{0, 1, 0});
}

TEST_CASE("tokenizer.json: normalisers and pre-tokenizers are carried out in order", "[tokenizer]") {
  const std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})";
  CHECK(read_json(tokenizer_json(kAbc, bytes))->encode("ab") == Ids{6, 3});
  CHECK(read_json(tokenizer_json(kAbc, bytes))->encode(" ab") == Ids{6, 3});
  const std::string digits =
      R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, )" + bytes + "]}";
  CHECK(read_json(tokenizer_json(kAbc, digits))->encode("12") == Ids{6, 7, 6, 8});
  const std::string split =
      R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"String": "b"}, "behavior": "BEHAVIOR"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  const auto with = [&](const std::string& behavior) {
    std::string pre = split;
    return read_json(tokenizer_json(kAbc, pre.replace(pre.find("BEHAVIOR"), 8, behavior)));
  };
  CHECK(with("Isolated")->encode("abbc") == Ids{0, 1, 1, 2});
  CHECK(with("Removed")->encode("abbc") == Ids{0, 2});
  CHECK(with("MergedWithPrevious")->encode("abbc") == Ids{3, 1, 2});
  CHECK(with("MergedWithNext")->encode("abbc") == Ids{0, 1, 5});
  CHECK(with("Contiguous")->encode("abbc") == Ids{0, 1, 1, 2});
  const std::string nfkc = R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}]})";
  CHECK(read_json(tokenizer_json(kAbc, bytes, nfkc))->encode("\xEF\xBD\x81") == Ids{6, 0});  // U+FF41, a wide a
}

TEST_CASE("tokenizer.json: what cannot be used is named by its field", "[tokenizer]") {
  const auto [content, message] = GENERATE(table<std::string, std::string>({
      {"{", "tokenizer.json: "},
      {"[]", "tokenizer.json: must be an object, is array"},
      {"{}", "pre_tokenizer: no ByteLevel step"},
      {tokenizer_json("null"), "tokenizer.json: model: must be an object, is absent"},
      {tokenizer_json(R"({"type": "Unigram"})"), "model.type: must be BPE"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {"a": -1}})"), "model.vocab: token 'a': must be a token id from 0"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {"a": 99999999999}})"), "must be a token id from 0"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {"a": 1}, "merges": ["a b"]})"),
       "model.merges[0]: 'b' is not in the vocabulary"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {"a": 1}, "merges": ["a a"]})"),
       "model.merges[0]: 'aa' is not in the vocabulary"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {"a": 1}, "merges": ["a"]})"), "model.merges[0]: must be two tokens"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {}, "byte_fallback": true})"), "byte fallback does not go with"},
      {tokenizer_json(R"({"type": "BPE", "vocab": {}, "dropout": 0.1})"), "model.dropout"},
      {tokenizer_json(kAbc, R"({"type": "Metaspace"})"), "pre_tokenizer.type: must be ByteLevel, Split"},
      {tokenizer_json(kAbc, R"({"type": "Split", "pattern": {"Regex": "(["}, "behavior": "Isolated"})"),
       "no ByteLevel step"},
      {tokenizer_json(
           kAbc,
           R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(["}, "behavior": "Isolated"}, {"type": "ByteLevel"}]})"),
       "split pattern '(['"},
      {tokenizer_json(kAbc, R"({"type": "ByteLevel"})", R"({"type": "Lowercase"})"), "normalizer.type: must be NFC"},
  }));
  INFO(content);
  CHECK_THROWS_AS(read_json(content), InputError);
  CHECK_THROWS_WITH(read_json(content), Catch::Contains(message));
}

// As transformers 5.17's AutoTokenizer has it, and without tokenizer_config.json tokenizers 0.23.
TEST_CASE("tokenizer_config.json: the class is that of either configuration, else of the family", "[tokenizer]") {
  const Ids of_file{2}, of_gpt2{3, 2}, of_qwen2{3, 0, 3, 1};
  const char* const kSpace = R"({"add_prefix_space": true})";
  const auto [tokenizer, model, expected] = GENERATE_COPY(table<std::string, std::string, Ids>({
      {R"({"tokenizer_class": "BartTokenizerFast", "add_prefix_space": true})", "{}", of_gpt2},
      {kSpace, R"({"model_type": "gpt2"})", of_gpt2},
      {kSpace, R"({"model_type": "gpt_neox"})", of_gpt2},
      {kSpace, R"({"model_type": "qwen3"})", of_qwen2},
      {kSpace, R"({"model_type": "llama"})", of_file},
      {kSpace, R"({"model_type": "llama", "tokenizer_class": "GPT2TokenizerFast"})", of_gpt2},
      {kSpace, R"({"model_type": "qwen3", "tokenizer_class": "PreTrainedTokenizerFast"})", of_file},
      {kSpace, R"({"model_type": "olmo2", "tokenizer_class": "GPT2Tokenizer"})", of_file},
      {"", R"({"model_type": "qwen3"})", of_file},
  }));
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(
      R"({"type": "BPE", "vocab": {"1": 0, "2": 1, "12": 2, "Ġ": 3}, "merges": ["1 2"]})"));
  write_file_atomically(folder / "config.json", model);
  if (!tokenizer.empty()) write_file_atomically(folder / "tokenizer_config.json", tokenizer);
  INFO(tokenizer << model);
  CHECK(load_tokenizer(folder.path())->encode("12") == expected);
}

TEST_CASE("tokenizer.json: the class by which AutoTokenizer splits otherwise beside a model's config.json is told",
          "[tokenizer]") {
  const char *const kFast = R"({"tokenizer_class": "PreTrainedTokenizerFast"})",
             *const kQwen2 = R"({"tokenizer_class": "Qwen2Tokenizer"})";
  const auto [tokenizer, family, expected] = GENERATE_COPY(table<std::string, std::string, std::string>({
      {"", "qwen3", "Qwen2Tokenizer"},
      {"", "qwen2", "Qwen2Tokenizer"},
      {"", "llama", ""},
      {"", "mistral", ""},
      {"{}", "qwen3", "Qwen2Tokenizer"},
      {kFast, "qwen3", ""},
      {kFast, "qwen2", "Qwen2Tokenizer"},
      {kFast, "llama", ""},
      {kQwen2, "qwen3", ""},
      {kQwen2, "llama", ""},
      {kQwen2, "mistral", "PreTrainedTokenizerFast"},
  }));
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(kAbc));
  if (!tokenizer.empty()) write_file_atomically(folder / "tokenizer_config.json", tokenizer);
  INFO(tokenizer << " beside " << family);
  CHECK(other_class_beside(family, folder.path()) == expected);
  CHECK(other_class_beside(family, folder / "tokenizer.json") == expected);
}

TEST_CASE("tokenizer.json: beside a model whose class splits as it does nothing is told", "[tokenizer]") {
  const test::TemporaryFolder folder;
  const std::string pattern = nlohmann::json(kQwen2Pattern).dump();
  const std::string content = tokenizer_json(
      kAbc,
      R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": )" + pattern +
          R"(}, "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})",
      R"({"type": "NFC"})");
  write_file_atomically(folder / "tokenizer.json", content);
  CHECK(other_class_beside("qwen3", folder.path()).empty());
  CHECK(other_class_beside("llama", folder.path()).empty());
  CHECK(other_class_beside("qwen3", "bytes").empty());
  SpecialTokens qwen2;
  qwen2.has_config = true;
  qwen2.tokenizer_class = "Qwen2Tokenizer";
  CHECK(read_hugging_face(content, "tokenizer.json", qwen2)->fingerprint() ==
        Fingerprint().add("hugging-face 1").add(content).add("").hex());
}

TEST_CASE("vocab.json and merges.txt: the class decides the split pattern, else GPT-2's", "[tokenizer]") {
  const NamedContent vocab{R"({"1": 0, "2": 1, "12": 2, "<|endoftext|>": 3})", "vocab.json"},
      merges{"#version: 0.2\n1 2\r\n\n", "merges.txt"};
  const auto gpt2 = read_vocab_and_merges(vocab, merges, {});
  CHECK(gpt2->encode("12") == Ids{2});
  CHECK(gpt2->eos_id() == 3);
  SpecialTokens qwen;
  qwen.tokenizer_class = "Qwen2Tokenizer";
  CHECK(read_vocab_and_merges(vocab, merges, qwen)->encode("12") == Ids{0, 1});
  SpecialTokens of_family;
  of_family.model_type = "qwen3";
  const auto qwen3 = read_vocab_and_merges(vocab, merges, of_family);
  CHECK(qwen3->encode("12") == Ids{0, 1});
  CHECK(qwen3->fingerprint() != gpt2->fingerprint());
  CHECK_THROWS_WITH(read_vocab_and_merges(vocab, {"#version: 0.2\n1 2\n1 3\n", "merges.txt"}, {}),
                    Catch::Contains("merges.txt:3: '3' is not in the vocabulary"));
  CHECK_THROWS_WITH(read_vocab_and_merges(vocab, {"1 2 3\n", "merges.txt"}, {}),
                    Catch::Contains("merges.txt:1: must be two tokens"));
  CHECK_THROWS_WITH(read_vocab_and_merges(vocab, {"\xFF", "merges.txt"}, {}),
                    Catch::Contains("merges.txt: no UTF-8 at byte 0"));
}

TEST_CASE("tiktoken: a damaged file is named with its line", "[tokenizer]") {
  const auto read = [](const std::string& content) { return read_tiktoken(content, "tokenizer.model", {}); };
  CHECK_THROWS_WITH(read("IQ== 0\nIg=\n"), Catch::Contains("tokenizer.model:2: must be a token in base64"));
  CHECK_THROWS_WITH(read("IQ== 0\nIg== 0\n"), Catch::Contains("tokenizer.model:2: rank 0 stands there twice"));
  CHECK_THROWS_WITH(read("IQ== 0\nIQ== 1\n"), Catch::Contains("ranks 0 and 1 are the same token"));
  CHECK_THROWS_WITH(read("IQ== 0\n"), Catch::Contains("no token for the byte 0x00"));
  CHECK_THROWS_WITH(read("IQ== 99999999\n"), Catch::Contains("tokenizer.model:1"));
}

TEST_CASE("SentencePiece: a damaged model is refused before the library trusts it", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string model = read_file(test::test_data() / "t5_tokenizer/spiece.model");
  const auto read = [](std::string_view content) { return read_sentencepiece(content, "spiece.model", {}); };
  CHECK_NOTHROW(read(model));
  CHECK_THROWS_WITH(read(model.substr(0, 1003)),
                    Catch::Contains("spiece.model") && Catch::Contains("no whole SentencePiece model"));
  CHECK_THROWS_AS(read("\n"), InputError);
  CHECK_THROWS_AS(read("\n\x05hello"), InputError);
  const size_t charsmap =
      model.find("nmt_nfkc") + 8;  // then a tag, a length of three bytes, the map: size, trie, strings
  for (const size_t at : {size_t{0}, size_t{4}, size_t{9}}) {
    std::string damaged = model;
    for (size_t i = 0; i < 4; ++i) damaged[charsmap + at + i] = static_cast<char>(0xFF);
    INFO(at);
    CHECK_THROWS_WITH(read(damaged), Catch::Contains("spiece.model"));
  }
}

TEST_CASE("load_tokenizer: the kind is in the content, not in the name", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const auto data = test::test_data();
  CHECK(load_tokenizer(data / "llama3_tokenizer/tokenizer.model")->vocab_size() == 128256);
  CHECK(load_tokenizer(data / "llama2_tokenizer/tokenizer.model")->vocab_size() == 32000);
  CHECK(load_tokenizer(data / "qwen2_tokenizer/merges.txt")->fingerprint() ==
        load_tokenizer(data / "qwen2_tokenizer/vocab.json")->fingerprint());
  CHECK(load_tokenizer(data / "qwen2_tokenizer")->fingerprint() !=
        load_tokenizer(data / "llama3_tokenizer")->fingerprint());
  CHECK(load_tokenizer(data / "t5_tokenizer/spiece.model")->vocab_size() == 32100);
}

TEST_CASE("load_tokenizer: what is not there or not known is said", "[tokenizer]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(load_tokenizer(folder / "none"), Catch::Contains("none: no such tokenizer"));
  CHECK_THROWS_WITH(load_tokenizer(folder.path()), Catch::Contains("none of tokenizer.model"));
  write_file_atomically(folder / "tokenizer.model", "");
  CHECK_THROWS_WITH(load_tokenizer(folder.path()), Catch::Contains("the file is empty"));
  write_file_atomically(folder / "tokenizer.model", "hello world");
  CHECK_THROWS_WITH(load_tokenizer(folder.path()), Catch::Contains("no tokenizer that is known here"));
  fs::remove(folder / "tokenizer.model");
  write_file_atomically(folder / "vocab.json", "{}");
  CHECK_THROWS_WITH(load_tokenizer(folder.path()), Catch::Contains("merges.txt: missing"));
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(kAbc));
  write_file_atomically(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "y"}}})");
  CHECK_THROWS_WITH(load_tokenizer(folder.path()),
                    Catch::Contains("added_tokens_decoder.x: the key must be a token id"));
}

TEST_CASE("special tokens: the document's end is taken where the configured token ends a turn", "[tokenizer]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(kAbc));
  const auto eos_with = [&](const std::string& eos) {
    write_file_atomically(
        folder / "tokenizer_config.json",
        R"({"added_tokens_decoder": {"9": {"content": "<|im_end|>"}, "10": {"content": "<|endoftext|>"}, "11": {"content": "<end>"}}, "eos_token": )" +
            eos + "}");
    return load_tokenizer(folder.path())->eos_id();
  };
  CHECK(eos_with(R"("<|im_end|>")") == 10);
  CHECK(eos_with(R"({"content": "<end>"})") == 11);
  CHECK(eos_with("null") == 10);
}

}  // namespace trainyard::tokenizer
