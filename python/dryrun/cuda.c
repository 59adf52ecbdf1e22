/* A stand-in for the CUDA runtime and driver, for programs that `stepcast dryrun` runs without a GPU. It is preloaded (LD_PRELOAD) in
 * front of the libcudart that PyTorch links, and is called libcuda.so.1: devices, streams, events and memory seem to be there, and
 * nothing is computed.
 *
 * The device comes from the environment: STEPCAST_GPU_NAME, STEPCAST_GPU_BYTES, STEPCAST_GPU_SMS, STEPCAST_GPU_CAPABILITY (90 for
 * 9.0), STEPCAST_GPU_COUNT, STEPCAST_GPU_L2_BYTES, STEPCAST_CUDA_MAJOR. Calls of streams and events are kept in stepcast_log, which
 * the recorder reads: what waits for what. A call that would launch a kernel fails with one sentence that names the operator.
 *
 * Functions leave out trailing parameters that they do not read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As systems older than glibc 2.34 have it. */
#if defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
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

static int note(enum LogKind kind, Handle stream, Handle event) {
  const uint64_t at = atomic_fetch_add(&stepcast_log_length, 1);
  stepcast_log[at % kLogCapacity] = (struct LogEntry){kind, (uint64_t)(uintptr_t)stream, (uint64_t)(uintptr_t)event};
  return kSuccess;
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
static size_t memory_bytes(void) { return (size_t)number("STEPCAST_GPU_BYTES", INT64_C(80) << 30); }
static int shared_bytes_optin(int version) {
  return version >= 90 && version < 120 ? 227 << 10 : version == 80 ? 163 << 10 : version >= 86 ? 99 << 10 : version >= 75 ? 64 << 10 : 96 << 10;
}
static _Thread_local int current_device = 0;

int cudaGetDeviceCount(int* count) { return *count = (int)number("STEPCAST_GPU_COUNT", 1), kSuccess; }
int cudaGetDevice(int* device) { return *device = current_device, kSuccess; }
int cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return kInvalidDevice;
  return current_device = device, kSuccess;
}
int cudaDriverGetVersion(int* version) { return *version = (int)number("STEPCAST_CUDA_MAJOR", 13) * 1000, kSuccess; }
int cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

int cudaDeviceGetAttribute(int* value, int attribute) {
  const int capability = (int)number("STEPCAST_GPU_CAPABILITY", 90);
  switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;      /* threads of a block */
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;                /* blocks of a grid */
    case 6: case 7: *value = 65535; break;
    case 8: *value = 48 << 10; break;                  /* shared memory of a block */
    case 9: *value = 64 << 10; break;
    case 10: case 106: *value = 32; break;             /* threads of a warp */
    case 12: case 82: *value = 65536; break;           /* registers */
    case 13: *value = 1980000; break;                  /* clock, kHz */
    case 16: *value = (int)number("STEPCAST_GPU_SMS", 132); break;
    case 36: *value = 2619000; break;
    case 37: *value = 5120; break;
    case 38: *value = (int)number("STEPCAST_GPU_L2_BYTES", 50 << 20); break;
    case 39: *value = capability >= 86 && capability < 90 ? 1536 : 2048; break;
    case 40: *value = 3; break;
    case 75: *value = capability / 10; break;
    case 76: *value = capability % 10; break;
    case 81: *value = shared_bytes_optin(capability) + 1024; break;
    case 97: *value = shared_bytes_optin(capability); break;
    case 18: case 20: case 34: case 35: case 84: case 87: case 88: case 100: case 115: *value = 0; break;
    default: *value = 1; break;
  }
  return kSuccess;
}

