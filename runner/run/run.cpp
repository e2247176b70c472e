#include "run/run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "assemble/exchange.h"
#include "assemble/loaders.h"
#include "assemble/model_config.h"
#include "assemble/pace.h"
#include "assemble/run_spec.h"
#include "assemble/threads.h"
#include "assemble/tokenizer.h"
#include "assemble/total_steps.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/folder_group.h"
#include "checkpoint/reader.h"
#include "checkpoint/volume.h"
#include "config/check.h"
#include "config/print.h"
#include "config/schema.h"
#include "metrics/folder_claim.h"
#include "metrics/mfu.h"
#include "ops/threads.h"
#include "plan/plan.h"
#include "run/beginning.h"
#include "run/checkpoints.h"
#include "run/description.h"
#include "run/inspect.h"
#include "run/printed_plan.h"
#include "run/profiler.h"
#include "run/report.h"
#include "run/samples.h"
#include "tensor/memory.h"
#include "train/gather.h"
#include "train/snapshot.h"
#include "train/step_graph.h"
#include "train/validation.h"

namespace trainyard::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kFarewell{10};

std::vector<metrics::ConfigFile> files_of(const config::Loaded& loaded) {
  std::vector<metrics::ConfigFile> files;
  for (const config::YamlText& file : loaded.texts) files.push_back({file.name, file.text});
  return files;
}

/// Not where the data is a list of batches, or has no end.
bool has_epochs(const data::Loader& loader) {
  return !loader.steps_available() && loader.sequences_per_epoch() != data::Loader::kEndless;
}

/// A run under way on one rank: the parts in the order in which they are made.
class Run {
 public:
  Run(const config::Loaded& loaded, const RunSpec& spec, const World& world);
  void go();

 private:
  void begin_validation(std::unique_ptr<data::Loader> held_out);
  void run_to_end();
  void save_seed();
  Parts parts() { return {world_.comm, *sharded_.model, *sharded_.engine, optimizer_, scaler_, *loader_, adapters()}; }
  Adapters* adapters() { return sharded_.adapters ? &*sharded_.adapters : nullptr; }
  void resume_or_fill();
  void fill_fresh(const std::filesystem::path& adapter);
  Outcome train();
  std::optional<Validated> validate(int64_t step);
  void save();
  [[nodiscard]] checkpoint::Snapshot snapshot();
  [[nodiscard]] std::unique_ptr<data::Loader> own_rows(std::unique_ptr<data::Loader> loader) const {
    return rows_of_rank(std::move(loader), spec_.sharding, world_.comm.rank());
  }
  [[nodiscard]] LoaderParts loader_parts(const AskedToStop& asked_to_stop) const;
  [[nodiscard]] data::Notes notes() const;
  [[nodiscard]] checkpoint::Naming naming() const { return naming_of(config_.checkpoint, spec_.strategy); }
  void require_trained() const;
  void leave_word() const;
  void require_saved(const std::string& what) const;
  void show_samples(const char* title);
  [[nodiscard]] bool has_passed(int64_t step, int64_t interval, int64_t epoch_interval) const;
  void say(const std::string& line);
  void begin_report();
  Planned plan();
  std::unique_ptr<metrics::FolderClaim> claimed();
  void say_memory();
  void say_who_met();
  void warn_of_volume();

  const config::Loaded& loaded_;
  const config::Config& config_;
  const RunSpec& spec_;
  const World& world_;
  const size_t resident_before_ = resident_bytes();  ///< libraries, and what the process is without a run
  const std::shared_ptr<MemoryLedger> ledger_ = std::make_shared<MemoryLedger>(spec_.on_host);
  const MemoryScope memory_{ledger_};
  models::ModelConfig model_config_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  Samples samples_;
  std::unique_ptr<data::Loader> loader_;
  std::optional<Validation> validation_;
  Pace pace_;
  int64_t total_steps_;
  Planned planned_;                              ///< rank 0 alone plans and knows this
  std::unique_ptr<metrics::FolderClaim> claim_;  ///< on metrics.dir, of rank 0
  ShardedModel sharded_;
  optim::AdamW optimizer_;
  optim::LossScaler scaler_;
  Description description_;
  const bool has_graphs_;
  Progress progress_;
  bool has_resumed_ = false;
  int64_t last_checkpoint_ = 0;  ///< its step: the one resumed from, or a later one; 0: none
  std::optional<Report> report_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<Profiler> profiler_;
};

