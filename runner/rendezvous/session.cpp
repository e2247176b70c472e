#include "rendezvous/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/hmac.h"

namespace trainyard::rendezvous {
namespace {

constexpr const char* kWrongToken =
    "the job token is not this store's: TRAINYARD_JOB_TOKEN differs, or another job listens at this address";

/// What an unproved peer wrote, fit for a log line.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

ServerSession::Step ServerSession::receive(std::string_view bytes) {
  Step step;
  if (state_ == State::Closed) return step;
  frames_.feed(bytes);
  try {
    while (state_ != State::Closed) {
      const auto body = frames_.next();
      if (!body) break;
      on_frame(*body, step);
    }
  } catch (const ProtocolError& error) {
    refuse({Refusal::Reason::Protocol, error.what()}, step);
  }
  return step;
}

void ServerSession::on_frame(const std::string& body, Step& step) {
  switch (state_) {
    case State::AwaitsHello:
      nonces_.client = parse_hello(body).nonce;
      step.output += frame(encode(Hello{nonces_.server}));
      state_ = State::AwaitsProof;
      break;
    case State::AwaitsProof:
      check(parse_proof(body), step);
      break;
    case State::Open:
      step.requests.push_back(parse_request(body));
      break;
    case State::Closed:
      break;
  }
}

void ServerSession::check(const Proof& proof, Step& step) {
  const Credentials claimed{credentials_.token, proof.generation, proof.restart};
  // The token first: who doesn't know it learns nothing about this job, not even its generation.
  if (!is_same_secret(proof.proof, proof_of(claimed, Side::Client, nonces_))) {
    refuse({Refusal::Reason::Token, kWrongToken}, step);
  } else if (proof.generation < credentials_.generation) {
    refuse({Refusal::Reason::OlderGeneration,
            fmt::format("generation {}, but this store is generation {}: this rank is of an earlier life",
                        proof.generation, credentials_.generation)},
           step);
  } else if (proof.generation > credentials_.generation) {
    refuse({Refusal::Reason::NewerGeneration,
            fmt::format("generation {}, but this store is generation {}: this store is of an earlier life",
                        proof.generation, credentials_.generation)},
           step);
  } else if (proof.restart != credentials_.restart) {
    check_restart(proof, step);
  } else {
    state_ = State::Open;
    frames_.set_limit(kMaxRequestBytes);
    step.output += frame(encode(Welcome{proof_of(credentials_, Side::Server, nonces_)}));
  }
}

void ServerSession::check_restart(const Proof& proof, Step& step) {
  step.is_superseded = proof.restart > credentials_.restart;
  refuse({step.is_superseded ? Refusal::Reason::NewerGeneration : Refusal::Reason::OlderRestart,
          fmt::format("restart {} of its generation, but this store is of restart {}", proof.restart,
                      credentials_.restart)},
         step);
}

void ServerSession::refuse(Refusal refusal, Step& step) {
  reason_ = refusal.text;
  // Once requests flow a refusal would read as a garbled reply: the end of the connection says it.
  if (state_ != State::Open) step.output += frame(encode(refusal));
  state_ = State::Closed;
}

std::string ClientGreeting::receive(std::string_view bytes) {
  frames_.feed(bytes);
  std::string output;
  while (!welcome_ && !refusal_) {
    const auto body = frames_.next();
    if (!body) break;
    // A refusal may come in place of the store's hello: another protocol version is answered so.
    if (nonces_.server.empty() && is_hello(*body)) {
      nonces_.server = parse_hello(*body).nonce;
      output += frame(
          encode(Proof{credentials_.generation, credentials_.restart, proof_of(credentials_, Side::Client, nonces_)}));
    } else {
      on_verdict(*body);
    }
  }
  return output;
}

void ClientGreeting::on_verdict(const std::string& body) {
  auto verdict = parse_verdict(body);
  if (auto* const refusal = std::get_if<Refusal>(&verdict)) {
    refusal_ = Refusal{refusal->reason, printable(std::move(refusal->text))};
  } else if (is_same_secret(std::get<Welcome>(verdict).proof, proof_of(credentials_, Side::Server, nonces_))) {
    welcome_ = true;
  } else {
    refusal_ = Refusal{Refusal::Reason::Token, kWrongToken};
  }
}

}  // namespace trainyard::rendezvous