/* cudaDeviceProp by the offsets of its fields. CUDA 12 has clockRate in padding and deviceOverlap in front of multiProcessorCount. */
static int properties(char* out, int newer, int device) {
  const char* const name = getenv("STEPCAST_GPU_NAME");
  /* offset in CUDA 12, in 13, attribute */
  static const short kAttributes[][3] = {{304, 304, 12}, {308, 308, 10}, {320, 320, 1}, {324, 324, 2}, {328, 328, 3}, {332, 332, 4},
    {336, 336, 5}, {340, 340, 6}, {344, 344, 7}, {360, 360, 75}, {364, 364, 76}, {388, 384, 16}, {612, 592, 37}, {616, 596, 38},
    {624, 604, 39}, {648, 632, 82}, {576, 560, 0} /* concurrentKernels */, {604, 588, 0} /* unifiedAddressing */,
    {652, 636, 0} /* managedMemory */, {688, 668, 0} /* cooperativeLaunch */};
  int reserved = 0, optin = 0;
  memset(out, 0, newer ? 1008 : 1032);
  snprintf(out, 256, "%s", name != NULL ? name : "NVIDIA GPU");
  for (size_t i = 0; i < sizeof kAttributes / sizeof *kAttributes; ++i)
    cudaDeviceGetAttribute((int*)(out + kAttributes[i][newer]), kAttributes[i][2]);
  cudaDeviceGetAttribute(&reserved, 81);
  cudaDeviceGetAttribute(&optin, 97);
#define PUT(type, offset, value) *(type*)(out + (offset)) = (type)(value)
  PUT(char, 256, device + 1);            /* uuid */
  PUT(size_t, 288, memory_bytes());
  PUT(size_t, 296, 48 << 10);
  PUT(size_t, 312, 2147483647);
  PUT(size_t, 352, 64 << 10);
  PUT(size_t, 368, 512);
  PUT(int, newer ? 568 : 584, device + 1); /* pciBusID */
  PUT(size_t, newer ? 624 : 640, reserved);
  PUT(size_t, newer ? 672 : 696, optin);
#undef PUT
  return kSuccess;
}
int cudaGetDeviceProperties(char* out, int device) { return properties(out, number("STEPCAST_CUDA_MAJOR", 13) >= 13, device); }
int cudaGetDeviceProperties_v2(char* out, int device) { return properties(out, 0, device); }
int cudaDeviceGetPCIBusId(char* text, int length, int device) { return snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1), kSuccess; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, kSuccess; }
int cudaDeviceCanAccessPeer(int* can, int device, int peer) { return *can = device != peer, kSuccess; }
int cudaDeviceSynchronize(void) { return note(kDeviceSynchronize, NULL, NULL); }
int cudaDeviceGetLimit(size_t* value) { return *value = 1024, kSuccess; }

/* ---- What has nothing to do, what cannot be done, and what answers 0 in its second parameter ---- */
#define SUCCEEDS(name) int name(void) { return kSuccess; }
#define NEEDS_GPU(name) int name(void) { return refuse(#name); }
#define ZERO(name) int name(Handle from, int* value) { return (void)from, *value = 0, kSuccess; }
SUCCEEDS(cudaDeviceReset) SUCCEEDS(cudaProfilerStart) SUCCEEDS(cudaProfilerStop) SUCCEEDS(cudaMemPoolSetAttribute)
SUCCEEDS(cudaMemPoolSetAccess) SUCCEEDS(cudaMemPoolTrimTo) SUCCEEDS(cudaFuncSetAttribute) SUCCEEDS(cudaFuncSetCacheConfig)
SUCCEEDS(cudaGraphDestroy) SUCCEEDS(cudaGraphExecDestroy) SUCCEEDS(cudaGraphDebugDotPrint) SUCCEEDS(cudaStreamDestroy)
SUCCEEDS(cudaStreamQuery) SUCCEEDS(cudaEventDestroy) SUCCEEDS(cudaEventQuery) SUCCEEDS(cudaHostRegister) SUCCEEDS(cudaHostUnregister)
SUCCEEDS(cudaMemset) SUCCEEDS(cudaMemsetAsync) SUCCEEDS(cudaFree) SUCCEEDS(cudaFreeAsync) SUCCEEDS(cudaDeviceEnablePeerAccess)
SUCCEEDS(cudaDeviceSetLimit) SUCCEEDS(cudaSetDeviceFlags) SUCCEEDS(cudaIpcCloseMemHandle) SUCCEEDS(cudaThreadExchangeStreamCaptureMode)
SUCCEEDS(__cudaPopCallConfiguration) SUCCEEDS(__cudaPushCallConfiguration) SUCCEEDS(__cudaRegisterFatBinaryEnd)
SUCCEEDS(cudaDeviceSetGraphMemAttribute) SUCCEEDS(cudaGraphRetainUserObject) SUCCEEDS(cudaUserObjectRelease)
SUCCEEDS(cudaLibraryUnload) SUCCEEDS(cudaKernelSetAttributeForDevice) SUCCEEDS(cudaStreamUpdateCaptureDependencies)
SUCCEEDS(__cudaUnregisterFatBinary) SUCCEEDS(__cudaRegisterFunction) SUCCEEDS(__cudaRegisterVar)
NEEDS_GPU(cudaMemcpy) NEEDS_GPU(cudaMemcpyAsync) NEEDS_GPU(cudaMemcpy2DAsync) NEEDS_GPU(cudaMemcpyPeerAsync)
NEEDS_GPU(cudaMemcpyToSymbol) NEEDS_GPU(cudaIpcOpenMemHandle) NEEDS_GPU(cudaIpcOpenEventHandle) NEEDS_GPU(__cudaLaunchKernel)
NEEDS_GPU(cudaLaunchKernel) NEEDS_GPU(cudaLaunchKernelExC) NEEDS_GPU(cudaLaunchCooperativeKernel) NEEDS_GPU(cudaGraphInstantiate)
NEEDS_GPU(cudaGraphInstantiateWithFlags) NEEDS_GPU(cudaGraphLaunch) NEEDS_GPU(cudaGraphNodeGetDependencies)
NEEDS_GPU(cudaGraphAddNode) NEEDS_GPU(cudaGraphConditionalHandleCreate) NEEDS_GPU(cudaLibraryLoadFromFile)
NEEDS_GPU(cudaLibraryGetGlobal) NEEDS_GPU(cudaLibraryGetKernel) NEEDS_GPU(cudaLibraryGetManaged)
NEEDS_GPU(cudaLibraryGetUnifiedFunction) NEEDS_GPU(cudaStreamBeginCaptureToGraph) NEEDS_GPU(cudaStreamBeginCapture) NEEDS_GPU(cudaStreamEndCapture)
ZERO(cudaStreamGetPriority) ZERO(cudaStreamGetFlags) ZERO(cudaStreamIsCapturing) ZERO(cudaStreamGetCaptureInfo)
ZERO(cudaStreamGetCaptureInfo_v2) ZERO(cudaStreamGetCaptureInfo_v3)

