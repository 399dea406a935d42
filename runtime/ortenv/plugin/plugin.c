#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The calls are the same on Windows, where the header would ask for macros of its
// compiler. The binding includes it in the same way.
#ifdef _WIN32
#undef _WIN32
#include "onnxruntime_c_api.h"
#define _WIN32
#else
#include "onnxruntime_c_api.h"
#endif

#include "plugin.h"

static const OrtApi *api;
static OrtEnv *env;

static char *message(OrtStatus *status) {
  if (!status) return NULL;
  char *text = strdup(api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  return text;
}

char *plugin_start(void *get_api_base) {
  const OrtApiBase *(*base)(void) = (const OrtApiBase *(*)(void))get_api_base;
  if (!(api = base()->GetApi(ORT_API_VERSION))) return strdup("the onnxruntime library is too old");
  return message(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "miplc", &env));
}

// find returns the first device of a provider.
static char *find(const char *provider, int device_type, const OrtEpDevice **found) {
  const OrtEpDevice *const *devices;
  size_t count;
  char *failed = message(api->GetEpDevices(env, &devices, &count));
  if (failed) return failed;
  for (size_t i = 0; i < count; i++) {
    int type = (int)api->HardwareDevice_Type(api->EpDevice_Device(devices[i]));
    if (strcmp(api->EpDevice_EpName(devices[i]), provider) || (device_type >= 0 && type != device_type)) continue;
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
  return message(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, n));
}

char *plugin_tensor(const char *provider, int device_type, const int64_t *shape, size_t rank, void **value) {
  const OrtEpDevice *device;
  char *failed = find(provider, device_type, &device);
  if (failed) return failed;
  const OrtMemoryInfo *memory = api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
  if (!memory) return NULL;
  OrtAllocator *allocator = NULL;
  if ((failed = message(api->GetSharedAllocator(env, memory, &allocator)))) return failed;
  if (!allocator) return strdup("it has no allocator for its memory");
  return message(api->CreateTensorAsOrtValue(allocator, shape, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, (OrtValue **)value));
}

char *plugin_copy(const void *from, void *to) {
  const OrtValue *source = from;
  OrtValue *target = to;
  return message(api->CopyTensors(env, &source, &target, NULL, 1));
}

void plugin_release(void *value) { api->ReleaseValue(value); }

char *plugin_graph(const char *id, void **options) {
  OrtRunOptions *made = NULL;
  char *failed = message(api->CreateRunOptions(&made));
  if (!failed && (failed = message(api->AddRunConfigEntry(made, "gpu_graph_id", id)))) api->ReleaseRunOptions(made);
  *options = failed ? NULL : made;
  return failed;
}

char *plugin_run(void *session, const void *options, const void *binding) {
  return message(api->RunWithBinding(session, options, binding));
}

void plugin_release_graph(void *options) { api->ReleaseRunOptions(options); }
