#pragma once

// What the owner of a job may say of it in annotations: docs/operator.md. The CRD's schema does not know them.
namespace trainyard::api {

inline constexpr const char* kRestartScopeAnnotation = "trainyard.dev/restart-scope";    ///< gang, replica
inline constexpr const char* kInitContainerAnnotation = "trainyard.dev/init-container";  ///< true, false
inline constexpr const char* kNetworkPolicyAnnotation = "trainyard.dev/network-policy";  ///< true, false
inline constexpr const char* kProgressDeadlineAnnotation = "trainyard.dev/progress-deadline-seconds";

}  // namespace trainyard::api
