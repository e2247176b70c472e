#include "ops/cuda/attention_cudnn.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "common/mutex.h"
#include "metrics/trace.h"
#include "ops/cuda/cudnn_graph.h"
#include "tensor/by_device.h"
#include "tensor/cuda/check.h"

// Attention as a graph of cuDNN's, the operations of Dao 2023 as they are written there. cuDNN knows such graphs by
// their pattern: order, types and layouts are those that NVIDIA's cudnn-frontend 1.32 makes of its sdpa() and its
// sdpa_backward(), asked to be deterministic or not, for cuDNN 9.19.
namespace trainyard::ops::cuda {
namespace {

constexpr const char* kSpan = "cudnn attention";  // within the op's own in a trace: says whose kernels these are
constexpr size_t kMostGraphs = 512;
/// A plan takes half a second, as cuDNN compiles its kernel, and serves its shape alone: rows of any length would wait
/// for ever new ones.
constexpr int64_t kTokensStep = 64;
constexpr int64_t kMostHeadDim = 128, kMostHeadDimOf90 = 256;

enum Id : int64_t { kQ = 1, kK, kV, kOut, kLse, kBias, kQueries, kKeys, kDOut, kDelta, kDQ, kDQSums, kDK, kDV, kDBias };
using Pass = AttentionPass;
/// What is added to the scores: nothing, matrices of heads, or matrices of rows.
enum class Added : uint8_t { Nothing, Bias, Documents };

/// All that a graph depends on.
struct Work {
  Pass pass;
  DType dtype;
  AttentionShape shape;                 ///< of the slice
  int64_t heads_there, kv_heads_there;  ///< in a token's vector, of which the slice has some
  float scale;
  bool causal;
  int64_t window;
  Added added;
  bool keeps_scores;
  bool has_lengths;
  auto operator<=>(const Work&) const = default;
};

class AttentionGraph {
 public:
  AttentionGraph(const CudnnDevice& on, const Work& work) : graph_(on), work_(work), s_(work.shape) {}

  Plan forward() && {
    const Value k_transposed = graph_.memory(kK, type_, keys_.transposed());
    Value seen = add_matrices(scaled_scores(graph_.memory(kQ, type_, queries_), k_transposed));
    seen = hide_by_place(hide_by_length(seen));
    const Value most = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, seen, temporary(lines_));
    const Value weights = exp(subtract(seen, most));
    const Value total = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, temporary(lines_));
    const Value log_total = graph_.pointwise(CUDNN_POINTWISE_LOG, {total}, temporary(lines_));
    graph_.pointwise(CUDNN_POINTWISE_ADD, {most, log_total}, graph_.memory(kLse, CUDNN_DATA_FLOAT, lines_));
    const Value p = graph_.pointwise(CUDNN_POINTWISE_DIV, {weights, total}, temporary(matrix_, type_));
    graph_.matmul(p, graph_.memory(kV, type_, keys_), graph_.memory(kOut, type_, queries_), by_keys());
    return std::move(graph_).plan();
  }

  Plan backward() && {
    const Value dout = graph_.memory(kDOut, type_, queries_);
    const Value product =
        multiply(dout, graph_.memory(kOut, type_, queries_), temporary(Layout::packed(queries_.sizes)));
    const Value row_sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, product, temporary(lines_));
    const Value delta = multiply(row_sum, graph_.number(1), graph_.memory(kDelta, CUDNN_DATA_FLOAT, lines_));

    const Value q = graph_.memory(kQ, type_, queries_), k_transposed = graph_.memory(kK, type_, keys_.transposed());
    const Value scores = add_matrices(scaled_scores(q, k_transposed));
    const Value p = exp(hide_by_place(hide_by_length(subtract(scores, graph_.memory(kLse, CUDNN_DATA_FLOAT, lines_)))));
    product_of_queries(p, dout, kDV);

