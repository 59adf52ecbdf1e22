/* A stand-in for the CUDA runtime, for programs that `stepcast dryrun` runs without a GPU. It is preloaded (LD_PRELOAD) in front of
 * the libcudart that PyTorch links: devices, streams, events and memory seem to be there, and nothing is computed.
 *
 * The device comes from the environment: STEPCAST_GPU_NAME, STEPCAST_GPU_BYTES, STEPCAST_GPU_SMS, STEPCAST_GPU_CAPABILITY (90 for
 * 9.0), STEPCAST_GPU_COUNT, STEPCAST_GPU_L2_BYTES, STEPCAST_CUDA_MAJOR. Calls of streams and events are kept in stepcast_log, which
 * the recorder reads: what waits for what. A call that would launch a kernel fails with one sentence that names the operator. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As systems older than glibc 2.34 have them. */
#if defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

enum { kSuccess = 0, kInvalidDevice = 101, kNotSupported = 801 };
typedef void* Handle;

/* ---- What the recorder reads ---- */
enum LogKind { kEventRecord = 1, kStreamWait, kStreamSynchronize, kEventSynchronize, kDeviceSynchronize };
enum { kLogCapacity = 1 << 16 }; /* a power of two: a ring, read after every operator */
struct LogEntry {
  int64_t kind;
  uint64_t stream, event; /* handles; 0: none or the default stream */
};
struct LogEntry stepcast_log[kLogCapacity];
_Atomic uint64_t stepcast_log_length = 0;
char stepcast_operator[256] = "";  /* written by the recorder: the operator that is running */
char stepcast_reached[512] = "";   /* the sentence of the first call that cannot be stood in for */

static void note(enum LogKind kind, Handle stream, Handle event) {
  const uint64_t at = atomic_fetch_add(&stepcast_log_length, 1);
  stepcast_log[at % kLogCapacity] = (struct LogEntry){kind, (uint64_t)(uintptr_t)stream, (uint64_t)(uintptr_t)event};
}

static _Thread_local int last_error = kSuccess;

static int refuse(const char* call) {
  if (stepcast_reached[0] == 0) {
    snprintf(stepcast_reached, sizeof stepcast_reached, "stepcast dryrun: %s called %s, which needs a real GPU",
             stepcast_operator[0] != 0 ? stepcast_operator : "an operator outside of the recorded program", call);
  }
  return last_error = kNotSupported;
}

/* ---- The device ---- */
static int64_t number(const char* name, int64_t otherwise) {
  const char* const text = getenv(name);
  return text != NULL && *text != 0 ? atoll(text) : otherwise;
}
static int device_count(void) { return (int)number("STEPCAST_GPU_COUNT", 1); }
static int64_t memory_bytes(void) { return number("STEPCAST_GPU_BYTES", INT64_C(80) << 30); }
static int multiprocessors(void) { return (int)number("STEPCAST_GPU_SMS", 132); }
static int capability(void) { return (int)number("STEPCAST_GPU_CAPABILITY", 90); }
static int shared_bytes_optin(void) {
  const int version = capability();
  return version >= 90 && version < 120 ? 227 << 10 : version == 80 ? 163 << 10 : version >= 86 ? 99 << 10 : version >= 75 ? 64 << 10 : 96 << 10;
}
static _Thread_local int current_device = 0;

int cudaGetDeviceCount(int* count) { return *count = device_count(), kSuccess; }
int cudaGetDevice(int* device) { return *device = current_device, kSuccess; }
int cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return kInvalidDevice;
  return current_device = device, kSuccess;
}
int cudaDriverGetVersion(int* version) { return *version = (int)number("STEPCAST_CUDA_MAJOR", 13) * 1000, kSuccess; }
int cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;      /* threads of a block */
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;                /* blocks of a grid */
    case 6: case 7: *value = 65535; break;
    case 8: *value = 48 << 10; break;                  /* shared memory of a block */
    case 9: *value = 64 << 10; break;
    case 10: *value = 32; break;                       /* threads of a warp */
    case 12: case 82: *value = 65536; break;           /* registers */
    case 13: *value = 1980000; break;                  /* clock, kHz */
    case 16: *value = multiprocessors(); break;
    case 18: case 20: case 34: case 35: *value = 0; break;
    case 36: *value = 2619000; break;
    case 37: *value = 5120; break;
    case 38: *value = (int)number("STEPCAST_GPU_L2_BYTES", 50 << 20); break;
    case 39: *value = capability() >= 86 && capability() < 90 ? 1536 : 2048; break;
    case 40: *value = 3; break;
    case 75: *value = capability() / 10; break;
    case 76: *value = capability() % 10; break;
    case 81: *value = shared_bytes_optin() + 1024; break;
    case 97: *value = shared_bytes_optin(); break;
    case 106: *value = 32; break;
    case 84: case 87: case 88: case 100: case 115: *value = 0; break;
    default: *value = 1; break;
  }
  return kSuccess;
}

