#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema.h"

// How a row of the table reaches its field of Config. Included by table.cpp alone.
namespace trainyard::config {

// The words of each enumeration, in the order of its enumerators.
template <typename E>
struct Words;
template <>
struct Words<Strategy> {
  static std::vector<Choice> list() {
    return {
        {"full_shard", {}}, {"shard_grad_op", {}}, {"no_shard", {}}, {"hybrid_shard", {}}, {"hybrid_shard_zero2", {}}};
  }
};
template <>
struct Words<Wrap> {
  static std::vector<Choice> list() {
    return {{"transformer_based_wrap", {}}, {"size_based_wrap", {}}, {"no_wrap", {}}};
  }
};
template <>
struct Words<ContextMethod> {
  static std::vector<Choice> list() { return {{"ring", {}}, {"all_gather", {}}, {"ulysses", {}}}; }
};
template <>
struct Words<ContextBalance> {
  static std::vector<Choice> list() { return {{"head_tail", {}}, {"none", {}}}; }
};
template <>
struct Words<BackwardPrefetch> {
  static std::vector<Choice> list() { return {{"backward_pre", {}}, {"backward_post", {}}, {"no_prefetch", {}}}; }
};
template <>
struct Words<Decay> {
  static std::vector<Choice> list() {
    return {{"cosine", {}}, {"linear", {}}, {"sqrt", {}}, {"constant", {}}, {"clamped_cosine", {}}, {"clamped_linear", {}}};
  }
};
template <>
struct Words<WarmupShape> {
  static std::vector<Choice> list() { return {{"linear", {}}, {"log", {}}}; }
};
template <>
struct Words<DecayedParameters> {
  static std::vector<Choice> list() { return {{"matrices", {}}, {"all", {}}}; }
};
template <>
struct Words<SpecialTokens> {
  static std::vector<Choice> list() { return {{"text", {}}, {"parse", {}}}; }
};
template <>
struct Words<LossOn> {
  static std::vector<Choice> list() { return {{"answers", {}}, {"all", {}}}; }
};
template <>
struct Words<Padding> {
  static std::vector<Choice> list() { return {{"bucket", {}}, {"longest", {}}, {"max_length", {}}}; }
};
template <>
struct Words<CheckpointingMode> {
  static std::vector<Choice> list() { return {{"none", {}}, {"full", {}}, {"selective", {}}, {"every_n", {}}}; }
};
template <>
struct Words<StateDict> {
  static std::vector<Choice> list() { return {{"sharded", {"sharded_state_dict"}}, {"full", {"full_state_dict"}}}; }
};
template <>
struct Words<FinalStateDict> {
  static std::vector<Choice> list() {
    return {{"same", {}}, {"sharded", {"sharded_state_dict"}}, {"full", {"full_state_dict"}}};
  }
};
template <>
struct Words<Backend> {
  static std::vector<Choice> list() {
    return {{"auto", {}}, {"nccl", {}}, {"gloo", {}}, {"mpi", {}}, {"in_process", {}}};
  }
};
template <>
struct Words<DeviceChoice> {
  static std::vector<Choice> list() { return {{"auto", {}}, {"cpu", {}}, {"cuda", {"gpu"}}}; }
};
template <>
struct Words<CudaGraphs> {
  static std::vector<Choice> list() { return {{"never", {"false"}}, {"auto", {}}, {"always", {"true"}}}; }
};
template <>
struct Words<Precision> {
  static std::vector<Choice> list() { return {{"fp32", {"float32"}}, {"bf16", {"bfloat16"}}, {"fp16", {"float16"}}}; }
};
template <>
struct Words<StatePrecision> {
  static std::vector<Choice> list() { return {{"fp32", {"float32"}}, {"bf16", {"bfloat16"}}}; }
};
template <>
struct Words<OutputPrecision> {
  static std::vector<Choice> list() {
    std::vector<Choice> words = Words<Precision>::list();
    words.push_back({"none", {}});
    return words;
  }
};

template <>
struct Words<BaseDType> {
  static std::vector<Choice> list() {
    return {{"auto", {}}, {"bf16", {"bfloat16"}}, {"fp16", {"float16"}}, {"nf4", {}}};
  }
};
template <>
struct Words<Float8Recipe> {
  static std::vector<Choice> list() {
    return {{"none", {}}, {"tensorwise", {}}, {"rowwise", {}}, {"rowwise_with_gw_hp", {}}};
  }
};

/// Adds keys of the section `S` of Config, called `name`, to `table`.
template <typename S>
struct SectionKeys {
  std::vector<Key>& table;
  const char* name;
  S Config::*section;

  /// Binds the key to `field`; its default is the field's. The reference is valid until the next key is added.
  template <typename T>
  Key& operator()(const char* key, T S::*field, const Limits& limits, const char* help) const {
    const auto member = [section = section, field](auto& config) -> auto& { return config.*section.*field; };
    Key made{.section = name, .name = key, .help = help, .rule = {}, .get = {}, .set = {}};
    made.rule.limits = limits;
    if constexpr (std::is_enum_v<T>) {
      made.rule.choices = Words<T>::list();
      made.get = [member](const Config& config) {
        return Value(Words<T>::list().at(static_cast<size_t>(member(config))).name);
      };
      made.set = [member](Config& config, const Value& value) {
        const auto words = Words<T>::list();
        size_t index = 0;
        while (words.at(index).name != std::get<std::string>(value)) ++index;
        member(config) = static_cast<T>(index);
      };
    } else {
      made.get = [member](const Config& config) { return Value(member(config)); };
      made.set = [member](Config& config, const Value& value) { member(config) = std::get<T>(value); };
    }
    made.rule.type = made.get(Config{});
    return table.emplace_back(std::move(made));
  }
};

}  // namespace trainyard::config
