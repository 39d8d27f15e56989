/* How a .cu is compiled and linked for the CPU executor. */
#ifndef BUILD_FLAGS_H
#define BUILD_FLAGS_H

/* g++ arguments, NULL-terminated, before
     -I<root> -I<root>/engine/simt/include -include <root>/engine/simt/include/simt_device.h
     -c KERNEL.cu -o KERNEL.o
   -fno-extern-tls-init: __shared__ is thread-local storage that needs no constructor, so no wrapper calls.
   -ffp-contract=off: a product and a sum are two roundings unless the kernel says fma.
   -fno-strict-aliasing: kernels reinterpret shared memory, as nvcc lets them.
   -fno-pie: with -no-pie at the link, thread-local storage is one instruction away and line tables need no offset. */
extern const char *const simt_compile_flags[];

/* The same with access checks, by clang++ and, where that is not found, by g++: every access of the kernel calls the
   runtime (checks/hooks.c). clang++ comes first: g++ has no hooks for objects of class type, as __half, that are handed
   to or returned from functions that it does not inline. */
extern const char *const simt_checked_clang_flags[], *const simt_checked_gcc_flags[];
/* objcopy arguments, NULL-terminated, before the object of such a build: the kernel's calls of memory functions are
   accesses too. */
extern const char *const simt_checked_object_flags[];

/* Linker arguments, NULL-terminated, after KERNEL.o STUB.o libdebuggee_cpu.a (see link_stub.h). */
extern const char *const simt_link_flags[];

/* One more compiler flag where this machine has AVX2, FMA and F16C, else NULL: hardware f16 conversion halves the run
   time of a kernel that reads f16, and traps its overflow. */
const char *simt_march_flag(void);

#endif
