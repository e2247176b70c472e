#include "s3/fetch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <set>
#include <thread>

#include "base/byte_io.h"
#include "base/error.h"
#include "base/files.h"
#include "base/safe_name.h"
#include "base/text.h"
#include "common/hmac.h"
#include "s3/crc.h"
#include "web/address.h"
#include "web/download.h"
#include "web/file_lock.h"

namespace trainyard::s3 {
namespace fs = std::filesystem;
namespace {

using web::size_on_disk;

constexpr std::chrono::minutes kLockPatience{10};
constexpr size_t kAtOnce = 8;  // downloads: one connection brings less than a network card takes
constexpr size_t kVersionDigits = 32;
constexpr size_t kReadAtOnce = size_t{1} << 20;
constexpr const char* kElsewhere = "TRAINYARD_CACHE names another place for the cache";

/// What is read: objects of a folder, and what of the snapshot stands for them.
struct Listing {
  Name folder;                  ///< its key is "" or ends with '/'
  std::vector<Object> objects;  ///< keys are relative to the folder
  std::string path;             ///< within the snapshot: a file, a pattern, or "": the folder
};

bool is_version(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kVersionDigits && std::ranges::all_of(text, is_digit);
}

/// "a/b/c" is "a/b/" and "c".
std::pair<std::string, std::string> split_key(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == std::string::npos ? std::pair(std::string(), key)
                                    : std::pair(key.substr(0, slash + 1), key.substr(slash + 1));
}

/// The objects of a folder that can be files of one. Those which only mark a folder are passed over.
std::vector<Object> objects_below(Client& client, const Name& folder) {
  std::vector<Object> objects;
  for (Object& object : client.list(folder)) {
    object.key = object.key.substr(folder.key.size());
    if (object.key.empty() || object.key.ends_with('/')) continue;
    if (!is_safe(object.key))
      throw InputError(fmt::format("{}: it has an object whose key cannot be the name of a file; name others of it",
                                   to_string(folder)));
    objects.push_back(std::move(object));
  }
  return objects;
}

void require_tree(const Name& folder, const std::vector<Object>& objects) {
  std::set<std::string, std::less<>> names;
  for (const Object& object : objects) names.insert(object.key);
  for (const Object& object : objects)
    for (size_t slash = object.key.find('/'); slash != std::string::npos; slash = object.key.find('/', slash + 1))
      if (names.contains(std::string_view(object.key).substr(0, slash)))
        throw InputError(fmt::format("{}: it has {} and {}, and the first cannot be a file and a folder at once",
                                     to_string(folder), object.key.substr(0, slash), object.key));
}

void keep_only(std::vector<Object>& objects, const FileNames& names) {
  const std::set<std::string> kept(names.begin(), names.end());
  std::erase_if(objects, [&](const Object& object) { return !kept.contains(object.key); });
}

FileNames names_of(const std::vector<Object>& objects) {
  FileNames names;
  for (const Object& object : objects) names.push_back(object.key);
  return names;
}

Listing list_folder(Client& client, const Wanted& wanted, const Name& folder) {
  Listing listing{.folder = folder, .objects = objects_below(client, folder), .path = {}};
  if (listing.objects.empty())
    throw InputError(fmt::format("{}: there is no such object, and none below it", to_string(wanted.name)));
  keep_only(listing.objects, wanted.chosen(names_of(listing.objects)));
  return listing;
}

/// A pattern as glob(3) reads it.
Listing list_pattern(Client& client, const Name& name, size_t wildcard) {
  const size_t slash = name.key.rfind('/', wildcard);
  const std::string top = slash == std::string::npos ? "" : name.key.substr(0, slash + 1);
  const std::string pattern = name.key.substr(top.size());
  Listing listing{.folder = {name.bucket, top}, .objects = {}, .path = pattern};
  listing.objects = objects_below(client, listing.folder);
  std::erase_if(listing.objects, [&](const Object& object) {
    return ::fnmatch(pattern.c_str(), object.key.c_str(), FNM_PATHNAME | FNM_PERIOD) != 0;
  });
  if (listing.objects.empty()) throw InputError(fmt::format("{}: no object matches", to_string(name)));
  return listing;
}

Listing list(Client& client, const Wanted& wanted) {
  const Name& name = wanted.name;
  if (name.key.empty() || name.key.ends_with('/')) return list_folder(client, wanted, name);
  if (const size_t wildcard = name.key.find_first_of("*?["); wildcard != std::string::npos)
    return list_pattern(client, name, wildcard);
  const auto [top, file] = split_key(name.key);
  if (const auto facts = client.head(name))
    return {.folder = {name.bucket, top}, .objects = {{file, facts->size, facts->etag}}, .path = file};
  return list_folder(client, wanted, {name.bucket, name.key + "/"});
}

std::string digest(const std::string& text) {
  return hex(sha256(text)).substr(0, kVersionDigits);
}

std::string version_of(const Listing& listing) {
  std::string text = to_string(listing.folder) + "\n" + listing.path + "\n";
  for (const Object& object : listing.objects) text += fmt::format("{}\n{} {}\n", object.key, object.size, object.etag);
  return digest(text);
}

/// "127.0.0.1-9000": a server's folder of the cache.
std::string folder_of_server(const Settings& settings) {
  if (settings.endpoint.empty()) return "amazonaws.com";
  std::string host = settings.endpoint.substr(settings.endpoint.find("://") + 3);
  std::ranges::replace_if(
      host, [](char c) { return c == ':' || c == '[' || c == ']'; }, '-');
  return host;
}

/// A bucket's part of the cache.
class BucketCache {
 public:
  BucketCache(const Settings& settings, const std::string& bucket)
      : folder_(settings.cache / folder_of_server(settings) / bucket) {}

