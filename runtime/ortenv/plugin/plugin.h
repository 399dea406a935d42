// Calls of onnxruntime's C API that the Go binding lacks: the devices of execution
// providers in libraries of their own, and sessions on them. The functions that can fail
// return NULL or a message that the caller frees.

#ifndef MIPLC_PLUGIN_H
#define MIPLC_PLUGIN_H

#include <stddef.h>

// Uses the library whose OrtGetApiBase is given. The environment of onnxruntime is one for
// the process and counted: this adds a reference that is never released.
char *plugin_start(void *get_api_base);

// Adds the first device of the named provider to options, an OrtSessionOptions, with n
// settings. device_type is an OrtHardwareDeviceType, or -1 for any.
char *plugin_append(void *options, const char *provider, int device_type,
                    const char *const *keys, const char *const *values, size_t n);

#endif
