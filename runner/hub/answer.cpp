#include "hub/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trainyard::hub {
namespace {

/// "W/\"abc\"" is abc.
std::string bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

bool is_file_name(std::string_view etag) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  };
  return !etag.empty() && etag.size() <= 128 && etag.front() != '.' && std::ranges::all_of(etag, fits);
}

bool is_sha256(std::string_view etag) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return etag.size() == 64 && std::ranges::all_of(etag, is_digit);
}

std::string kind_of(const Name& name) {
  return name.kind == RepoKind::Dataset ? "data set" : "model";
}

std::string page_of(const Name& name, const Settings& settings) {
  return fmt::format("{}/{}{}", settings.endpoint, name.kind == RepoKind::Dataset ? "datasets/" : "", name.repo);
}

std::string how_asked(const Settings& settings) {
  return settings.token.empty() ? "it was asked without a token (set HF_TOKEN for one that is private or gated)"
                                : "the token that was sent may not read one that is private";
}

/// The first line of what the server says of itself, short and printable.
std::string said_by(const Answer& answer) {
  std::string said = answer.header("x-error-message").substr(0, 200);
  std::erase_if(said, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; });
  return said.empty() ? "" : fmt::format(" ({})", said);
}

[[noreturn]] void refuse_lost(const Answer& answer, const std::string& what, const Settings& settings) {
  const std::string server = settings.endpoint;
  switch (answer.failure) {
    case Failure::Unreachable:
      throw UnreachableError(
          fmt::format("{}: {} cannot be reached: {}; without a network give a path, or fill the cache and set "
                      "HF_HUB_OFFLINE=1",
                      what, server, answer.reason));
    case Failure::Distrusted:
      throw InputError(fmt::format("{}: the certificate of {} is not trusted: {}", what, server, answer.reason));
    case Failure::TimedOut:
      throw PeerError(fmt::format("{}: waited {} for an answer of {}, several times; HF_HUB_ETAG_TIMEOUT is how long",
                                  what, human_duration(settings.answer_timeout), server));
    default:
      throw PeerError(
          fmt::format("{}: the connection to {} was lost: {}; what came is kept, and the next start goes on "
                      "from there",
                      what, server, answer.reason));
  }
}

}  // namespace

FileFacts facts_of(const Answer& answer, const std::string& what) {
  FileFacts facts{.commit = answer.header("x-repo-commit")};
  if (!is_commit(facts.commit))
    throw InputError(
        fmt::format("{}: the answer names no commit (X-Repo-Commit), so it is no hub's; look at HF_ENDPOINT "
                    "and at proxies",
                    what));
  const std::string linked = answer.header("x-linked-etag");
  facts.etag = bare_etag(linked.empty() ? answer.header("etag") : linked);
  if (!is_file_name(facts.etag))
    throw InputError(fmt::format("{}: the answer has no ETag by which the file could be kept", what));
  facts.has_sha256 = is_sha256(facts.etag);
  std::string size = answer.header("x-linked-size");
  if (size.empty() && !answer.is_redirect()) size = answer.header("content-length");
  const auto bytes = parse_int(size);
  if (bytes && *bytes >= 0) facts.size = static_cast<uint64_t>(*bytes);
  return facts;
}

void refuse(const Answer& answer, const Name& name, const std::string& what, const Settings& settings) {
  if (answer.failure != Failure::None) refuse_lost(answer, what, settings);
  const std::string code = answer.header("x-error-code"), page = page_of(name, settings);
  if (code == "GatedRepo")
    throw InputError(
        fmt::format("{}: the {} is gated; ask for access at {} and set HF_TOKEN to a token of that account{}", what,
                    kind_of(name), page, settings.token.empty() ? "" : "; the one that was sent has none"));
  if (code == "RevisionNotFound")
    throw InputError(fmt::format("{}: {} has no revision '{}'; a branch, a tag or a whole commit of it is needed", what,
                                 page, name.revision));
  if (code == "EntryNotFound") throw InputError(fmt::format("{}: there is no such file at '{}'", what, name.revision));
  const bool is_wrong_token = answer.header("x-error-message") == "Invalid credentials in Authorization header";
  if (is_wrong_token)
    throw InputError(
        fmt::format("{}: {} does not know the token that was sent; look at HF_TOKEN", what, settings.endpoint));
  if (code == "RepoNotFound" || answer.status == 401 || answer.status == 404)
    throw InputError(
        fmt::format("{}: there is no {} {}, or it is private; {}", what, kind_of(name), page, how_asked(settings)));
  if (answer.status == 403)
    throw InputError(
        fmt::format("{}: {} forbids it{}; {}", what, settings.endpoint, said_by(answer), how_asked(settings)));
  if (is_worth_retry(answer))
    throw PeerError(fmt::format("{}: {} answered HTTP {}{} again and again; try later", what, settings.endpoint,
                                answer.status, said_by(answer)));
  throw InputError(fmt::format("{}: {} answered HTTP {}{}", what, settings.endpoint, answer.status, said_by(answer)));
}

}  // namespace trainyard::hub
