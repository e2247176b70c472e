#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/flags.h"
#include "base/json_depth.h"
#include "base/text.h"
#include "cli/chat.h"
#include "cli/command.h"
#include "cli/hub_names.h"
#include "cli/parse.h"
#include "data/corpus_files.h"
#include "data/documents.h"
#include "tokenizer/bpe/trainer.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::cli {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

std::string read_stdin() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

json parse_stdin(const char* wanted) {
  try {
    const std::string text = read_stdin();
    if (!is_shallow_json(text)) throw InputError(fmt::format("stdin: must be {}: its brackets are too deep", wanted));
    json parsed = json::parse(text);
    if (!parsed.is_array()) throw InputError(fmt::format("stdin: must be {}, is {}", wanted, parsed.type_name()));
    return parsed;
  } catch (const json::exception& error) {
    throw InputError(fmt::format("stdin: must be {}: {}", wanted, error.what()));
  }
}

void encode_json(const tokenizer::Tokenizer& tokenizer) {
  json all = json::array();
  for (const json& text : parse_stdin("a JSON array of strings")) {
    if (!text.is_string())
      throw InputError(fmt::format("stdin: element {} must be a string, is {}", all.size(), text.type_name()));
    all.push_back(tokenizer.encode(text.get_ref<const std::string&>()));
  }
  fmt::print("{}\n", all.dump());
}

std::vector<int32_t> ids_of(const json& element, size_t index) {
  if (!element.is_array())
    throw InputError(fmt::format("stdin: element {} must be an array of ids, is {}", index, element.type_name()));
  std::vector<int32_t> ids;
  for (const json& id : element) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
      throw InputError(fmt::format("stdin: element {}: {} is no token id", index, id.dump()));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

void decode_json(const tokenizer::Tokenizer& tokenizer) {
  json all = json::array();
  for (const json& element : parse_stdin("a JSON array of arrays of ids"))
    all.push_back(tokenizer.decode(ids_of(element, all.size())));
  // Ids may end inside a character; JSON has to be UTF-8.
  fmt::print("{}\n", all.dump(-1, ' ', false, json::error_handler_t::replace));
}

void encode_text(const tokenizer::Tokenizer& tokenizer) {
  fmt::print("{}\n", fmt::join(tokenizer.encode(read_stdin()), " "));
}

void decode_text(const tokenizer::Tokenizer& tokenizer) {
  std::string text = read_stdin();
  for (char& c : text)
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  std::vector<int32_t> ids;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id > INT32_MAX)
      throw InputError(fmt::format("stdin: '{}' is no token id; ids stand with spaces between them", word));
    ids.push_back(static_cast<int32_t>(*id));
  }
  std::cout << tokenizer.decode(ids);
}

struct TrainOptions {
  std::vector<std::string> input;
  std::string field = "text";
  int64_t vocab_size = 0;
  fs::path output;
};

void train(const TrainOptions& options) {
  tokenizer::BpeTrainer trainer;
  for (const std::string& input : options.input) {
    for (const fs::path& path : data::corpus_files(input)) {
      data::for_each_part(path, options.field,
                          {tokenizer::BpeTrainer::is_border, "the trainer"},
                          [&](const data::TextPart& part) { trainer.add(part.text, path.string()); });
    }
  }
  const tokenizer::TrainedBpe trained = trainer.train(options.vocab_size);
  try {
    fs::create_directories(options.output);
    write_file_atomically(options.output / "tokenizer.json", trained.tokenizer_json);
    write_file_atomically(options.output / "tokenizer_config.json", trained.tokenizer_config_json);
  } catch (const fs::filesystem_error& error) {
    throw InputError(error.what());
  }
  fmt::print("{}: {} tokens{}\n", (options.output / "tokenizer.json").string(), with_thousands(trained.vocab_size),
             trained.vocab_size < options.vocab_size ? "; the text has no more pairs that stand in it twice" : "");
}

/// What encode and decode share.
struct Coding {
  std::string tokenizer;
  bool is_json = false;
  tokenizer::SpecialTokensAre special = tokenizer::SpecialTokensAre::Text;
  CLI::App* command = nullptr;
  Coding(CLI::App& app, const std::string& name, const std::string& summary, const std::string& json_help)
      : command(app.add_subcommand(name, summary)) {
    command->add_option("--tokenizer", tokenizer, "A file or folder, its kind recognised by content, or 'bytes'")
        ->required()
        ->type_name("PATH");
    command->add_flag("--json", is_json, json_help);
  }
};

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  CLI::App app("Turn text into token ids and back, and learn a small tokenizer of one's own.", "trainyard tokenizer");
  app.require_subcommand(1);
  Coding encode(app, "encode", "Text on stdin to ids on stdout, spaces between them; nothing is added at the ends",
                "stdin is a JSON array of strings, stdout an array of arrays of ids");
  add_special_tokens(*encode.command, encode.special);
  const Coding decode(app, "decode", "Ids on stdin to text on stdout",
                      "stdin is a JSON array of arrays of ids, stdout an array of strings");
  TrainOptions options;
  CLI::App* const training =
      app.add_subcommand("train", "Learn a byte-level BPE and write it as a Hugging Face tokenizer.json");
  training->add_option("--input", options.input, "A .txt or .jsonl file, or a folder of them; may be many")
      ->required()
      ->type_name("PATH");
  training->add_option("--field", options.field, "The string of each JSON line to take")->capture_default_str();
  training
      ->add_option("--vocab-size", options.vocab_size,
                   "Tokens in all, at least 257: the bytes, <|endoftext|>, and what is learned")
      ->required()
      ->type_name("N");
  training->add_option("--output", options.output, "The folder to write tokenizer.json and tokenizer_config.json to")
      ->required()
      ->type_name("DIR");
  ChatOptions chat;
  const CLI::App* const chatting = add_chat_command(app, chat);
  refuse_unknown_subcommand(app, arguments);
  const Arguments spelt = spelt_flags(app, arguments);
  try {
    app.parse(Arguments(spelt.rbegin(), spelt.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    fmt::print("{}", chosen.empty() ? app.help() : chosen.front()->help("trainyard tokenizer"));
    return 0;
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("tokenizer: {}; trainyard tokenizer --help tells more", error.what()));
  }
  if (training->parsed()) return train(options), 0;
  if (chatting->parsed()) return print_chat(chat, read_stdin()), 0;
  const Coding& coding = encode.command->parsed() ? encode : decode;
  refuse_name("tokenizer: --tokenizer", coding.tokenizer);
  const auto loaded = tokenizer::load_tokenizer(coding.tokenizer, coding.special);
  const bool encodes = &coding == &encode;
  if (coding.is_json)
    (encodes ? encode_json : decode_json)(*loaded);
  else
    (encodes ? encode_text : decode_text)(*loaded);
  return 0;
}

}  // namespace trainyard::cli
