#pragma once

#include <span>

#include "config/load.h"

// Keys that only say something beside certain values of others: activation_checkpointing.n beside mode every_n.
namespace trainyard::config {

/// `key` counts where `of` is `where`. A key may have several rows, and counts where all of them say so.
struct Detail {
  const char *key, *of, *where;
  bool (*counts)(const Config& config);
};

/// All of them.
std::span<const Detail> details();

/// Throws InputError for the first that is asked for where it would do nothing, without a word. A file that spells out
/// the defaults asks for nothing.
void check_details(const Loaded& loaded);

/// Gives those that would do nothing their defaults again, where nobody contradicts himself in them: where what they
/// are beside comes from a stronger source (flags go before files, later files before earlier ones, and all before what
/// another program has by default), and where another program's file or flag says them, which a note then tells.
void drop_idle(Loaded& loaded);

}  // namespace trainyard::config
