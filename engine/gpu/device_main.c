/* attnscope-device [arithmetic | guard [DEVICE]]: says on stdout, as one JSON object, which CUDA device this machine
   has, or
   {"error": one line}; with `arithmetic`, whose products it computes. With `guard` it is the guardian of device memory
   for the attnscope that started it. It finds the driver at run time, so it builds and runs where there is none. */
#include "engine/base/format.h"
#include "engine/base/philox.h"
#include "engine/base/tensor_core.h"
#include "engine/gpu/guardian.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the driver API (cuda.h), whose binary interface is stable. */
enum {
    ATTRIBUTE_CLOCK_KHZ = 13,
    ATTRIBUTE_MULTIPROCESSORS = 16,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    ATTRIBUTE_F32_PER_F64 = 87,
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
    /* To run something. */
    int (*retain)(void **context, int device);
    int (*make_current)(void *context);
    int (*load)(void **module, const void *image);
    int (*find)(void **function, void *module, const char *name);
    int (*allocate)(uint64_t *address, size_t bytes);
    int (*to_device)(uint64_t to, const void *from, size_t bytes);
    int (*from_device)(void *to, uint64_t from, size_t bytes);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);
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
#define FIND(d, field, symbol) (*(void **)&(d).field = dlsym(library, symbol))

/* One mma.sync: a warp a tile. A lane's ten words, and its four results, lie behind each other, as the PTX ISA has them
   ("Matrix Fragments for mma.m16n8k16", "... m16n8k32"). */
static const char product_ptx[] =
    ".version %s\n.target sm_%d\n.address_size 64\n"
    ".visible .entry product(.param .u64 in, .param .u64 out)\n{\n"
    ".reg .b32 i, lane, a<4>, b<2>;\n.reg %s c<4>;\n.reg .b64 from, to;\n"
    "mov.u32 i, %%ctaid.x;\nmov.u32 lane, %%tid.x;\nmad.lo.u32 i, i, 32, lane;\n"
    "ld.param.u64 from, [in];\nld.param.u64 to, [out];\ncvta.to.global.u64 from, from;\ncvta.to.global.u64 to, to;\n"
    "mad.wide.u32 from, i, 40, from;\nmad.wide.u32 to, i, 16, to;\n"
    "ld.global.b32 a0, [from];\nld.global.b32 a1, [from+4];\nld.global.b32 a2, [from+8];\nld.global.b32 a3, "
    "[from+12];\n"
    "ld.global.b32 b0, [from+16];\nld.global.b32 b1, [from+20];\nld.global.b32 c0, [from+24];\n"
    "ld.global.b32 c1, [from+28];\nld.global.b32 c2, [from+32];\nld.global.b32 c3, [from+36];\n"
    "mma.sync.aligned.%s {%s}, {a0,a1,a2,a3}, {b0,b1}, {%s};\n"
    "st.global.b32 [to], c0;\nst.global.b32 [to+4], c1;\nst.global.b32 [to+8], c2;\nst.global.b32 [to+12], c3;\n"
    "ret;\n}\n";

enum { TILES = 256, LANES = 32, IN_WORDS = 10, OUT_WORDS = 4, ROWS = 16, COLS = 8, K_MAX = 32 };

static const struct instruction {
    const char *text, *ptx; /* of mma.sync; the version of PTX that knows it */
    int least;              /* compute capability */
    enum dtype type;        /* of the operands */
    int k;
    bool half; /* the accumulator is f16 */
} instructions[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", "7.0", 80, DTYPE_F16, 16, false},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", "7.0", 80, DTYPE_BF16, 16, false},
    {"m16n8k16.row.col.f16.f16.f16.f16", "7.0", 80, DTYPE_F16, 16, true},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "8.4", 89, DTYPE_E4M3, 32, false},
};
enum { INSTRUCTIONS = sizeof instructions / sizeof *instructions };

struct tile {
    uint16_t a[ROWS * K_MAX], b[COLS * K_MAX]; /* codes */
    float c[ROWS * COLS];
};

/* 2^(exponent - 1) to 2^exponent, of a random sign or positive; 0 where that is asked for. */
static float draw(uint32_t bits, int least, int most, bool positive, bool zeros)
{
    if (zeros && bits % 5 == 0)
        return 0;
    const int exponent = least + (int)(bits >> 3 & 0xFF) % (most - least + 1);
    const float x = ldexpf(0x1p23f + (float)(bits >> 9), exponent - 24);
    return bits & 4 && !positive ? -x : x;
}

/* Normal numbers, positive ones, wide exponents, and zeros with numbers below the smallest normal one; half of them
   with an accumulator. All sums are finite, in f16 too. */
