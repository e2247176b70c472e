#include "hub/address.h"

#include <fmt/format.h>

#include "web/address.h"

namespace trainyard::hub {

using web::percent_encoded;

std::string file_address(const std::string& endpoint, const Name& name, const std::string& revision,
                         std::string_view file) {
  return fmt::format("{}/{}{}/resolve/{}/{}", endpoint, name.kind == RepoKind::Dataset ? "datasets/" : "", name.repo,
                     percent_encoded(revision, ""), percent_encoded(file, "/"));
}

std::string info_address(const std::string& endpoint, const Name& name) {
  return fmt::format("{}/api/{}/{}/revision/{}", endpoint, name.kind == RepoKind::Dataset ? "datasets" : "models",
                     name.repo, percent_encoded(name.revision, ""));
}

}  // namespace trainyard::hub