    const Value v_transposed = graph_.memory(kV, type_, keys_.transposed());
    const Value dp = graph_.matmul(dout, v_transposed, temporary(matrix_), by_scores());
    const Value dscores = multiply(subtract(dp, delta), p, temporary(matrix_));
    if (work_.added == Added::Bias)
      graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, dscores, graph_.memory(kDBias, type_, matrices_of(1, s_.heads)));
    const Value ds = multiply(dscores, scale(), temporary(matrix_));
    product_of_queries(ds, q, kDK);
    const Value k = graph_.view(k_transposed, temporary(keys_));
    const Value dq = graph_.memory(kDQ, type_, queries_);
    if (work_.keeps_scores) {
      graph_.matmul(ds, k, dq, by_keys());
    } else {
      const Value sums = graph_.memory(kDQSums, CUDNN_DATA_FLOAT, Layout::packed(queries_.sizes));
      graph_.pointwise(CUDNN_POINTWISE_IDENTITY, {graph_.matmul(ds, k, sums, by_keys())}, dq);
    }
    return std::move(graph_).plan();
  }

 private:
  Value temporary(const Layout& layout, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.temporary(layout, type);
  }
  Value scale() { return graph_.number(work_.scale); }
  Value multiply(Value a, Value b, Value to) { return graph_.pointwise(CUDNN_POINTWISE_MUL, {a, b}, to); }
  Value subtract(Value a, Value b) { return graph_.pointwise(CUDNN_POINTWISE_SUB, {a, b}, temporary(matrix_)); }
  Value exp(Value x) { return graph_.pointwise(CUDNN_POINTWISE_EXP, {x}, temporary(matrix_)); }

  Value scaled_scores(Value q, Value k_transposed) {
    const Value products = graph_.matmul(q, k_transposed, temporary(matrix_), by_scores());
    return multiply(products, scale(), temporary(matrix_));
  }

  Value add_matrices(Value scores) {
    if (work_.added == Added::Nothing) return scores;
    const Layout layout = work_.added == Added::Bias ? matrices_of(1, s_.heads) : matrices_of(s_.batch, 1);
    const Value matrices = graph_.memory(kBias, type_, layout);
    return graph_.pointwise(CUDNN_POINTWISE_ADD, {scores, matrices}, temporary(matrix_));
  }

  Value compare(cudnnPointwiseMode_t mode, Value a, Value b) {
    return graph_.pointwise(mode, {a, b}, temporary(matrix_, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  }
  Value keep(Value scores, Value where) {
    const Value hidden = graph_.number(-std::numeric_limits<float>::infinity());
    return graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scores, hidden, where}, temporary(matrix_));
  }

  Value hide_by_length(Value scores) {
    if (!work_.has_lengths) return scores;
    const Value query = graph_.index(2, scores, CUDNN_DATA_INT32), key = graph_.index(3, scores, CUDNN_DATA_INT32);
    const Value of_queries = compare(CUDNN_POINTWISE_CMP_LT, query, queries_there_);
    const Value of_keys = compare(CUDNN_POINTWISE_CMP_LT, key, keys_there_);
    return keep(scores, compare(CUDNN_POINTWISE_LOGICAL_AND, of_queries, of_keys));
  }

  Value hide_by_place(Value scores) {
    if (!work_.causal) return scores;
    const Value query = graph_.index(2, scores, CUDNN_DATA_FLOAT), key = graph_.index(3, scores, CUDNN_DATA_FLOAT);
    const Value past = keep(scores, compare(CUDNN_POINTWISE_CMP_GE, query, key));
    return work_.window == 0 ? past : hide_by_window(past);
  }

  Value hide_by_window(Value scores) {
    const Value query = graph_.index(2, scores, CUDNN_DATA_FLOAT), key = graph_.index(3, scores, CUDNN_DATA_FLOAT);
    const Value window = graph_.number(static_cast<float>(work_.window));
    const Value end = graph_.pointwise(CUDNN_POINTWISE_ADD, {key, window}, temporary(matrix_));
    return keep(scores, compare(CUDNN_POINTWISE_CMP_GT, end, query));
  }

  /// to = matricesᵀ · vectors, summed over the query heads that share a KV head.
  void product_of_queries(Value matrices, Value vectors, Id to) {
    const Value transposed = graph_.view(matrices, temporary(matrix_.transposed(), type_));
    const Value result = graph_.memory(to, type_, keys_);
    const Counted counted{.rows = keys_there_, .inner = queries_there_};
    if (s_.heads == s_.kv_heads) {
      graph_.matmul(transposed, vectors, result, counted);
      return;
    }
    const Layout of_heads = Layout::packed({s_.batch, s_.heads, s_.kv_tokens, s_.head_dim});
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, graph_.matmul(transposed, vectors, temporary(of_heads, type_), counted),
                  result);
  }

  [[nodiscard]] Counted by_scores() const { return {.rows = queries_there_, .columns = keys_there_}; }
  [[nodiscard]] Counted by_keys() const { return {.rows = queries_there_, .inner = keys_there_}; }

  [[nodiscard]] Layout matrices_of(int64_t rows, int64_t heads) const {
    return Layout::packed({rows, heads, s_.q_tokens, s_.kv_tokens});
  }
  /// The layout of our tensors: token after token, and in each its heads.
  [[nodiscard]] Layout vectors(int64_t heads, int64_t tokens, int64_t heads_there) const {
    const int64_t width = heads_there * s_.head_dim;
    return {{s_.batch, heads, tokens, s_.head_dim}, {tokens * width, s_.head_dim, width, 1}};
  }
  Value lengths(Id id) {
    return work_.has_lengths ? graph_.memory(id, CUDNN_DATA_INT32, Layout::packed({s_.batch, 1, 1, 1})) : nullptr;
  }

  Graph graph_;
  const Work& work_;
  const AttentionShape& s_;
  const cudnnDataType_t type_ = work_.dtype == DType::BFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
  const Layout queries_ = vectors(s_.heads, s_.q_tokens, work_.heads_there);
  const Layout keys_ = vectors(s_.kv_heads, s_.kv_tokens, work_.kv_heads_there);
  const Layout matrix_ = matrices_of(s_.batch, s_.heads), lines_ = Layout::packed({s_.batch, s_.heads, s_.q_tokens, 1});
  const Value queries_there_ = lengths(kQueries), keys_there_ = lengths(kKeys);
};

