#include "train/run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/reader.h"
#include "checkpoint/volume.h"
#include "config/check.h"
#include "config/print.h"
#include "config/schema.h"
#include "metrics/mfu.h"
#include "metrics/table.h"
#include "ops/threads.h"
#include "tensor/memory.h"
#include "tokenizer/utf8.h"
#include "train/checkpoints.h"
#include "train/exchange.h"
#include "train/gather.h"
#include "train/generate.h"
#include "train/inspect.h"
#include "train/mesh_size.h"
#include "train/pace.h"
#include "train/pairs.h"
#include "train/plan.h"
#include "train/profiler.h"
#include "train/report.h"
#include "train/setup.h"
#include "train/snapshot.h"
#include "train/step_graph.h"
#include "train/validation.h"

namespace trainyard::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kFarewell{10};
constexpr const char* kOtherFolder = "choose another checkpoint.dir, or start anew with --checkpoint.resume never";

/// Not where the data is a list of batches, or has no end.
bool has_epochs(const data::Loader& loader) {
  return !loader.steps_available() && loader.sequences_per_epoch() != data::Loader::kEndless;
}

/// As PyTorch spells it: FULL_SHARD.
std::string strategy_word(const config::Config& config) {
  std::string word = config::format_value(config::find_key("parallel.strategy")->get(config));
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

std::string peak_text(const Hardware& hardware, double peak) {
  if (!hardware.is_known) return fmt::format("not given, as the peak of {} is not known", hardware.name);
  return fmt::format("the peak is {:.0f} GFLOP/s, {}", peak / 1e9,
                     hardware.is_cpu ? fmt::format("measured in float32 on {} threads a rank", ops::threads())
                                     : fmt::format("of the data sheet of {}", hardware.name));
}

/// A run under way on one rank: the parts in the order in which they are made.
class Run {
 public:
  Run(const config::Loaded& loaded, const World& world, MeshSize mesh);
  void go();

 private:
  void run_to_end();
  Parts parts() { return {world_.comm, *sharded_.model, *sharded_.engine, optimizer_, scaler_, *loader_}; }
  /// The checkpoint that training goes on from, if there is one, and what of it is left out.
  struct Beginning {
    std::optional<checkpoint::Checkpoint> checkpoint;
    Excluded excluded;
    const char* instead = kOtherFolder;  ///< to begin with, where it does not fit
  };
  Beginning beginning();
  std::optional<checkpoint::Checkpoint> saved_by_this_job();
  void resume_or_fill();
  void fill_fresh();
  Outcome train();
  std::optional<Validated> validate(int64_t step);
  void save();
  [[nodiscard]] checkpoint::Snapshot snapshot();
  void require_trained() const;
  void require_saved(const std::string& what) const;
  void sample(const char* title);
  void answer();
  [[nodiscard]] bool is_checkpoint_due(int64_t step) const;
  void say(const std::string& line);
  void begin_report();
  /// Rank 0 alone plans and knows this.
  struct Planned {
    Hardware hardware;
    size_t bytes = 0;       ///< of tensors, at the peak of a step
    double peak_flops = 0;  ///< of a rank
  };
  Planned plan();
  [[nodiscard]] Planned say_plan() const;
  void say_memory();
  void say_who_met();
  void warn_of_volume();

  const config::Loaded& loaded_;
  const config::Config& config_;
  const World& world_;
  const size_t resident_before_ = resident_bytes();  ///< libraries, and what the process is without a run
  const std::shared_ptr<MemoryLedger> ledger_ = std::make_shared<MemoryLedger>(kinds_on_host(config_, world_.device));
  const MemoryScope memory_{ledger_};
  models::ModelConfig model_config_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  std::vector<data::PairText> questions_;  ///< of sample.path
  std::unique_ptr<data::Loader> loader_;
  std::optional<Validation> validation_;
  Pace pace_;
  int64_t total_steps_;
  Planned planned_;
  ShardedModel sharded_;
  optim::AdamW optimizer_;
  optim::LossScaler scaler_;
  checkpoint::Agreement agreement_;
  Description description_;
  const bool has_graphs_;
  Progress progress_;
  int64_t last_checkpoint_ = 0;  ///< its step: the one resumed from, or a later one; 0: none
  std::optional<Report> report_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<Profiler> profiler_;
};

/// What files say may be wrong on every rank alike, or on one whose host has others.
Run::Run(const config::Loaded& loaded, const World& world, MeshSize mesh)
    : loaded_(loaded),
      config_(loaded.config),
      world_(world),
      model_config_(made_on_every_rank(world.comm, [&] { return model_config_of(config_.model); })),
      tokenizer_(made_on_every_rank(world.comm, [&] { return tokenizer_of(config_.data); })),
      questions_(made_on_every_rank(world.comm, [&] { return sample_pairs(config_); })),
      loader_(made_on_every_rank(
          world, "reading the data", config_.rendezvous.timeout,
          [&] { return loader_of(config_, tokenizer_.get(), model_config_, world.comm.rank(), world.comm.world()); })),
      pace_(*loader_),
      total_steps_(made_on_every_rank(world.comm, [&] { return total_steps_of(config_.training, *loader_, pace_); })),
      planned_(plan()),
      sharded_(shard_model(model_config_, world.comm, sharding_of(config_, mesh, world.device))),
      optimizer_(*sharded_.engine, config_.optimizer),
      scaler_(loss_scaling_of(config_.training, *sharded_.engine)),
      agreement_(world.store, "resume", world.comm.rank(), world.comm.world(), config_.checkpoint.timeout),
      description_{models::to_hugging_face(model_config_), config_.data.tokenizer, tokenizer_files_of(config_.data),
                   config::print_config(loaded)},
      has_graphs_(has_graphs(loaded, world)) {
  set_recompute(*sharded_.model, config_.activation_checkpointing);
  if (auto held_out = made_on_every_rank(world, "reading the validation data", config_.rendezvous.timeout, [&] {
        return validation_loader_of(config_, tokenizer_.get(), model_config_, world.comm.rank(), world.comm.world());
      }))
    validation_.emplace(std::move(held_out), config_.validation.steps);
  if (const config::Metrics& metrics = config_.metrics; metrics.profile_interval > 0)
    profiler_.emplace(Profiler::Options{.folder = fs::path(metrics.dir) / "traces",
                                        .interval = metrics.profile_interval,
                                        .steps = metrics.profile_steps,
                                        .keep = metrics.profile_keep},
                      world.comm, world.device);
  if (config_.checkpoint.enabled)
    checkpoints_.emplace(
        config_.checkpoint, world,
        [this](const checkpoint::Shard& shard) {
          return gather_rows(sharded_.mesh->shard(), shard.local, shard.global_shape, shard.name);
        },
        [this](const checkpoint::SaveResult& result) {
          if (!result.saved) return;
          last_checkpoint_ = result.step;
          if (report_) report_->saved(result.step);
        });
}

void Run::go() {
  run_to_end();
  sharded_.mesh->close(steady_clock::now() + kFarewell);
}

void Run::run_to_end() {
  warn_of_volume();
  resume_or_fill();
  if (progress_.step >= total_steps_) {
    say(fmt::format("Training already completed! Step {} of {}.", progress_.step, total_steps_));
    sample("sample");
    answer();
    return;
  }
  if (progress_.step == 0) sample("sample before training");
  const auto start = steady_clock::now();
  const Outcome outcome = train();
  const std::chrono::duration<double> spent = steady_clock::now() - start;
  if (outcome == Outcome::Stopped) {
    const std::string text = fmt::format("asked to stop: ended after step {} of {}", progress_.step, total_steps_);
    require_saved(text);
    throw TerminatedError(text + (checkpoints_ ? ", checkpoint saved in " + config_.checkpoint.dir
                                               : ", nothing saved, as checkpoint.enabled is false"));
  }
  say(fmt::format("Training took {:.1f} seconds", spent.count()));
  sample("sample after training");
  answer();
  require_saved(fmt::format("all {} steps are done", total_steps_));
  say(fmt::format("Training completed! {} steps, {} {}.", total_steps_, with_thousands(progress_.tokens),
                  models::learns_from(model_config_) == models::LearnsFrom::Images ? "images" : "tokens"));
}

/// A kernel that finds no memory kills without a word, so nobody takes any before the plan is told.
Run::Planned Run::plan() {
  Planned planned;
  on_rank_0(world_.comm, [&] { planned = say_plan(); });
  say_who_met();
  return planned;
}

/// For all ranks: they are taken to be alike.
Run::Planned Run::say_plan() const {
  const bool is_on_cpu = world_.device.kind == DeviceKind::Cpu;
  Hardware hardware = is_on_cpu ? this_machine(world_.local_world) : this_device(world_.device, world_.local_world);
  if (is_on_cpu) hardware.fixed_memory = resident_before_;
  const int64_t ranks = world_.comm.world() * config_.training.accumulation_steps;
  const Job job{loaded_,
                model_config_,
                {world_.comm.world(), world_.local_world},
                hardware,
                {.rows = (loader_->sequences_per_step() + ranks - 1) / ranks,
                 .tokens = loader_->longest_sequence(),
                 .source = loader_->longest_source(),
                 .image_size = batch_shape_of(config_, model_config_).image_size}};
  const Rehearsal rehearsal = rehearse(job);
  fmt::print("{}", metrics::format_table("plan", plan_rows(job, rehearsal, *loader_, total_steps_)));
  std::fflush(stdout);
  if (const auto warning = memory_warning(job, rehearsal)) spdlog::warn(*warning);
  return {hardware, rehearsal.device_bytes(), rehearsal.peak_flops};
}

void Run::say_memory() {
  if (!world_.is_main()) return;
  say(fmt::format("memory: {}; predicted {}; resident {} at most, {} of it before the run",
                  memory_text(ledger_->peak_bytes(), ledger_->at_peak()), human_bytes(planned_.bytes),
                  human_bytes(peak_resident_bytes()), human_bytes(resident_before_)));
}

/// Success, or a last checkpoint, would tell of a model that is none: it is as it was filled.
void Run::require_trained() const {
  if (optimizer_.steps_done() > 0) return;
  throw NotFiniteError(
      fmt::format("every step up to the last, {}, was skipped, as its gradients overflowed, so nothing is trained; the "
                  "loss scale is down to {} by now: train for more steps, or begin with a lower "
                  "training.loss_scale_init",
                  total_steps_, scaler_.scale()));
}

/// A restart goes on from the older checkpoint; success, or 143, would tell that the newest state is there.
void Run::require_saved(const std::string& what) const {
  if (checkpoints_ && !checkpoints_->error().empty())
    throw VerdictError(
        fmt::format("{}, but the last checkpoint could not be saved in {}: {}; mend that and start again", what,
                    config_.checkpoint.dir, checkpoints_->error()),
        world_.is_main());
}

/// Where a job is started again it goes on from what it saved itself, whole: a lost pod must not cost the steps since
/// the checkpoint that the job once began from.
std::optional<checkpoint::Checkpoint> Run::saved_by_this_job() {
  if (!checkpoints_ || !world_.may_have_saved || world_.job.empty()) return std::nullopt;
  return checkpoint::find_latest_of(world_.job, config_.checkpoint.dir, agreement_);
}

Run::Beginning Run::beginning() {
  const config::Checkpoint& settings = config_.checkpoint;
  if (auto own = saved_by_this_job()) return {std::move(own), {}};
  const Excluded excluded = excluded_of(settings.exclude);
  const bool names_one = settings.resume != "auto" && settings.resume != "never";
  if (names_one)
    return {checkpoint::open_checkpoint(settings.resume, agreement_), excluded,
            "name one of this model in checkpoint.resume"};
  if (settings.resume == "auto" && checkpoints_)
    if (auto newest = checkpoint::find_latest(settings.dir, agreement_)) return {std::move(newest), excluded};
  if (settings.initial_load_path.empty()) return {};
  constexpr Excluded kAllButTheModel{.optimizer = true, .data = true, .progress = true};
  return {checkpoint::open_checkpoint(settings.initial_load_path, agreement_),
          settings.initial_load_model_only ? kAllButTheModel : excluded,
          "name one of this model in checkpoint.initial_load_path"};
}

void Run::resume_or_fill() {
  const auto start = steady_clock::now();
  const auto [found, excluded, instead] = beginning();
  if (!found) return fill_fresh();
  Parts own = parts();
  progress_ = restore(own, *found, model_config_, excluded, instead);
  if (!excluded.data && !excluded.progress) pace_ = Pace(*loader_, progress_.step);
  total_steps_ = total_steps_of(config_.training, *loader_, pace_);
  if (is_model_only(*found) && !excluded.optimizer && progress_.step < total_steps_)
    throw InputError(
        fmt::format("{}: holds the model without its optimizer (checkpoint.final_model_only), so training cannot go on "
                    "from it; resume an older one, or say checkpoint.exclude optimizer",
                    found->path().string()));
  last_checkpoint_ = progress_.step;
  say(fmt::format("Resuming at epoch {}, after step {}", pace_.epochs(progress_.step), progress_.step));
  if (world_.is_main())
    checkpoint::log_loaded(*found, std::chrono::duration<double>(steady_clock::now() - start).count());
}

void Run::fill_fresh() {
  if (config_.model.init_from.empty()) {
    fill_random(*sharded_.engine, config_.model.seed, filled_by(config_));
  } else {
    fill_from_weights(sharded_, config_.model.init_from, filled_by(config_), config_.model.name_map);
  }
}

/// The rank that came last waited for nobody: its time is what the meeting itself takes.
void Run::say_who_met() {
  const int ranks = world_.comm.world();
  if (ranks == 1) return;
  const double shortest = Answers(world_.comm, std::array{world_.meeting.count()}, "meeting").min(0);
  say(fmt::format("{} ranks met, {:.2f} s after the last of them had started", ranks, shortest));
}

/// Where nothing else keeps the checkpoints, who trains should know before a pod is lost.
void Run::warn_of_volume() {
  if (!checkpoints_ || !world_.in_pod || !world_.is_main()) return;
  if (const auto warning = checkpoint::volume_warning(config_.checkpoint.dir)) spdlog::warn(*warning);
}

void Run::begin_report() {
  const Hardware& hardware = planned_.hardware;
  const double peak = planned_.peak_flops * world_.comm.world();
  report_.emplace(config_.metrics,
                  Workload{.total_steps = total_steps_,
                           .sequences_per_step = loader_->sequences_per_step(),
                           .flops_per_row = models::flops_per_row(
                               model_config_, {loader_->sequence_length(), loader_->source_length()}),
                           .pace = has_epochs(*loader_) ? std::optional(pace_) : std::nullopt,
                           .sequences_per_epoch = loader_->sequences_per_epoch(),
                           .is_classifier = models::learns_from(model_config_) == models::LearnsFrom::Images,
                           .strategy = strategy_word(config_),
                           .peak_flops = hardware.is_known ? std::optional(peak) : std::nullopt},
                  progress_, world_);
  report_->say(fmt::format("mfu: {}; {}", metrics::kMfuFormula, peak_text(hardware, peak)));
}

Outcome Run::train() {
  on_rank_0(world_.comm, [this] { begin_report(); });  // a port that is taken ends all
  Trainer trainer(parts(),
                  {.total_steps = total_steps_,
                   .accumulation_steps = config_.training.accumulation_steps,
                   .clip_grad_norm = config_.training.clip_grad_norm,
                   .schedule = optim::schedule_of(config_.optimizer, total_steps_),
                   .dropout_seed = config_.training.seed,
                   .deterministic = config_.training.deterministic,
                   .graphs = has_graphs_},
                  {.asked_to_stop = world_.asked_to_stop,
                   .validate = [this](int64_t step) { return validate(step); },
                   .on_step =
                       [this](const StepResult& result) {
                         if (report_) report_->step(result, progress_.tokens);
                         if (checkpoints_) checkpoints_->poll();
                         if (profiler_) profiler_->steps_done(result.step);
                       },
                   .before_update =
                       [this] {
                         if (checkpoints_) checkpoints_->before_update();
                       },
                   .is_checkpoint_due = [this](int64_t step) { return is_checkpoint_due(step); },
                   .save = [this](const Progress&) { save(); }});
  if (checkpoints_) checkpoints_->prepare(snapshot());
  ledger_->restart_peak();
  if (profiler_) profiler_->steps_done(progress_.step);
  try {
    const Outcome outcome = trainer.run(progress_);
    say_memory();
    if (checkpoints_) checkpoints_->finish();
    return outcome;
  } catch (const PeerError&) {
    if (checkpoints_) checkpoints_->give_up();  // the rank that is lost does not write its part
    throw;
  } catch (const NotFiniteError& error) {
    if (checkpoints_) checkpoints_->finish();  // of a step that was good
    if (last_checkpoint_ == 0) throw;
    throw NotFiniteError(
        fmt::format("{}; the last checkpoint, of step {}, is from before it", error.what(), last_checkpoint_));
  }
}

std::optional<Validated> Run::validate(int64_t step) {
  const int64_t interval = config_.validation.interval;
  const bool is_due = step == total_steps_ || (interval > 0 && step % interval == 0);
  if (!validation_ || !is_due) return std::nullopt;
  synchronize(world_.device);  // what is left of the step counts as the step's
  const auto start = steady_clock::now();
  const Validated validated = validation_->run(world_.comm, *sharded_.model, *sharded_.engine);
  if (report_) report_->exclude(steady_clock::now() - start);
  return validated;
}

bool Run::is_checkpoint_due(int64_t step) const {
  const config::Checkpoint& settings = config_.checkpoint;
  if (settings.interval > 0 && step % settings.interval == 0) return true;
  if (settings.epoch_interval == 0) return false;
  return pace_.epochs(step) / settings.epoch_interval > pace_.epochs(step - 1) / settings.epoch_interval;
}

void Run::save() {
  if (progress_.step == total_steps_) require_trained();
  if (!checkpoints_) return;
  const auto start = steady_clock::now();
  if (report_) report_->pause();
  const bool is_last = progress_.step == total_steps_;
  checkpoints_->save(snapshot(), is_last ? Checkpoints::Occasion::LastStep : Checkpoints::Occasion::OnTheWay);
  if (report_) report_->exclude(steady_clock::now() - start);
}

checkpoint::Snapshot Run::snapshot() {
  return snapshot_of(parts(), progress_, description_);
}

/// As sample(): every rank takes part.
void Run::answer() {
  if (questions_.empty() || !tokenizer_) return;
  constexpr size_t kShown = 3;
  say(format_answers(answer_pairs(models::language_model(*sharded_.model), *tokenizer_, config_.data, questions_),
                     kShown));
}

/// Every rank takes part, as each holds a part of the model; rank 0 prints.
void Run::sample(const char* title) {
  if (config_.sample.prompt.empty() || !tokenizer_) return;
  models::LanguageModel& model = models::language_model(*sharded_.model);
  const auto prompt = prompt_ids(model, *tokenizer_, config_.sample.prompt);
  const auto made = generate(model, prompt,
                             {.max_new_tokens = config_.sample.max_new_tokens,
                              .temperature = config_.sample.temperature,
                              .top_p = config_.sample.top_p,
                              .seed = config_.training.seed,
                              .vocab_size = tokenizer_->vocab_size(),
                              .stop = tokenizer_->eos_id()});
  say(fmt::format("── {} ──\n{}{}{}\n──", title, config_.sample.prompt, model.continues_prompt() ? "" : "\n→ ",
                  tokenizer::printable(tokenizer_->decode(made))));
}

void Run::say(const std::string& line) {
  if (!world_.is_main()) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

void run(const config::Loaded& loaded, const World& world) {
  const MeshSize mesh = mesh_of(loaded, world);
  on_every_rank(world.comm, [&] { require_text_files(loaded); });
  if (world.device.kind == DeviceKind::Cuda)
    on_every_rank(world.comm, [&] { check_float8(loaded, properties_of(world.device)); });
  ops::set_threads(threads_of(loaded.config.device, world.local_world));
  const config::Loaded ready = config::for_world(loaded, world.comm.world());
  Run(ready, world, mesh).go();
}

void inspect(const config::Loaded& loaded, const World& world) {
  const MeshSize mesh = mesh_of(loaded, world);
  const models::ModelConfig model = model_config_of(loaded.config.model);
  const ShardedModel sharded = shard_model(model, world.comm, sharding_of(loaded.config, mesh, world.device));
  if (world.is_main()) fmt::print("{}", inspection(model, *sharded.engine));
}

}  // namespace trainyard::train
