#include "assemble/recompute.h"

namespace trainyard::train {

void set_recompute(models::Model& model, const Recompute& wanted) {
  int64_t number = 0;
  for (nn::Module* const block : model.blocks())
    block->set_recompute(wanted.is_on && ++number % wanted.every == 0, wanted.retention);
}

}  // namespace trainyard::train
