/* The start of a portable program (glibc_2_28.c). Until 2.34 it was the program that ran its constructors; what passes a function
   that does is left alone by newer versions. */
#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#else
#define BASE "GLIBC_2.17"
#endif

typedef void (*Constructor)(int, char**, char**);
extern Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((visibility("hidden")));

static void construct(int argc, char** argv, char** environment) {
  for (Constructor* one = __init_array_start; one != __init_array_end; ++one) (*one)(argc, argv, environment);
}

typedef int (*Main)(int, char**, char**);
extern int old_start(Main main, int argc, char** argv, Constructor init, void (*fini)(void), void (*end)(void), void* stack);
__asm__(".symver old_start,__libc_start_main@" BASE);

__attribute__((visibility("hidden"))) int __wrap___libc_start_main(Main main, int argc, char** argv, Constructor init,
                                                                   void (*fini)(void), void (*end)(void), void* stack);
int __wrap___libc_start_main(Main main, int argc, char** argv, Constructor init, void (*fini)(void), void (*end)(void),
                             void* stack) {
  return old_start(main, argc, argv, init != 0 ? init : construct, fini, end, stack);
}