static void fill(const struct instruction *p, int number, struct tile *t)
{
    static const int ranges[4][2] = {{-1, 1}, {-1, 1}, {-9, 2}, {-18, 0}};
    const int kind = number % 4, *range = ranges[kind];
    const uint32_t key[2] = {(uint32_t)(p - instructions), 0xA17};
    const bool zeros = kind == 3;
    uint32_t bits[4];
    for (uint32_t i = 0; i < ROWS * K_MAX; i++) {
        philox4x32((const uint32_t[4]){(uint32_t)number, i, 0, 0}, key, bits);
        dtype_store(p->type, t->a, i, (double)draw(bits[0], range[0], range[1], kind == 1, zeros));
        if (i < COLS * K_MAX)
            dtype_store(p->type, t->b, i, (double)draw(bits[1], range[0], range[1], kind == 1, zeros));
        if (i < ROWS * COLS)
            t->c[i] = number / 4 % 2 ? draw(bits[2], -6, 3, kind == 1, false) : 0;
        if (i < ROWS * COLS && p->half)
            t->c[i] = f16_to_f32(f16_from_f32(t->c[i]));
    }
}

/* Row r's word w, of k codes a row. */
static uint32_t word(const struct instruction *p, const uint16_t *codes, int r, int w)
{
    uint32_t bits;
    memcpy(&bits, (const char *)codes + (size_t)r * (size_t)p->k * dtype_bytes(p->type) + (size_t)w * 4, sizeof bits);
    return bits;
}

/* Where element e of 4 of a lane's accumulator lies in the tile. */
static int place(int lane, int e)
{
    return (lane / 4 + e / 2 * 8) * COLS + lane % 4 * 2 + e % 2;
}

static void pack(const struct instruction *p, const struct tile *t, int lane, uint32_t in[IN_WORDS])
{
    const int group = lane / 4, member = lane % 4;
    for (int i = 0; i < 4; i++)
        in[i] = word(p, t->a, group + i % 2 * 8, member + i / 2 * 4);
    for (int i = 0; i < 2; i++)
        in[4 + i] = word(p, t->b, group, member + i * 4);
    memset(in + 6, 0, OUT_WORDS * sizeof *in);
    for (int e = 0; e < 4; e++)
        if (p->half)
            in[6 + e / 2] |= (uint32_t)f16_from_f32(t->c[place(lane, e)]) << e % 2 * 16;
        else
            memcpy(&in[6 + e], &t->c[place(lane, e)], sizeof *in);
}

/* Whether a model gives what the device gave, in every bit. */
static bool gives(enum tensor_core model, const struct instruction *p, const uint32_t *out)
{
    struct tile t;
    float d[ROWS * COLS];
    for (int i = 0; i < TILES; i++) {
        fill(p, i, &t);
        tensor_core_mma(model, p->type, ROWS, COLS, p->k, t.a, t.b, t.c, d);
        for (int at = 0; at < LANES * 4; at++) {
            const int lane = at / 4, e = at % 4;
            const uint32_t *of = out + ((size_t)i * LANES + (size_t)lane) * OUT_WORDS;
            const float want = d[place(lane, e)];
            if (p->half ? (of[e / 2] >> e % 2 * 16 & 0xFFFF) != f16_from_f32(want) : of[e] != format_f32_bits(want))
                return false;
        }
    }
    return true;
}

/* Runs one instruction on all tiles; a driver's status. */
static int run(const struct driver *d, const struct instruction *p, uint64_t memory, uint32_t *out)
{
    static uint32_t in[TILES * LANES * IN_WORDS];
    uint64_t results = memory + sizeof in;
    char text[2048];
    void *module = NULL, *function = NULL, *parameters[] = {&memory, &results};
    struct tile t;
    for (int i = 0; i < TILES; i++) {
        fill(p, i, &t);
        for (int lane = 0; lane < LANES; lane++)
            pack(p, &t, lane, in + ((size_t)i * LANES + (size_t)lane) * IN_WORDS);
    }
    const char *sum = p->half ? "c0,c1" : "c0,c1,c2,c3";
    snprintf(text, sizeof text, product_ptx, p->ptx, p->least, p->half ? ".b32" : ".f32", p->text, sum, sum);
    int status = d->to_device(memory, in, sizeof in);
    if (!status)
        status = d->load(&module, text);
    if (!status)
        status = d->find(&function, module, "product");
    if (!status)
        status = d->launch(function, TILES, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL);
    return status ? status : d->from_device(out, results, sizeof *out * TILES * LANES * OUT_WORDS);
}

