#include "train/gather.h"

#include "shard/layout.h"

namespace trainyard::train {

Tensor gather_rows(comm::Communicator& sharders, const Tensor& local, const Shape& whole, const std::string& label) {
  if (sharders.world() == 1 || count_of(whole) == 0) return local;
  Shape padded = whole;
  padded[0] = shard::chunk_of(whole[0], sharders.world(), 0).count;
  Tensor mine = local;
  if (local.shape() != padded) {
    mine = Tensor::zeros(padded, local.dtype(), local.device());
    Tensor filled = mine.rows(0, local.size(0));
    copy(local, filled);
  }
  padded[0] *= sharders.world();
  Tensor all = Tensor::empty(padded, local.dtype(), local.device());
  sharders.all_gather(mine, all, label).wait();
  return all.rows(0, whole[0]);
}

}  // namespace trainyard::train
