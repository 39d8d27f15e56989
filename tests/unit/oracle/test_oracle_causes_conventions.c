/* Mistakes under conventions: listed ones are named right, or not at all; unlisted ones have no name of their own. A
   third and an eighth of all pairs; the acceptance runs try them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/causes/causes.h"
#include "tests/unit/lib/cause_grade.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static void correct_kernels_are_clean(void **state)
{
    (void)state;
    for (int i = 0; i < CONVENTIONS; i++) {
        for (int fill = 0; fill < TELLING_FILLS; fill++) {
            const struct spec s = spec_of(&convention_cases[i].spec, RIGHT, cause_fills[fill], 3);
            struct outcome o;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            if (o.culprits)
                fail_msg("%s, fill %d: culprits %x", convention_cases[i].name, fill, o.culprits);
        }
    }
}

static void listed_mistakes(void **state)
{
    (void)state;
    int wrong = 0, right = 0, all = 0;
    for (int i = 0; i < CONVENTIONS; i++) {
        int count[3] = {0}, silent = 0;
        for (int mistake = RIGHT + 1 + (i + 2) % 3; mistake < LISTED_END; mistake += 3) {
            const struct spec s =
                spec_of(&convention_cases[i].spec, (enum mistake)mistake, FILL_NORMAL, (unsigned)mistake);
            struct outcome o;
            if (listed[mistake].needs & ~offers(&s))
                continue;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            const int is = grade(&o, &s);
            silent += !o.culprits;
            count[is + 1] += o.culprits != 0;
            if (o.culprits && is <= 0)
                print_case(&s, convention_cases[i].name, &o);
        }
        print_message("%s: right %d, none %d, wrong %d; without effect %d\n", convention_cases[i].name, count[2],
                      count[1], count[0], silent);
        wrong += count[0];
        right += count[2];
        all += count[0] + count[1] + count[2];
    }
    assert_int_equal(wrong, 0);
    assert_true(right * 9 > all * 8);
}

/* What asks for a convention that few of the shapes have. */
static void mistakes_of_one_convention(void **state)
{
    (void)state;
    int tried = 0;
    for (int i = 0; i < CONVENTIONS; i++) {
        for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
            const struct spec s = spec_of(&convention_cases[i].spec, (enum mistake)mistake, FILL_NORMAL, 5);
            struct outcome o;
            if (!(listed[mistake].needs & (LAGS | CORES)) || listed[mistake].needs & ~offers(&s))
                continue;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            if (grade(&o, &s) != 1)
                print_case(&s, convention_cases[i].name, &o);
            assert_int_equal(grade(&o, &s), 1);
            tried++;
        }
    }
    assert_true(tried >= 3);
}

static void unlisted_mistakes(void **state)
{
    (void)state;
    int named = 0;
    for (int mistake = LISTED_END + 1; mistake < MISTAKES; mistake++) {
        for (int i = mistake % 8; i < CONVENTIONS; i += 8) {
            const struct spec s = spec_of(&convention_cases[i].spec, (enum mistake)mistake,
                                          cause_fills[mistake % TELLING_FILLS], (unsigned)(mistake + i));
            struct outcome o;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            if (!is_misnamed(&o, &s))
                continue;
            named++;
            print_case(&s, convention_cases[i].name, &o);
        }
    }
    assert_int_equal(named, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_kernels_are_clean),
        cmocka_unit_test(listed_mistakes),
        cmocka_unit_test(mistakes_of_one_convention),
        cmocka_unit_test(unlisted_mistakes),
    };
    return cmocka_run_group_tests_name("oracle: causes under conventions", tests, scratch_begin, scratch_end);
}
