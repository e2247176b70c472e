#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/parts.h"
#include "checkpoint/torch_archive.h"

namespace trainyard::checkpoint {

/// Where a part of a tensor lies: what torch.save wrote of it, in a file of the folder.
struct StoredPart {
  std::string file;  ///< "__0_0.distcp"
  ByteRange range;
};

/// The model of what torch.distributed.checkpoint's FileSystemWriter describes in `.metadata`, a pickle of its class
/// Metadata.
struct DistcpMetadata {
  struct Tensor {
    std::string dtype;  ///< "F32", as safetensors spells it; "" for a type that is read nowhere here
    Parts parts;        ///< a part's source is an index of `stored`
  };
  std::map<std::string, Tensor> tensors;
  std::vector<StoredPart> stored;
};

/// Reads it, running nothing. Of a dictionary that wraps the model, as {"model": …, "optim": …} does, the tensors below
/// "model", "state_dict", "model_state_dict" or "module" are given by their names there; else those at the top. Throws
/// InputError, naming the file: it is no such description, or a part lies outside of the folder or is packed.
DistcpMetadata read_distcp_metadata(const std::filesystem::path& file);

}  // namespace trainyard::checkpoint
