/* The bytes of a file of arrays: .npy, .npz, .safetensors. Every value that it is said to hold can be read. */
#include "tests/fuzz/fuzz.h"

#include "engine/base/array_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last element of the array, by its strides, and all between. */
static void read_values(const struct array *a)
{
    int64_t n = 1, last = 0;
    for (int i = 0; i < a->n_dims; i++) {
        n *= a->length[i];
        last += (a->length[i] - 1) * a->stride[i];
    }
    if (last != n - 1)
        abort();
    unsigned char sum = 0;
    for (int64_t i = 0; i < n * (int64_t)a->item; i++)
        sum ^= ((const unsigned char *)a->data)[i];
    if (a->dtype >= 0)
        sum ^= dtype_load((enum dtype)a->dtype, a->data, (size_t)last) > 0;
    static volatile unsigned char kept;
    kept = (unsigned char)(kept ^ sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"", ":q", ":input.k"};
    const char *path = fuzz_file(data, size);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char spec[512];
        struct array a;
        struct err err = {0};
        snprintf(spec, sizeof spec, "%s%s", path, names[i]);
        if (array_open(spec, true, &a, &err) == 0) {
            read_values(&a);
            array_close(&a);
        } else if (err.code == ERR_NONE || !err.message[0]) {
            abort();
        }
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, max);
}
