#pragma once

#include "comm/communicator.h"
#include "shard/parameter_shard.h"

namespace trainyard::shard {

/// Gives one shard its values, as blocks of rows of the whole parameter come: float32 on the host, row by row.
///
///   ShardFilling filling(shard);
///   for (…) filling.take(rows, block);      // all of wanted(), in any order
///   filling.finish(sharders, device);
///
/// What is kept in another dtype is rounded to it. What is kept in NF4 is packed, for which ranks exchange the scales
/// of their rows.
class ShardFilling {
 public:
  explicit ShardFilling(ParameterShard& shard);

  /// The rows of the whole parameter that the shard has, or has columns of.
  [[nodiscard]] Rows wanted() const { return wanted_; }
  /// Whether the source may write wanted() where the shard lies.
  [[nodiscard]] bool is_in_place() const;
  /// Keeps what it wants of `rows`, which are `block` [rows, elements of a row]. Throws InputError for a value that is
  /// not finite where NF4 would have to hold it.
  void take(Rows rows, const Tensor& block);
  /// Collective over the shard dimension where the parameter is in NF4; `device`: where those ranks exchange.
  void finish(comm::Communicator& sharders, Device device);

 private:
  void pack(const Tensor& values, int64_t first);

  ParameterShard& shard_;
  Rows wanted_;
  Tensor packed_, most_;  // of one in NF4: on the host, its rows and the largest values of their blocks
};

}  // namespace trainyard::shard
