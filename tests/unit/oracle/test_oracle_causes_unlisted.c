/* Mistakes that no cause describes get no name, nor do inputs on which formulas cannot be told apart give a wrong one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/lib/cause_grade.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static void unlisted_mistakes_have_no_name(void **state)
{
    (void)state;
    int named = 0, none = 0, without_effect = 0, tried = 0;
    for (int mistake = LISTED_END + 1; mistake < MISTAKES; mistake++) {
        int effect = 0;
        for (int shape = 0; shape < SHAPES; shape++) {
            struct spec s = shapes[shape];
            struct outcome o;
            char names[512];
            s.mistake = (enum mistake)mistake;
            s.fill = cause_fills[(mistake + shape) % TELLING_FILLS];
            s.seed = (unsigned)(mistake * 17 + shape);
            s.v_times = 1;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            if (!o.culprits) {
                without_effect++;
                continue;
            }
            effect = 1;
            write_names(&o, names, sizeof names);
            if (count_names(&o))
                print_message("%s, shape %d, fill %d: named%s\n", unlisted[mistake], shape, (int)s.fill, names);
            named += count_names(&o) > 0;
            none += count_names(&o) == 0;
        }
        if (!effect)
            print_message("%s never has an effect\n", unlisted[mistake]);
        tried += effect;
    }
    print_message("%d unlisted mistakes: none %d, named %d; without effect %d\n", tried, none, named, without_effect);
    assert_int_equal(named, 0);
    assert_true(tried >= 60);
}

/* Listed mistakes on inputs that tell little: the right name and no other, or none. */
static void uninformative_inputs(void **state)
{
    (void)state;
    const enum fill fills[] = {FILL_ZEROS, FILL_CONSTANT, FILL_ONE_HOT, FILL_ARANGE};
    int none = 0, right = 0, wrong = 0;
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        for (int fill = 0; fill < 4; fill++) {
            struct spec s = shapes[mistake % SHAPES];
            struct outcome o;
            s.mistake = (enum mistake)mistake;
            s.fill = fills[fill];
            s.v_times = 1;
            if (listed[mistake].needs & ~offers(&s))
                continue; /* it may be another mistake there: one unit's missing scale is another's wrong base */
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            const int is = grade(&o, &s);
            none += is >= 0 && !count_names(&o);
            right += is >= 0 && count_names(&o);
            wrong += is < 0;
            if (is < 0)
                print_case(&s, "", &o);
        }
    }
    print_message("uninformative inputs: right %d, none %d, wrong %d\n", right, none, wrong);
    assert_int_equal(wrong, 0);
    assert_true(right > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlisted_mistakes_have_no_name),
        cmocka_unit_test(uninformative_inputs),
    };
    return cmocka_run_group_tests_name("oracle: causes of other mistakes", tests, scratch_begin, scratch_end);
}
