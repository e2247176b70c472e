#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rendezvous/engine.h"
#include "rendezvous/session.h"

// What anybody may send to the store's port: to a stranger's session, to one that is open, and to a client that greets.
// The first byte says how the rest is cut into pieces.
namespace {

using namespace trainyard::rendezvous;

const Credentials kCredentials{"secret", 3};
const std::string kNonce(kNonceBytes, 'n');

ServerSession open_session() {
  ServerSession session(kCredentials, kNonce);
  const std::string proof = proof_of(kCredentials, Side::Client, {kNonce, kNonce});
  session.receive(frame(encode(Hello{kNonce})) + frame(encode(Proof{kCredentials.generation, kCredentials.restart, proof})));
  if (session.state() != ServerSession::State::Open) std::abort();
  return session;
}

void serve(ServerSession session, std::string_view bytes, size_t piece) {
  const bool was_open = session.state() == ServerSession::State::Open;
  Engine engine({.keys = 64, .bytes = 4096});
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const auto step = session.receive(bytes.substr(at, piece));
    if (!was_open && !step.requests.empty()) std::abort();  // a stranger's bytes must never become a request
    for (const Request& request : step.requests) {
      for (const Answer& answer : engine.handle(1, request, {})) parse_reply(encode(answer.reply));
    }
  }
  if (engine.table().bytes() > 4096) std::abort();
  engine.expire(TimePoint::max());
  if (engine.waiting() != 0) std::abort();
  engine.disconnect(1);
}

void greet(std::string_view bytes, size_t piece) {
  ClientGreeting greeting(kCredentials, kNonce);
  try {
    for (size_t at = 0; at < bytes.size(); at += piece) greeting.receive(bytes.substr(at, piece));
  } catch (const ProtocolError&) {
  }
  if (greeting.is_welcome()) std::abort();  // nobody who lacks the token can write a welcome
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{1} + data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  serve(ServerSession(kCredentials, kNonce), bytes, piece);
  serve(open_session(), bytes, piece);
  greet(bytes, piece);
  try {
    parse_reply(bytes);
  } catch (const ProtocolError&) {
  }
  return 0;
}
