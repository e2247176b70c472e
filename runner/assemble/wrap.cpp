#include "assemble/wrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"

namespace trainyard::train {
namespace {

void for_each_below(nn::Module& module, const std::function<void(nn::Module&)>& visit) {
  for (nn::Module* const child : module.children()) {
    for_each_below(*child, visit);
    visit(*child);
  }
}

int64_t count_of(const nn::Module& module) {
  int64_t count = 0;
  for (const autograd::Parameter* const parameter : module.parameters()) count += parameter->count();
  return count;
}

Groups groups_by_class(nn::Module& model, const std::vector<std::string>& classes) {
  Groups groups;
  std::set<std::string> known, missing(classes.begin(), classes.end());
  for_each_below(model, [&](nn::Module& module) {
    const std::string name(module.class_name());
    if (name.empty() || module.holds_shared()) return;
    known.insert(name);
    if (std::ranges::count(classes, name) == 0) return;
    missing.erase(name);
    groups.push_back({&module});
  });
  if (!missing.empty())
    throw InputError(fmt::format(
        "parallel.transformer_layer_cls_to_wrap names {}, which is no class of this model that can be wrapped; use {}",
        fmt::join(missing, ", "), fmt::join(known, ", ")));
  return groups;
}

/// torch.distributed.fsdp.wrap._recursive_wrap with size_based_auto_wrap_policy: a module of min_num_params is looked
/// into, and becomes a group where what its children have left to it is still as much. Returns the parameters below
/// `module` that are in a group.
int64_t wrap_by_size(nn::Module& module, int64_t least, bool is_model, Groups& groups) {
  const int64_t count = count_of(module);
  if (count < least) return 0;
  int64_t wrapped = 0;
  for (nn::Module* const child : module.children()) wrapped += wrap_by_size(*child, least, false, groups);
  if (is_model || count - wrapped < least || module.holds_shared()) return wrapped;
  groups.push_back({&module});
  return count;
}

bool is_inside(const nn::Module& module, const nn::Module& outer) {
  return module.name().starts_with(outer.name() + ".");
}

bool are_nested(const Groups& groups) {
  return std::ranges::any_of(groups, [&](const auto& inner) {
    return std::ranges::any_of(groups, [&](const auto& outer) { return is_inside(*inner.front(), *outer.front()); });
  });
}

}  // namespace

Groups groups_of(nn::Module& model, const std::vector<nn::Module*>& blocks, const Wrap& wrap) {
  Groups groups;
  switch (wrap.policy) {
    case Wrap::Policy::Transformer:
      if (!wrap.classes.empty()) return groups_by_class(model, wrap.classes);
      for (nn::Module* const block : blocks) groups.push_back({block});
      return groups;
    case Wrap::Policy::Size:
      wrap_by_size(model, wrap.min_num_params, true, groups);
      return groups;
    case Wrap::Policy::None:
      return groups;
  }
  return groups;
}

Groups in_buckets(const Groups& groups, int64_t bucket_bytes,
                  const std::function<bool(const nn::Module&, const nn::Module&)>& alike) {
  if (are_nested(groups)) return groups;
  Groups buckets;
  int64_t bytes = 0;  // of the bucket being filled
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const bool fits = !buckets.empty() && bytes < bucket_bytes && alike(*group->front(), *buckets.back().front());
    if (!fits) buckets.emplace_back(), bytes = 0;
    buckets.back().insert(buckets.back().begin(), group->begin(), group->end());
    for (const nn::Module* const module : *group) bytes += count_of(*module) * static_cast<int64_t>(sizeof(float));
  }
  std::ranges::reverse(buckets);
  return buckets;
}

}  // namespace trainyard::train