/// What files say may be wrong on every rank alike, or on one whose host has others.
Run::Run(const config::Loaded& loaded, const RunSpec& spec, const World& world)
    : loaded_(loaded),
      config_(loaded.config),
      spec_(spec),
      world_(world),
      model_config_(models::for_training(model_config_of(config_.model, world.comm))),
      tokenizer_(made_on_every_rank(world.comm, [&] { return tokenizer_of(loaded); })),
      samples_(config_, tokenizer_.get(), world.comm),
      loader_(made_on_every_rank(
          world, "reading the data", config_.rendezvous.timeout,
          [&](const AskedToStop& asked_to_stop) {
            return own_rows(loader_of(loader_parts(asked_to_stop), spec_.batch));
          })),
      pace_(*loader_),
      total_steps_(made_on_every_rank(world.comm, [&] { return total_steps_of(config_.training, *loader_, pace_); })),
      planned_(plan()),
      claim_(claimed()),
      sharded_(shard_model(model_config_, world.comm, spec.sharding)),
      optimizer_(*sharded_.engine, config_.optimizer),
      scaler_(loss_scaling_of(spec.loss_scale, *sharded_.engine)),
      description_(made_on_every_rank(world.comm, [&] { return description_of({loaded, model_config_, world}); })),
      has_graphs_(has_graphs(loaded, spec, world)) {
  set_recompute(*sharded_.model, spec.recompute);
  if (notes() == data::Notes::Logged) warn_of_other_ids(config_.data, model_config_.family);
  if (auto held_out = made_on_every_rank(
          world, "reading the validation data", config_.rendezvous.timeout, [&](const AskedToStop& asked_to_stop) {
            return own_rows(validation_loader_of(loader_parts(asked_to_stop), spec_.held_out));
          }))
    begin_validation(std::move(held_out));
  if (const config::Metrics& metrics = config_.metrics; metrics.profile_interval > 0)
    profiler_.emplace(Profiler::Options{.folder = fs::path(metrics.dir) / "traces",
                                        .interval = metrics.profile_interval,
                                        .steps = metrics.profile_steps,
                                        .keep = metrics.profile_keep},
                      world.comm, world.device);
  if (config_.checkpoint.enabled)
    checkpoints_.emplace(
        config_.checkpoint, naming(), world,
        [this](const checkpoint::Shard& shard) { return gather_whole(*sharded_.engine, shard); },
        [this](const checkpoint::SaveResult& result) {
          if (result.saved) last_checkpoint_ = result.step;
          if (!report_) return;
          result.saved ? report_->saved(result.step) : report_->not_saved(result.step, result.reason);
        });
}

LoaderParts Run::loader_parts(const AskedToStop& asked_to_stop) const {
  return {config_, tokenizer_.get(), model_config_,
          place_of(spec_.sharding.mesh, world_.comm.rank()),
          {.threads = threads_of_node(), .asked_to_stop = asked_to_stop, .notes = notes()}};
}

data::Notes Run::notes() const {
  return world_.comm.rank() == 0 ? data::Notes::Logged : data::Notes::Unsaid;
}

void Run::begin_validation(std::unique_ptr<data::Loader> held_out) {
  if (config_.validation.split > 0)
    say(fmt::format("held out: {} of {} sequences, the end of the training data (validation.split {})",
                    with_thousands(held_out->sequences_per_epoch()),
                    with_thousands(held_out->sequences_per_epoch() + loader_->sequences_per_epoch()),
                    config_.validation.split));
  validation_.emplace(std::move(held_out), config_.validation.steps);
}

