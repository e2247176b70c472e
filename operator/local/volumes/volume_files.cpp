#include "local/volumes/volume_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "common/unique_fd.h"
#include "common/write_all.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

struct Writer {
  const PodContext& context;
  const fs::path& folder;
  mode_t mode = 0644;

  void write(const std::string& path, std::string_view content, const Json& item) const {
    const fs::path relative(path);
    for (const fs::path& part : relative)
      if (part == ".." || relative.is_absolute())
        throw Refusal(fmt::format("pod {}: the path '{}' in a volume must stay inside it", context.name(), path));
    const auto own_mode = int_at(item, "/mode");
    write_volume_file(folder / relative, content, own_mode ? static_cast<mode_t>(*own_mode & 0777) : mode);
  }

  /// All entries, or those that `items` picks.
  void entries(const Entries* entries, const Json& source, const std::string& what) const {
    if (!entries) return;
    const Json* const items = find(source, "/items");
    if (!items || items->empty()) {
      for (const auto& [key, value] : *entries) write(key, value, source);
      return;
    }
    for (const Json& item : *items) {
      const auto found = entries->find(text_at(item, "/key"));
      if (found == entries->end())
        throw Refusal(fmt::format("pod {}: {} has no key '{}'", context.name(), what, text_at(item, "/key")));
      write(text_at(item, "/path"), found->second, item);
    }
  }

  void downward(const Json& source) const {
    for (const Json& item : source.value("items", Json::array())) {
      const Json* const reference = find(item, "/fieldRef");
      if (!reference)
        throw Refusal(fmt::format(
            "pod {}: a downwardAPI volume takes fieldRef here; give resourceFieldRef as a variable", context.name()));
      write(text_at(item, "/path"), field_at(text_at(*reference, "/fieldPath"), context), item);
    }
  }

  /// One source of a volume; false where it is of another kind.
  bool source(const Json& source) const {
    if (const Json* const map = find(source, "/configMap")) {
      const std::string name = map->contains("name") ? text_at(*map, "/name") : "";
      entries(context.config_map(*map), *map, "ConfigMap " + name);
    } else if (const Json* const secret = find(source, "/secret")) {
      const char* const key = secret->contains("secretName") ? "secretName" : "name";  // a projection calls it name
      entries(context.secret(*secret, key), *secret, "Secret " + text_at(*secret, std::string("/") + key));
    } else if (const Json* const api = find(source, "/downwardAPI")) {
      downward(*api);
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace

bool is_written_volume(const Json& volume) {
  return volume.contains("configMap") || volume.contains("secret") || volume.contains("downwardAPI") ||
         volume.contains("projected");
}

void write_volume(const Json& volume, const PodContext& context, const fs::path& folder) {
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);  // secrets are nobody else's
  Writer writer{context, folder};
  for (const char* const kind : {"/configMap", "/secret", "/downwardAPI", "/projected"})
    if (const auto mode = int_at(volume, std::string(kind) + "/defaultMode"))
      writer.mode = static_cast<mode_t>(*mode & 0777);
  if (writer.source(volume)) return;
  const Json* const sources = find(volume, "/projected/sources");
  for (const Json& source : sources ? *sources : Json::array())
    if (!writer.source(source))
      throw Refusal(
          fmt::format("pod {}: volume '{}' projects what takes a cluster; configMap, secret and downwardAPI work here",
                      context.name(), text_at(volume, "/name")));
}

void write_volume_file(const fs::path& path, std::string_view content, mode_t mode) {
  fs::create_directories(path.parent_path());
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  const auto fail = [&](int error) {
    throw Refusal(fmt::format("{}: {}", path.string(), std::system_category().message(error)));
  };
  if (!file.valid() || ::fchmod(file.get(), mode) != 0) fail(errno);
  if (const Written written = write_all(file.get(), content); !written.is_complete()) fail(written.error);
}

}  // namespace trainyard::local
