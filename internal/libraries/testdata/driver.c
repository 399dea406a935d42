// A stand-in for the driver of NVIDIA: GPUS of them, or START as the code with
// which it does not start, and CUDA as the version that it supports.
#include <string.h>

#ifndef START
#define START 0
#endif

int cuInit(unsigned flags) { return START; }
#ifndef CUDA
#define CUDA 13020
#endif
int cuDriverGetVersion(int* version) { *version = CUDA; return 0; }
int cuDeviceGetCount(int* count) { *count = GPUS; return 0; }
int cuDeviceGet(int* device, int at) { *device = at; return 0; }
int cuDeviceGetName(char* name, int length, int device) {
  strncpy(name, "Stand-in GPU", length);
  return 0;
}
int cuDeviceTotalMem_v2(unsigned long long* bytes, int device) { *bytes = 10000000000; return 0; }