/* cudaDeviceProp by the offsets of its fields. CUDA 12 has clockRate in padding and deviceOverlap in front of multiProcessorCount. */
static int properties(char* out, int major, int device) {
  const int newer = major >= 13;
  const char* const name = getenv("STEPCAST_GPU_NAME");
  memset(out, 0, newer ? 1008 : 1032);
  snprintf(out, 256, "%s", name != NULL ? name : "NVIDIA GPU");
  out[256] = (char)(device + 1); /* uuid */
#define PUT(type, offset, value) *(type*)(out + (offset)) = (type)(value)
#define ATTRIBUTE(offset, number) cudaDeviceGetAttribute((int*)(out + (offset)), number, device)
  PUT(size_t, 288, memory_bytes());
  PUT(size_t, 296, 48 << 10);
  ATTRIBUTE(304, 12);
  ATTRIBUTE(308, 10);
  PUT(size_t, 312, 2147483647);
  for (int i = 0; i < 7; ++i) ATTRIBUTE(320 + 4 * i, 1 + i);
  PUT(size_t, 352, 64 << 10);
  ATTRIBUTE(360, 75);
  ATTRIBUTE(364, 76);
  PUT(size_t, 368, 512);
  ATTRIBUTE(newer ? 384 : 388, 16);
  PUT(int, newer ? 560 : 576, 1);        /* concurrentKernels */
  PUT(int, newer ? 568 : 584, device + 1); /* pciBusID */
  PUT(int, newer ? 588 : 604, 1);        /* unifiedAddressing */
  ATTRIBUTE(newer ? 592 : 612, 37);
  ATTRIBUTE(newer ? 596 : 616, 38);
  ATTRIBUTE(newer ? 604 : 624, 39);
  PUT(size_t, newer ? 624 : 640, shared_bytes_optin() + 1024);
  ATTRIBUTE(newer ? 632 : 648, 82);
  PUT(int, newer ? 636 : 652, 1);        /* managedMemory */
  PUT(int, newer ? 668 : 688, 1);        /* cooperativeLaunch */
  PUT(size_t, newer ? 672 : 696, shared_bytes_optin());
#undef PUT
#undef ATTRIBUTE
  return kSuccess;
}
int cudaGetDeviceProperties(char* out, int device) { return properties(out, (int)number("STEPCAST_CUDA_MAJOR", 13), device); }
int cudaGetDeviceProperties_v2(char* out, int device) { return properties(out, 12, device); }
int cudaDeviceGetPCIBusId(char* text, int length, int device) { return snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1), kSuccess; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, kSuccess; }
int cudaDeviceCanAccessPeer(int* can, int device, int peer) { return *can = device != peer, kSuccess; }
int cudaDeviceSynchronize(void) { return note(kDeviceSynchronize, NULL, NULL), kSuccess; }
int cudaDeviceGetLimit(size_t* value, int limit) { return (void)limit, *value = 1024, kSuccess; }

/* ---- What has nothing to do, and what cannot be done ---- */
#define SUCCEEDS(name) int name(void) { return kSuccess; }
#define NEEDS_GPU(name) int name(void) { return refuse(#name); }
SUCCEEDS(cudaDeviceReset) SUCCEEDS(cudaProfilerStart) SUCCEEDS(cudaProfilerStop) SUCCEEDS(cudaMemPoolSetAttribute)
SUCCEEDS(cudaMemPoolSetAccess) SUCCEEDS(cudaMemPoolTrimTo) SUCCEEDS(cudaFuncSetAttribute) SUCCEEDS(cudaFuncSetCacheConfig)
SUCCEEDS(cudaGraphDestroy) SUCCEEDS(cudaGraphExecDestroy) SUCCEEDS(cudaGraphDebugDotPrint) SUCCEEDS(cudaStreamDestroy)
SUCCEEDS(cudaStreamQuery) SUCCEEDS(cudaEventDestroy) SUCCEEDS(cudaEventQuery) SUCCEEDS(cudaHostRegister) SUCCEEDS(cudaHostUnregister)
SUCCEEDS(cudaMemset) SUCCEEDS(cudaMemsetAsync) SUCCEEDS(cudaFree) SUCCEEDS(cudaFreeAsync) SUCCEEDS(cudaDeviceEnablePeerAccess)
SUCCEEDS(cudaDeviceSetLimit) SUCCEEDS(cudaSetDeviceFlags) SUCCEEDS(cudaIpcCloseMemHandle) SUCCEEDS(cudaThreadExchangeStreamCaptureMode)
NEEDS_GPU(cudaMemcpy) NEEDS_GPU(cudaMemcpyAsync) NEEDS_GPU(cudaMemcpy2DAsync) NEEDS_GPU(cudaMemcpyPeerAsync)
NEEDS_GPU(cudaMemcpyToSymbol) NEEDS_GPU(cudaIpcOpenMemHandle) NEEDS_GPU(cudaIpcOpenEventHandle) NEEDS_GPU(__cudaLaunchKernel)
NEEDS_GPU(cudaLaunchKernel) NEEDS_GPU(cudaLaunchKernelExC) NEEDS_GPU(cudaLaunchCooperativeKernel) NEEDS_GPU(cudaGraphInstantiate)
NEEDS_GPU(cudaGraphInstantiateWithFlags) NEEDS_GPU(cudaGraphLaunch) NEEDS_GPU(cudaGraphNodeGetDependencies)
#undef SUCCEEDS
#undef NEEDS_GPU

