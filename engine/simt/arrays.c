#include "engine/simt/arrays.h"

#include "engine/base/dtype.h"
#include "engine/child/debuggee/cache.h"
#include <string.h>
#include <sys/mman.h>

/* Vector loads of 16 bytes are the widest a kernel may count on here; what is left to the page's end is canary. */
#define ARRAY_ALIGN 16u

static int make(struct arrays *a, int i, const struct array_list *list, void **out, struct err *err)
{
    const size_t bytes = list->bytes[i];
    void *array = guarded_new(&a->memory[i], bytes, i == ARRAY_WORKSPACE ? WORKSPACE_ALIGN : ARRAY_ALIGN);
    if (!array)
        return err_no_memory(err, "", "%s, %zu bytes", array_names[i], bytes);
    a->region[i] = (struct simt_region){.name = array_names[i],
                                        .begin = array,
                                        .bytes = bytes,
                                        .dtype = list->dtype[i],
                                        .output = i == ARRAY_O || i == ARRAY_LSE,
                                        .unwritten = i >= ARRAY_O,
                                        .guard_bytes = a->memory[i].guard};
    if (i < ARRAY_O) {
        memcpy(array, list->at[i], bytes);
        const struct guarded *g = &a->memory[i];
        if (!array_list_writable(&a->of_trace, i))
            mprotect(g->mapping + g->guard, g->bytes - 2 * g->guard, PROT_READ);
    } else {
        array_fill(array, bytes, ARRAY_POISON_16);
    }
    *out = array;
    return 0;
}

int arrays_make(struct arrays *a, const struct asc_kernel *kernel, const struct asc_plan *plan,
                struct asc_problem *problem, struct err *err)
{
    struct array_list list;
    void *at[ARRAYS] = {0};
    memset(a, 0, sizeof *a);
    a->of_trace = *problem;
    if (array_list_make(kernel, problem, plan, &list) != 0)
        return err_no_memory(err, "", "the arrays");
    bool failed = false;
    for (int i = 0; i < ARRAYS && !failed; i++) {
        a->region[i].name = array_names[i];
        failed = list.bytes[i] && make(a, i, &list, &at[i], err) != 0;
    }
    array_list_use(&list, at, problem);
    array_list_free(&list);
    if (failed)
        arrays_free(a);
    return failed ? -1 : 0;
}

/* to: n bytes. */
static void publish(const struct simt_region *from, unsigned char *to, size_t n)
{
    const size_t bytes = dtype_bytes((enum dtype)from->dtype);
    unsigned char poison[16];
    array_fill(poison, sizeof poison, ARRAY_POISON_16);
    for (size_t at = 0; at < n && dtype_has_unwritten((enum dtype)from->dtype); at += bytes)
        if (memcmp(to + at, poison, bytes) == 0)
            array_fill(to + at, bytes, UNWRITTEN_16);
}

void arrays_publish(const struct arrays *a)
{
    const struct asc_problem *p = &a->of_trace;
    const struct simt_region *o = &a->region[ARRAY_O], *lse = &a->region[ARRAY_LSE];
    const enum dtype type = (enum dtype)o->dtype;
    const size_t rows = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len;
    if (array_list_packs_output(p))
        array_list_unpack_output(p, type, o->begin, p->o);
    else
        memcpy(p->o, o->begin, o->bytes);
    memcpy(p->lse, lse->begin, lse->bytes);
    publish(o, p->o, rows * (size_t)p->head_dim_v * dtype_bytes(type));
    publish(lse, (unsigned char *)p->lse, lse->bytes);
}

void arrays_say_cache(const struct arrays *a, const struct asc_kernel *kernel, int socket)
{
    for (int i = ARRAY_K; i <= ARRAY_V && a->of_trace.new_keys; i++)
        if (a->region[i].begin)
            cache_say(&a->of_trace, i, (double)kernel->conventions.rope_error, a->region[i].begin, socket);
}

bool arrays_overrun(const struct arrays *a, const char **name)
{
    for (int i = 0; i < ARRAYS; i++)
        if (a->memory[i].mapping && array_list_writable(&a->of_trace, i) &&
            !guarded_intact(&a->memory[i], a->region[i].begin, a->region[i].bytes)) {
            *name = a->region[i].name;
            return true;
        }
    const struct simt_region *o = &a->region[ARRAY_O];
    *name = o->name;
    return o->begin && array_list_wrote_between(&a->of_trace, (enum dtype)o->dtype, o->begin, ARRAY_POISON_16);
}

void arrays_free(struct arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        guarded_free(&a->memory[i]);
    memset(a, 0, sizeof *a);
}