  [[nodiscard]] fs::path snapshot(const std::string& version) const { return folder_ / "snapshots" / version; }
  [[nodiscard]] fs::path record(const std::string& version) const { return snapshot(version).string() + ".files"; }
  [[nodiscard]] fs::path blob(const Name& folder, const Object& object) const {
    return folder_ / "blobs" / digest(fmt::format("{}{}\n{} {}", folder.key, object.key, object.size, object.etag));
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

  /// A version of which all is there; none where that is not so.
  [[nodiscard]] std::optional<Fetched> known(const std::string& version) const {
    std::error_code error;
    if (!fs::is_regular_file(record(version), error)) return std::nullopt;
    FileNames lines = split(read_file(record(version)), '\n');
    const std::string path = lines.front();
    lines.erase(lines.begin());
    std::erase(lines, "");
    const fs::path top = snapshot(version);
    if (!std::ranges::all_of(lines, [&](const std::string& file) { return fs::exists(top / file, error); }))
      return std::nullopt;
    return Fetched{.path = path.empty() ? top : top / path, .version = version, .files = lines.size()};
  }

  /// Another process may do the same.
  void link(const std::string& version, const std::string& file, const fs::path& blob) const {
    const fs::path link = snapshot(version) / file;
    fs::create_directories(link.parent_path());
    std::error_code error;
    fs::create_symlink(blob.lexically_relative(link.parent_path()), link, error);
    if (error && error != std::errc::file_exists)
      throw fs::filesystem_error("cannot make a link of the cache", link, error);
  }

 private:
  fs::path folder_;
};

std::string digest_of_file(const fs::path& path, const EVP_MD* kind) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) return "";  // FIPS has no MD5
  const FileSource source(path);
  std::vector<std::byte> piece(kReadAtOnce);
  for (uint64_t at = 0; at < source.size(); at += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), source.size() - at));
    source.read(at, part);
    EVP_DigestUpdate(context.get(), part.data(), part.size());
  }
  std::string bytes(static_cast<size_t>(EVP_MD_size(kind)), '\0');
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(bytes.data()), nullptr);
  return bytes;
}

