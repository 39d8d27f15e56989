/* attnscope-device: says on stdout, as one JSON object, which CUDA device this machine has, or {"error": one line}.
   It finds the driver at run time, so it builds and runs where there is none. */
#include <dlfcn.h>
#include <stdio.h>

/* Of the driver API (cuda.h), whose binary interface is stable. */
enum {
    ATTRIBUTE_MULTIPROCESSORS = 16,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    ATTRIBUTE_SHARED_PER_BLOCK_OPTIN = 97
};

struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*memory)(size_t *bytes, int device);
    int (*error_name)(int error, const char **text);
    int (*error_text)(int error, const char **text);
};

static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++)
        putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '?'
                                                                                                          : *text);
    putchar('"');
}

static int fail(const char *what, const char *detail)
{
    char line[512];
    snprintf(line, sizeof line, "%s%s%s", what, *detail ? ": " : "", detail);
    fputs("{\"error\": ", stdout);
    print_string(line);
    puts("}");
    return 1;
}

static int fail_cuda(const struct driver *d, const char *what, int status)
{
    char detail[256];
    const char *name = NULL, *text = NULL;
    if (d->error_name)
        d->error_name(status, &name);
    if (d->error_text)
        d->error_text(status, &text);
    snprintf(detail, sizeof detail, "%s (%s)", text ? text : "unknown error", name ? name : "?");
    return fail(what, detail);
}

/* POSIX wants a function's address read out of an object pointer this way. */
#define FIND(field, symbol) (*(void **)&d.field = dlsym(library, symbol))

int main(void)
{
    struct driver d = {0};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail("no NVIDIA driver: libcuda.so.1 was not found", "");
    FIND(error_name, "cuGetErrorName");
    FIND(error_text, "cuGetErrorString");
    if (!FIND(init, "cuInit") || !FIND(version, "cuDriverGetVersion") || !FIND(count, "cuDeviceGetCount") ||
        !FIND(get, "cuDeviceGet") || !FIND(name, "cuDeviceGetName") || !FIND(attribute, "cuDeviceGetAttribute") ||
        !FIND(memory, "cuDeviceTotalMem_v2"))
        return fail("libcuda.so.1 is not a driver that attnscope knows", "");
    int version = 0, n = 0, device = 0, major = 0, minor = 0, multiprocessors = 0, shared = 0;
    size_t bytes = 0;
    char name[96] = "";
    int status = d.init(0);
    if (status)
        return fail_cuda(&d, "the NVIDIA driver does not start", status);
    if ((status = d.count(&n)) != 0)
        return fail_cuda(&d, "the NVIDIA driver does not report its devices", status);
    if (n < 1)
        return fail("the NVIDIA driver has no device", "");
    d.version(&version);
    if ((status = d.get(&device, 0)) != 0 || (status = d.name(name, (int)sizeof name - 1, device)) != 0 ||
        (status = d.attribute(&major, ATTRIBUTE_MAJOR, device)) != 0 ||
        (status = d.attribute(&minor, ATTRIBUTE_MINOR, device)) != 0 ||
        (status = d.attribute(&multiprocessors, ATTRIBUTE_MULTIPROCESSORS, device)) != 0 ||
        (status = d.attribute(&shared, ATTRIBUTE_SHARED_PER_BLOCK_OPTIN, device)) != 0 ||
        (status = d.memory(&bytes, device)) != 0)
        return fail_cuda(&d, "the NVIDIA driver does not describe device 0", status);
    fputs("{\"name\": ", stdout);
    print_string(name);
    printf(", \"major\": %d, \"minor\": %d, \"driver\": %d, \"multiprocessors\": %d, \"memory_bytes\": %zu, "
           "\"shared_per_block_bytes\": %d}\n",
           major, minor, version, multiprocessors, bytes, shared);
    return 0;
}