/* ---- Errors ---- */
const char* cudaGetErrorString(int error) {
  if (error == kSuccess) return "no error";
  if (error == kNotSupported && stepcast_reached[0] != 0) return stepcast_reached;
  return error == kInvalidDevice ? "invalid device ordinal" : "operation not supported by the stand-in of stepcast dryrun";
}
const char* cudaGetErrorName(int error) { return error == kSuccess ? "cudaSuccess" : error == kInvalidDevice ? "cudaErrorInvalidDevice" : "cudaErrorNotSupported"; }
int cudaGetLastError(void) {
  const int error = last_error;
  return last_error = kSuccess, error;
}
int cudaPeekAtLastError(void) { return last_error; }

/* ---- Streams and events: handles are made-up addresses ---- */
static Handle next_handle(void) {
  static _Atomic uintptr_t next = 0x10000;
  return (Handle)atomic_fetch_add(&next, 16); /* NOLINT(performance-no-int-to-ptr) */
}
int cudaStreamCreate(Handle* stream) { return *stream = next_handle(), kSuccess; }
int cudaStreamCreateWithFlags(Handle* stream, unsigned flags) { return (void)flags, cudaStreamCreate(stream); }
int cudaStreamCreateWithPriority(Handle* stream, unsigned flags, int priority) { return (void)flags, (void)priority, cudaStreamCreate(stream); }
int cudaStreamSynchronize(Handle stream) { return note(kStreamSynchronize, stream, NULL), kSuccess; }
int cudaStreamGetPriority(Handle stream, int* priority) { return (void)stream, *priority = 0, kSuccess; }
int cudaStreamGetFlags(Handle stream, unsigned* flags) { return (void)stream, *flags = 0, kSuccess; }
int cudaStreamWaitEvent(Handle stream, Handle event, unsigned flags) { return (void)flags, note(kStreamWait, stream, event), kSuccess; }
int cudaStreamIsCapturing(Handle stream, int* status) { return (void)stream, *status = 0, kSuccess; }
int cudaStreamGetCaptureInfo(Handle stream, int* status) { return (void)stream, *status = 0, kSuccess; }
int cudaStreamGetCaptureInfo_v2(Handle stream, int* status) { return (void)stream, *status = 0, kSuccess; }
int cudaStreamGetCaptureInfo_v3(Handle stream, int* status) { return (void)stream, *status = 0, kSuccess; }
int cudaStreamBeginCapture(Handle stream, int mode) { return (void)stream, (void)mode, refuse("cudaStreamBeginCapture (CUDA graphs)"); }
int cudaStreamEndCapture(Handle stream, Handle* graph) { return (void)stream, *graph = NULL, refuse("cudaStreamEndCapture (CUDA graphs)"); }
int cudaStreamAddCallback(Handle stream, void (*call)(Handle, int, void*), void* data, unsigned flags) { return (void)flags, call(stream, kSuccess, data), kSuccess; }
int cudaLaunchHostFunc(Handle stream, void (*call)(void*), void* data) { return (void)stream, call(data), kSuccess; }
int cudaEventCreate(Handle* event) { return *event = next_handle(), kSuccess; }
int cudaEventCreateWithFlags(Handle* event, unsigned flags) { return (void)flags, cudaEventCreate(event); }
int cudaEventRecord(Handle event, Handle stream) { return note(kEventRecord, stream, event), kSuccess; }
int cudaEventRecordWithFlags(Handle event, Handle stream, unsigned flags) { return (void)flags, cudaEventRecord(event, stream); }
int cudaEventSynchronize(Handle event) { return note(kEventSynchronize, NULL, event), kSuccess; }
int cudaEventElapsedTime(float* ms, Handle begin, Handle end) { return (void)begin, (void)end, *ms = 1.0F, kSuccess; }
int cudaEventElapsedTime_v2(float* ms, Handle begin, Handle end) { return cudaEventElapsedTime(ms, begin, end); }

