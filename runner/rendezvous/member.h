#pragma once

#include <cstdint>
#include <string>

namespace trainyard::rendezvous {

/// One rank, as it told the others.
struct Member {
  int rank = 0;
  int world = 1;            ///< the size that it believes in
  std::string host;         ///< its host's name: in a cluster the pod's
  int64_t process = 0;      ///< pid
  std::string address;      ///< numeric, by which its peers reach it
  std::string config;       ///< hash of its configuration
  std::string config_text;  ///< what it says, a line a setting: for the message when hashes differ; "" of other ranks
  std::string life;         ///< random: another process, even of one host and pid in two containers, has another
};

}  // namespace trainyard::rendezvous
