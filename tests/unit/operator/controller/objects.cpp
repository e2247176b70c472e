#include "unit/operator/controller/objects.h"

namespace trainyard::controller::test {
namespace {

Json metadata(const std::string& name, const std::string& owner_uid) {
  return {{"name", name},
          {"namespace", "ns"},
          {"uid", "uid-" + name},
          {"resourceVersion", "20"},
          {"ownerReferences",
           {{{"apiVersion", "kubeflow.org/v1"},
             {"kind", "PyTorchJob"},
             {"name", "job"},
             {"uid", owner_uid},
             {"controller", true}}}}};
}

}  // namespace

Json object_of(const char* kind, const std::string& name, const std::string& owner_uid) {
  return {{"apiVersion", "v1"}, {"kind", kind}, {"metadata", metadata(name, owner_uid)}};
}

Json job_object(const std::string& version, const Json& status) {
  const Json worker = {{"replicas", 1},
                       {"template", {{"spec", {{"containers", {{{"name", "pytorch"}, {"image", "i"}}}}}}}}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "PyTorchJob"},
          {"metadata", {{"name", "job"}, {"namespace", "ns"}, {"uid", "uid-job"}, {"resourceVersion", version}}},
          {"spec", {{"pytorchReplicaSpecs", {{"Worker", worker}}}}},
          {"status", status}};
}

}  // namespace trainyard::controller::test