/* ---- Errors ---- */
const char* cudaGetErrorString(int error) {
  if (error == kSuccess) return "no error";
  if (error == kNotSupported && stepcast_reached[0] != 0) return stepcast_reached;
  return error == kInvalidDevice ? "invalid device ordinal" : "operation not supported by the stand-in of stepcast dryrun";
}
const char* cudaGetErrorName(int error) { return error == kSuccess ? "cudaSuccess" : error == kInvalidDevice ? "cudaErrorInvalidDevice" : "cudaErrorNotSupported"; }
int cudaPeekAtLastError(void) { return last_error; }
int cudaGetLastError(void) {
  const int error = last_error;
  return last_error = kSuccess, error;
}

/* ---- Streams and events: handles are made-up addresses ---- */
static int make_handle(Handle* out) {
  static _Atomic uintptr_t next = 0x10000;
  return *out = (Handle)atomic_fetch_add(&next, 16), kSuccess; /* NOLINT(performance-no-int-to-ptr) */
}
#define MAKES(name) int name(Handle* out) { return make_handle(out); }
MAKES(cudaStreamCreate) MAKES(cudaStreamCreateWithFlags) MAKES(cudaStreamCreateWithPriority) MAKES(cudaEventCreate)
MAKES(cudaEventCreateWithFlags) MAKES(cudaDeviceGetDefaultMemPool) MAKES(__cudaGetKernel) MAKES(cudaLibraryLoadData) MAKES(cudaUserObjectCreate)
int cudaStreamSynchronize(Handle stream) { return note(kStreamSynchronize, stream, NULL); }
int cudaStreamWaitEvent(Handle stream, Handle event) { return note(kStreamWait, stream, event); }
int cudaStreamAddCallback(Handle stream, void (*call)(Handle, int, void*), void* data) { return call(stream, kSuccess, data), kSuccess; }
int cudaLaunchHostFunc(Handle stream, void (*call)(void*), void* data) { return (void)stream, call(data), kSuccess; }
int cudaEventRecord(Handle event, Handle stream) { return note(kEventRecord, stream, event); }
int cudaEventRecordWithFlags(Handle event, Handle stream) { return cudaEventRecord(event, stream); }
int cudaEventSynchronize(Handle event) { return note(kEventSynchronize, NULL, event); }
int cudaEventElapsedTime(float* ms) { return *ms = 1.0F, kSuccess; }
int cudaEventElapsedTime_v2(float* ms) { return *ms = 1.0F, kSuccess; }

/* ---- Memory: of the device made up, of the host real ---- */
int cudaMalloc(void** out, size_t bytes) {
  static _Atomic uintptr_t next = (uintptr_t)0x7f0000000000;
  *out = (void*)atomic_fetch_add(&next, (bytes + 0x1fffff) & ~(uintptr_t)0x1fffff); /* NOLINT(performance-no-int-to-ptr) */
  return kSuccess;
}
int cudaMallocAsync(void** out, size_t bytes) { return cudaMalloc(out, bytes); }
int cudaMallocManaged(void** out, size_t bytes) { return cudaMalloc(out, bytes); }
int cudaGetSymbolAddress(void** out) { return cudaMalloc(out, 1); }
int cudaHostAlloc(void** out, size_t bytes) { return posix_memalign(out, 4096, bytes > 0 ? bytes : 1) == 0 ? kSuccess : 2; }
int cudaMallocHost(void** out, size_t bytes) { return cudaHostAlloc(out, bytes); }
int cudaFreeHost(void* memory) { return free(memory), kSuccess; }
int cudaHostGetDevicePointer(void** out, void* memory) { return *out = memory, kSuccess; }
int cudaMemGetInfo(size_t* available, size_t* total) {
  *total = memory_bytes();
  return *available = *total - (*total >> 6), kSuccess;
}
int cudaPointerGetAttributes(void* attributes) { return memset(attributes, 0, 24), kSuccess; } /* memory of the host that CUDA does not know */
int cudaMemPoolGetAttribute(Handle pool, int attribute, uint64_t* value) { return (void)pool, (void)attribute, *value = 0, kSuccess; }
int cudaDeviceGetGraphMemAttribute(int device, int attribute, uint64_t* value) { return (void)device, (void)attribute, *value = 0, kSuccess; }
int cudaLibraryGetKernelCount(unsigned* count) { return *count = 0, kSuccess; }
int cudaIpcGetMemHandle(void* handle) { return memset(handle, 0, 64), kSuccess; }
int cudaIpcGetEventHandle(void* handle) { return memset(handle, 0, 64), kSuccess; }

