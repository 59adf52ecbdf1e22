/* A stand-in for the CUDA driver (libcuda.so.1), as far as PyTorch asks for it outside of kernels. cudart.c says more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kNotSupported = 801 };

static int number(const char* name, int otherwise) {
  const char* const text = getenv(name);
  return text != NULL && *text != 0 ? atoi(text) : otherwise;
}
int cuInit(unsigned flags) { return (void)flags, kSuccess; }
int cuDriverGetVersion(int* version) { return *version = number("STEPCAST_CUDA_MAJOR", 13) * 1000, kSuccess; }
int cuDeviceGetCount(int* count) { return *count = number("STEPCAST_GPU_COUNT", 1), kSuccess; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kSuccess; }
int cuDeviceGetName(char* name, int length, int device) {
  const char* const text = getenv("STEPCAST_GPU_NAME");
  (void)device;
  strncpy(name, text != NULL ? text : "NVIDIA GPU", (size_t)length - 1);
  name[length - 1] = 0;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  const int capability = number("STEPCAST_GPU_CAPABILITY", 90);
  *value = attribute == 16 ? number("STEPCAST_GPU_SMS", 132) : attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10
         : attribute == 10 ? 32 : attribute == 1 ? 1024 : 0;
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  const char* const text = getenv("STEPCAST_GPU_BYTES");
  (void)device;
  return *bytes = text != NULL ? (size_t)atoll(text) : (size_t)80 << 30, kSuccess;
}
/* Inactive: autograd then leaves the streams of other devices alone. */
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) { return (void)device, *flags = 0, *active = 0, kSuccess; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return (void)device, *context = (void*)16, kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, kSuccess; }
int cuCtxGetCurrent(void** context) { return *context = (void*)16, kSuccess; }
int cuCtxSetCurrent(void* context) { return (void)context, kSuccess; }
int cuCtxGetDevice(int* device) { return *device = 0, kSuccess; }
int cuPointerGetAttribute(void* data, int attribute, uintptr_t pointer) { return (void)attribute, (void)pointer, *(int*)data = 0, kNotSupported; }
int cuGetErrorString(int error, const char** text) {
  *text = error == kSuccess ? "no error" : "not supported by the stand-in of stepcast dryrun";
  return kSuccess;
}
int cuGetErrorName(int error, const char** text) { return cuGetErrorString(error, text); }
int cuLaunchKernel(void) { return kNotSupported; }
int cuModuleLoadData(void** module, const void* image) { return (void)image, *module = NULL, kNotSupported; }
/* No function is found by name: whoever asks goes on without. */
int cuGetProcAddress(const char* symbol, void** function) { return (void)symbol, *function = NULL, 500; }
int cuGetProcAddress_v2(const char* symbol, void** function) { return (void)symbol, *function = NULL, 500; }
