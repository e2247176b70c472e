#pragma once

#include "local/manifest/yaml.h"

namespace trainyard::local {

/// Makes a document what an API server has of it when it begins to check it, for all that reads it afterwards: it has a
/// namespace, and a name where generateName asks for one, whose place that name has; nulls of fields that may not be
/// null are dropped; a PyTorchJob's defaults are set; and what is not the user's to say is gone: times of creation and
/// deletion, and the status, unless a field of it is misspelt, which the check then names.
void receive(Document& document);

}  // namespace trainyard::local
