#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/hmac.h"
#include "rendezvous/proof.h"
#include "rendezvous/protocol.h"
#include "rendezvous/session.h"

namespace trainyard::rendezvous {
namespace {

const std::string kClientNonce(kNonceBytes, 'a'), kServerNonce(kNonceBytes, 'b');

/// Lets both sides talk until neither has anything to say. True: the client is welcome.
bool meet(ServerSession& server, ClientGreeting& client) {
  std::string to_server = client.hello();
  while (!to_server.empty()) {
    const auto step = server.receive(to_server);
    to_server = client.receive(step.output);
  }
  return client.is_welcome();
}

/// A session that a client of the same credentials has opened.
ServerSession open_session(const Credentials& credentials) {
  ServerSession server(credentials, kServerNonce);
  ClientGreeting client(credentials, kClientNonce);
  REQUIRE(meet(server, client));
  return server;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

TEST_CASE("proof_of: HMAC-SHA256 over label, side, nonces, generation and restart", "[rendezvous]") {
  const Nonces nonces{kClientNonce, kServerNonce};
  // python3: hmac.new(b"secret", b"trainyard-store-2c" + b"a"*32 + b"b"*32 + b"7.0", "sha256").hexdigest()
  CHECK(hex(proof_of({"secret", 7}, Side::Client, nonces)) ==
        "df3eababf3a78f0cbd5c996848061560867903fc3501f0807d2f6d22a63ddc6e");
  CHECK(proof_of({"secret", 7}, Side::Client, nonces) != proof_of({"secret", 7}, Side::Server, nonces));
  CHECK(proof_of({"secret", 7}, Side::Client, nonces) != proof_of({"secret", 8}, Side::Client, nonces));
  CHECK(proof_of({"secret", 7}, Side::Client, nonces) != proof_of({"secret", 7, 1}, Side::Client, nonces));
  CHECK(proof_of({"", 7}, Side::Client, nonces) != proof_of({"secret", 7}, Side::Client, nonces));
  CHECK(fresh_nonce() != fresh_nonce());
  CHECK_FALSE(is_same_secret("abc", "ab"));
}

TEST_CASE("session: one token and generation on both sides meet", "[rendezvous]") {
  const Credentials credentials{GENERATE("", "secret"), 4};
  ServerSession server(credentials, kServerNonce);
  ClientGreeting client(credentials, kClientNonce);
  CHECK(meet(server, client));
  CHECK(server.state() == ServerSession::State::Open);
}

TEST_CASE("session: another token or generation is refused, and told why", "[rendezvous]") {
  struct Row {
    std::string situation;
    std::string token;
    int64_t generation;
    Refusal::Reason reason;
    std::string text;
    int64_t restart = 2;
  };
  const std::vector<Row> rows{
      {"another token", "guess", 4, Refusal::Reason::Token, "the job token is not this store's"},
      {"no token", "", 4, Refusal::Reason::Token, "the job token is not this store's"},
      {"another token learns no generation", "guess", 3, Refusal::Reason::Token, "the job token is not this store's"},
      {"older", "secret", 3, Refusal::Reason::OlderGeneration,
       "generation 3, but this store is generation 4: this rank is of an earlier life"},
      {"newer", "secret", 5, Refusal::Reason::NewerGeneration,
       "generation 5, but this store is generation 4: this store is of an earlier life"},
      {"an earlier restart", "secret", 4, Refusal::Reason::OlderRestart,
       "restart 1 of its generation, but this store is of restart 2", 1},
      {"a later restart", "secret", 4, Refusal::Reason::NewerGeneration,
       "restart 3 of its generation, but this store is of restart 2", 3},
  };
  const Credentials of_server{"secret", 4, 2};
  for (const Row& row : rows) {
    INFO(row.situation);
    ServerSession server(of_server, kServerNonce);
    const Credentials of_client{row.token, row.generation, row.restart};
    ClientGreeting client(of_client, kClientNonce);
    CHECK_FALSE(meet(server, client));
    CHECK(server.state() == ServerSession::State::Closed);
    REQUIRE(client.refusal());
    CHECK(client.refusal()->reason == row.reason);
    CHECK_THAT(client.refusal()->text, Catch::StartsWith(row.text));
  }
}

TEST_CASE("session: a proof that was heard once opens nothing under another nonce", "[rendezvous]") {
  const Credentials credentials{"secret", 0};
  ServerSession first(credentials, kServerNonce);
  ClientGreeting client(credentials, kClientNonce);
  const std::string hello = client.hello();
  const std::string proof = client.receive(first.receive(hello).output);
  REQUIRE(ServerSession(credentials, kServerNonce).receive(hello + proof).output.size() > 60);

  ServerSession second(credentials, std::string(kNonceBytes, 'x'));
  second.receive(hello + proof);
  CHECK(second.state() == ServerSession::State::Closed);
}

TEST_CASE("session: a store that doesn't know the token is refused by the client", "[rendezvous]") {
  // A stranger can only send the client's own proof back, which is the wrong side's.
  const Credentials credentials{"secret", 0};
  ClientGreeting client(credentials, kClientNonce);
  const std::string answer = client.receive(frame(encode(Hello{kServerNonce})));
  const std::string proof = proof_of(credentials, Side::Client, {kClientNonce, kServerNonce});
  CHECK(answer.ends_with(proof));
  client.receive(frame(encode(Welcome{proof})));
  CHECK_FALSE(client.is_welcome());
  REQUIRE(client.refusal());
  CHECK(client.refusal()->reason == Refusal::Reason::Token);
}

TEST_CASE("session: bytes may come one by one or all at once", "[rendezvous]") {
  const Credentials credentials{"secret", 1};
  const Request request{9, Operation::Wait, {"a", "b"}, "", std::nullopt, 1500};
  ClientGreeting client(credentials, kClientNonce);
  ServerSession server(credentials, kServerNonce);
  std::string to_server = client.hello();
  std::vector<Request> requests;
  const auto feed = [&](const std::string& bytes) {
    std::string output;
    for (const char byte : bytes) {
      auto step = server.receive({&byte, 1});
      output += step.output;
      for (auto& one : step.requests) requests.push_back(one);
    }
    return output;
  };
  const std::string proof = client.receive(feed(to_server));
  client.receive(feed(proof));
  REQUIRE(client.is_welcome());
  feed(frame(encode(request)) + frame(encode(request)));
  REQUIRE(requests.size() == 2);
  CHECK(encode(requests[1]) == encode(request));
  CHECK(server.buffered() == 0);
  CHECK(server.receive(frame(encode(request)) + frame(encode(request))).requests.size() == 2);
}

TEST_CASE("session: garbage closes the connection and yields no request", "[rendezvous]") {
  const std::string huge_length{"\xff\xff\xff\xff", 4};
  const std::vector<std::string> garbage{
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string(4, '\0'),
      huge_length,
      frame("x"),
      frame(encode(Hello{std::string(kNonceBytes - 1, 'a')})),
      frame(encode(Hello{std::string(kNonceBytes + 1, 'a')})),
      frame(encode(Proof{0, 0, std::string(kProofBytes, 'p')})),
      frame(encode(Request{1, Operation::Set, {"k"}, "v"})),
  };
  const Credentials credentials{"secret", 0};
  for (const std::string& bytes : garbage) {
    INFO(hex(bytes));
    ServerSession server(credentials, kServerNonce);
    CHECK(server.receive(bytes).requests.empty());
    CHECK(server.state() == ServerSession::State::Closed);
    CHECK_FALSE(server.reason().empty());
    CHECK(server.receive(frame("more")).output.empty());
  }
}

TEST_CASE("session: another protocol version is refused by number", "[rendezvous]") {
  std::string hello = encode(Hello{kClientNonce});
  hello[5] = 9;
  const Credentials credentials;
  ServerSession server(credentials, kServerNonce);
  ClientGreeting client(credentials, kClientNonce);
  client.receive(server.receive(frame(hello)).output);
  REQUIRE(client.refusal());
  CHECK(client.refusal()->reason == Refusal::Reason::Protocol);
  CHECK_THAT(client.refusal()->text, Catch::StartsWith("protocol version 9, here it is 2"));
}

TEST_CASE("session: a garbled request closes an open connection without an answer", "[rendezvous]") {
  const Credentials credentials;
  const std::string good = encode(Request{1, Operation::Set, {"k"}, "v"});
  std::string unknown_operation = good;
  unknown_operation[4] = 99;
  std::string huge_count = good;
  huge_count[5] = huge_count[6] = huge_count[7] = huge_count[8] = '\xff';
  for (const std::string& body :
       {good.substr(0, good.size() - 1), good + "x", unknown_operation, huge_count,
        encode(Request{1, Operation::Set, {}, "v"}), encode(Request{1, Operation::Get, {"a", "b"}, ""})}) {
    INFO(hex(body));
    ServerSession server = open_session(credentials);
    const auto step = server.receive(frame(body));
    CHECK(step.requests.empty());
    CHECK(step.output.empty());
    CHECK(server.state() == ServerSession::State::Closed);
  }
}

TEST_CASE("protocol: requests and replies come back as they were sent", "[rendezvous]") {
  const std::string bytes("\0\xff\n", 3);
  const std::vector<Request> requests{
      {0, Operation::Set, {bytes}, bytes},
      {0xffffffff, Operation::Get, {"k"}, ""},
      {7, Operation::Wait, {}, "", std::nullopt, 0},
      {7, Operation::Add, {"k"}, "", std::nullopt, -5},
      {7, Operation::CompareAndSet, {"k"}, "desired", "", 0},
      {7, Operation::CompareAndSet, {"k"}, "desired", std::nullopt, 0},
  };
  for (const Request& request : requests) {
    const Request parsed = parse_request(encode(request));
    CHECK(parsed.id == request.id);
    CHECK(parsed.operation == request.operation);
    CHECK(parsed.keys == request.keys);
    CHECK(parsed.value == request.value);
    CHECK(parsed.expected == request.expected);
    CHECK(parsed.number == request.number);
  }
  const Reply reply = parse_reply(encode(Reply{3, Reply::Status::Missing, {bytes, ""}}));
  CHECK(reply.id == 3);
  CHECK(reply.status == Reply::Status::Missing);
  CHECK(reply.values == std::vector<std::string>{bytes, ""});
  CHECK_THROWS_AS(parse_reply(encode(Reply{3, Reply::Status::Refused, {}})), ProtocolError);
}

}  // namespace trainyard::rendezvous