/// cuDNN on one device, and its plans. Any thread may use it.
class DeviceAttention {
 public:
  DeviceAttention(const Cudnn& library, Device device)
      : on_{library, device.index, nullptr}, device_(properties_of(device)) {
    trainyard::cuda::use(on_.index);
    check(library, library.create(&on_.handle), "cudnnCreate", on_.index);
  }

  [[nodiscard]] const DeviceProperties& device() const { return device_; }

  /// Whether cuDNN has a kernel for this. Steps repeat their shapes, so a plan is made once; where batches come in ever
  /// new shapes, those of old ones go.
  bool has_plan(const Work& work) {
    const MutexLock lock(mutex_);
    if (plans_.size() >= kMostGraphs && !plans_.contains(work)) plans_.clear();
    return plan_of(work).has_value();
  }

  void run(const Work& work, const Addresses& addresses, Device device) {
    const MutexLock lock(mutex_);
    const Plan& plan = *plan_of(work);
    Tensor workspace = Tensor::empty({plan.workspace_bytes()}, DType::UInt8, device);
    plan.run(static_cast<cudaStream_t>(current_stream(device).handle), addresses, workspace.raw());
  }

  /// That other kernels compute `what`, and why. Once is enough to know why a run is slow: of a node's ranks, each with
  /// a device, the first one's tells it.
  void tell_once(std::string_view what, const AttentionShape& s, const std::string& why) {
    const MutexLock lock(told_mutex_);
    if (on_.index != 0 || !told_.insert(why).second) return;
    spdlog::warn("{} of {} tokens by {}, {} heads by {} of size {} takes kernels that are slower: {}", what, s.q_tokens,
                 s.kv_tokens, s.heads, s.kv_heads, s.head_dim, why);
  }

