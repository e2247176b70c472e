#include "config/details.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "config/schema.h"

namespace trainyard::config {
namespace {

bool is_idle(const Loaded& loaded, const Detail& detail) {
  const Key& key = *find_key(detail.key);
  return key.get(loaded.config) != key.get(Config{}) && !detail.counts(loaded.config);
}

/// Whether dialects/ said it: "--lr", "a.toml:3 (training.lr)", "default of torchtitan"; ours are "flag" and
/// "a.yaml:3".
bool is_of_another_program(const std::string& origin) {
  return origin.starts_with("--") || origin.starts_with("default of") || origin.ends_with(")");
}

std::string what_it_is_for(const Loaded& loaded, const Detail& detail) {
  const std::string value = format_value(find_key(detail.of)->get(loaded.config));
  const std::string given =
      value.empty() ? "not given" : fmt::format("{} ({})", shown(value), loaded.origin(detail.of));
  return fmt::format("for {} {}, but that is {}", detail.of, detail.where, given);
}

class Dropper {
 public:
  explicit Dropper(Loaded& loaded) : loaded_(loaded) {}

  void drop(const Detail& detail) {
    const std::string origin = loaded_.origin(detail.key);
    const size_t own = loaded_.layer(detail.key), other = layer_of(detail.of);
    const bool is_overridden = own < other;
    if (!is_overridden && !is_of_another_program(origin)) return;
    if (!is_overridden && own != kDefaultLayer)
      loaded_.notes.push_back(
          fmt::format("{} changes nothing: it is {}", loaded_.statement(detail.key), what_it_is_for(loaded_, detail)));
    const Key& key = *find_key(detail.key);
    key.set(loaded_.config, key.get(Config{}));
    loaded_.origins.erase(detail.key);
    dropped_by_[detail.key] = other;
  }

 private:
  /// A key that fell away is at its default by what made it fall: it takes along what is for it.
  size_t layer_of(const char* key) const {
    const auto dropped = dropped_by_.find(key);
    return dropped != dropped_by_.end() ? dropped->second : loaded_.layer(key);
  }

  Loaded& loaded_;
  std::map<std::string, size_t> dropped_by_;
};

}  // namespace

void check_details(const Loaded& loaded) {
  for (const Detail& detail : details())
    if (is_idle(loaded, detail))
      throw InputError(
          fmt::format("{}, which is {}; leave one out", loaded.statement(detail.key), what_it_is_for(loaded, detail)));
}

void drop_idle(Loaded& loaded) {
  Dropper dropper(loaded);
  for (const Detail& detail : details())
    if (is_idle(loaded, detail)) dropper.drop(detail);
}

}  // namespace trainyard::config