void Run::go() {
  run_to_end();
  sharded_.mesh->close(steady_clock::now() + kFarewell);
}

void Run::run_to_end() {
  warn_of_volume();
  resume_or_fill();
  samples_.find_stop_ids(description_, model_config_.vocab_size);
  if (config_.checkpoint.create_seed_checkpoint) return save_seed();
  if (progress_.step >= total_steps_) {
    say(fmt::format("Training already completed! Step {} of {}.", progress_.step, total_steps_));
    show_samples("sample");
    leave_word();
    return;
  }
  if (progress_.step == 0) say(samples_.of_prompt("sample before training", *sharded_.model));
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
  show_samples("sample after training");
  require_saved(fmt::format("all {} steps are done", total_steps_));
  say(fmt::format("Training completed! {} steps, {} {}.", total_steps_, with_thousands(progress_.tokens),
                  models::learns_from(model_config_) == models::LearnsFrom::Images ? "images" : "tokens"));
  leave_word();
}

/// The last post may find nobody, as the operator or the API that it decides by is away: the pod's end tells it, too.
void Run::leave_word() const {
  if (!world_.is_main() || !world_.leave_word) return;
  const metrics::JobProgress done{
      .step = progress_.step, .total_steps = total_steps_, .checkpoint_step = progress_.step};
  world_.leave_word(report_ ? report_->last_word() : metrics::to_json(done));
}

/// One that a job saved before it was started again stays as it is.
void Run::save_seed() {
  const std::string& folder = config_.checkpoint.dir;
  if (progress_.step > 0)
    throw VerdictError(fmt::format("checkpoint.create_seed_checkpoint is true, but {} is after step {}; choose another "
                                   "checkpoint.dir, or start anew with --checkpoint.resume never",
                                   folder, progress_.step),
                       world_.is_main());
  if (!has_resumed_) {
    checkpoints_->save(snapshot(), Checkpoints::Occasion::OnTheWay);
    checkpoints_->finish();
    require_saved("the seed checkpoint is all that was asked for");
  }
  say(fmt::format("The seed checkpoint is in {}: step 0, nothing is trained.", folder));
}

/// A kernel that finds no memory kills without a word, so nobody takes any before the plan is told.
Planned Run::plan() {
  Planned planned;
  on_rank_0(world_.comm, [&] {
    planned = print_plan({loaded_, spec_, model_config_, *loader_, total_steps_, world_, resident_before_});
  });
  say_who_met();
  return planned;
}

/// The folder is claimed before anything is written, also of checkpoints: who is refused leaves the other run as it is.
std::unique_ptr<metrics::FolderClaim> Run::claimed() {
  std::unique_ptr<metrics::FolderClaim> claim;
  on_rank_0(world_.comm, [&] {
    claim = std::make_unique<metrics::FolderClaim>(config_.metrics.dir, world_.job, world_.generation);
  });
  return claim;
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

void Run::resume_or_fill() {
  const auto start = steady_clock::now();
  const auto [found, excluded, is_own, instead] = find_beginning(config_.checkpoint, naming(), world_);
  if (!found) return fill_fresh(config_.lora.init_from);
  if (sharded_.adapters) fill_fresh({});  // the base, which is in no checkpoint
  Parts own = parts();
  progress_ = restore(own, *found, model_config_, excluded, instead);
  on_every_rank(world_.comm,
                [&] { description_ = going_on_from(*found, description_, {loaded_, model_config_, world_}); });
  if (!excluded.data && !excluded.progress) pace_ = Pace(*loader_, progress_.step);
  const bool extends = config_.checkpoint.resume == "extend";
  total_steps_ = extends ? total_steps_after(progress_.step + (is_own ? 0 : 1), config_.training, *loader_, pace_)
                         : total_steps_of(config_.training, *loader_, pace_);
  if (is_model_only(*found) && !excluded.optimizer && progress_.step < total_steps_)
    throw InputError(
        fmt::format("{}: holds the model without its optimizer (checkpoint.final_model_only), so training cannot go on "
                    "from it; resume an older one, or say checkpoint.exclude optimizer",
                    found->path().string()));
  last_checkpoint_ = progress_.step, has_resumed_ = true;
  say(fmt::format("Resuming at epoch {}, after step {}", pace_.epochs(progress_.step), progress_.step));
  if (world_.is_main())
    checkpoint::log_loaded(*found, std::chrono::duration<double>(steady_clock::now() - start).count());
}

/// `adapter`: what adapters begin as, or empty.
void Run::fill_fresh(const std::filesystem::path& adapter) {
  if (config_.model.init_from.empty()) {
    fill_random(*sharded_.engine, config_.model.seed, spec_.filled_by);
  } else {
    fill_from_weights(sharded_, {config_.model.init_from, config_.model.name_map, config_.model.seed, adapter},
                      spec_.filled_by);
  }
}

/// The rank that came last waited for nobody: its time is what the meeting itself takes.
void Run::say_who_met() {
  const int ranks = world_.comm.world();
  if (ranks == 1) return;
  const double shortest = GatheredScalars(world_.comm, std::array{world_.meeting.count()}, "meeting").min(0);
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
                           .strategy = spec_.strategy,
                           .peak_flops = hardware.is_known ? std::optional(peak) : std::nullopt,
                           .config = files_of(loaded_)},
                  progress_, world_, *claim_);
  report_->say(fmt::format("mfu: {}; {}", metrics::kMfuFormula, peak_text(hardware, peak)));
}

