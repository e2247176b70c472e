// What the user can mend ends with code 2 and one line that says where, what, and what would be right; no folder
// of checkpoints is left.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "failure.h"
#include "token_file.h"

namespace trainyard::test {
namespace {

struct BadInput {
  const char* situation;
  std::function<Words(const SmallJob&)> arrange;  ///< writes what it needs into the folder; the settings it adds
  Words says;
};

/// A row whose fault is a file of this name and text, given by this setting.
BadInput bad_file(const char* situation, std::string setting, std::string name, std::string text, Words says) {
  return {situation,
          [=](const SmallJob& job) {
            write_text(job.folder() / name, text);
            return Words{setting, (job.folder() / name).string()};
          },
          std::move(says)};
}

BadInput bad_flags(const char* situation, Words flags, Words says) {
  return {situation, [=](const SmallJob&) { return flags; }, std::move(says)};
}

std::vector<BadInput> bad_configurations() {
  return {
      bad_flags("a configuration that is not there", {"--config", "/nowhere/run.yaml"},
                {"/nowhere/run.yaml", "No such file"}),
      bad_file("malformed YAML", "--config", "run.yaml", "training:\n  steps: [1\n", {"run.yaml:3", "malformed YAML"}),
      bad_file("a wrong type in a file", "--config", "run.yaml", "optimizer:\n  eps: small\n",
               {"run.yaml:2", "optimizer.eps is 'small'", "must be a number"}),
      bad_file("a value out of range in a file", "--config", "run.yaml", "optimizer:\n  min_lr_ratio: 2\n",
               {"run.yaml:2", "optimizer.min_lr_ratio is '2'", "at most 1"}),
      bad_file("an unknown key in a file", "--config", "run.yaml", "training:\n  epochs: 1\n  clip_grad_nrom: 1\n",
               {"run.yaml:3", "training.clip_grad_nrom", "did you mean training.clip_grad_norm?"}),
      bad_file("an unknown section in a file", "--config", "run.yaml", "trainin:\n  steps: 5\n",
               {"run.yaml:1", "trainin", "did you mean training?"}),
      bad_file("a key given twice", "--config", "run.yaml", "training:\n  epochs: 1\n  epochs: 2\n",
               {"run.yaml:3", "training.epochs", "line 2"}),
      bad_file(
          "two keys of Accelerate that contradict each other", "--config", "fsdp.yaml",
          "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: NO_SHARD\n  fsdp_reshard_after_forward: "
          "true\n",
          {"fsdp.yaml:4", "contradicts fsdp_sharding_strategy NO_SHARD", "keep one"}),
      bad_file("pipeline parallelism in torchtitan's words", "--config", "run.toml",
               "[parallelism]\npipeline_parallel_degree = 8\n",
               {"run.toml:2", "parallelism.pipeline_parallel_degree is 8", "not offered"}),
      bad_file("an unknown key of torchtitan", "--config", "run.toml", "[training]\nsequence_len = 8\n",
               {"run.toml:2", "training.sequence_len", "did you mean"}),
      bad_flags("two flags of a script and ours that contradict each other",
                {"--grad_acc_steps", "2", "--training.accumulation_steps", "3"},
                {"--grad_acc_steps contradicts --training.accumulation_steps"}),
      bad_flags("a batch that does not divide among the ranks", {"--training.global_batch_size", "7"},
                {"--training.global_batch_size is 7", "use a multiple of"}),
      bad_flags("a wrong type in a flag", {"--training.steps", "many"}, {"--training.steps is 'many'", "whole number"}),
      bad_flags("a value out of range in a flag", {"--optimizer.lr=-1"}, {"--optimizer.lr is '-1'", "above 0"}),
      bad_flags("an unknown word of an enumeration", {"--parallel.strategy", "half"},
                {"--parallel.strategy is 'half'", "full_shard, shard_grad_op, no_shard"}),
      bad_flags("a type that there is not in a rule of precision", {"--parallel.precision", "root=fp8"},
                {"--parallel.precision: param_dtype of root is 'fp8'", "use fp32, bf16 or fp16"}),
      bad_flags("a rule of precision for no group", {"--parallel.precision", "model.layers.7=fp32"},
                {"parallel.precision: 'model.layers.7' matches no group", "model.layers.0, model.layers.1, root"}),
      bad_flags("a loss scale that is no number", {"--training.loss_scale", "high"},
                {"--training.loss_scale: 'high' is none of auto, none and a number above 0"}),
      bad_flags("an unknown flag", {"--training.stpes", "3"}, {"--training.stpes", "did you mean --training.steps?"}),
      bad_flags("a flag without its value", {"--training.steps"}, {"--training.steps needs a value"}),
      bad_flags("a word that belongs to nothing", {"further"}, {"unknown argument further"}),
      bad_flags("two models", {"--model.preset", "qwen3-tiny"}, {"model.preset", "model.config", "keep one"}),
      bad_flags("a device that this build or machine lacks", {"--device", "cuda"},
                {"--device.kind is cuda, but", "; use cpu"}),
      bad_flags("a backend of devices for the CPU", {"--comm.backend", "nccl"},
                {"--comm.backend is nccl", "use auto, gloo or mpi"}),
  };
}

std::vector<BadInput> bad_models() {
  const std::string config = SmallJob().config().dump();
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto changed = SmallJob().config();
    changed[key] = value;
    return changed.dump();
  };
  return {
      bad_flags("an unknown preset", {"--model.config", "", "--model.preset", "Qwen3-0.5B"},
                {"model.preset 'Qwen3-0.5B'", "did you mean 'qwen3-0.6b'?", "llama3.1-8b"}),
      bad_file("an unknown family", "--model.config", "gpt2.json", with("model_type", "gpt2"),
               {"gpt2.json", "model_type is 'gpt2'", "known are llama, mistral, qwen2, qwen3"}),
      bad_file("a config.json that is no JSON", "--model.config", "cut.json", config.substr(0, 40),
               {"cut.json", "not JSON"}),
      bad_file("a field of the wrong type", "--model.config", "text.json", with("hidden_size", "32"),
               {"text.json", "hidden_size is \"32\"", "whole number"}),
      bad_file("heads that do not divide", "--model.config", "heads.json", with("num_key_value_heads", 3),
               {"heads.json", "num_key_value_heads", "3", "4"}),
      bad_file("a dropout that the family does not have here", "--model.config", "dropout.json",
               with("attention_dropout", 0.1),
               {"dropout.json: attention_dropout is 0.1", "a llama model here has none", "trained only with 0"}),
      bad_file("a padding row outside the embedding", "--model.config", "padding.json", with("pad_token_id", 257),
               {"padding.json: pad_token_id is 257", "0 to 256"}),
  };
}

/// A tokenizer of the letters that the corpora here have, without a token that ends a document, and with `config`.
std::filesystem::path without_end(const SmallJob& job, const std::string& config) {
  const std::filesystem::path folder = job.folder() / "endless";
  std::filesystem::create_directories(folder);
  write_text(folder / "tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  write_text(folder / "tokenizer_config.json", config);
  return folder;
}

std::vector<BadInput> bad_ends() {
  const auto with = [](std::string config, Words more) {
    return [=](const SmallJob& job) {
      write_text(job.folder() / "two.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"ba\"}\n");
      const Words tokenizer{"--data.tokenizer", without_end(job, config).string()};
      return tokenizer + Words{"--data.path", (job.folder() / "two.jsonl").string()} + more;
    };
  };
  return {
      {"documents that nothing ends",
       with("{}", {}),
       {"two.jsonl has more than one document", "endless has no token that ends a document",
        "data.append_eos to false"}},
      {"an end that was asked for and is not there",
       with("{}", {"--data.path", "embedded", "--data.append_eos", "true"}),
       {"--data.append_eos is true, but the tokenizer", "endless has no token that ends a document"}},
      {"an end that no vocabulary has",
       with(R"({"eos_token": "<end>"})", {"--data.append_eos", "false"}),
       {"tokenizer_config.json: eos_token is '<end>', which no vocabulary of this tokenizer has"}},
  };
}

std::vector<BadInput> bad_data() {
  return {
      bad_file("an empty corpus", "--data.path", "empty.txt", "", {"empty.txt", "is empty"}),
      bad_file("bytes that are no UTF-8", "--data.path", "latin1.txt", "na\xefve\n",
               {"latin1.txt", "no UTF-8 at byte 2 (0xef)", "convert it"}),
      bad_file("a line of JSON without the field", "--data.path", "lines.jsonl",
               "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n", {"lines.jsonl:2", "'text'", "did you mean 'txt'?"}),
      bad_file("a line that is no JSON", "--data.path", "lines.jsonl", "{\"text\": \"a\"}\n{\"text\n",
               {"lines.jsonl:2: not JSON at byte ", "syntax error"}),
      bad_file("a corpus shorter than a sequence", "--data.path", "short.txt", "ten bytes\n",
               {"short.txt", "11 tokens", "33", "training.sequence_length"}),
      bad_flags("a corpus that is not there", {"--data.path", "/nowhere/a.txt"},
                {"--data.path is '/nowhere/a.txt'", "no such file"}),
      bad_flags("held-out text that is not there", {"--validation.path", "/nowhere/b.txt"},
                {"--validation.path is '/nowhere/b.txt'", "no such file"}),
      bad_file("a corpus in torchtitan's words that is not there", "--config", "run.toml",
               "[validation]\nenable = true\ndataset = \"c4_test\"\n",
               {"run.toml:3", "'tests/assets/c4_test'", "no such file"}),
      bad_flags("a tokenizer that is not there", {"--data.tokenizer", "/nowhere"}, {"/nowhere", "no such tokenizer"}),
      bad_file("a tokenizer that is none", "--data.tokenizer", "notes.txt", "just words\n",
               {"notes.txt", "no tokenizer that is known"}),
      {"a vocabulary that the model does not have",
       [](const SmallJob& job) {
         auto config = job.config();
         config["vocab_size"] = 100;
         write_text(job.folder() / "small.json", config.dump());
         return Words{"--model.config", (job.folder() / "small.json").string()};
       },
       {"corpus.txt", "id 116", "ends at 99"}},
      bad_file("an id out of range", "--data.tokens", "ids.safetensors",
               token_file("input_ids", {2, 4}, {1, 2, 3, 4, 5, 257, 7, 8}),
               {"ids.safetensors", "input_ids: row 1, token 1", "257", "0 to 256"}),
      bad_file("more steps than batches", "--data.tokens", "ids.safetensors",
               token_file("train.input_ids", {2, 1, 2}, {1, 2, 3, 4}), {"training.steps is 3", "2 batches"}),
  };
}

std::vector<BadInput> bad_folders() {
  const auto in_a_file = [](const char* setting) {
    return [=](const SmallJob& job) {
      write_text(job.folder() / "occupied", "");
      return Words{setting, (job.folder() / "occupied" / "below").string()};
    };
  };
  return {
      {"a checkpoint folder that cannot be made",
       in_a_file("--checkpoint.dir"),
       {"checkpoint.dir", "occupied/below", "Not a directory", "choose another"}},
      {"a trace's folder that cannot be made", in_a_file("--profile"), {"--profile", "occupied", "Not a directory"}},
      {"a metrics folder that cannot be made", in_a_file("--metrics.dir"), {"metrics.dir", "occupied/below"}},
      bad_flags("a checkpoint that is not there", {"--checkpoint.resume", "/nowhere/step-3"},
                {"/nowhere/step-3", "no such folder of a checkpoint"}),
  };
}

void check_rows(const std::vector<BadInput>& rows) {
  for (const BadInput& row : rows) {
    INFO("situation: " << row.situation);
    const SmallJob job;
    Words settings = row.arrange(job);
    const bool is_tokens = settings.front() == "--data.tokens";
    if (is_tokens) settings = settings + Words{"--data.path", "", "--data.tokenizer", ""};
    const Ended ended = run({trainyard(job.train(3, settings)), {}, std::chrono::seconds(60)});
    check_failure(ended, 2, row.says);
    CHECK_FALSE(std::filesystem::exists(job.checkpoints()));
  }
}

}  // namespace

TEST_CASE("bad input: a configuration that is missing, malformed or wrong") {
  check_rows(bad_configurations());
}

TEST_CASE("bad input: a model that is unknown or does not fit together") {
  check_rows(bad_models());
}

TEST_CASE("bad input: a corpus or tokens that cannot be trained on") {
  check_rows(bad_data());
}

TEST_CASE("bad input: documents without an end of text") {
  check_rows(bad_ends());
  const SmallJob job;
  write_text(job.folder() / "one.txt", std::string(400, 'a'));
  const Words data{"--data.tokenizer", without_end(job, "{}").string(), "--data.path",
                   (job.folder() / "one.txt").string()};
  const Ended ended = run({trainyard(job.train(1, data)), {}, std::chrono::seconds(60)});
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, Catch::Contains("one.txt: its end is not marked, as the tokenizer"));
}

