/* The GPU's toolchain: nvcc of the CUDA Toolkit, for the architecture of the device that will run it. */
#include "engine/build/build.h"

#include "engine/base/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool program_at(char *path, size_t size, const char *folder, int n_folder)
{
    const int n = snprintf(path, size, "%.*s/nvcc", n_folder, folder);
    return n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

static const char missing[] = "the CUDA Toolkit's compiler was not found: set CUDA_HOME, or put nvcc on PATH; "
                              "--backend cpu needs neither";

/* CUDA_HOME, then PATH, then where the toolkit's installer puts it. */
static int find_nvcc(char *out, size_t size, struct err *err)
{
    const char *home = getenv("CUDA_HOME"), *path = getenv("PATH");
    char bin[600];
    if (home && *home) {
        snprintf(bin, sizeof bin, "%s/bin", home);
        if (program_at(out, size, bin, (int)strlen(bin)))
            return 0;
        return err_set(err, ERR_SYSTEM, home, "CUDA_HOME does not contain bin/nvcc");
    }
    while (path && *path) {
        const int n = (int)strcspn(path, ":");
        if (n && program_at(out, size, path, n))
            return 0;
        path += n + (path[n] == ':');
    }
    static const char installed[] = "/usr/local/cuda/bin";
    if (program_at(out, size, installed, (int)sizeof installed - 1))
        return 0;
    return err_set(err, ERR_SYSTEM, "nvcc", "%s", missing);
}

static int find_compiler(struct build_job *job, struct err *err)
{
    return find_nvcc(job->compiler, sizeof job->compiler, err);
}

int build_gpu_ready(const struct runner_paths *paths, struct err *err)
{
    char path[600];
    return find_nvcc(path, sizeof path, err) || runner_find_built(paths, toolchain_gpu.library, path, sizeof path, err)
               ? -1
               : 0;
}

void build_gpu_toolkit(char *folder, size_t size)
{
    char nvcc[600], real[PATH_MAX];
    folder[0] = '\0';
    if (find_nvcc(nvcc, sizeof nvcc, NULL) != 0 || !realpath(nvcc, real))
        return;
    const bool in_bin = path_up(real); /* of bin/nvcc */
    if (in_bin && path_up(real) && strlen(real) < size)
        memcpy(folder, real, strlen(real) + 1);
}

static void add_arguments(struct build_job *job)
{
    const char *kernel = job->request->kernel;
    const int n_folder = path_folder(kernel);
    char architecture[16];
    device_architecture(job->request->gpu, architecture, sizeof architecture);
    build_add(job, "--forward-unknown-to-host-compiler"); /* of the user's flags */
    build_add(job, "-std=c++17");
    build_add(job, "-O3");
    /* Machine code alone: -arch would add PTX, which takes as long again to make. */
    build_add_path(job, "-gencode=arch=compute_%s,code=%s", architecture + strlen("sm_"), architecture);
    build_add(job, job->request->debug == GPU_FULL ? "-G" : "-lineinfo");
    build_add(job, "-g");
    build_add(job, "--expt-relaxed-constexpr");
    build_add(job, "-include");
    build_add_path(job, "%s/engine/standin/exit.h", job->paths->root);
    /* "never referenced": true of what only other instances use; "reference to local variable": what a probe is given,
       which lives longer than the probe. */
    build_add(job, "-diag-suppress=177,836");
    char place[600];
    if (job->mirror[0] && build_place(job, n_folder ? kernel : ".", place) == 0)
        build_add_path(job, "-I%.*s", n_folder ? path_folder(place) : (int)strlen(place), place);
    build_add_path(job, "-I%.*s", n_folder ? n_folder : 1, n_folder ? kernel : ".");
}

static int link_program(struct build_job *job, const char *object, const char *work, const char *program,
                        struct err *err)
{
    char folder[620], architecture[32], device[16];
    build_library_folder(job, folder, sizeof folder);
    device_architecture(job->request->gpu, device, sizeof device);
    snprintf(architecture, sizeof architecture, "-arch=%s", device);
    static const char names[] =
        "-u,debuggee_main,--wrap=main,--wrap=exit,--wrap=cudaMalloc,"
        "--wrap=cudaLaunchKernel,--wrap=cudaLaunchKernel_ptsz,--wrap=cudaLaunchCooperativeKernel,"
        "--wrap=__cudaLaunchKernel,--wrap=__cudaLaunchKernel_ptsz,"
        "--wrap=cudaLaunchKernelExC,--wrap=cudaLaunchKernelExC_ptsz";
    const char *argv[BUILD_LINK_ARGUMENTS_MAX + 40] = {
        job->compiler, architecture, "-o",         program, object,
        "-Xlinker",    names,        job->library, folder,  "--forward-unknown-to-host-compiler"};
    int n = 10;
    for (int i = 0; i < job->n_link_arguments; i++)
        argv[n++] = job->link_arguments[i];
    for (const char *const *flag = job->tools->link_flags; *flag && n < BUILD_LINK_ARGUMENTS_MAX + 39; flag++)
        argv[n++] = *flag;
    return build_link(job, object, work, argv, n, err);
}

static const char *const preprocess[] = {"-E", NULL};
static const char *const link_flags[] = {"-ljansson", "-lpthread", "-ldl", "-lm", NULL};

const struct toolchain toolchain_gpu = {
    .library = "libdebuggee_gpu.a",
    .link_flags = link_flags,
    .preprocess = preprocess,
    .scan_gpu_only = false,
    .time_flag = "--time",
    .missing = missing,
    .find_compiler = find_compiler,
    .add_arguments = add_arguments,
    .link = link_program,
};