/* ---- Memory: of the device made up, of the host real ---- */
int cudaMalloc(void** out, size_t bytes) {
  static _Atomic uintptr_t next = (uintptr_t)0x7f0000000000;
  *out = (void*)atomic_fetch_add(&next, (bytes + 0x1fffff) & ~(uintptr_t)0x1fffff); /* NOLINT(performance-no-int-to-ptr) */
  return kSuccess;
}
int cudaMallocAsync(void** out, size_t bytes, Handle stream) { return (void)stream, cudaMalloc(out, bytes); }
int cudaMallocManaged(void** out, size_t bytes, unsigned flags) { return (void)flags, cudaMalloc(out, bytes); }
int cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  (void)flags;
  return posix_memalign(out, 4096, bytes > 0 ? bytes : 1) == 0 ? kSuccess : 2;
}
int cudaMallocHost(void** out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }
int cudaFreeHost(void* memory) { return free(memory), kSuccess; }
int cudaHostGetDevicePointer(void** out, void* memory, unsigned flags) { return (void)flags, *out = memory, kSuccess; }
int cudaMemGetInfo(size_t* available, size_t* total) {
  *total = (size_t)memory_bytes();
  *available = *total - (*total >> 6);
  return kSuccess;
}
int cudaPointerGetAttributes(void* attributes, const void* memory) {
  (void)memory;
  memset(attributes, 0, 24); /* memory of the host that CUDA does not know */
  return kSuccess;
}
int cudaGetSymbolAddress(void** out, const void* symbol) { return (void)symbol, cudaMalloc(out, 1); }
int cudaDeviceGetDefaultMemPool(Handle* pool, int device) { return (void)device, *pool = next_handle(), kSuccess; }
int cudaMemPoolGetAttribute(Handle pool, int attribute, void* value) { return (void)pool, (void)attribute, *(uint64_t*)value = 0, kSuccess; }
int cudaIpcGetMemHandle(void* handle, void* memory) { return (void)memory, memset(handle, 0, 64), kSuccess; }
int cudaIpcGetEventHandle(void* handle, Handle event) { return (void)event, memset(handle, 0, 64), kSuccess; }

/* ---- Kernels: registered with the program, never run ---- */
void** __cudaRegisterFatBinary(void* binary) {
  static void* handle = NULL;
  return (void)binary, &handle;
}
void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
void __cudaUnregisterFatBinary(void** handle) { (void)handle; }
void __cudaRegisterFunction(void) {}
void __cudaRegisterVar(void) {}
char __cudaInitModule(void** handle) { return (void)handle, 1; }
unsigned __cudaPushCallConfiguration(void) { return 0; }
int __cudaPopCallConfiguration(void) { return kSuccess; }
int __cudaGetKernel(Handle* kernel, const void* function) { return (void)function, *kernel = next_handle(), kSuccess; }
int cudaFuncGetAttributes(void* attributes, const void* function) { return (void)function, memset(attributes, 0, 144), kSuccess; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks) { return *blocks = 2, kSuccess; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks) { return *blocks = 2, kSuccess; }
int cudaGraphGetNodes(Handle graph, Handle* nodes, size_t* count) { return (void)graph, (void)nodes, *count = 0, kSuccess; }

/* Functions of the driver, from the stand-in of libcuda beside this library; absent ones are reported as such. */
static int entry_point(const char* symbol, void** function, int* status) {
  static void* driver = NULL;
  if (driver == NULL) driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  *function = driver != NULL ? dlsym(driver, symbol) : NULL;
  if (status != NULL) *status = *function != NULL ? 0 : 1;
  return kSuccess;
}
int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, int* status) { return (void)flags, entry_point(symbol, function, status); }
int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, unsigned long long flags, int* status) {
  return (void)version, (void)flags, entry_point(symbol, function, status);
}

/* Libraries that would compute: they are told that there is no device. */
int cublasCreate_v2(Handle* handle) { return *handle = NULL, refuse("cuBLAS"), 1; }
int cublasLtCreate(Handle* handle) { return *handle = NULL, refuse("cuBLASLt"), 1; }
int cudnnCreate(Handle* handle) { return *handle = NULL, refuse("cuDNN"), 1001; }
int cusparseCreate(Handle* handle) { return *handle = NULL, refuse("cuSPARSE"), 1; }
int cusolverDnCreate(Handle* handle) { return *handle = NULL, refuse("cuSOLVER"), 1; }
int curandCreateGenerator(Handle* generator, int kind) { return (void)kind, *generator = NULL, refuse("cuRAND"), 102; }