TEST_CASE("bad input: folders that cannot be written are found at the start") {
  check_rows(bad_folders());
}

TEST_CASE("bad input: words and flags that no command has") {
  struct Row {
    Words arguments, says;
  };
  const std::vector<Row> rows{
      {{"trian"}, {"unknown command 'trian'", "did you mean 'train'?"}},
      {{"launch", "--nproc-per-node", "2", "trian"}, {"unknown command 'trian'", "did you mean 'train'?"}},
      {{"launch"}, {"launch", "no command to run"}},
      {{"launch", "--nproc-per-node", "2", "plan"}, {"`plan` runs once and not on every rank", "--world N"}},
      {{"launch", "--nproc-per-node", "none", "train"}, {"--nproc-per-node is 'none'", "auto, cpu, gpu"}},
      {{"train"}, {"no model is given", "model.preset"}},
      {{"evaluate"}, {"--tokens is required"}},
      {{"evaluate", "--tokens", "a.safetensors"}, {"--model", "--checkpoint"}},
      {{"evaluate", "--model", "/nowhere", "--tokens", "a.safetensors", "--dump", "/nowhere/logits.safetensors"},
       {"--dump: /nowhere is no folder"}},
      {{"generate"}, {"--prompt is required"}},
      {{"generate", "--prompt", "x", "--param-dtype", "bf61"}, {"--param-dtype: 'bf61' is none of fp32, bf16, fp16"}},
      {{"generate", "--prompt", "x", "--temperature", "nan"}, {"--temperature: 'nan' is not a number from 0 on"}},
      {{"generate", "--prompt", "x", "--top-p", "0"}, {"--top-p: '0' is not a number above 0 and up to 1"}},
      {{"generate", "--prompt", "x", "--max-new-tokens", "0"},
       {"--max-new-tokens: '0' is not a whole number from 1 on"}},
      {{"generate", "--promt", "x"}, {"trainyard generate: unknown flag --promt, did you mean --prompt?"}},
      {{"launch", "--nproc_per_nod", "2", "train"}, {"unknown flag --nproc_per_nod, did you mean --nproc-per-node?"}},
      {{"checkpoint", "export", "ck", "--dtyp=bf16"}, {"unknown flag --dtyp, did you mean --dtype?"}},
      {{"tokenizer", "encode", "--quiet"}, {"unknown flag --quiet; trainyard tokenizer --help"}},
      {{"tokenizer", "chat"}, {"--tokenizer is required"}},
      {{"generate", "--prompt", "x", "--system", "y"}, {"--system requires --chat"}},
      {{"generate", "--model", "/nowhere", "--prompt", "x", "--chat", "--special-tokens", "text"},
       {"--chat needs --special-tokens parse"}},
      {{"checkpoint", "exprt"}, {"unknown command 'exprt'", "did you mean 'export'?"}},
      {{"checkpoint", "verify", "/nowhere"}, {"/nowhere", "no such folder"}},
      {{"tokenizer", "encdoe"}, {"unknown command 'encdoe'", "did you mean 'encode'?"}},
      {{"plan", "--demo", "--wrld", "8"}, {"unknown argument --wrld; did you mean --world?"}},
      {{"plan", "--demo", "--ranks-per-nod=4"}, {"--ranks-per-nod=4; did you mean --ranks-per-node?"}},
      {{"plan", "--max-step", "4"}, {"unknown argument --max-step; did you mean --max_steps?"}},
      {{"train", "--print-confg"}, {"unknown argument --print-confg; did you mean --print-config?"}},
      {{"config", "check", "--confg", "x.yaml"}, {"unknown argument --confg; did you mean --config?"}},
      {{"plan", "--demo", "--device-memory", "80"}, {"--device-memory is '80'; use 80GiB or 80GB"}},
      {{"config", "foo"}, {"config foo", "check, print, schema"}},
  };
  for (const Row& row : rows) check_failure(run({trainyard(row.arguments), {}, std::chrono::seconds(60)}), 2, row.says);
}

