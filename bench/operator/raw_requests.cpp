// What the API server and libcurl can do: sends each request of a file, so many at a time, and prints how long that
// took.
//
//   raw_requests --server https://127.0.0.1:6443 --ca FILE --cert FILE --key FILE [--parallel 64] [--http1] REQUESTS
//
// REQUESTS has one {"method": "POST", "path": "/api/v1/…", "type": "application/json", "body": "…"} a line; `body` is
// the text that is sent. Prints {"seconds": 1.2, "statuses": {"201": 2000}}; ends with 1 where a request got no answer.
#include <curl/curl.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Settings {
  std::string server, ca, certificate, key, requests;
  long parallel = 64;
  bool http1 = false;
};

struct Request {
  std::string method, path, type, body;
};

std::vector<Request> read_requests(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Request> requests;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    requests.push_back(
        {json.at("method"), json.at("path"), json.value("type", "application/json"), json.value("body", "")});
  }
  return requests;
}

size_t drop(const char*, size_t size, size_t count, void*) {
  return size * count;
}

/// One of those that are on their way at once; it takes one request after the other.
class Lane {
 public:
  explicit Lane(const Settings& settings) : settings_(settings), easy_(curl_easy_init()) {
    if (!easy_) throw std::runtime_error("no curl handle");
  }
  ~Lane() {
    curl_easy_cleanup(easy_);
    curl_slist_free_all(headers_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  CURL* prepare(const Request& request) {
    curl_easy_reset(easy_);
    curl_slist_free_all(headers_);
    headers_ = curl_slist_append(nullptr, ("Content-Type: " + request.type).c_str());
    headers_ = curl_slist_append(headers_, "Expect:");
    const std::string url = settings_.server + request.path;
    curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    curl_easy_setopt(easy_, CURLOPT_CAINFO, settings_.ca.c_str());
    curl_easy_setopt(easy_, CURLOPT_SSLCERT, settings_.certificate.c_str());
    curl_easy_setopt(easy_, CURLOPT_SSLKEY, settings_.key.c_str());
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy_, CURLOPT_PIPEWAIT, settings_.http1 ? 0L : 1L);
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION,
                     static_cast<long>(settings_.http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
    return easy_;
  }

 private:
  const Settings& settings_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
};

class Sender {
 public:
  Sender(const Settings& settings, const std::vector<Request>& requests)
      : settings_(settings), requests_(requests), multi_(curl_multi_init()) {
    for (long i = 0; i < settings.parallel; ++i) lanes_.emplace_back(settings);
  }
  ~Sender() { curl_multi_cleanup(multi_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// How many answers there were of each status; 0: none came.
  std::map<long, int> send_all() {
    for (Lane& lane : lanes_) send_next(lane);
    for (int running = 1; running > 0;) {
      curl_multi_perform(multi_, &running);
      take_answers(running);
      if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    return statuses_;
  }

 private:
  void send_next(Lane& lane) {
    if (next_ < requests_.size()) curl_multi_add_handle(multi_, lane.prepare(requests_[next_++]));
  }

  void take_answers(int& running) {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      CURL* const easy = message->easy_handle;
      Lane* lane = nullptr;
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &lane);
      if (message->data.result == CURLE_OK) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      ++statuses_[status];
      curl_multi_remove_handle(multi_, easy);
      running += next_ < requests_.size();
      send_next(*lane);
    }
  }

  const Settings& settings_;
  const std::vector<Request>& requests_;
  CURLM* const multi_;
  std::deque<Lane> lanes_;
  size_t next_ = 0;
  std::map<long, int> statuses_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Sends requests to a Kubernetes API, many at a time.");
  app.add_option("--server", settings.server)->required();
  app.add_option("--ca", settings.ca)->required();
  app.add_option("--cert", settings.certificate)->required();
  app.add_option("--key", settings.key)->required();
  app.add_option("--parallel", settings.parallel)->check(CLI::Range(1, 1000));
  app.add_flag("--http1", settings.http1, "a connection each, instead of HTTP/2");
  app.add_option("requests", settings.requests)->required();
  CLI11_PARSE(app, argc, argv);
  try {
    const auto requests = read_requests(settings.requests);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const auto start = std::chrono::steady_clock::now();
    const auto statuses = Sender(settings, requests).send_all();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    nlohmann::json counted = nlohmann::json::object();
    for (const auto& [status, count] : statuses) counted[std::to_string(status)] = count;
    std::cout << nlohmann::json{{"seconds", taken.count()}, {"statuses", counted}} << '\n';
    return statuses.contains(0) ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  }
}
