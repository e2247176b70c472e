#pragma once

/// Marks what the library offers. Everything else of it is hidden.
#define TRAINYARD_EXPORT __attribute__((visibility("default")))