TEST_CASE("bad input: what all ranks would refuse is told once, by the launcher") {
  struct Row {
    Words settings, says;
  };
  const std::vector<Row> rows{
      {{"--training.stpes", "3"}, {"--training.stpes", "did you mean --training.steps?"}},
      {{"--comm.backend", "in_process"}, {"comm.backend is in_process", "2 processes"}},
      {{"--parallel.shard", "3"}, {"--parallel.shard is 3, but 2 processes were started"}},
      {{"--training.global_batch_size", "6"}, {"--training.global_batch_size is 6", "use a multiple of 4"}},
      {{"--model.config", "", "--model.preset", "Qwen3-0.5B"}, {"did you mean 'qwen3-0.6b'?"}},
      {{"--parallel.transformer_layer_cls_to_wrap", "BertLayer"}, {"names BertLayer", "LlamaDecoderLayer"}},
      {{"--data.path", "/nowhere/a.txt"}, {"--data.path is '/nowhere/a.txt'", "no such file"}},
  };
  for (const Row& row : rows) {
    const SmallJob job;
    const Words words = job.train(3, row.settings);
    check_failure(run({on_ranks(2, words), {}, std::chrono::seconds(60)}), 2, row.says);
    const std::map<std::string, std::string> of_a_node{{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "2"}};
    check_failure(run({trainyard(words), of_a_node, std::chrono::seconds(60)}), 2, row.says);
  }
  const Ended help = run({trainyard({"launch", "--nproc-per-node", "2", "train", "--help"})});
  CHECK(help.code == 0);
  CHECK(help.out.starts_with("usage: trainyard train"));
}

