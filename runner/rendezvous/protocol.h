#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The store's protocol, without sockets: a frame is a little-endian u32 of the body's length, then the body.
//   client -> Hello {"TYST", version, nonce}        server -> Hello
//   client -> Proof {generation, proof}             server -> Welcome {proof} or Refusal {text}, then the end
//   client -> Request …                             server -> Reply …, in any order, matched by id
namespace trainyard::rendezvous {

constexpr uint8_t kProtocolVersion = 2;
constexpr size_t kMaxGreetingBytes = 512;             ///< a frame before the proof: strangers get no more memory
constexpr size_t kMaxRequestBytes = size_t{2} << 20;  ///< the largest value with its key, twice
constexpr size_t kMaxReplyBytes = size_t{16} << 20;

/// What came is not this protocol. The message says how.
class ProtocolError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Cuts a stream into frames.
class FrameReader {
 public:
  explicit FrameReader(size_t limit_bytes) : limit_(limit_bytes) {}
  void set_limit(size_t limit_bytes) { limit_ = limit_bytes; }
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole body. Throws ProtocolError as soon as a length is known to be zero or beyond the limit.
  [[nodiscard]] std::optional<std::string> next();
  [[nodiscard]] size_t buffered() const { return buffer_.size(); }

 private:
  size_t limit_;
  size_t consumed_ = 0;  ///< bytes of buffer_ given out already; dropped together once nothing whole is left
  std::string buffer_;
};

/// `body` with its length before it.
std::string frame(std::string_view body);

struct Hello {
  std::string nonce;
};
struct Proof {
  int64_t generation = 0;
  int64_t restart = 0;
  std::string proof;
};
struct Welcome {
  std::string proof;
};
struct Refusal {
  enum class Reason : uint8_t {
    Token,
    OlderGeneration,
    NewerGeneration,  ///< or a later restart of this one
    Protocol,
    OlderRestart,  ///< of this generation
  };
  Reason reason = Reason::Protocol;
  std::string text;
};

enum class Operation : uint8_t { Set = 1, Get, Wait, Add, CompareAndSet, Erase, Claim };

struct Request {
  uint32_t id = 0;
  Operation operation = Operation::Get;
  std::vector<std::string> keys;          ///< one; for Wait any number
  std::string value;                      ///< Set, CompareAndSet (desired), Claim
  std::optional<std::string> expected{};  ///< CompareAndSet
  int64_t number = 0;                     ///< Add: what to add; Wait: milliseconds
};

struct Reply {
  enum class Status : uint8_t {
    Done = 1,  ///< values: Get, Add, CompareAndSet one, Wait as many as keys, else none
    Absent,    ///< Get, Erase: the key is not there
    Missing,   ///< Wait: values are the keys that did not come
    Refused,   ///< values: one text that says why; nothing has changed
  };
  uint32_t id = 0;
  Status status = Status::Done;
  std::vector<std::string> values;
};

/// Bodies of frames. The parsers throw ProtocolError on anything but exactly one well-formed message.
std::string encode(const Hello& hello);
std::string encode(const Proof& proof);
std::string encode(const Welcome& welcome);
std::string encode(const Refusal& refusal);
std::string encode(const Request& request);
std::string encode(const Reply& reply);
bool is_hello(std::string_view body);
Hello parse_hello(std::string_view body);
Proof parse_proof(std::string_view body);
std::variant<Welcome, Refusal> parse_verdict(std::string_view body);
Request parse_request(std::string_view body);
Reply parse_reply(std::string_view body);

}  // namespace trainyard::rendezvous
