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

char *plugin_append(void *options, const char *provider, int device_type,
                    const char *const *keys, const char *const *values, size_t n) {
  const OrtEpDevice *const *devices;
  size_t count;
  char *failed = message(api->GetEpDevices(env, &devices, &count));
  if (failed) return failed;
  for (size_t i = 0; i < count; i++) {
    const OrtEpDevice *d = devices[i];
    int type = (int)api->HardwareDevice_Type(api->EpDevice_Device(d));
    if (strcmp(api->EpDevice_EpName(d), provider) || (device_type >= 0 && type != device_type)) continue;
    return message(api->SessionOptionsAppendExecutionProvider_V2(options, env, &d, 1, keys, values, n));
  }
  return strdup("it finds no device on this machine");
}