TEST_CASE("bad input: what only the data shows is printed by one rank, named where the others see nothing wrong") {
  struct Row {
    BadInput bad;
    const char* begins;
  };
  const std::vector<Row> rows{
      {bad_file("a corpus shorter than a sequence, on every rank", "--data.path", "short.txt", "ten bytes\n",
                {"short.txt", "11 tokens", "33"}),
       "[rank 0] trainyard: error: /"},
      {bad_file("an id out of range in the rows of rank 1", "--data.tokens", "ids.safetensors",
                token_file("input_ids", {2, 4}, {1, 2, 3, 4, 5, 257, 7, 8}), {"ids.safetensors", "257", "0 to 256"}),
       "[rank 1] trainyard: error: rank 1: /"},
  };
  for (const Row& row : rows) {
    INFO("situation: " << row.bad.situation);
    const SmallJob job;
    Words settings = row.bad.arrange(job);
    if (settings.front() == "--data.tokens") settings = settings + Words{"--data.path", "", "--data.tokenizer", ""};
    const Ended ended = run({on_ranks(2, job.train(3, settings)), {}, std::chrono::seconds(60)});
    INFO(ended.all());
    CHECK(ended.code == 2);
    const auto errors = errors_of(ended);
    REQUIRE(errors.size() == 2);
    CHECK_THAT(errors[0], Catch::StartsWith(row.begins));
    CHECK_THAT(errors[1], Catch::StartsWith("trainyard launch: rank "));
    for (const std::string& error : errors)
      for (const std::string& part : row.bad.says) CHECK_THAT(error, Catch::Contains(part));
  }
}

