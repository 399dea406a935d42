#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "plugin.h"

static void *const *api; // OrtApi
static OrtEnv *env;

#define CALL(name) ((name##_function)api[name##_index])

static char *message(OrtStatus *status) {
  if (!status) return NULL;
  char *text = strdup(CALL(GetErrorMessage)(status));
  CALL(ReleaseStatus)(status);
  return text;
}

char *plugin_start(void *get_api_base) {
  struct { void *const *(*get_api)(uint32_t version); } const *base = ((const void *(*)(void))get_api_base)();
  if (!(api = base->get_api(API_VERSION))) return strdup("the onnxruntime library is too old");
  return message(CALL(CreateEnv)(LOG_FATAL, "miplc", &env));
}

// find returns the first device of a provider.
static char *find(const char *provider, int device_type, const OrtEpDevice **found) {
  const OrtEpDevice *const *devices;
  size_t count;
  char *failed = message(CALL(GetEpDevices)(env, &devices, &count));
  if (failed) return failed;
  for (size_t i = 0; i < count; i++) {
    int type = (int)CALL(HardwareDevice_Type)(CALL(EpDevice_Device)(devices[i]));
    if (strcmp(CALL(EpDevice_EpName)(devices[i]), provider) || (device_type >= 0 && type != device_type)) continue;
    *found = devices[i];
    return NULL;
  }
  return strdup(NO_DEVICE);
}

char *plugin_append(void *options, const char *provider, int device_type,
                    const char *const *keys, const char *const *values, size_t n) {
  const OrtEpDevice *device;
  char *failed = find(provider, device_type, &device);
  if (failed) return failed;
  return message(CALL(SessionOptionsAppendExecutionProvider_V2)(options, env, &device, 1, keys, values, n));
}

static struct {
  void *(*alloc)(size_t);
  int (*free)(void *);
  struct allocator *standard; // of onnxruntime
  OrtMemoryInfo *memory;
} blocks;

// If the standard allocator fails, it throws a C++ exception, which passes through this function.
static void *allocator_alloc(OrtAllocator *a, size_t size) {
  void *block = blocks.alloc(size);
  return block ? block : blocks.standard->Alloc((OrtAllocator *)blocks.standard, size);
}

static void allocator_free(OrtAllocator *a, void *block) {
  if (!blocks.free(block)) blocks.standard->Free((OrtAllocator *)blocks.standard, block);
}

static const OrtMemoryInfo *allocator_info(const OrtAllocator *a) { return blocks.memory; }

char *plugin_allocator(void *(*alloc)(size_t), int (*free)(void *)) {
  static struct allocator own = {API_VERSION, allocator_alloc, allocator_free, allocator_info};
  blocks.alloc = alloc;
  blocks.free = free;
  char *failed = message(CALL(GetAllocatorWithDefaultOptions)((OrtAllocator **)&blocks.standard));
  if (!failed) failed = message(CALL(CreateCpuMemoryInfo)(DEVICE_ALLOCATOR, DEFAULT_MEMORY, &blocks.memory));
  return failed ? failed : message(CALL(RegisterAllocator)(env, (OrtAllocator *)&own));
}
