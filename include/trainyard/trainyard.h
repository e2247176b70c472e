#pragma once

// Fully sharded training as a library: the names of PyTorch's FSDP2 (docs/library.md).
#include "trainyard/fully_shard.h"
#include "trainyard/model.h"
#include "trainyard/optim.h"
#include "trainyard/parameter.h"
#include "trainyard/process_group.h"
#include "trainyard/state_dict.h"
