#include "local/manifest/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <system_error>

#include "api/schema_check.h"
#include "base/base64.h"
#include "local/manifest/check.h"
#include "local/manifest/receive.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  char block[65536];
  for (size_t got = 0; (got = std::fread(block, 1, sizeof block, file)) > 0;) {
    text.append(block, got);
    if (text.size() > kMaxBytes) throw Refusal(fmt::format("{}: larger than {} MiB", name, kMaxBytes >> 20));
  }
  if (std::ferror(file)) throw Refusal(fmt::format("{}: {}", name, std::system_category().message(errno)));
  return text;
}

std::vector<Document> read_file(const std::string& path) {
  if (path == "-") return read_yaml(read_all(stdin, "<stdin>"), "<stdin>");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) throw Refusal(fmt::format("{}: {}", path, std::system_category().message(errno)));
  return read_yaml(read_all(file.get(), path), path);
}

void add_texts(const Document& document, const std::string& field, bool is_base64, Entries& entries) {
  const Json* const texts = find(document.content, "/" + field);
  if (!texts || texts->is_null()) return;
  if (!texts->is_object()) throw Refusal(fmt::format("{}: {} must be an object", document.place_of(field), field));
  for (const auto& [key, value] : texts->items()) {
    const std::string place = document.place_of(field + "/" + key);
    if (value.is_null()) {
      entries[key] = "";  // as the API server reads it
      continue;
    }
    if (!value.is_string())
      throw Refusal(
          fmt::format("{}: {}[{}] is {}: a text is needed, put it in quotes", place, field, key, dump(value)));
    const auto& text = value.get_ref<const std::string&>();
    const auto decoded = is_base64 ? base64_decoded(text) : text;
    if (!decoded) throw Refusal(fmt::format("{}: {}[{}] is no base64", place, field, key));
    entries[key] = *decoded;
  }
}

Entries config_map_of(const Document& document) {
  Entries entries;
  add_texts(document, "data", false, entries);
  add_texts(document, "binaryData", true, entries);
  return entries;
}

Entries secret_of(const Document& document) {
  Entries entries;
  add_texts(document, "data", true, entries);
  add_texts(document, "stringData", false, entries);
  return entries;
}

std::string key_of(const Document& document) {
  const Json& object = document.content;
  if (!object.is_object())
    throw Refusal(document.place_of("") + ": no Kubernetes object: it needs apiVersion and kind");
  const std::string kind = text_at(object, "/kind"), name = text_at(object, "/metadata/name");
  if (kind.empty()) throw Refusal(document.place_of("") + ": no Kubernetes object: kind is missing");
  if (const auto problems = lines_of(document, api::check_metadata(object)); !problems.empty())
    throw Refusal(fmt::format("{}", fmt::join(problems, "\n")));
  if (name.empty()) throw Refusal(fmt::format("{}: {}: metadata.name is missing", document.place_of("metadata"), kind));
  return text_at(object, "/metadata/namespace") + "/" + name;
}

}  // namespace

Input sort_documents(std::vector<Document> documents) {
  Input input;
  std::set<std::string> seen;
  std::map<std::string, std::vector<std::string>> of_no_use;
  for (Document& document : documents) {
    receive(document);
    const std::string key = key_of(document), kind = text_at(document.content, "/kind");
    if (!seen.insert(kind + " " + key).second)
      throw Refusal(fmt::format("{}: {} {} is there twice", document.place_of(""), kind, key));
    if (kind == "PyTorchJob")
      input.jobs.push_back(std::move(document));
    else if (kind == "ConfigMap")
      input.config_maps[key] = config_map_of(document);
    else if (kind == "Secret")
      input.secrets[key] = secret_of(document);
    else if (kind == "PersistentVolumeClaim")
      input.claims[key] = std::move(document.content);
    else if (kind == "PersistentVolume")
      input.volumes[text_at(document.content, "/metadata/name")] = std::move(document.content);
    else
      of_no_use[kind].push_back(key);
  }
  for (const auto& [kind, names] : of_no_use)
    input.ignored.push_back(
        fmt::format("{} {}: left out, it means nothing without a cluster", kind, fmt::join(names, ", ")));
  return input;
}

Input read_input(const std::vector<std::string>& files) {
  std::vector<Document> documents;
  for (const std::string& file : files)
    for (Document& document : read_file(file)) documents.push_back(std::move(document));
  Input input = sort_documents(std::move(documents));
  if (input.jobs.empty())
    throw Refusal(
        fmt::format("{}: no PyTorchJob in it (apiVersion: kubeflow.org/v1, kind: PyTorchJob)", fmt::join(files, ", ")));
  return input;
}

}  // namespace trainyard::local
