/* What glibc gave newer versions to after 2.28, as 2.28 has it, so that portable programs and the library of the Python package
   run on systems of 2018 (RHEL 8, Ubuntu 20.04, Debian 10): the tag manylinux_2_28. The linker sends each call of NAME to
   __wrap_NAME (StepcastPortable.cmake has the list); `./dev wheel` reads from the files that nothing newer is left. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define STAT_VERSION 1
#else
#define BASE "GLIBC_2.17"
#define STAT_VERSION 0
#endif

/* The same function under its old version. It may lie in libpthread, libdl or libm then, which are linked too. */
#define OLD(result, name, parameters, arguments)                   \
  extern result old_##name parameters;                             \
  __asm__(".symver old_" #name "," #name "@" BASE);                \
  __attribute__((visibility("hidden"))) result __wrap_##name parameters; \
  result __wrap_##name parameters { return old_##name arguments; }

OLD(double, exp, (double x), (x))
OLD(double, exp2, (double x), (x))
OLD(double, log, (double x), (x))
OLD(double, log2, (double x), (x))
OLD(double, pow, (double x, double y), (x, y))
OLD(double, hypot, (double x, double y), (x, y))
OLD(int, dladdr, (const void* at, void* info), (at, info))
OLD(char*, dlerror, (void), ())
OLD(void*, dlopen, (const char* file, int mode), (file, mode))
OLD(void*, dlsym, (void* object, const char* name), (object, name))
OLD(int, pthread_create, (pthread_t * t, const pthread_attr_t* a, void* (*run)(void*), void* x), (t, a, run, x))
OLD(int, pthread_detach, (pthread_t t), (t))
OLD(int, pthread_join, (pthread_t t, void** result), (t, result))
OLD(int, pthread_once, (pthread_once_t * once, void (*run)(void)), (once, run))
OLD(void*, pthread_getspecific, (pthread_key_t key), (key))
OLD(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
OLD(int, pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
OLD(int, pthread_key_delete, (pthread_key_t key), (key))
OLD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))

/* Until 2.33 these were inline, around a function that is told the layout of the structure. */
#define OLD_STAT(name, inner, place)                                                   \
  extern int old_##name(int version, place, struct stat* found);                       \
  __asm__(".symver old_" #name "," #inner "@" BASE);                                   \
  __attribute__((visibility("hidden"))) int __wrap_##name(place, struct stat* found);  \
  int __wrap_##name(place, struct stat* found) { return old_##name(STAT_VERSION, at, found); }

OLD_STAT(stat, __xstat, const char* at)
OLD_STAT(stat64, __xstat64, const char* at)
OLD_STAT(lstat, __lxstat, const char* at)
OLD_STAT(lstat64, __lxstat64, const char* at)
OLD_STAT(fstat, __fxstat, int at)
OLD_STAT(fstat64, __fxstat64, int at)

/* 2.30: waits by a clock that is not the condition's own. */
__attribute__((visibility("hidden"))) int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                                        clockid_t clock, const struct timespec* until);
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  const long one_s = 1000000000L;
  struct timespec now, end;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &end) != 0) return EINVAL;
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (end.tv_nsec >= one_s) {
    end.tv_nsec -= one_s;
    ++end.tv_sec;
  } else if (end.tv_nsec < 0) {
    end.tv_nsec += one_s;
    --end.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &end);
}

/* 2.36; libstdc++ asks for it. */
__attribute__((visibility("hidden"))) uint32_t __wrap_arc4random(void);
uint32_t __wrap_arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {}
  return bits;
}
