#include <cudnn.h>

#include <cstring>
#include <map>
#include <string>

#include "cudnn_checks.h"
#include "cudnn_descriptors.h"
#include "cudnn_run.h"

// Graphs of operations, computed one after another over whole tensors, in double where cuDNN has float32, rounded where
// a tensor is of 16 bits. Wherever the real library would refuse a call, or compute something else than was meant, this
// one refuses it too, and what that leaves unsaid is not a number here.
namespace {

using namespace host_cudnn;

thread_local std::string t_last_error;
thread_local cudaStream_t t_stream = nullptr;

int g_handle;
bool g_refuses_backward = false;

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return sizeof(int);  // enumerators
  }
}

/// By the numbers that cuDNN gives its attributes.
cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      return CUDNN_TYPE_POINTWISE_MODE;
    case CUDNN_ATTR_REDUCTION_OPERATOR:
      return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
    case CUDNN_ATTR_MATMUL_COMP_TYPE:
    case CUDNN_ATTR_REDUCTION_COMP_TYPE:
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      return CUDNN_TYPE_DATA_TYPE;
    case CUDNN_ATTR_POINTWISE_AXIS:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      return CUDNN_TYPE_INT64;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return CUDNN_TYPE_BOOLEAN;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return CUDNN_TYPE_HEUR_MODE;
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      return CUDNN_TYPE_HANDLE;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return CUDNN_TYPE_VOID_PTR;
    default:
      return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}

void finalize(Descriptor& made) {
  switch (made.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(made);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return check_operation(made);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      require(made.one<int*>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) == &g_handle, "another handle");
      return check_operations(made);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      require(made.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A, "another mode");
      made.graph = &made.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      return;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      require(made.one<int*>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == &g_handle, "another handle");
      made.graph = made.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
      require_supported(!g_refuses_backward || workspace_of(*made.graph) == 0, "no kernel of it is deterministic");
      return;
    default:
      return;
  }
}

void execute(const Descriptor& plan, const Descriptor& pack) {
  require(plan.is_finalized && pack.is_finalized, "a plan or its addresses are not finalized");
  const auto ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  require(ids.size() == pointers.size(), "as many ids as addresses");
  if (const int64_t bytes = workspace_of(*plan.graph))
    std::memset(pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), 0xCB, static_cast<size_t>(bytes));
  std::map<int64_t, void*> addresses;
  for (size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = pointers[i];
  run_graph(*plan.graph, addresses);
}

template <typename Body>
cudnnStatus_t guarded(const Body& body) {
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    t_last_error = refusal.why;
    return refusal.status;
  }
}

Descriptor& known(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

}  // namespace

size_t cudnnGetVersion() {
  return 91900;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_BAD_PARAM) return "bad parameter";
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "not supported" : "an error of the test";
}

void cudnnGetLastErrorString(char* message, size_t most) {
  message[t_last_error.copy(message, most - 1)] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&g_handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  t_stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor{.type = type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return guarded([&] {
    require(!known(descriptor).is_finalized, "an attribute is set after the end");
    require(type == type_of(name), "attribute " + std::to_string(name) + " has another type");
    const auto* const from = static_cast<const std::byte*>(values);
    known(descriptor).attributes[name].assign(from, from + static_cast<size_t>(count) * bytes_of(type));
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t* count, void* values) {
  return guarded([&] {
    const Descriptor& from = known(descriptor);
    require(from.is_finalized && type == type_of(name) && wanted > 0, "what is not there is asked for");
    *count = 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
      *static_cast<int64_t*>(values) = workspace_of(*from.graph);
      return;
    }
    Descriptor& proposal = *static_cast<Descriptor**>(values)[0];
    require(proposal.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "proposals go into engine configurations");
    proposal.graph = from.graph;
    proposal.is_finalized = true;
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded([&] {
    finalize(known(descriptor));
    known(descriptor).is_finalized = true;
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return guarded([&] {
    require(reinterpret_cast<int*>(handle) == &g_handle, "another handle");
    const auto work = [&plan = known(plan), pack = known(pack)] {
      const cudnnStatus_t status = guarded([&] { execute(plan, pack); });
      return status == CUDNN_STATUS_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
    };
    if (host_cuda::submit(t_stream, work) != cudaSuccess) throw Refusal{CUDNN_STATUS_BAD_PARAM, t_last_error};
  });
}

void host_cudnn_refuse_backward(bool refuse) {
  g_refuses_backward = refuse;
}
