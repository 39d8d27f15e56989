/* Runs one case of checks.cu on an input, an output and a workspace, and prints what is reported, a line each. */
#include "engine/base/dtype.h"
#include "engine/simt/report.h"
#include "engine/simt/simt.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, FLOATS = 509, ARRAYS = 3 }; /* an array ends 12 bytes before its page */

int simt_case(const char *name);
float *simt_array(int which);

static float *array[ARRAYS];

float *simt_array(int which)
{
    return array[which];
}

static void print_place(const char *file, int line)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    printf("%s:%d ", slash ? slash + 1 : file ? file : "?", line);
}

static void print_stack(const char *word, const struct simt_stack *stack)
{
    char name[64];
    printf("%s", word);
    for (int i = 0; i < stack->n; i++) {
        locate_name(stack->at[i].function, name, sizeof name);
        printf(" < %s ", name);
        print_place(stack->at[i].file, stack->at[i].line);
    }
    printf("\n");
}

static void report(void *ctx, const struct simt_report *r)
{
    (void)ctx;
    if (r->number && r->times > 1) {
        printf("again %d %d\n", r->number, r->times);
        return;
    }
    printf("report %s ", event_name(r->kind));
    print_place(r->file, r->line);
    print_place(r->other_file, r->other_line);
    printf("number %d: %s\n", r->number, r->text);
    print_stack("stack", &r->stack);
    print_stack("other", &r->other_stack);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct simt_region regions[ARRAYS] = {{.name = "in", .dtype = DTYPE_F32},
                                          {.name = "O", .dtype = DTYPE_F32, .output = 1, .unwritten = 1},
                                          {.name = "the workspace", .dtype = -1, .unwritten = 1}};
    const uint32_t unwritten = ARRAY_POISON_16 << 16 | ARRAY_POISON_16;
    for (int i = 0; i < ARRAYS; i++) { /* a page that nobody may reach on either side */
        unsigned char *pages = mmap(NULL, (size_t)3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, i ? PROT_READ | PROT_WRITE : PROT_READ) != 0)
            return 2;
        array[i] = (float *)(void *)(pages + (ptrdiff_t)2 * PAGE) - 512;
        regions[i].begin = array[i];
        regions[i].bytes = FLOATS * sizeof(float);
        regions[i].guard_bytes = PAGE;
        for (int k = 0; k < FLOATS && i > 0; k++)
            memcpy(&array[i][k], &unwritten, sizeof unwritten);
    }
    const struct simt_options options = {.workers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1,
                                         .lane_order = argc > 3 ? (uint32_t)strtol(argv[3], NULL, 10) : 0,
                                         .report = report,
                                         .regions = regions,
                                         .n_regions = ARRAYS};
    simt_configure(&options);
    const int failed = argc > 1 && simt_case(argv[1]) == 0 ? 0 : 1;
    for (int i = 0; i < FLOATS; i++)
        if (array[0][i] != 0)
            printf("input %d is %g\n", i, (double)array[0][i]);
    return failed;
}
