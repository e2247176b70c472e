#pragma once

#include <map>
#include <string>
#include <vector>

#include "local/manifest/yaml.h"

namespace trainyard::local {

/// A ConfigMap's or a Secret's content, decoded.
using Entries = std::map<std::string, std::string>;

/// What a manifest holds, by what it is for here. Objects are found by "namespace/name".
struct Input {
  std::vector<Document> jobs;
  std::map<std::string, Entries> config_maps, secrets;
  std::map<std::string, Json> claims;   ///< PersistentVolumeClaims
  std::map<std::string, Json> volumes;  ///< PersistentVolumes, by name alone
  std::vector<std::string> ignored;     ///< a line for each kind that means nothing without a cluster
};

/// Reads the files, `-` being standard input. Throws Refusal, naming file and line, where one cannot be read, holds
/// what is no Kubernetes object, holds one twice, or where there is no PyTorchJob in any.
[[nodiscard]] Input read_input(const std::vector<std::string>& files);
/// The same of documents at hand. Each goes through receive() first.
[[nodiscard]] Input sort_documents(std::vector<Document> documents);

}  // namespace trainyard::local
