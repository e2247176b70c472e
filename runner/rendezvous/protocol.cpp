#include "rendezvous/protocol.h"

#include <fmt/format.h>

#include "rendezvous/proof.h"

namespace trainyard::rendezvous {
namespace {

constexpr std::string_view kMagic = "TYST";
enum class Greeting : uint8_t { Hello = 1, Proof, Welcome, Refusal };

/// Little-endian, byte by byte: the two ends may differ in nothing but this text.
template <class Number>
void put(std::string& out, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::string_view take(size_t count) {
    if (count > bytes_.size()) throw ProtocolError("the message ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  [[nodiscard]] Number number() {
    uint64_t value = 0;
    const std::string_view taken = take(sizeof(Number));
    for (size_t i = 0; i < sizeof(Number); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return static_cast<Number>(value);
  }
  [[nodiscard]] std::string text() { return std::string(take(number<uint32_t>())); }
  [[nodiscard]] std::vector<std::string> texts() {
    // Each text takes at least its length, so a count cannot ask for more memory than was sent.
    const auto count = number<uint32_t>();
    if (count > bytes_.size() / sizeof(uint32_t)) throw ProtocolError("the message counts more texts than it holds");
    std::vector<std::string> all(count);
    for (std::string& one : all) one = text();
    return all;
  }
  void finish() const {
    if (!bytes_.empty())
      throw ProtocolError(fmt::format("the message goes on for {} bytes past its end", bytes_.size()));
  }

 private:
  std::string_view bytes_;
};

void put_texts(std::string& out, const std::vector<std::string>& texts) {
  put(out, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) put_text(out, text);
}

std::string begin(Greeting greeting) {
  return {static_cast<char>(greeting)};
}

void expect(Reader& reader, Greeting greeting) {
  if (reader.number<uint8_t>() != static_cast<uint8_t>(greeting)) throw ProtocolError("an unexpected kind of message");
}

}  // namespace

std::optional<std::string> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(consumed_);
  if (rest.size() >= sizeof(uint32_t)) {
    const auto length = Reader(rest).number<uint32_t>();
    if (length == 0 || length > limit_) {
      throw ProtocolError(fmt::format("a frame of {} bytes; here it has 1 to {}", length, limit_));
    }
    if (rest.size() - sizeof(uint32_t) >= length) {
      consumed_ += sizeof(uint32_t) + length;
      return std::string(rest.substr(sizeof(uint32_t), length));
    }
  }
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  return std::nullopt;
}

std::string frame(std::string_view body) {
  std::string out;
  out.reserve(sizeof(uint32_t) + body.size());
  put_text(out, body);
  return out;
}

std::string encode(const Hello& hello) {
  std::string out = begin(Greeting::Hello);
  out += kMagic;
  put(out, kProtocolVersion);
  return out + hello.nonce;
}

std::string encode(const Proof& proof) {
  std::string out = begin(Greeting::Proof);
  put(out, proof.generation);
  put(out, proof.restart);
  return out + proof.proof;
}

std::string encode(const Welcome& welcome) {
  return begin(Greeting::Welcome) + welcome.proof;
}

std::string encode(const Refusal& refusal) {
  std::string out = begin(Greeting::Refusal);
  put(out, static_cast<uint8_t>(refusal.reason));
  put_text(out, refusal.text);
  return out;
}

std::string encode(const Request& request) {
  std::string out;
  put(out, request.id);
  put(out, static_cast<uint8_t>(request.operation));
  put_texts(out, request.keys);
  put_text(out, request.value);
  put(out, static_cast<uint8_t>(request.expected.has_value()));
  put_text(out, request.expected.value_or(""));
  put(out, request.number);
  return out;
}

std::string encode(const Reply& reply) {
  std::string out;
  put(out, reply.id);
  put(out, static_cast<uint8_t>(reply.status));
  put_texts(out, reply.values);
  return out;
}

bool is_hello(std::string_view body) {
  return body.starts_with(begin(Greeting::Hello));
}

Hello parse_hello(std::string_view body) {
  Reader reader(body);
  expect(reader, Greeting::Hello);
  if (reader.take(kMagic.size()) != kMagic) throw ProtocolError("it is no rendezvous store's greeting");
  if (const auto version = reader.number<uint8_t>(); version != kProtocolVersion) {
    throw ProtocolError(
        fmt::format("protocol version {}, here it is {}: all ranks must run one release", version, kProtocolVersion));
  }
  Hello hello{std::string(reader.take(kNonceBytes))};
  reader.finish();
  return hello;
}

Proof parse_proof(std::string_view body) {
  Reader reader(body);
  expect(reader, Greeting::Proof);
  Proof proof;
  proof.generation = reader.number<int64_t>();
  proof.restart = reader.number<int64_t>();
  proof.proof = reader.take(kProofBytes);
  reader.finish();
  return proof;
}

std::variant<Welcome, Refusal> parse_verdict(std::string_view body) {
  Reader reader(body);
  if (reader.number<uint8_t>() == static_cast<uint8_t>(Greeting::Welcome)) {
    Welcome welcome{std::string(reader.take(kProofBytes))};
    reader.finish();
    return welcome;
  }
  reader = Reader(body);
  expect(reader, Greeting::Refusal);
  Refusal refusal;
  const auto reason = reader.number<uint8_t>();
  if (reason > static_cast<uint8_t>(Refusal::Reason::OlderRestart)) throw ProtocolError("an unknown reason of refusal");
  refusal.reason = static_cast<Refusal::Reason>(reason);
  refusal.text = reader.text();
  reader.finish();
  return refusal;
}

Request parse_request(std::string_view body) {
  Reader reader(body);
  Request request;
  request.id = reader.number<uint32_t>();
  const auto operation = reader.number<uint8_t>();
  if (operation < static_cast<uint8_t>(Operation::Set) || operation > static_cast<uint8_t>(Operation::Claim)) {
    throw ProtocolError(fmt::format("unknown operation {}", operation));
  }
  request.operation = static_cast<Operation>(operation);
  request.keys = reader.texts();
  if (request.operation != Operation::Wait && request.keys.size() != 1)
    throw ProtocolError("a request without its key");
  request.value = reader.text();
  const bool has_expected = reader.number<uint8_t>() != 0;
  std::string expected = reader.text();
  if (has_expected) request.expected = std::move(expected);
  request.number = reader.number<int64_t>();
  reader.finish();
  return request;
}

Reply parse_reply(std::string_view body) {
  Reader reader(body);
  Reply reply;
  reply.id = reader.number<uint32_t>();
  const auto status = reader.number<uint8_t>();
  if (status < static_cast<uint8_t>(Reply::Status::Done) || status > static_cast<uint8_t>(Reply::Status::Refused)) {
    throw ProtocolError(fmt::format("unknown status {}", status));
  }
  reply.status = static_cast<Reply::Status>(status);
  reply.values = reader.texts();
  if (reply.status == Reply::Status::Refused && reply.values.size() != 1)
    throw ProtocolError("a refusal without its text");
  reader.finish();
  return reply;
}

}  // namespace trainyard::rendezvous
