#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/curl.h"
#include "kube/event_loop.h"
#include "kube/http.h"

namespace trainyard::kube {

/// One request on its way. What arrives is kept until the multi's turn is over: no caller's code runs inside libcurl.
class CurlTransfer {
 public:
  using Done = std::function<void(Outcome)>;
  using Data = std::function<void(std::string_view)>;

  /// `on_data`, where given, gets a 200's body as it comes.
  CurlTransfer(uint64_t id, std::shared_ptr<const Endpoint> endpoint, Transfer transfer, Done done, Data on_data);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  [[nodiscard]] CURL* handle() const { return easy_.get(); }
  [[nodiscard]] uint64_t id() const { return id_; }
  [[nodiscard]] Outcome outcome(CURLcode code);
  [[nodiscard]] EventLoop::Clock::time_point started() const { return started_; }
  [[nodiscard]] EventLoop::Clock::time_point last_heard() const { return last_heard_; }
  [[nodiscard]] std::chrono::milliseconds stall() const { return transfer_.stall; }

  std::string take_received() { return std::move(received_); }
  Done done;
  Data on_data;
  /// Called when the first bytes after take_received() arrive.
  std::function<void()> on_received;

 private:
  template <typename Value>
  void set(CURLoption option, Value value);
  void set_up_connection();
  void set_up_tls();
  void set_up_request();
  void set_up_body();
  [[nodiscard]] std::string server_to_verify();
  size_t receive(std::string_view bytes);
  size_t hand_out(char* buffer, size_t size);
  [[nodiscard]] int status() const;

  static size_t write_callback(char* bytes, size_t size, size_t count, void* self);
  static size_t read_callback(char* buffer, size_t size, size_t count, void* self);
  static int seek_callback(void* self, curl_off_t offset, int origin);
  static size_t header_callback(char* bytes, size_t size, size_t count, void* self);

  uint64_t id_;
  std::shared_ptr<const Endpoint> endpoint_;
  Transfer transfer_;
  CurlEasy easy_;
  CurlList headers_, connect_to_;
  EventLoop::Clock::time_point started_, last_heard_;
  size_t uploaded_ = 0;
  bool is_too_large_ = false;
  std::string body_, received_;
  std::string error_ = std::string(CURL_ERROR_SIZE, '\0');
};

}  // namespace trainyard::kube
