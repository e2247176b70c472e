#include "hub/client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/safe_name.h"
#include "base/text.h"
#include "hub/address.h"
#include "web/address.h"

namespace trainyard::hub {
namespace {

using nlohmann::json;
using web::origin_of;
using web::redirected;

constexpr int kMostRedirects = 10, kTriesToReach = 3;
constexpr int kMostOfAList = 6;  // time-outs: a list of files may be megabytes
constexpr size_t kMostFiles = 100'000;

/// The commit and the files that the hub's JSON lists.
Repository repository_of(const std::string& text, const std::string& what) {
  const auto wrong = [&](const char* how) {
    return InputError(fmt::format("{}: the answer is no hub's: {}; look at HF_ENDPOINT and at proxies", what, how));
  };
  if (!is_shallow_json(text)) throw wrong("its brackets are too deep");
  const json answer = json::parse(text, nullptr, false);
  if (!answer.is_object()) throw wrong("it is no JSON object");
  Repository repository;
  const auto commit = answer.find("sha"), siblings = answer.find("siblings");
  if (commit == answer.end() || !commit->is_string() || !is_commit(commit->get_ref<const std::string&>()))
    throw wrong("its \"sha\" is no commit");
  repository.commit = commit->get<std::string>();
  if (siblings == answer.end() || !siblings->is_array() || siblings->size() > kMostFiles)
    throw wrong("it has no \"siblings\", the list of files");
  for (const json& sibling : *siblings) {
    if (!sibling.is_object() || !sibling.contains("rfilename") || !sibling["rfilename"].is_string())
      throw wrong("one of its \"siblings\" has no \"rfilename\"");
    repository.files.push_back(sibling["rfilename"].get<std::string>());
    if (!is_safe(repository.files.back())) throw wrong("one of its \"siblings\" has a name that leads out of a folder");
  }
  return repository;
}

/// "org/new" of ".../api/models/org/new/revision/main" and ".../org/new/resolve/main/config.json"; "" of others.
std::string repo_in(const std::string& address, const std::string& endpoint) {
  if (!address.starts_with(endpoint + "/")) return "";
  std::vector<std::string> parts = split(std::string_view(address).substr(endpoint.size() + 1), '/');
  if (parts.size() > 2 && parts[0] == "api")
    parts.erase(parts.begin(), parts.begin() + 2);
  else if (!parts.empty() && parts[0] == "datasets")
    parts.erase(parts.begin());
  return parts.size() > 2 && (parts[2] == "resolve" || parts[2] == "revision") ? parts[0] + "/" + parts[1] : "";
}

}  // namespace

Answer Client::follow(web::Question question, Redirects redirects, const Name& name) {
  const std::string own = origin_of(settings_.endpoint);
  question.authorities = settings_.authorities.string();
  for (int i = 0; i < kMostRedirects; ++i) {
    const bool is_own = origin_of(question.address) == own && !settings_.token.empty();
    if (is_own) question.headers.push_back("Authorization: Bearer " + settings_.token);
    Answer answer = http_.ask(question);
    if (is_own) question.headers.pop_back();
    if (answer.failure != Failure::None || !answer.is_redirect()) return answer;
    const auto next = redirected(question.address, answer.header("location"));
    if (!next)
      throw InputError(fmt::format("{}: {} redirects to what is no address of http or https, or from https to http",
                                   to_string(name), origin_of(question.address)));
    if (redirects == Redirects::OwnOrigin && origin_of(*next) != own) return answer;
    const std::string now = repo_in(*next, settings_.endpoint);
    if (!now.empty() && now != name.repo && !has_told_of_new_name_) {
      spdlog::warn("{} is now called {} on {}: name it so", name.repo, now, settings_.endpoint);
      has_told_of_new_name_ = true;
    }
    question.address = *next;
  }
  throw InputError(fmt::format("{}: {} redirects in a circle: more than {} times", to_string(name), settings_.endpoint,
                               kMostRedirects));
}

Answer Client::ask_patiently(const web::Question& question, const Name& name) {
  for (int tries = 1;; ++tries) {
    Answer answer = follow(question, Redirects::OwnOrigin, name);
    const int most = answer.failure == Failure::Unreachable ? kTriesToReach : web::kMostTries;
    if (!is_worth_retry(answer) || tries >= most) return answer;
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

Repository Client::look_up(const Name& name) {
  const Answer answer = ask_patiently({.address = info_address(settings_.endpoint, name),
                                       .connect = settings_.answer_timeout,
                                       .limit = kMostOfAList * settings_.answer_timeout,
                                       .silence = settings_.answer_timeout},
                                      name);
  if (!answer.is_good()) refuse(answer, name, to_string(name), settings_);
  return repository_of(answer.text, to_string(name));
}

FileFacts Client::facts(const Name& name, const std::string& commit, const std::string& file) {
  const std::string what = fmt::format("{}: {}", to_string(name), file);
  const Answer answer = ask_patiently({.address = file_address(settings_.endpoint, name, commit, file),
                                       .method = "HEAD",
                                       .connect = settings_.answer_timeout,
                                       .limit = settings_.answer_timeout},
                                      name);
  if (!answer.is_good() && !(answer.failure == Failure::None && answer.is_redirect()))
    refuse(answer, name, what, settings_);
  return facts_of(answer, what);
}

Answer Client::bytes(const Name& name, const std::string& commit, const std::string& file, uint64_t from,
                     const web::Sink& sink) {
  return follow({.address = file_address(settings_.endpoint, name, commit, file),
                 .headers = web::range_from(from),
                 .connect = settings_.answer_timeout,
                 .silence = settings_.silence,
                 .sink = sink},
                Redirects::All, name);
}

}  // namespace trainyard::hub
