// A stand-in for a PJRT plugin, which fails as its macros say:
//   MINOR, MAJOR   version of the interface it claims
//   NOTHING        its entry point gives no table
//   START, CREATE  text of the error of starting it, of opening the device; CODE its code
//   PLATFORM       kind of its device
// It refuses options that its kind of device has not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

#ifndef MAJOR
#define MAJOR PJRT_API_MAJOR
#endif
#ifndef MINOR
#define MINOR PJRT_API_MINOR
#endif
#ifndef CODE
#define CODE 14
#endif
#ifndef PLATFORM
#define PLATFORM "cpu"
#endif

struct PJRT_Error {
  int code;
  char text[512];
};

static PJRT_Error* fail(int code, const char* text) {
  PJRT_Error* e = calloc(1, sizeof(PJRT_Error));
  e->code = code;
  snprintf(e->text, sizeof(e->text), "%s", text);
  return e;
}

static void error_destroy(PJRT_Error_Destroy_Args* a) { free(a->error); }

static void error_message(PJRT_Error_Message_Args* a) {
  a->message = a->error->text;
  a->message_size = strlen(a->error->text);
}

static PJRT_Error* error_code(PJRT_Error_GetCode_Args* a) {
  a->code = a->error->code;
  return NULL;
}

static PJRT_Error* start(PJRT_Plugin_Initialize_Args* a) {
#ifdef START
  return fail(CODE, START);
#endif
  return NULL;
}

static PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* a) {
  a->num_attributes = 0;
  return NULL;
}

static PJRT_Error* create(PJRT_Client_Create_Args* a) {
  int first = 0;
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue* v = &a->create_options[i];
    char text[256];
    snprintf(text, sizeof(text), "Unexpected option name passed to PJRT_Client_Create: %.*s", (int)v->name_size, v->name);
    if (strcmp(PLATFORM, "cpu") == 0) return fail(3, text);
    if (strncmp(v->name, "visible_devices", v->name_size) == 0)
      first = v->value_size == 1 && v->int64_array_value[0] == 0;
    else if (strncmp(v->name, "preallocate", v->name_size) != 0 || v->bool_value)
      return fail(3, text);
  }
  if (strcmp(PLATFORM, "cuda") == 0 && a->num_options > 0 && !first) return fail(3, "more than the first device");
#ifdef CREATE
  return fail(CODE, CREATE);
#endif
  a->client = (PJRT_Client*)calloc(1, 8);
  return NULL;
}

static PJRT_Error* destroy(PJRT_Client_Destroy_Args* a) {
  free(a->client);
  return NULL;
}

static PJRT_Error* platform(PJRT_Client_PlatformName_Args* a) {
  a->platform_name = PLATFORM;
  a->platform_name_size = strlen(PLATFORM);
  return NULL;
}

static PJRT_Error* platform_version(PJRT_Client_PlatformVersion_Args* a) {
  a->platform_version = "1";
  a->platform_version_size = 1;
  return NULL;
}

static PJRT_Error* process(PJRT_Client_ProcessIndex_Args* a) {
  a->process_index = 0;
  return NULL;
}

static PJRT_Error* devices(PJRT_Client_AddressableDevices_Args* a) {
  a->num_addressable_devices = 0;
  return NULL;
}

const PJRT_Api* GetPjrtApi(void) {
#ifdef NOTHING
  return NULL;
#endif
  static PJRT_Api api;
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = MAJOR;
  api.pjrt_api_version.minor_version = MINOR;
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_Error_GetCode = error_code;
  api.PJRT_Plugin_Initialize = start;
  api.PJRT_Plugin_Attributes = attributes;
  api.PJRT_Client_Create = create;
  api.PJRT_Client_Destroy = destroy;
  api.PJRT_Client_PlatformName = platform;
  api.PJRT_Client_PlatformVersion = platform_version;
  api.PJRT_Client_ProcessIndex = process;
  api.PJRT_Client_AddressableDevices = devices;
  return &api;
}