 private:
  const std::optional<Plan>& plan_of(const Work& work) REQUIRES(mutex_) {
    if (const auto found = plans_.find(work); found != plans_.end()) return found->second;
    trainyard::cuda::use(on_.index);
    return plans_.emplace(work, make_plan(work)).first->second;
  }

  std::optional<Plan> make_plan(const Work& work) REQUIRES(mutex_) {
    try {
      AttentionGraph graph(on_, work);
      return work.pass == Pass::Forward ? std::move(graph).forward() : std::move(graph).backward();
    } catch (const CudnnRefusal& refusal) {
      tell_once(work.pass == Pass::Forward ? "attention" : "attention's backward", work.shape,
                fmt::format("cuDNN has none: {}", refusal.what()));
      return {};
    }
  }

  CudnnDevice on_;
  DeviceProperties device_;
  Mutex mutex_;
  std::map<Work, std::optional<Plan>> plans_ GUARDED_BY(mutex_);
  Mutex told_mutex_;
  std::set<std::string> told_ GUARDED_BY(told_mutex_);
};

/// Null where cuDNN is not on this machine.
DeviceAttention* attention_of(Device device) {
  const Cudnn* const library = cudnn();
  if (!library) return nullptr;
  static auto& all = *new ByDevice<DeviceAttention>;  // never destroyed: at the end the driver may be gone already
  return &all.of(device, *library, device);
}

/// What keeps 16-bit attention from cuDNN's kernels beside cuDNN's own word: what it computes otherwise than we do, and
/// what it does not refuse but computes wrongly or in ever new plans. Each says what cuDNN's kernels do, and what would
/// be right; empty: nothing does.
std::vector<std::string> obstacles(Pass pass, const AttentionShape& s, const AttentionOptions& options,
                                   const DeviceProperties& device, int64_t most_bytes) {
  std::vector<std::string> found;
  // Every attention of a step asks, so a text is made only where it is needed.
  const auto require = [&found]<typename... Values>(bool holds, fmt::format_string<Values...> otherwise,
                                                    Values&&... values) {
    if (!holds) found.push_back(fmt::format(otherwise, std::forward<Values>(values)...));
  };
  // Our masks are the same bits on every device.
  require(options.dropout.rate == 0, "have no dropout (in a model's config.json: dropout_rate: 0)");
  require(s.q_tokens % kTokensStep == 0 && s.kv_tokens % kTokensStep == 0 && s.kv_tokens > 0 && options.q_offset == 0,
          "take multiples of {0} tokens (of pairs: data.pad_to_multiple_of: {0}; of text: training.sequence_length)",
          kTokensStep);
  const int64_t most_head_dim = device.major == 9 ? kMostHeadDimOf90 : kMostHeadDim;
  require(s.head_dim % 8 == 0 && s.head_dim <= most_head_dim, "take head sizes that are multiples of 8 up to {}",
          most_head_dim);
  require(!options.document_starts.defined() || !options.bias.defined(), "take documents or a bias");
  require(options.window == 0 || s.q_tokens <= s.kv_tokens, "take a window where there are no more queries than keys");
  // From there on only engines chosen by number are deterministic.
  require(!keeps_scores(pass, options) || device.major < 10,
          "are not deterministic in backward from compute capability 10 on (training.deterministic: false)");
  require(
      !are_too_large(attention_matrices(pass, s, options), most_bytes),
      "have more than an eighth of the device's memory for the scores or documents of one KV head (scores there are "
      "none with training.deterministic: false)");
  return found;
}

bool are_aligned(std::initializer_list<const Tensor*> tensors) {
  return std::ranges::all_of(tensors,
                             [](const Tensor* tensor) { return reinterpret_cast<uintptr_t>(tensor->raw()) % 16 == 0; });
}

/// One attention, in slices whose matrices are at most a 64th of the device's memory.
class Task {
 public:
  Task(DeviceAttention& on, Pass pass, const Tensor& q, const AttentionShape& shape, const AttentionOptions& options,
       int64_t most_bytes)
      : on_(on), pass_(pass), device_(q.device()), dtype_(q.dtype()), shape_(shape), options_(options) {
    for (const AttentionSlice& slice : attention_slices(shape, attention_matrices(pass, shape, options), most_bytes))
      slices_.push_back({slice, work_of(slice)});
  }

