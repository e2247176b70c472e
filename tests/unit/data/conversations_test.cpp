// Corpora of conversations: what a chat template makes of them, and which of their ids are targets.
#include "data/conversations.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/loaders.h"
#include "data/packed_corpus.h"
#include "data/split.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::ordered_json;
using tokenizer::SpecialTokensAre;
using tokenizer::Tokenizer;

constexpr const char* kTurns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

ConversationOptions talks_by(const std::string& source, LossOn loss_on = LossOn::Answers) {
  const chat::TokenizerChat chat{chat::Template(source, "template"), ordered_json::object()};
  return {.field = "messages", .plain = chat, .with_tools = chat, .loss_on = loss_on};
}

std::string talk_line(const std::vector<std::pair<std::string, std::string>>& messages) {
  ordered_json list = ordered_json::array();
  for (const auto& [role, content] : messages) list.push_back({{"role", role}, {"content", content}});
  return ordered_json{{"id", 7}, {"messages", list}}.dump() + "\n";
}

/// The text with what the loss does not count as '.'.
std::string counted_text(const TokenArray& tokens) {
  std::vector<int32_t> targets(static_cast<size_t>(tokens.size()));
  tokens.copy_targets(0, targets);
  std::string text;
  for (const int32_t target : targets) text += target == kIgnored ? '.' : static_cast<char>(target);
  return text;
}

std::string whole_text(const TokenArray& tokens) {
  std::string text;
  for (int64_t i = 0; i < tokens.size(); ++i) text += static_cast<char>(tokens[i]);
  return text;
}

TokenArray open_talk(const fs::path& path, const ConversationOptions& options) {
  const auto bytes = tokenizer::load_tokenizer("bytes");
  return open_corpus({.path = path}, Conversations(options, *bytes));
}

std::string talk_error(const std::string& line, const ConversationOptions& options) {
  const auto bytes = tokenizer::load_tokenizer("bytes");
  try {
    static_cast<void>(Conversations(options, *bytes).ids(line, "a.jsonl:3"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("conversations: the loss counts what the assistant says, and the cache keeps that", "[data]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.jsonl", talk_line({{"user", "hi"}, {"assistant", "yo"}}) + "\n" +
                                                talk_line({{"system", "s"}, {"user", "u"}, {"assistant", "v"}}));
  for (int time = 0; time < 2; ++time) {  // made, then mapped
    const TokenArray tokens = open_talk(folder / "a.jsonl", talks_by(kTurns));
    CHECK(whole_text(tokens) == "<user>hi</><assistant>yo</><system>s</><user>u</><assistant>v</>");
    CHECK(counted_text(tokens) == std::string(22, '.') + "yo</>" + std::string(33, '.') + "v</>");
    CHECK_NOTHROW(check_ids(tokens, 257));
    CHECK_THROWS_WITH(check_ids(tokens, 100), Contains("token 1 has id 117"));
  }
  const TokenArray whole = open_talk(folder / "a.jsonl", talks_by(kTurns, LossOn::All));
  CHECK(counted_text(whole) == whole_text(whole));
  CHECK(whole.counting() == Counting::AllIds);
  CHECK(std::distance(fs::directory_iterator(folder / ".trainyard"), fs::directory_iterator()) == 2);
}

TEST_CASE("conversations: a corpus is another one by another template, variable, field or loss", "[data]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.jsonl", talk_line({{"user", "hi"}, {"assistant", "yo"}}));
  const auto fingerprint = [&](const auto& change) {
    ConversationOptions options = talks_by(kTurns);
    change(options);
    return open_talk(folder / "a.jsonl", options).fingerprint();
  };
  const auto nothing = [](ConversationOptions&) {};
  CHECK(fingerprint(nothing) == fingerprint(nothing));
  CHECK(fingerprint(nothing) != fingerprint([](ConversationOptions& how) { how.loss_on = LossOn::All; }));
  CHECK(fingerprint(nothing) != fingerprint([](ConversationOptions& how) { how.template_kwargs["thinks"] = true; }));
  CHECK(fingerprint(nothing) != fingerprint([](ConversationOptions& how) { how.plain.tokens["eos_token"] = "e"; }));
  CHECK(fingerprint(nothing) != fingerprint([](ConversationOptions& how) {
          how.plain.text = chat::Template(std::string(kTurns) + "{# #}", "template");
        }));
}

TEST_CASE("conversations: ShareGPT's form, lists in a text, tools and variables of the template", "[data]") {
  const auto bytes = tokenizer::load_tokenizer("bytes");
  ConversationOptions how = talks_by(
      "{{ x }}{{ tools|length if tools else 0 }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
      LossOn::All);
  how.template_kwargs["x"] = "X";
  how.field = "conversations";
  const auto text = [&](const std::string& json) {
    const std::vector<int32_t> ids = Conversations(how, *bytes).ids(json, "a.jsonl:1");
    return std::string(ids.begin(), ids.end());
  };
  CHECK(text(R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "h"},
                                   {"from": "gpt", "value": "g"}], "tools": null})") ==
        "X0<system>s<user>h<assistant>g");
  CHECK(text(R"({"conversations": "[{\"role\": \"user\", \"content\": \"h\"}]", "tools": "[{\"name\": \"t\"}]"})") ==
        "X1<user>h");
  CHECK(text(R"({"conversations": [{"role": "user", "content": "h"}], "score": NaN})") == "X0<user>h");
  CHECK(talk_error(R"({"conversations": [{"from": "bing", "value": "s"}]})", how) ==
        "a.jsonl:3: a message is from \"bing\", which is none of system, human, user, gpt, assistant and tool");
}