TEST_CASE("bad input: what one rank alone meets among the others ends all with code 2, in its words") {
  const SmallJob job;
  const auto ids = job.folder() / "ids.safetensors";
  write_text(ids, token_file("input_ids", {2, 4}, {1, 2, 3, 4, 5, 257, 7, 8}));
  const Words validated = job.train(3, {"--validation.tokens", ids.string(), "--validation.interval", "1"});
  REQUIRE(run({on_ranks(2, job.train(2))}).code == 0);
  const Words evaluated{"evaluate", "--checkpoint", job.checkpoints().string(), "--tokens", ids.string()};
  for (const Words& words : {validated, evaluated}) {
    const Ended ended = run({on_ranks(2, words), {}, std::chrono::seconds(60)});
    INFO(ended.all());
    CHECK(ended.code == 2);
    const auto errors = errors_of(ended);
    REQUIRE(errors.size() == 2);
    CHECK_THAT(errors[0], Catch::StartsWith("[rank 1] trainyard: error: /") && Catch::Contains("257"));
    CHECK_THAT(errors[1], Catch::StartsWith("trainyard launch: rank ") && Catch::Contains("exit code 2: "));
  }
}

TEST_CASE("bad input: ranks that nobody checked before hear what rank 0 finds as it plans") {
  const SmallJob job;
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::make_unique<Process>(Command{trainyard(job.train(3, {"--training.freeze", "model.nothing"})),
                                                      rank_environment(rank, 2, port), std::chrono::seconds(60)}));
  check_failure(ranks[0]->wait(), 2, {"rank 0: ", "training.freeze", "model.nothing"});
  const Ended other = ranks[1]->wait();
  INFO(other.all());
  CHECK(other.code == 2);
  CHECK(errors_of(other).empty());
}

TEST_CASE("bad input: an output that is full is told of") {
  const SmallJob job;
  const auto refused = [](const Words& words, const std::string& says) {
    check_failure(run({Words{"bash", "-c", "\"$@\" > /dev/full", "bash"} + words, {}, std::chrono::seconds(60)}), 2,
                  {says});
  };
  refused(trainyard({"--version"}), "is its disk full?");
  refused(trainyard(job.train(3, {"--print-config"})), "No space left on device");
}

TEST_CASE("a loss that is no number ends with code 3 and names step and first bad tensor") {
  const SmallJob job;
  const Ended ended = run({trainyard(job.train(3, {"--optimizer.lr", "1e30"}))});
  check_failure(ended, 3,
                {"step 2", "nan", "the first bad tensor is the gradient of model.layers.0.input_layernorm.weight"});
  CHECK_THAT(ended.err, !Catch::Contains("last checkpoint"));
  CHECK(saved_in(job.checkpoints()).empty());
  check_failure(run({trainyard(job.train(3, {"--optimizer.lr", "1e30", "--checkpoint.interval", "1"}))}), 3,
                {"step 2", "the last checkpoint, of step 1, is from before it"});
}

}  // namespace trainyard::test