  [[nodiscard]] bool has_plans() const {
    return std::ranges::all_of(slices_, [&](const Slice& slice) { return on_.has_plan(slice.work); });
  }

  void forward(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out, Tensor& lse) {
    const metrics::TraceSpan span(kSpan, "op");
    const Lengths lengths = make_lengths();
    Tensor matrices;
    for (const auto& [slice, work] : slices_) {
      matrices = matrices_of(slice, work, std::move(matrices));
      Addresses all{{kQ, query_of(q, slice)},
                    {kK, key_of(k, slice)},
                    {kV, key_of(v, slice)},
                    {kOut, query_of(out, slice)},
                    {kLse, line_of(lse, slice)}};
      add_masks(all, matrices, lengths, slice);
      on_.run(work, all, device_);
    }
    if (may_be_blind(options_)) settle_blind_queries(shape_, options_, out, lse);
  }

  void backward(const Tensor& dout, const AttentionSaved& saved, AttentionGradients& gradients) {
    const metrics::TraceSpan span(kSpan, "op");
    const Lengths lengths = make_lengths();
    const Tensor lse = may_be_blind(options_) ? lse_without_blind_queries(saved.lse) : saved.lse;
    const Tensor delta = number_for_each_query(shape_).on(device_);
    Tensor matrices;
    for (const auto& [slice, work] : slices_) {
      matrices = matrices_of(slice, work, std::move(matrices));
      const Tensor dq_sums = work.keeps_scores ? Tensor() : dq_sums_of(shape_, slice).on(device_);
      // Zeros, as whole diagonals are summed, and a kernel may pass over tiles that no query sees.
      const Tensor dmatrices = work.added == Added::Bias ? Tensor::zeros(matrices.shape(), dtype_, device_) : Tensor();
      Addresses all{{kQ, query_of(saved.q, slice)},     {kK, key_of(saved.k, slice)},
                    {kV, key_of(saved.v, slice)},       {kOut, query_of(saved.out, slice)},
                    {kDOut, query_of(dout, slice)},     {kLse, line_of(lse, slice)},
                    {kDelta, line_of(delta, slice)},    {kDQ, query_of(gradients.dq, slice)},
                    {kDK, key_of(gradients.dk, slice)}, {kDV, key_of(gradients.dv, slice)}};
      add_masks(all, matrices, lengths, slice);
      if (dq_sums.defined()) all[kDQSums] = address(dq_sums, 0);
      if (dmatrices.defined()) all[kDBias] = address(dmatrices, 0);
      on_.run(work, all, device_);
      if (dmatrices.defined()) bias_gradient(shape_, slice, dmatrices, gradients.dbias);
    }
    if (options_.key_lengths.defined()) clear_hidden_keys(shape_, options_, gradients.dk, gradients.dv);
  }

 private:
  struct Slice {
    AttentionSlice slice;
    Work work;
  };

  [[nodiscard]] int64_t group() const { return shape_.heads / shape_.kv_heads; }

  [[nodiscard]] Work work_of(const AttentionSlice& slice) const {
    Work work{.pass = pass_,
              .dtype = dtype_,
              .shape = shape_,
              .heads_there = shape_.heads,
              .kv_heads_there = shape_.kv_heads,
              .scale = options_.scale,
              .causal = options_.causal,
              .window = options_.window,
              .added = Added::Nothing,
              .keeps_scores = keeps_scores(pass_, options_),
              .has_lengths = options_.key_lengths.defined()};
    work.shape.batch = slice.rows;
    work.shape.heads = slice.kv_heads * group(), work.shape.kv_heads = slice.kv_heads;
    if (options_.bias.defined()) work.added = Added::Bias;
    if (options_.document_starts.defined()) work.added = Added::Documents;
    return work;
  }