/* ---- Kernels: registered with the program, never run ---- */
void** __cudaRegisterFatBinary(void) {
  static void* handle = NULL;
  return &handle;
}
char __cudaInitModule(void) { return 1; }
int cudaFuncGetAttributes(void* attributes) { return memset(attributes, 0, 144), kSuccess; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks) { return *blocks = 2, kSuccess; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks) { return *blocks = 2, kSuccess; }
int cudaGraphGetNodes(Handle graph, Handle* nodes, size_t* count) { return (void)graph, (void)nodes, *count = 0, kSuccess; }

/* ---- The driver, as far as PyTorch asks for it outside of kernels ---- */
SUCCEEDS(cuInit) SUCCEEDS(cuDevicePrimaryCtxRelease_v2) SUCCEEDS(cuCtxSetCurrent)
int cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
int cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kSuccess; }
int cuDeviceGetName(char* name, int length) {
  const char* const text = getenv("STEPCAST_GPU_NAME");
  return snprintf(name, (size_t)length, "%s", text != NULL ? text : "NVIDIA GPU"), kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute) {
  const int known = attribute == 1 || attribute == 10 || attribute == 16 || attribute == 75 || attribute == 76;
  return known ? cudaDeviceGetAttribute(value, attribute) : (*value = 0, kSuccess);
}
int cuPointerGetAttribute(int* data) { return *data = 0, kNotSupported; }
int cuDeviceTotalMem_v2(size_t* bytes) { return *bytes = memory_bytes(), kSuccess; }
/* Inactive: autograd then leaves the streams of other devices alone. */
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) { return (void)device, *flags = 0, *active = 0, kSuccess; }
int cuDevicePrimaryCtxRetain(Handle* context) { return *context = (Handle)16, kSuccess; }
int cuCtxGetCurrent(Handle* context) { return *context = (Handle)16, kSuccess; }
int cuCtxGetDevice(int* device) { return *device = 0, kSuccess; }
int cuGetErrorString(int error, const char** text) { return *text = cudaGetErrorString(error), kSuccess; }
int cuGetErrorName(int error, const char** text) { return *text = cudaGetErrorName(error), kSuccess; }
int cuLaunchKernel(void) { return kNotSupported; }
int cuModuleLoadData(Handle* module) { return *module = NULL, kNotSupported; }
/* No function is found by name: whoever asks goes on without. */
int cuGetProcAddress(const char* symbol, void** function) { return (void)symbol, *function = NULL, 500; }
int cuGetProcAddress_v2(const char* symbol, void** function) { return (void)symbol, *function = NULL, 500; }

/* Those above are found by the runtime; absent ones are reported as such. */
static int entry_point(const char* symbol, void** function, int* status) {
  *function = dlsym(RTLD_DEFAULT, symbol);
  if (status != NULL) *status = *function != NULL ? 0 : 1;
  return kSuccess;
}
int cudaGetDriverEntryPoint(const char* symbol, void** function, uint64_t flags, int* status) { return (void)flags, entry_point(symbol, function, status); }
int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, uint64_t flags, int* status) {
  return (void)version, (void)flags, entry_point(symbol, function, status);
}

/* Libraries that would compute: they are told that there is no device. */
#define LIBRARY(name, said, error) int name(Handle* handle) { return *handle = NULL, refuse(said), error; }
LIBRARY(cublasCreate_v2, "cuBLAS", 1) LIBRARY(cublasLtCreate, "cuBLASLt", 1) LIBRARY(cudnnCreate, "cuDNN", 1001)
LIBRARY(cusparseCreate, "cuSPARSE", 1) LIBRARY(cusolverDnCreate, "cuSOLVER", 1)
int curandCreateGenerator(Handle* generator) { return *generator = NULL, refuse("cuRAND"), 102; }
