// The functions of onnxruntime's C API that plugin.c calls. OrtApi is a table of function
// pointers; new versions of onnxruntime only append to it. TestAPI compares this file with the
// header of the Go binding.

#ifndef MIPLC_API_H
#define MIPLC_API_H

#include <stddef.h>
#include <stdint.h>

#define API_VERSION 24 // of the C API, as in the Go binding

typedef struct OrtAllocator OrtAllocator;
typedef struct OrtEnv OrtEnv;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtStatus OrtStatus;

// The fields of OrtAllocator.
struct allocator {
  uint32_t version;
  void *(*Alloc)(OrtAllocator *, size_t);
  void (*Free)(OrtAllocator *, void *);
  const OrtMemoryInfo *(*Info)(const OrtAllocator *);
  void *Reserve, *GetStats, *AllocOnStream; // optional
};

// Values of enumerations.
#define LOG_FATAL 4
#define DEVICE_ALLOCATOR 0
#define DEFAULT_MEMORY 0

// FUNCTIONS calls X with the index in OrtApi, the result, the name and the parameters of each
// function.
#define FUNCTIONS(X) \
  X(2, const char *, GetErrorMessage, const OrtStatus *) \
  X(3, OrtStatus *, CreateEnv, unsigned, const char *, OrtEnv **) \
  X(69, OrtStatus *, CreateCpuMemoryInfo, int, int, OrtMemoryInfo **) \
  X(78, OrtStatus *, GetAllocatorWithDefaultOptions, OrtAllocator **) \
  X(93, void, ReleaseStatus, OrtStatus *) \
  X(176, OrtStatus *, RegisterAllocator, OrtEnv *, OrtAllocator *) \
  X(303, OrtStatus *, GetEpDevices, const OrtEnv *, const OrtEpDevice *const **, size_t *) \
  X(304, OrtStatus *, SessionOptionsAppendExecutionProvider_V2, OrtSessionOptions *, OrtEnv *, \
    const OrtEpDevice *const *, size_t, const char *const *, const char *const *, size_t) \
  X(307, unsigned, HardwareDevice_Type, const OrtHardwareDevice *) \
  X(312, const char *, EpDevice_EpName, const OrtEpDevice *) \
  X(316, const OrtHardwareDevice *, EpDevice_Device, const OrtEpDevice *)

#define TYPE(index, result, name, ...) typedef result (*name##_function)(__VA_ARGS__);
#define INDEX(index, result, name, ...) name##_index = index,

FUNCTIONS(TYPE)
enum { FUNCTIONS(INDEX) };

#endif