std::string crc_of_file(const fs::path& path, CrcKind kind) {
  const FileSource source(path);
  std::vector<std::byte> piece(kReadAtOnce);
  Crc crc(kind);
  for (uint64_t at = 0; at < source.size(); at += piece.size()) {
    const std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), source.size() - at));
    source.read(at, part);
    crc.add({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  return crc.text();
}

/// Downloads an object, unless it is there, and gives what was downloaded.
uint64_t fetch_object(Client& client, const BucketCache& cache, const Name& folder, const Object& object) {
  const fs::path blob = cache.blob(folder, object), incomplete = blob.string() + ".incomplete";
  fs::create_directories(blob.parent_path());
  const web::FileLock lock(cache.folder() / ".locks" / (blob.filename().string() + ".lock"), kLockPatience,
                           [&] { return size_on_disk(incomplete); });
  if (fs::exists(blob)) return 0;
  const Name name{folder.bucket, folder.key + object.key};
  const std::string what = to_string(name);
  const auto changed = [&] {
    return InputError(fmt::format("{}: it was written again, or removed, while it was read; start again", what));
  };
  const auto facts = client.head(name);
  if (!facts || facts->etag != object.etag || facts->size != object.size) throw changed();
  spdlog::info("{}: downloading {}", what, human_bytes(object.size));
  web::download(
      {.what = what,
       .size = object.size,
       .elsewhere = kElsewhere,
       .ask = [&](uint64_t from, const web::Sink& sink) { return client.bytes(name, object.etag, from, sink); },
       .refuse =
           [&](const web::Answer& answer) {
             if (answer.failure == web::Failure::None && answer.status == 412) throw changed();
             client.refuse(answer, what);
           },
       .difference = [&](const fs::path& file) { return difference(*facts, file); }},
      {.complete = blob, .incomplete = incomplete});
  return object.size;
}

void require_room(const BucketCache& cache, const Listing& listing) {
  uint64_t needed = 0;
  for (const Object& object : listing.objects) {
    const fs::path blob = cache.blob(listing.folder, object);
    std::error_code error;
    if (!fs::exists(blob, error))
      needed += object.size - std::min(object.size, size_on_disk(blob.string() + ".incomplete"));
  }
  std::error_code error;
  const fs::space_info space = fs::space(cache.folder(), error);
  if (!error && space.available < needed)
    throw InputError(fmt::format("{}: {} more are needed, but {} has room for {}; {}", to_string(listing.folder),
                                 human_bytes(needed), cache.folder().string(), human_bytes(space.available),
                                 kElsewhere));
}

/// Several at once; the first error ends all.
void fetch_objects(Client& client, const BucketCache& cache, const Listing& listing, Fetched& fetched) {
  std::atomic<size_t> next{0}, downloaded{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<bool> has_failed{false};
  std::vector<std::exception_ptr> errors(std::min(kAtOnce, listing.objects.size()));
  {
    std::vector<std::jthread> threads;
    for (std::exception_ptr& error : errors)
      threads.emplace_back([&, &error = error] {
        try {
          for (size_t i = next++; i < listing.objects.size() && !has_failed; i = next++) {
            const uint64_t came = fetch_object(client, cache, listing.folder, listing.objects[i]);
            bytes += came;
            if (came > 0) ++downloaded;
          }
        } catch (...) {
          error = std::current_exception();
          has_failed = true;
        }
      });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  fetched.downloaded = downloaded;
  fetched.bytes = bytes;
}

Fetched fetch_all(Client& client, const BucketCache& cache, const Listing& listing, const std::string& version) {
  Fetched fetched{.path = cache.snapshot(version), .version = version, .files = listing.objects.size()};
  if (!listing.path.empty()) fetched.path /= listing.path;
  fs::create_directories(cache.snapshot(version));
  require_room(cache, listing);
  fetch_objects(client, cache, listing, fetched);
  for (const Object& object : listing.objects) cache.link(version, object.key, cache.blob(listing.folder, object));
  write_file_atomically(cache.record(version),
                        fmt::format("{}\n{}\n", listing.path, fmt::join(names_of(listing.objects), "\n")));
  return fetched;
}

}  // namespace

Fetched fetch(Client& client, const Wanted& wanted) try {
  const BucketCache cache(client.settings(), wanted.name.bucket);
  if (!wanted.version.empty())
    if (const auto known = cache.known(wanted.version)) return *known;
  const Listing listing = list(client, wanted);
  require_tree(listing.folder, listing.objects);
  const std::string version = version_of(listing);
  if (!wanted.version.empty() && wanted.version != version)
    throw InputError(fmt::format("{}: its objects are other ones now than those of version {}; start all ranks again",
                                 to_string(wanted.name), wanted.version));
  return fetch_all(client, cache, listing, version);
} catch (const fs::filesystem_error& error) {
  throw InputError(fmt::format("{}: {}; {}", to_string(wanted.name), error.what(), kElsewhere));
}

std::string with_version(const Name& name, const std::string& version) {
  return fmt::format("{}#{}", to_string(name), version);
}

Wanted parse_wanted(const std::string& text) {
  const size_t mark = text.rfind('#');
  if (mark == std::string::npos || !is_version(std::string_view(text).substr(mark + 1)))
    return {.name = parse_name(text), .version = {}};
  return {.name = parse_name(text.substr(0, mark)), .version = text.substr(mark + 1)};
}

std::string difference(const Facts& facts, const fs::path& file) {
  const auto told = [&](const char* name) {
    const auto found = facts.checksums.find(name);
    return found == facts.checksums.end() ? std::string() : found->second;
  };
  const auto compare = [](const char* name, const std::string& is, const std::string& wanted) {
    return is == wanted ? std::string() : fmt::format("its {} is {}, but the server tells {}", name, is, wanted);
  };
  if (const std::string crc = told("crc64nvme"); !crc.empty())
    return compare("CRC-64/NVME", crc_of_file(file, CrcKind::Crc64Nvme), crc);
  if (const std::string crc = told("crc32c"); !crc.empty())
    return compare("CRC-32C", crc_of_file(file, CrcKind::Crc32c), crc);
  if (const std::string crc = told("crc32"); !crc.empty())
    return compare("CRC-32", crc_of_file(file, CrcKind::Crc32), crc);
  if (const std::string sha = told("sha256"); !sha.empty())
    return compare("SHA-256", base64(digest_of_file(file, EVP_sha256())), sha);
  if (facts.md5.empty()) return "";
  const std::string md5 = digest_of_file(file, EVP_md5());
  return md5.empty() ? "" : compare("MD5", hex(md5), facts.md5);
}

}  // namespace trainyard::s3
