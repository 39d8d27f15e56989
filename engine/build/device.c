#include "engine/build/device.h"

#include "engine/base/wire.h"
#include "engine/build/process.h"
#include "engine/build/runner.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
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
    json_decref(json);
    return failed;
}

static int ask(const struct runner_paths *paths, struct gpu_device *out, struct err *err)
{
    char program[600];
    struct process_output said;
    if (runner_find_built(paths, "attnscope-device", program, sizeof program, err))
        return -1;
    const char *const argv[] = {program, NULL};
    if (process_capture(argv, ANSWER_LIMIT_S, NULL, &said, err))
        return -1;
    const int failed = read_answer(&said, out, err);
    process_output_free(&said);
    return failed;
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
