/* Inside of a build: what build.c shares with the two toolchains. */
#ifndef BUILD_BUILD_H
#define BUILD_BUILD_H

#include "engine/build/diagnose.h"
#include "engine/build/patch.h"
#include "engine/build/process.h"
#include "engine/build/runner.h"
#include <stdbool.h>

#define BUILD_ARGUMENTS_MAX 192
#define BUILD_LINK_ARGUMENTS_MAX 32
#define BUILD_FLAG_MAX 1400 /* bytes; -ffile-prefix-map holds two paths */
#define BUILD_COMPILE_LIMIT_S 600.0
#define BUILD_SOURCES_MAX 8

/* One translation unit of a debuggee. */
struct build_source {
    char path[600];  /* as the compiler is given it */
    char user[600];  /* as the user knows it */
    char named[600]; /* as it is called in what the compiler wrote, once mirror_rename() is through with it */
    char *rewritten; /* owned: what is compiled in its place; NULL: the file itself */
    char hash[33];   /* of all that decides its object; "": not known */
};

struct build_job {
    const struct runner_paths *paths;    /* borrowed */
    const struct build_request *request; /* borrowed */
    const struct runner_progress *progress;
    const struct toolchain *tools;
    struct build *out;
    char compiler[600];                         /* g++, or the path of nvcc */
    bool clang;                                 /* that is clang++, which checked builds take where it is found */
    const char *arguments[BUILD_ARGUMENTS_MAX]; /* the compiler and its flags, before -E or -c; borrowed */
    int n_arguments;
    char flags[12][BUILD_FLAG_MAX]; /* the flags with paths in them */
    int n_flags;
    char define[256]; /* the macros, a NUL behind each */
    char given[8192]; /* the user's folders, each behind -I, and flags, the same way */
    size_t n_given;
    const char *link_arguments[BUILD_LINK_ARGUMENTS_MAX]; /* those of the flags that a linker wants; borrowed */
    int n_link_arguments;
    char mirror[600];  /* the tree in which headers are patched (mirror.h); "": none is */
    char own[3][600];  /* folders whose headers are attnscope's, or the toolkit's; "": none */
    char library[600]; /* what the debuggee links of attnscope's */
    struct build_source sources[BUILD_SOURCES_MAX]; /* the kernel's own file, then those that its ASC_SOURCES names */
    int n_sources;
    char *others;        /* owned: the preprocessed text of all but the first; NULL: there are none */
    bool without_header; /* the source includes attnscope.h nowhere */
    char *words;         /* owned: what the tools that made the program said; NULL: nothing */
    char base[128];      /* file name of the kernel without .cu, fit for a file name */
};

/* What differs between the backends. */
struct toolchain {
    const char *library;           /* file name of the debuggee's library */
    const char *const *link_flags; /* NULL-terminated, behind it */
    const char *const *preprocess; /* arguments that print the preprocessed source, before its path */
    bool scan_gpu_only;            /* what only a GPU can run is refused */
    /* Flag that gives a folder another name in debug information, "=OLD=NEW" behind it; NULL: there is none. */
    const char *map_folder;
    const char
        *time_flag;      /* a file name behind it: the compiler writes there what its parts took; NULL: there is none */
    const char *missing; /* what is said where there is no such compiler */
    bool (*lacks_flag)(const char *flag); /* only the other compiler knows it: it is left out; NULL: none is */
    int (*find_compiler)(struct build_job *job, struct err *err);
    void (*add_arguments)(struct build_job *job);
    /* Links `object`, compiled in the folder `work`, into `program`. */
    int (*link)(struct build_job *job, const char *object, const char *work, const char *program, struct err *err);
};
extern const struct toolchain toolchain_cpu, toolchain_gpu;

/* The real path of a file or folder of the user's, or of its copy in the tree of patched headers where there is one.
   -1: there is none, or it is too long. */
int build_place(const struct build_job *job, const char *path, char out[600]);
/* Has the compiler preprocess the kernel, and tells each file of the user's that it reads, also where it fails. */
int build_tell_reads(struct build_job *job, void (*reads)(void *ctx, const char *path), void *ctx, struct err *err);
int build_collect_arguments(struct build_job *job, struct err *err);
/* Where a patch changes headers or other sources: makes the tree, and the kernel's source the one in it. 1: done,
   0: the patch is the kernel's alone. */
int build_patch_headers(struct build_job *job, const struct patch *patch, struct err *err);
/* What the compiler has read outside the tree joins it. 1: it has to read again. */
int build_mirror_reads(const struct build_job *job, const char *text, struct err *err);

void build_add(struct build_job *job, const char *argument);
void build_add_path(struct build_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "-Lfolder" of attnscope's libraries, where libjansson.a stands if there was one to copy. */
void build_library_folder(const struct build_job *job, char *flag, size_t size);

struct diagnose build_names(const struct build_job *job, int source);
/* Logs what a tool said, and keeps it for the next build that finds the program made. */
void build_take_words(struct build_job *job, const char *said);
void build_rename_output(const struct build_job *job, struct process_output *output); /* mirror.h */
/* Runs the compiler with the job's arguments and these, NULL-terminated. */
int build_compile(const struct build_job *job, const char *const *more, const struct runner_progress *progress,
                  struct process_output *output, struct err *err);
/* Compiles every source in the folder `work`, several at once; what comes of several becomes one object, as the link's
   steps have it. */
int build_objects(struct build_job *job, const char *work, const char *object, struct err *err);

/* Runs a linker's command line, NULL-terminated; its words become *err at the user's line, or are logged. */
int build_run_linker(struct build_job *job, const char *const *argv, struct err *err);

/* The last step, argv of n words: links what was compiled in the folder `work` into one object. An instance of a
   function template that is called and stands nowhere is no error here: it declines where it is called, by its name. */
int build_link(struct build_job *job, const char *object, const char *work, const char *const *argv, int n,
               struct err *err);

/* g++ arguments, NULL-terminated, before
     -I<root> -I<root>/engine/simt/include -include <root>/engine/simt/include/simt_device.h
     -c KERNEL.cu -o KERNEL.o
   -fno-extern-tls-init: __shared__ is thread-local storage that needs no constructor, so no wrapper calls.
   -ffp-contract=off: a product and a sum are two roundings unless the kernel says fma.
   -fno-strict-aliasing: kernels reinterpret shared memory, as nvcc lets them.
   -fno-pie: with -no-pie at the link, thread-local storage is one instruction away and line tables need no offset. */
extern const char *const simt_compile_flags[];
/* The same for clang++ (ATTNSCOPE_CXX). */
extern const char *const simt_clang_flags[];

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
