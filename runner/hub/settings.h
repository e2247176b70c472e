#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace trainyard::hub {

using Environment = std::map<std::string, std::string, std::less<>>;

/// How the hub is asked, as huggingface_hub reads it from the environment.
struct Settings {
  std::string endpoint = "https://huggingface.co";  ///< HF_ENDPOINT, without a slash at its end
  std::filesystem::path home;                       ///< HF_HOME
  std::filesystem::path cache;                      ///< HF_HUB_CACHE, else HF_HOME/hub
  std::string token;                                ///< a secret: never printed, saved or sent elsewhere; "": none
  bool is_offline = false;                          ///< HF_HUB_OFFLINE: nothing is asked
  std::chrono::milliseconds answer_timeout{10000};  ///< HF_HUB_ETAG_TIMEOUT, of what asks about files
  std::filesystem::path authorities;                ///< REQUESTS_CA_BUNDLE, SSL_CERT_FILE; "": the system's
  std::chrono::milliseconds silence{10000};         ///< HF_HUB_DOWNLOAD_TIMEOUT: so long a file may send no byte
};

/// Reads the variables of `environment`, and of the disk the file that holds a token (HF_TOKEN_PATH, else
/// HF_HOME/token) where HF_TOKEN is not given. HF_HUB_DISABLE_IMPLICIT_TOKEN: no token is used. Throws InputError,
/// naming the variable, for one whose value does not fit.
Settings settings_of(const Environment& environment);

/// `token` without spaces and line breaks around it. Throws InputError, naming `source` but not the token, where it has
/// a character that no token has.
std::string clean_token(const std::string& token, const std::string& source);

}  // namespace trainyard::hub
