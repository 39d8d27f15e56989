/* Runs one case of a .cu of this folder and prints what the executor reports, a line each. */
#include "engine/simt/simt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int simt_case(const char *name); /* in the .cu; 0: as expected */

static void report(void *ctx, const struct simt_report *r)
{
    (void)ctx;
    const char *slash = r->file ? strrchr(r->file, '/') : NULL;
    printf("report %s %s:%d block %u,%u,%u thread %u,%u,%u fatal %d: ", event_name(r->kind),
           slash ? slash + 1 : (r->file ? r->file : "?"), r->line, r->block.x, r->block.y, r->block.z, r->thread.x,
           r->thread.y, r->thread.z, r->fatal);
    for (const char *p = r->text; *p; p++)
        putchar(*p == '\n' ? '|' : *p);
    putchar('\n');
    fflush(stdout);
}

/* The case "cancel" stops after its third block. */
static void progress(void *ctx, uint64_t done, uint64_t blocks)
{
    const char *name = ctx;
    (void)blocks;
    if (!strcmp(name, "cancel") && done == 3)
        simt_cancel();
}

int main(int argc, char **argv)
{
    struct simt_options options = {.workers = 1, .report = report, .progress = progress};
    if (argc < 2) {
        fprintf(stderr, "usage: %s CASE [WORKERS [TRAPS [LANE_ORDER [TENSOR_CORE]]]]\n", argv[0]);
        return 2;
    }
    options.ctx = argv[1];
    if (argc > 2)
        options.workers = (int)strtol(argv[2], NULL, 10);
    if (argc > 3)
        options.fp_traps = (int)strtol(argv[3], NULL, 10);
    if (argc > 4)
        options.lane_order = (uint32_t)strtol(argv[4], NULL, 10);
    if (argc > 5)
        options.tensor_core = argv[5];
    simt_configure(&options);
    const int rc = simt_case(argv[1]);
    const char *error = simt_error();
    printf("case %d error %.60s\n", rc, error ? error : "none");
    return rc ? 1 : 0;
}
