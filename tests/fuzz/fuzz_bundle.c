/* The bytes of a bundle. What is opened has names of plain paths alone, and unpacks to the sizes that it says. */
#include "tests/fuzz/fuzz.h"

#include "engine/bundle/bundle.h"
#include <stdlib.h>
#include <string.h>

#define UNPACKED_MAX                                                                                                   \
    (UINT64_C(4) << 20) /* of one entry: a packed megabyte of zeros takes the time of a thousand inputs */

static int count(void *ctx, const void *bytes, size_t n)
{
    uint64_t *all = ctx;
    (void)bytes;
    *all += n;
    return *all > UNPACKED_MAX ? -1 : 0;
}

static void read_all(struct container *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct container_entry *entry = &c->entries[i];
        uint64_t all = 0;
        if (container_check_name(entry->name, "", NULL) != 0 || entry->name[0] == '/' || strstr(entry->name, "../"))
            abort();
        if (container_read(c, entry, count, &all, NULL) == 0 && all != entry->bytes)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct container c;
    struct bundle_facts facts;
    struct err err = {0};
    if (container_open(fuzz_file(data, size), &c, &err) == 0) {
        if (bundle_facts(&c, &facts, &err) != 0 && (err.code == ERR_NONE || !err.message[0]))
            abort();
        read_all(&c);
        container_free(&c);
    } else if (err.code == ERR_NONE || !err.message[0]) {
        abort();
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, max);
}