Outcome Run::train() {
  on_rank_0(world_.comm, [this] { begin_report(); });  // a port that is taken ends all
  Trainer trainer(parts(),
                  {.total_steps = total_steps_,
                   .accumulation_steps = spec_.batch.accumulation_steps,
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
                   .is_checkpoint_due =
                       [this](int64_t step) {
                         return has_passed(step, config_.checkpoint.interval, config_.checkpoint.epoch_interval);
                       },
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
  const config::Validation& settings = config_.validation;
  const bool is_due = step == total_steps_ || has_passed(step, settings.interval, settings.epoch_interval);
  if (!validation_ || !is_due) return std::nullopt;
  synchronize(world_.device);  // what is left of the step counts as the step's
  const auto start = steady_clock::now();
  const Validated validated = validation_->run(world_.comm, *sharded_.model, *sharded_.engine);
  if (report_) report_->exclude(steady_clock::now() - start);
  return validated;
}

bool Run::has_passed(int64_t step, int64_t interval, int64_t epoch_interval) const {
  if (interval > 0 && step % interval == 0) return true;
  return epoch_interval > 0 && pace_.epochs(step) / epoch_interval > pace_.epochs(step - 1) / epoch_interval;
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

void Run::show_samples(const char* title) {
  say(samples_.of_prompt(title, *sharded_.model));
  say(samples_.of_pairs(*sharded_.model));
}

void Run::say(const std::string& line) {
  if (!world_.is_main() || line.empty()) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

void run(const config::Loaded& loaded, const World& world) {
  const config::Loaded ready = config::for_world(loaded, world.comm.world());
  const RunSpec spec = resolve(ready, world);
  on_every_rank(world.comm, [&] {
    require_text_files(loaded);
    static_cast<void>(naming_of(loaded.config.checkpoint, spec.strategy));
  });
  if (world.device.kind == DeviceKind::Cuda)
    on_every_rank(world.comm, [&] { check_float8(loaded, properties_of(world.device)); });
  ops::set_threads(threads_of(loaded.config.device, world.local_world));
  Run(ready, spec, world).go();
}

void inspect(const config::Loaded& loaded, const World& world) {
  const RunSpec spec = resolve(loaded, world);
  const models::ModelConfig model = models::for_training(model_config_of(loaded.config.model, world.comm));
  const ShardedModel sharded = shard_model(model, world.comm, spec.sharding);
  if (world.is_main()) fmt::print("{}", inspection(model, *sharded.engine));
}

}  // namespace trainyard::train
