#include "engine/build/device.h"

#include "engine/base/tensor_core.h"
#include "engine/base/wire.h"
#include "engine/build/cache.h"
#include "engine/build/process.h"
#include "engine/build/runner.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_LIMIT_S 30.0 /* a driver that has to wake the device took 0.2 s to some seconds */

static struct {
    pthread_mutex_t lock;
    int asked;
    struct gpu_device device;
    struct err err; /* code ERR_NONE: there is one */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int read_answer(const struct process_output *said, struct gpu_device *out, struct err *err)
{
    json_t *json = json_loads(said->out, 0, NULL);
    const char *failure = json ? wire_text(json, "error") : "";
    int failed = 0;
    if (!json)
        failed = err_set(err, ERR_SYSTEM, "GPU", "querying the driver ended the process (status %d)", said->status);
    else if (*failure)
        failed = err_set(err, ERR_SYSTEM, "GPU", "%s", failure);
    snprintf(out->name, sizeof out->name, "%s", wire_text(json, "name"));
    out->major = (int)wire_integer(json, "major", 1, 99, 0);
    out->minor = (int)wire_integer(json, "minor", 0, 9, 0);
    out->driver = (int)wire_integer(json, "driver", 0, INT32_MAX, 0);
    out->multiprocessors = (int)wire_integer(json, "multiprocessors", 0, INT32_MAX, 0);
    out->memory_bytes = (uint64_t)wire_integer(json, "memory_bytes", 0, INT64_MAX, 0);
    out->shared_per_block_bytes = (int)wire_integer(json, "shared_per_block_bytes", 0, INT32_MAX, 0);
    out->f32_per_f64 = (int)wire_integer(json, "f32_per_f64", 0, INT32_MAX, 0);
    out->clock_khz = (int)wire_integer(json, "clock_khz", 0, INT32_MAX, 0);
    json_decref(json);
    return failed;
}

/* question NULL: which device there is. The caller frees *said. */
static int run(const struct runner_paths *paths, const char *question, struct process_output *said, struct err *err)
{
    char program[600];
    if (runner_find_built(paths, "attnscope-device", program, sizeof program, err))
        return -1;
    const char *const argv[] = {program, question, NULL};
    return process_capture(argv, ANSWER_LIMIT_S, NULL, said, err);
}

static int ask(const struct runner_paths *paths, struct gpu_device *out, struct err *err)
{
    struct process_output said;
    if (run(paths, NULL, &said, err))
        return -1;
    const int failed = read_answer(&said, out, err);
    process_output_free(&said);
    return failed;
}

/* Names of tensor cores, "f32" among them. */
static bool read_cores(const char *text, char *out, size_t size)
{
    json_t *json = json_loads(text, 0, NULL);
    snprintf(out, size, "%s", json ? wire_text(json, "cores") : "");
    json_decref(json);
    return tensor_cores_from_names(out) >> TENSOR_CORE_F32 & 1;
}

void device_cores(const struct runner_paths *paths, struct gpu_device *device)
{
    char name[160], path[800], *text = NULL;
    struct process_output said;
    snprintf(name, sizeof name, "arithmetic-%d-%s-sm_%d%d-driver-%d.json", TENSOR_CORE_COUNT, device->name,
             device->major, device->minor, device->driver);
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == ' ')
            *c = '-';
    snprintf(path, sizeof path, "%s/%s", paths->cache, name);
    bool known_now = cache_read_text(path, "the arithmetic", &text, NULL) == 0 &&
                     read_cores(text, device->cores, sizeof device->cores);
    free(text);
    if (!known_now && run(paths, "arithmetic", &said, NULL) == 0) {
        known_now = read_cores(said.out ? said.out : "", device->cores, sizeof device->cores);
        if (known_now)
            cache_write_text(paths->cache, name, said.out, NULL); /* else it is measured again */
        process_output_free(&said);
    }
    if (!known_now)
        snprintf(device->cores, sizeof device->cores, "%s", tensor_core_name(TENSOR_CORE_F32));
}

int device_find(const struct runner_paths *paths, struct gpu_device *out, struct err *err)
{
    pthread_mutex_lock(&known.lock);
    if (!known.asked) {
        known.asked = 1;
        if (ask(paths, &known.device, &known.err) && known.err.code == ERR_NONE)
            known.err.code = ERR_SYSTEM;
    }
    *out = known.device;
    if (known.err.code != ERR_NONE && err)
        *err = known.err;
    const bool failed = known.err.code != ERR_NONE;
    pthread_mutex_unlock(&known.lock);
    return failed ? -1 : 0;
}

void device_architecture(const struct gpu_device *device, char *text, size_t size)
{
    /* From 9.0 on an architecture has instructions of its own (wgmma, tcgen05) that only the suffix allows; the code
       then runs on no other, and is built for no other. (CUDA C++ Programming Guide, "Feature Availability") */
    snprintf(text, size, "sm_%d%d%s", device->major, device->minor, device->major >= 9 ? "a" : "");
}
