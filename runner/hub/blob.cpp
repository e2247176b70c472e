#include "hub/blob.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/open_file.h"
#include "common/hmac.h"

namespace trainyard::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 20;

/// "": the bytes are those that the hub told of.
std::string difference(const Wanted& wanted, const fs::path& path) {
  if (!wanted.facts.has_sha256) return "";
  const std::string here = sha256_of(path);
  return here == wanted.facts.etag ? ""
                                   : fmt::format("its sha256 is {}, but the hub tells {}", here, wanted.facts.etag);
}

}  // namespace

std::string sha256_of(const fs::path& path) {
  const UniqueFd fd = open_to_read(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL has no SHA-256");
  std::vector<char> buffer(kReadAtOnce);
  for (ssize_t count = 0; (count = ::read(fd.get(), buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw InputError(fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(count));
  }
  std::string digest(static_cast<size_t>(EVP_MD_size(EVP_sha256())), '\0');
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return hex(digest);
}

void download(Client& client, const Wanted& wanted, const web::Target& target) {
  const std::string what = fmt::format("{}: {}", to_string(wanted.name), wanted.file);
  web::download(
      {.what = what,
       .size = wanted.facts.size,
       .elsewhere = "HF_HOME or HF_HUB_CACHE name another place for the cache",
       .ask = [&](uint64_t from,
                  const web::Sink& sink) { return client.bytes(wanted.name, wanted.commit, wanted.file, from, sink); },
       .refuse = [&](const Answer& answer) { refuse(answer, wanted.name, what, client.settings()); },
       .difference = [&](const fs::path& file) { return difference(wanted, file); }},
      target);
}

}  // namespace trainyard::hub
