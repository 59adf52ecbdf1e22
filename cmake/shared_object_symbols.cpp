// glibc's word for "no second thread yet", which code for programs reads at a fixed place: in a shared object that place
// must be its own. Zero says that there may be threads, which is always right.
extern "C" {
extern char __libc_single_threaded;
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}
