/* Every listed cause is named where a kernel commits that mistake, and alone, or with what is the same formula there.
   The wrong values come from an f32 kernel, not from the formulas of the causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/cause_grade.h"
#include "tests/unit/fixture_scratch.h"
#include <cmocka.h>

/* The formula explains all, in fewer than the 16 rows that the rule asks for. */
static int tells_too_little(const struct cause_evidence *e)
{
    return e->rows > 0 && e->rows < 16 && e->explained == e->elements;
}

static void listed_mistakes_are_named(void **state)
{
    (void)state;
    int count[3] = {0}, without_effect = 0, never = 0; /* count: wrong, none, right */
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        int times = 0, tries = 0;
        for (int shape = 0; shape < SHAPES; shape++) {
            const enum fill fill = (enum fill)((mistake + shape) % (FILL_ARANGE + 1));
            const unsigned seed = (unsigned)(mistake * 31 + shape * 7) + (unsigned)fill;
            const struct spec s = spec_of(&shapes[shape], (enum mistake)mistake, fill, seed);
            struct outcome o;
            if (listed[mistake].needs & ~offers(&shapes[shape]))
                continue;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            tries++;
            if (!o.culprits) {
                without_effect++;
                continue;
            }
            const int is = grade(&o, &s);
            const int excused = listed[mistake].is_alike || tells_too_little(&o.evidence[listed[mistake].cause]);
            count[is + 1] += is || !excused;
            times += is == 1;
            if (is < 0)
                print_case(&s, "", &o);
        }
        if (!tries || times || listed[mistake].is_alike)
            continue;
        print_message("%s is never named\n", listed[mistake].name);
        never++;
    }
    print_message("listed mistakes: right %d, none %d, wrong %d; without effect %d\n", count[2], count[1], count[0],
                  without_effect);
    assert_int_equal(count[0], 0);
    assert_int_equal(never, 0);
    assert_true(count[2] >= 50 * count[1]);
}

/* lse-base-e needs a convention of its own: test_oracle_cause_rule.c. Biases, sinks and splits: of_terms. Codes:
   causes_codes. */
static void every_mistake_is_tried(void **state)
{
    (void)state;
    char tried[CAUSE_COUNT] = {0};
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        tried[listed[mistake].cause] = 1;
        tried[listed[mistake].second] = 1;
    }
#define TERM(wrong_term, cause) tried[cause] = 1;
#include "tests/unit/causes_of_terms.def"
#undef TERM
#define CODED(id) tried[CAUSE_##id] = 1;
#include "tests/unit/causes_coded.def"
#undef CODED
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (!tried[cause] && !cause_is_declaration((enum cause)cause) && cause != CAUSE_lse_base_e)
            fail_msg("%s is not tried", cause_name((enum cause)cause));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_mistakes_are_named),
        cmocka_unit_test(every_mistake_is_tried),
    };
    return cmocka_run_group_tests_name("oracle: causes", tests, scratch_begin, scratch_end);
}
