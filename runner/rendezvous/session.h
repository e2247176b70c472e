#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/proof.h"
#include "rendezvous/protocol.h"

namespace trainyard::rendezvous {

/// The store's side of one connection, without its socket: bytes in; bytes to send, and requests of a client that has
/// proved itself, out. One thread at a time.
class ServerSession {
 public:
  enum class State {
    AwaitsHello,  ///< a stranger; its first frame must be a Hello
    AwaitsProof,  ///< a stranger who speaks the protocol
    Open,         ///< a rank of this job and generation
    Closed,       ///< refused or garbled; nothing more is read, output() is the last that it gets
  };
  struct Step {
    std::string output;
    std::vector<Request> requests;
    bool is_superseded = false;  ///< a later restart of this generation has proved itself
  };

  /// `credentials` must outlive the session. `nonce` must be fresh.
  ServerSession(const Credentials& credentials, std::string nonce)
      : credentials_(credentials), nonces_{.client = {}, .server = std::move(nonce)} {}

  /// Never throws for what a peer sends.
  Step receive(std::string_view bytes);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }  ///< of Closed
  [[nodiscard]] size_t buffered() const { return frames_.buffered(); }

 private:
  void on_frame(const std::string& body, Step& step);
  void check(const Proof& proof, Step& step);
  void check_restart(const Proof& proof, Step& step);
  void refuse(Refusal refusal, Step& step);

  const Credentials& credentials_;
  Nonces nonces_;
  FrameReader frames_{kMaxGreetingBytes};
  State state_ = State::AwaitsHello;
  std::string reason_;
};

/// The client's side until it is welcome.
class ClientGreeting {
 public:
  ClientGreeting(const Credentials& credentials, std::string nonce)
      : credentials_(credentials), nonces_{.client = std::move(nonce), .server = {}} {}

  /// The first bytes to send.
  [[nodiscard]] std::string hello() const { return frame(encode(Hello{nonces_.client})); }
  /// Takes what the store sent, gives what to send next. Throws ProtocolError where that is no store.
  std::string receive(std::string_view bytes);

  [[nodiscard]] bool is_welcome() const { return welcome_; }
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  void on_verdict(const std::string& body);

  const Credentials& credentials_;
  Nonces nonces_;
  FrameReader frames_{kMaxGreetingBytes};
  bool welcome_ = false;
  std::optional<Refusal> refusal_;
};

}  // namespace trainyard::rendezvous
