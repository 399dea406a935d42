// Calls of onnxruntime's C API that the Go binding lacks: devices of execution providers in
// separate libraries, sessions on them, and allocators. Functions that can fail
// return NULL or a message that the caller frees.

#ifndef MIPLC_PLUGIN_H
#define MIPLC_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

// The message if onnxruntime lists no device of a provider.
#define NO_DEVICE "it finds no device on this machine"

// Uses the library whose OrtGetApiBase is given. The environment of onnxruntime is one for
// the process and counted: this adds a reference that is never released.
char *plugin_start(void *get_api_base);

// Adds the first device of the named provider to options, an OrtSessionOptions, with n
// settings. device_type is an OrtHardwareDeviceType, or -1 for any.
char *plugin_append(void *options, const char *provider, int device_type,
                    const char *const *keys, const char *const *values, size_t n);

// Makes alloc and free the allocator of the memory of the process for the sessions that set
// session.use_env_allocators. They must be safe for concurrent use. If alloc returns NULL, or free 0 because
// the block is not of alloc, onnxruntime's own allocator does it.
char *plugin_allocator(void *(*alloc)(size_t), int (*free)(void *));

#endif
