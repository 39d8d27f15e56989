#include "tests/unit/lib/case_search.h"

#include "engine/trace/layout.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Head 4 i + 1 is the i-th run's; the one behind it has scales alone. */
static int list_case_sources(struct kernel_run *const *run, int n, struct source *list)
{
    int at = 0;
    for (int which = 0; which < 3; which++) {
        for (int i = 0; i < n; i++) {
            const enum asc_channel of = (enum asc_channel)(asc_q + which);
            for (int k = 0; k < 2; k++) {
                struct source *s = &list[at++];
                *s = (struct source){.of = of, .head = 4 * i + 1 + k, .coding = *codes_of(&run[i]->c, of)};
                s->coding.scale = run[i]->scales[which][k];
                s->coding.first = 0;
                if (k == 0)
                    s->rows = *codes_input(&run[i]->c, of);
            }
        }
    }
    return at;
}

void case_search(struct kernel_run *const *run, int n, enum asc_channel ch, struct judge_scratch *scratch,
                 bool named[CAUSE_COUNT], char *said)
{
    enum { MOST = 16 };
    struct source sources[6 * MOST];
    float slopes[4 * MOST] = {0};
    struct explanation found;
    struct sample sample;
    assert_in_range(n, 1, MOST);
    sample_begin(&sample, ch);
    for (int i = 0; i < n; i++) {
        bool wanted[64];
        const struct sample_place place = {{0, 4 * i + 1, 0}, 4 * i + 1};
        slopes[4 * i + 1] = (float)run[i]->c.alibi_slope;
        for (int kv = 0; kv < 64; kv++)
            wanted[kv] = channel_per_kv(ch) || kv == 0;
        assert_int_equal(sample_add(&sample, &run[i]->c, &place, wanted, scratch), 0);
    }
    const struct search_inputs inputs = {.sources = sources,
                                         .n_sources = list_case_sources(run, n, sources),
                                         .heads = 4 * n,
                                         .kv_heads = 4 * n,
                                         .slopes = slopes};
    assert_int_equal(search_stage(&sample, scratch, &inputs, NULL, &found), 0);
    assert_int_equal(search_rest(&sample, scratch, &inputs, &found), 0);
    if (getenv("ATTNSCOPE_TEST_TELL"))
        print_message("# %s: %s\n", cause_name(found.cause), found.text);
    sample_free(&sample);
    if (said)
        snprintf(said, SENTENCE_BYTES, "%s", found.said[0]);
    if (found.cause != CAUSE_NONE)
        named[found.cause] = true;
}