TEST_CASE("conversations: what is wrong with a line is told with its place", "[data]") {
  const auto how = talks_by(kTurns);
  const auto fails = [&](const std::string& json, const std::string& message) {
    CHECK_THAT(talk_error(json, how), Contains(message));
  };
  fails("{", "a.jsonl:3: not JSON at byte 2 of the line");
  fails("[1]", "a.jsonl:3: must be a JSON object with the field 'messages', is array");
  fails(R"({"message": [], "id": 1})",
        "a.jsonl:3: no field 'messages', did you mean 'message'?; the line has message, id; data.messages_field names "
        "the "
        "one to take");
  fails(R"({"messages": []})", "a.jsonl:3: the field 'messages' must be a list of messages, is empty");
  fails(R"({"messages": 3})", "must be a list of messages, is number");
  fails(R"({"messages": ["x"]})", "a.jsonl:3: messages must be objects, one is string");
  fails(R"({"messages": [{"content": "x"}]})", "a.jsonl:3: message 0 must have a role, a string");
  fails(R"({"messages": "[{"})", "a.jsonl:3: ");
  fails(R"({"messages": [{"role": "user", "content": "x"}]})",
        "a.jsonl:3: the conversation has no answer of the assistant; take it out, or set data.loss_on to all");
  fails(std::string(600, '['), "a.jsonl:3: the brackets are too deep");
  CHECK_THAT(talk_error(talk_line({{"user", "x"}, {"assistant", "y"}}), talks_by("{{ strftime_now('%Y') }}")),
             Contains("a.jsonl:3: template:1: strftime_now, where no time is given, is not offered") &&
                 Contains("give the template its date in data.chat_template_kwargs"));
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", "text");
  CHECK_THROWS_WITH(open_talk(folder / "a.txt", how),
                    Contains("a.txt: conversations come from .jsonl files and tables"));
  write_file_atomically(folder / "b.jsonl", talk_line({{"user", "x"}, {"assistant", "y"}}) + "{\"id\": 3}\n");
  CHECK_THROWS_WITH(open_talk(folder / "b.jsonl", how), Contains("b.jsonl:2: no field 'messages'"));
}

TEST_CASE("conversations: ids and masks are those of transformers", "[data]") {
  const auto tokenizer =
      tokenizer::load_tokenizer(fs::path(TRAINYARD_CONVERSATIONS) / "tokenizer", SpecialTokensAre::Parsed);
  const auto cases = ordered_json::parse(read_file(fs::path(TRAINYARD_CONVERSATIONS) / "reference.json"));
  CHECK(cases.size() == 10);
  for (const ordered_json& each : cases) {
    INFO(each.dump());
    const Conversations reading(talks_by(each["template"].get<std::string>()), *tokenizer);
    const std::vector<int32_t> ids = reading.ids(each["line"].dump(), "a.jsonl:1");
    std::vector<int32_t> plain, mask;
    for (const int32_t id : ids) plain.push_back(id < 0 ? ~id : id), mask.push_back(id < 0 ? 0 : 1);
    CHECK(plain == each["ids"].get<std::vector<int32_t>>());
    CHECK(mask == each["mask"].get<std::vector<int32_t>>());
  }
}

TEST_CASE("conversations: rows of tables are read as lines are", "[data]") {
  const fs::path files = test::in_repository("tests/unit/data/records");
  const test::TemporaryFolder folder;
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const Conversations reading(talks_by("{{ tools|tojson }}" + std::string(kTurns)), *bytes);
  const auto open_table = [&](const std::string& name) {
    return open_corpus({.path = files / name, .cache_dir = folder.path()}, reading);
  };
  const TokenArray lines = open_table("talks.jsonl");
  CHECK_THAT(whole_text(lines), Contains("[{\"name\": \"tool 8\"}]<user>8 says 0</><assistant>8 says so 8</>"));
  for (const char* const name : {"talks.parquet", "talks.arrow"}) {
    CAPTURE(name);
    const TokenArray rows = open_table(name);
    CHECK(whole_text(rows) == whole_text(lines));
    CHECK(counted_text(rows) == counted_text(lines));
  }
  CHECK_THROWS_WITH(open_table("v1.parquet"),
                    Contains("v1.parquet: row 1: the field 'messages' must be a list of messages, is empty"));
}

TEST_CASE("conversations: packed rows have targets where the loss counts, and rows without one are left out",
          "[data]") {
  constexpr int32_t no = ~9;
  const TokenArray tokens({no, no, 1, 2, no, no, no, no, no, no, no, 3, no}, "talks", "f", Counting::SomeIds);
  PackingOptions options{.sequence_length = 4, .batch_size = 2, .shuffle = false};
  const auto loader = packed_loader(tokens, options);
  CHECK(loader->sequences_per_epoch() == 2);  // of three windows
  const Batch batch = loader->next();
  const auto ids = batch.input_ids.values<int32_t>(), targets = batch.targets.values<int32_t>();
  CHECK(std::vector<int32_t>(ids.begin(), ids.end()) == std::vector<int32_t>{9, 9, 1, 2, 9, 9, 9, 3});
  CHECK(std::vector<int32_t>(targets.begin(), targets.end()) ==
        std::vector<int32_t>{kIgnored, 1, 2, kIgnored, kIgnored, kIgnored, 3, kIgnored});
  CHECK(batch.valid_tokens == 3);
  CHECK(batch.valid_tokens == count_valid(batch.targets));
  const std::vector<WeightedCorpus> mix{{tokens, 1}, {TokenArray({5, 6, 7, 8, 4}, "text", "g"), 1}};
  CHECK(mixed_loader(mix, options)->next().valid_tokens == 2 + 4);
  const Split split{.share = 0.4, .side = Side::HeldOut};
  CHECK(packed_loader(side_of(tokens, 4, split), options)->next().valid_tokens == 2);  // the one row, twice
  CHECK_THROWS_WITH(packed_loader(tokens.part(4, 9), options), Contains("talks: the loss counts none of its 5 tokens"));
}

}  // namespace trainyard::data