/* Of a device whose mma.sync gives all that an H200's does, wgmma was recorded there. */
static uint32_t with_warpgroups(uint32_t cores)
{
    static const enum tensor_core seen[] = {TENSOR_CORE_H100, TENSOR_CORE_H100_F16, TENSOR_CORE_MMA_E4M3};
    static const enum tensor_core more[] = {TENSOR_CORE_WGMMA_E4M3, TENSOR_CORE_WGMMA_E4M3_F16,
                                            TENSOR_CORE_WGMMA_E4M3_PROMOTED};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        if (!(cores >> seen[i] & 1))
            return cores;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        cores |= 1u << more[i];
    return cores;
}

/* {"cores": "f32 h100 ..."}: the models that every instruction agrees with. FMAs are the same everywhere. */
static int tell_arithmetic(struct driver *d, void *library, int device, int capability)
{
    static uint32_t out[TILES * LANES * OUT_WORDS];
    uint32_t cores = 0, others = 0;
    void *context = NULL;
    uint64_t memory = 0;
    int status;
    if (!FIND(*d, retain, "cuDevicePrimaryCtxRetain") || !FIND(*d, make_current, "cuCtxSetCurrent") ||
        !FIND(*d, load, "cuModuleLoadData") || !FIND(*d, find, "cuModuleGetFunction") ||
        !FIND(*d, allocate, "cuMemAlloc_v2") || !FIND(*d, to_device, "cuMemcpyHtoD_v2") ||
        !FIND(*d, from_device, "cuMemcpyDtoH_v2") || !FIND(*d, launch, "cuLaunchKernel"))
        return fail("libcuda.so.1 is not a driver that attnscope knows", "");
    if ((status = d->retain(&context, device)) != 0 || (status = d->make_current(context)) != 0 ||
        (status = d->allocate(&memory, (size_t)TILES * LANES * (IN_WORDS + OUT_WORDS) * sizeof *out)) != 0)
        return fail_cuda(d, "device 0 gives no memory", status);
    for (const struct instruction *p = instructions; p < instructions + INSTRUCTIONS; p++) {
        if (capability < p->least)
            continue;
        if ((status = run(d, p, memory, out)) != 0)
            return fail_cuda(d, p->text, status);
        for (enum tensor_core m = TENSOR_CORE_F32 + 1; m < TENSOR_CORE_COUNT; m++) {
            int products, fraction, result;
            tensor_core_shape(m, &products, &fraction, &result);
            if (tensor_core_takes(m, p->type) && (result == 10) == p->half)
                *(gives(m, p, out) ? &cores : &others) |= 1u << m;
        }
    }
    cores &= ~others;
    if (capability == 90)
        cores = with_warpgroups(cores);
    printf("{\"cores\": \"%s", tensor_core_name(TENSOR_CORE_F32));
    for (enum tensor_core m = TENSOR_CORE_F32 + 1; m < TENSOR_CORE_COUNT; m++)
        if (cores >> m & 1)
            printf(" %s", tensor_core_name(m));
    puts("\"}");
    return 0;
}

int main(int argc, char **argv)
{
    struct driver d = {0};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (argc > 1 && strcmp(argv[1], "guard") == 0)
        return guardian_serve(argc > 2 ? atoi(argv[2]) : 0, GUARDIAN_SOCKET_FD);
    if (!library)
        return fail("no NVIDIA driver: libcuda.so.1 was not found", "");
    FIND(d, error_name, "cuGetErrorName");
    FIND(d, error_text, "cuGetErrorString");
    if (!FIND(d, init, "cuInit") || !FIND(d, version, "cuDriverGetVersion") || !FIND(d, count, "cuDeviceGetCount") ||
        !FIND(d, get, "cuDeviceGet") || !FIND(d, name, "cuDeviceGetName") ||
        !FIND(d, attribute, "cuDeviceGetAttribute") || !FIND(d, memory, "cuDeviceTotalMem_v2"))
        return fail("libcuda.so.1 is not a driver that attnscope knows", "");
    int version = 0, n = 0, device = 0, major = 0, minor = 0, multiprocessors = 0, shared = 0, f32_per_f64 = 0,
        clock_khz = 0;
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
    /* A driver that does not know these says 0. */
    if (d.attribute(&f32_per_f64, ATTRIBUTE_F32_PER_F64, device) != 0 ||
        d.attribute(&clock_khz, ATTRIBUTE_CLOCK_KHZ, device) != 0)
        f32_per_f64 = 0;
    if (argc > 1 && strcmp(argv[1], "arithmetic") == 0)
        return tell_arithmetic(&d, library, device, 10 * major + minor);
    fputs("{\"name\": ", stdout);
    print_string(name);
    printf(", \"major\": %d, \"minor\": %d, \"driver\": %d, \"multiprocessors\": %d, \"memory_bytes\": %zu, "
           "\"shared_per_block_bytes\": %d, \"f32_per_f64\": %d, \"clock_khz\": %d}\n",
           major, minor, version, multiprocessors, bytes, shared, f32_per_f64, clock_khz);
    return 0;
}