  /// `before`: those of the slice before, which are given up, or, as rows have them, serve all heads of a row.
  [[nodiscard]] Tensor matrices_of(const AttentionSlice& slice, const Work& work, Tensor before) const {
    if (work.added == Added::Documents && slice.first_kv_head > 0) return before;
    before = Tensor();
    if (work.added == Added::Bias) return bias_matrices(shape_, options_, slice, dtype_);
    return work.added == Added::Documents ? document_matrices(shape_, options_, slice, dtype_) : Tensor();
  }

  [[nodiscard]] Lengths make_lengths() const {
    return options_.key_lengths.defined() ? lengths_of(shape_, options_) : Lengths{};
  }

  static void add_masks(Addresses& all, const Tensor& matrices, const Lengths& lengths, const AttentionSlice& slice) {
    if (matrices.defined()) all[kBias] = address(matrices, 0);
    if (!lengths.keys.defined()) return;
    all[kQueries] = address(lengths.queries, slice.first_row), all[kKeys] = address(lengths.keys, slice.first_row);
  }

  /// cuDNN's pointers are to what may be written, for inputs too.
  static void* address(const Tensor& tensor, int64_t element) {
    return const_cast<std::byte*>(tensor.raw()) + element * static_cast<int64_t>(size_of(tensor.dtype()));
  }
  [[nodiscard]] void* query_of(const Tensor& tensor, const AttentionSlice& slice) const {
    const int64_t token = slice.first_row * shape_.q_tokens;
    return address(tensor, (token * shape_.heads + slice.first_kv_head * group()) * shape_.head_dim);
  }
  [[nodiscard]] void* key_of(const Tensor& tensor, const AttentionSlice& slice) const {
    const int64_t token = slice.first_row * shape_.kv_tokens;
    return address(tensor, (token * shape_.kv_heads + slice.first_kv_head) * shape_.head_dim);
  }
  [[nodiscard]] void* line_of(const Tensor& tensor, const AttentionSlice& slice) const {
    return address(tensor, (slice.first_row * shape_.heads + slice.first_kv_head * group()) * shape_.q_tokens);
  }

  DeviceAttention& on_;
  Pass pass_;
  Device device_;
  DType dtype_;
  const AttentionShape& shape_;
  const AttentionOptions& options_;
  std::vector<Slice> slices_;
};

std::optional<Task> task_of(Pass pass, std::initializer_list<const Tensor*> tensors, const AttentionShape& shape,
                            const AttentionOptions& options, int64_t most_bytes) {
  const Tensor& q = **tensors.begin();
  DeviceAttention* const on = attention_of(q.device());
  // No rows, as a micro-batch of pairs may have none: our kernels have nothing to launch then.
  if (!on || q.count() == 0 || q.dtype() == DType::Float32 || !are_aligned(tensors)) return {};
  if (most_bytes == 0) most_bytes = most_matrix_bytes(on->device().memory_bytes);
  if (const auto found = obstacles(pass, shape, options, on->device(), most_bytes); !found.empty()) {
    // Who trains meets it in every step; a prompt is as long as it is.
    if (pass == Pass::Backward)
      on->tell_once("attention", shape, fmt::format("cuDNN's {}", fmt::join(found, ", and ")));
    return {};
  }
  Task task(*on, pass, q, shape, options, most_bytes);
  if (!task.has_plans()) return {};
  return task;
}

}  // namespace

bool attention_by_cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
                        const AttentionOptions& options, Tensor& out, Tensor& lse, int64_t most_bytes) {
  auto task = task_of(Pass::Forward, {&q, &k, &v, &out}, shape, options, most_bytes);
  if (task) task->forward(q, k, v, out, lse);
  return task.has_value();
}

bool attention_backward_by_cudnn(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                                 const AttentionOptions& options, AttentionGradients& gradients, int64_t most_bytes) {
  auto task = task_of(Pass::Backward,
                      {&saved.q, &saved.k, &saved.v, &saved.out, &dout, &gradients.dq, &gradients.dk, &gradients.dv},
                      shape, options, most_bytes);
  if (task) task->backward(dout, saved, gradients);
  return task.has_value();
}

}  // namespace trainyard::ops::cuda
