#include "tests/unit/lib/case_search.h"

#include "engine/trace/layout.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Head 4 i + 1 is the i-th run's; the ones beside it have scales alone. */
static int list_case_sources(const struct oracle_case *const *c, int n, struct source *list)
{
    int at = 0;
    for (int which = 0; which < 3; which++) {
        for (int i = 0; i < n; i++) {
            const struct coding *coding = codes_of(c[i], (enum asc_channel)(asc_q + which));
            const float *beside[] = {coding->before, coding->scale, coding->behind, coding->head0};
            for (int k = 0; k < 4; k++) {
                struct source *s = &list[at++];
                *s = (struct source){.of = (enum asc_channel)(asc_q + which), .head = 4 * i + k, .coding = *coding};
                s->coding.scale = beside[k];
                s->coding.first = 0;
                if (k == 1)
                    s->rows = which == 0 ? c[i]->in_q : which == 1 ? c[i]->in_k : c[i]->in_v;
            }
        }
    }
    return at;
}

void case_search(struct kernel_run *const *run, int n, enum asc_channel ch, struct judge_scratch *scratch,
                 bool named[CAUSE_COUNT])
{
    enum { MOST = 16 };
    const struct oracle_case *cases[MOST];
    struct source sources[12 * MOST];
    float slopes[4 * MOST] = {0};
    struct explanation found;
    struct sample sample;
    assert_in_range(n, 1, MOST);
    sample_begin(&sample, ch);
    for (int i = 0; i < n; i++) {
        bool wanted[64];
        const struct sample_place place = {{0, 4 * i + 1, 0}, 4 * i + 1};
        cases[i] = &run[i]->c;
        slopes[4 * i + 1] = (float)run[i]->c.alibi_slope;
        for (int kv = 0; kv < 64; kv++)
            wanted[kv] = channel_per_kv(ch) || kv == 0;
        assert_int_equal(sample_add(&sample, &run[i]->c, &place, wanted, scratch), 0);
    }
    const struct search_inputs inputs = {sources, list_case_sources(cases, n, sources), 4 * n, 4 * n, slopes};
    assert_int_equal(search_stage(&sample, scratch, &inputs, NULL, &found), 0);
    assert_int_equal(search_rest(&sample, scratch, &inputs, &found), 0);
    if (getenv("ATTNSCOPE_TEST_TELL"))
        print_message("# %s: %s\n", cause_name(found.cause), found.text);
    sample_free(&sample);
    if (found.cause != CAUSE_NONE)
        named[found.cause] = true;
}
