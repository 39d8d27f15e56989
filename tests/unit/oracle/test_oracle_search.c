/* The search on a kernel that commits one mistake: what it says of listed mistakes and of others, and that it says
   nothing of noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/pool.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/propose.h"
#include "engine/oracle/search/search.h"
#include "engine/trace/layout.h"
#include "tests/unit/lib/cause_grade.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static struct searchers by; /* nobody beside the scratch of all tests */

/* The explanation of the first stage that is wrong by itself. -1: none is. known: a rule that is tried alone. */
static int explain(const struct spec *s, const struct rule *known, struct explanation *out)
{
    struct run *run = run_kernel(s);
    const int tiles = (s->kv_len - 1) / s->bc + 1;
    unsigned culprits = 0;
    for (int slot = 0; slot < run->n_slots; slot++) {
        assert_int_equal(judge_case(&run->slots[slot].c, scratch, run->slots[slot].out, NULL), 0);
        for (int i = 0; i < tiles * ASC_CHANNELS; i++)
            if (run->slots[slot].out[i].local.judged && verdict_bad(&run->slots[slot].out[i].local))
                culprits |= 1u << i % ASC_CHANNELS;
    }
    memset(out, 0, sizeof *out);
    const int ch = culprits ? __builtin_ctz(culprits) : -1;
    if (ch >= 0) {
        struct sample sample;
        struct source *sources = list_sources(run);
        struct search_inputs inputs = run_inputs(sources);
        inputs.by = by;
        take_sample(run, (enum asc_channel)ch, scratch, &sample);
        assert_int_equal(search_stage(&sample, scratch, &inputs, known, out), 0);
        if (!known)
            assert_int_equal(search_rest(&sample, scratch, &inputs, out), 0);
        sample_free(&sample);
        free(sources);
    }
    run_free(run);
    return ch;
}

static struct spec spec_at(enum mistake mistake, int shape, enum fill fill, unsigned seed)
{
    struct spec s = shapes[shape];
    s.mistake = mistake;
    s.fill = fill;
    s.seed = (unsigned)mistake * 31 + (unsigned)shape * 7 + seed * 1009;
    s.v_times = 1;
    return s;
}

static const char *name_of(enum mistake mistake)
{
    return unlisted[mistake] ? unlisted[mistake] : listed[mistake].name;
}

static void tell(const struct spec *s, int ch, const struct explanation *e, const char *more)
{
    print_message("%-28s fill %d %-5s %3.0f%% %s%s%s\n", name_of(s->mistake), (int)s->fill,
                  channel_label((enum asc_channel)ch), 100 * e->share, e->pattern ? "(pattern) " : "", e->text, more);
}

static bool wants_all_told(void)
{
    return getenv("ATTNSCOPE_TEST_TELL") != NULL;
}

/* A rule that is true of a mistake is true of it on other inputs, wherever they show it. A number that was fitted is
   fitted anew there: the rule is of the same kind then. 1: it holds; 0: it does not show; -1: it was chance. */
static int holds_elsewhere(const struct spec *found_on, const struct rule *rule)
{
    const bool fitted = rule->cost >= CONSTANT_UNKNOWN_BITS;
    size_t in = 0, out = 0;
    for (unsigned seed = 1; seed <= 3; seed++) {
        struct spec other = *found_on;
        struct explanation e;
        other.fill = FILL_NORMAL;
        other.seed = found_on->seed + seed * 65537;
        if (explain(&other, fitted ? NULL : rule, &e) != (int)rule->channel)
            continue;
        if (fitted && e.n)
            return e.rule[0].kind == rule->kind ? 1 : -1;
        in += e.runner_up.evidence.in;
        out += e.n ? 0 : e.runner_up.evidence.out;
    }
    return in + out == 0 || fitted ? 0 : in > 10 * out ? 1 : -1;
}

struct tally {
    int tried, explained, false_rules;
};

static void try_mistake(const struct spec *s, struct tally *tally)
{
    struct explanation e;
    const int ch = explain(s, NULL, &e);
    if (ch < 0)
        return;
    tally->tried++;
    tally->explained += e.n > 0;
    const int holds = e.n > 0 ? holds_elsewhere(s, &e.rule[0]) : 0;
    tally->false_rules += holds < 0;
    if (holds < 0 || wants_all_told())
        tell(s, ch, &e, holds < 0 ? " [does not hold on other inputs]" : "");
}

static bool takes_all(void)
{
    const char *tests = getenv("TESTS");
    return tests && strcmp(tests, "all") == 0;
}

static void listed_mistakes_are_explained(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        for (int shape = 0; shape < SHAPES; shape += 2) {
            const struct spec s = spec_at((enum mistake)mistake, shape, FILL_NORMAL, 0);
            if (!(listed[mistake].needs & ~offers(&shapes[shape])))
                try_mistake(&s, &tally);
        }
    }
    print_message("listed mistakes: %d of %d explained, %d falsely\n", tally.explained, tally.tried, tally.false_rules);
    assert_int_equal(tally.false_rules, 0);
    assert_true(tally.explained * 100 >= tally.tried * 90);
}

static void other_mistakes(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (int mistake = LISTED_END + 1; mistake < MISTAKES; mistake++) {
        for (int shape = 0; shape < SHAPES; shape += takes_all() ? 2 : 4) {
            const struct spec s = spec_at((enum mistake)mistake, shape, FILL_NORMAL, 0);
            try_mistake(&s, &tally);
        }
    }
    print_message("other mistakes: %d of %d explained, %d falsely\n", tally.explained, tally.tried, tally.false_rules);
    assert_int_equal(tally.false_rules, 0);
}

/* Mistakes without a name, and what is said of them. */
static void what_is_said_of_others(void **state)
{
    (void)state;
    static const struct {
        enum mistake mistake;
        int shape;
        const char *said;
    } rows[] = {
        {S_SUMMED_IN_BF16, 0, "S is summed in bf16: rounded after every 8 elements"},
        {S_K_BITS_IN_TURN, 0,
         "K is read with rows and columns out of place: bit 0 of the column is bit 0 of the row, bit 0 of the row is "
         "bit "
         "1 of the row, bit 1 of the row is bit 0 of the column"},
        {U_V_PAIRS_TRANSPOSED, 0, "V is read with its rows and columns exchanged within blocks of 2 x 2"},
        {U_SUMMED_IN_BF16, 0, "U is summed in bf16: rounded after every 4 keys"},
        {S_Q_SCALED_IN_F16, 0,
         "Q is rounded to f16 once it is multiplied by 0.255035 (softmax scale · log2(e)) on the way to S"},
        {P_EXPONENT_IN_F16, 0, "the exponent of P is rounded to f16"},
        {U_P_IN_255, 0, "P is rounded to whole numbers once it is multiplied by 255 on the way to U"},
        {O_U_IN_BF16, 0, "U is rounded to bf16 on the way to O"},
        {O_RECIPROCAL_IN_F16, 0, "1 / l is rounded to f16 on the way to O"},
        {S_ONE_OF_EIGHT_PAIRED, 0,
         "K is read with column c - 1 where column c is wanted in its columns with c mod 8 = 7"},
        {L_LANES_IN_F16, 0,
         "the lanes of l give each other their sums rounded to f16 on the way to l, a lane having the columns with the "
         "same c / 2 mod 4"},
        {O_U_OF_OTHER_ROW, 0, "O of row r takes U of row r ^ 3 and l of row r"},
        {O_U_AND_L_OF_OTHER_ROWS, 0, "O of row r takes U of row r ^ 3 and l of row r ^ 4"},
        {U_KEYS_OF_OTHER_ROW, 2,
         "U takes in keys up to the last one that row r - 4 sees, and not up to its own row's in rows with r "
         "mod 8 >= 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct spec s = spec_at(rows[i].mistake, rows[i].shape, FILL_NORMAL, 0);
        struct explanation e;
        assert_true(explain(&s, NULL, &e) >= 0);
        assert_string_equal(e.text, rows[i].said);
        assert_int_equal(e.cause, CAUSE_NONE);
    }
}

/* Of a kernel whose lanes keep sums of l of their own. */
static void lanes_that_exchange_narrow_sums(void **state)
{
    (void)state;
    static const struct {
        enum mistake mistake;
        const char *said;
    } rows[] = {
        {O_LANES_IN_F16, "the lanes of l give each other their sums rounded to f16 on the way to O"},
        {LSE_LANES_IN_BF16, "the lanes of l add their sums in bf16 on the way to LSE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spec s = spec_at(rows[i].mistake, 0, FILL_NORMAL, 0);
        struct explanation e;
        s.lanes = 4;
        assert_true(explain(&s, NULL, &e) >= 0);
        assert_string_equal(e.text, rows[i].said);
        assert_int_equal(e.cause, CAUSE_NONE);
    }
}

/* Inputs on which much looks alike. */
static void uninformative_inputs(void **state)
{
    (void)state;
    static const enum fill fills[] = {FILL_ZEROS, FILL_CONSTANT, FILL_ONE_HOT, FILL_ARANGE, FILL_LARGE};
    struct tally tally = {0};
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
            const struct spec s = spec_at((enum mistake)mistake, mistake % SHAPES, fills[i], 0);
            if (!(listed[mistake].needs & ~offers(&s)))
                try_mistake(&s, &tally);
        }
    }
    print_message("uninformative inputs: %d of %d explained, %d falsely\n", tally.explained, tally.tried,
                  tally.false_rules);
    assert_int_equal(tally.false_rules, 0);
}

/* A map of a whole tile's keys leads beyond the last one of a ragged tile: what a rule gives there is of alpha, not of
   what lies beside its powers. */
static void powers_of_keys_beyond_the_last(void **state)
{
    (void)state;
    enum { MOST = 64 * 128, LINE = 512, RAGGED = 1 };
    static double room[3][MOST], rows[4][LINE], first[MOST], second[MOST], bound[MOST];
    const struct spec s = spec_at(U_NOISE, RAGGED, FILL_NORMAL, 0);
    struct run *run = run_kernel(&s);
    struct sample sample;
    struct rule rule = rule_new(RULE_KEYS);
    int ragged = 0;
    take_sample(run, asc_u, scratch, &sample);
    struct search search = {
        .sample = &sample, .scratch = scratch, .operand = room[0], .loose = room[1], .sizes = {room[2]}};
    for (int i = 0; i < 4; i++)
        search.rows[i] = rows[i];
    rule.keys = (struct term){AXIS_COL, EVERY, 32, 0};
    rule.share = 16;
    rule.map = map_of_bits(6);
    map_exchange(&rule.map, 0, 4);
    for (int i = 0; i < sample.n; i++) {
        const struct sample_tile *t = &sample.tiles[i];
        rows[1][LINE - 1] = 1e3;
        if (t->x.cols >= s.bc || !rule_forward(&search, &rule, t, first, bound))
            continue;
        rows[1][LINE - 1] = 1e6;
        assert_true(rule_forward(&search, &rule, t, second, bound));
        for (size_t k = 0; k < sample_cells(t); k++)
            assert_true(first[k] == second[k] || (isnan(first[k]) && isnan(second[k])));
        ragged++;
    }
    assert_in_range(ragged, 1, sample.n);
    sample_free(&sample);
    run_free(run);
}

/* Threads find what one finds, and count as many rules, however far they have come when something is found. */
static void threads_find_what_one_finds(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct judge_scratch *each[THREADS];
    struct pool *pool = NULL;
    int found = 0;
    assert_int_equal(pool_new(THREADS, &pool, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_non_null(each[i] = judge_scratch_new());
    for (int mistake = RIGHT + 1; mistake < MISTAKES; mistake++) {
        const struct spec s = spec_at((enum mistake)mistake, mistake % SHAPES, FILL_NORMAL, 0);
        struct explanation one, many;
        if (mistake == LISTED_END || (mistake < LISTED_END && listed[mistake].needs & ~offers(&s)))
            continue;
        by = (struct searchers){0};
        const int ch = explain(&s, NULL, &one);
        by = (struct searchers){pool, each};
        assert_int_equal(explain(&s, NULL, &many), ch);
        if (ch < 0)
            continue;
        assert_string_equal(many.text, one.text);
        assert_string_equal(many.runner_up_said, one.runner_up_said);
        assert_int_equal(many.tried, one.tried);
        for (int i = 0; i < 2 && one.n; i++) {
            const struct evidence *a = &(i ? &one.runner_up : one.rule)->evidence;
            const struct evidence *b = &(i ? &many.runner_up : many.rule)->evidence;
            assert_int_equal(b->tried, a->tried);
            assert_true(b->bits == a->bits && b->share == a->share);
        }
        found += one.n;
    }
    by = (struct searchers){0};
    assert_in_range(found, 50, MISTAKES);
    pool_free(pool);
    for (int i = 0; i < THREADS; i++)
        judge_scratch_free(each[i]);
}

/* What follows no rule gets none: 228 wrong stages, 988 with TESTS=all. */
static void noise_is_not_explained(void **state)
{
    (void)state;
    static const enum mistake noise[] = {S_NOISE,   S_NOISE_RELATIVE, S_RANDOM_SWAPS, S_RANDOM_ZEROS, S_ABSOLUTE,
                                         S_SQUARED, S_TANH,           M_RANDOM_KEYS,  M_MEAN,         P_NOISE,
                                         P_SIGMOID, P_RANDOM_ZEROS,   L_SQUARES,      U_NOISE,        U_RANDOM_KEYS,
                                         O_NOISE,   O_ABSOLUTE,       LSE_NOISE,      S_NAN_AT_TIMES};
    const bool all = takes_all();
    const unsigned seeds = all ? 13 : 3;
    int tried = 0, explained = 0;
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        for (int shape = 0; shape < SHAPES; shape += 2) {
            for (unsigned seed = 0; seed < seeds; seed++) {
                const struct spec s = spec_at(noise[i], shape, FILL_NORMAL, seed);
                struct explanation e;
                const int ch = explain(&s, NULL, &e);
                tried += ch >= 0;
                explained += ch >= 0 && e.n > 0;
                if (ch >= 0 && e.n > 0)
                    tell(&s, ch, &e, "");
            }
        }
    }
    print_message("noise: %d of %d explained\n", explained, tried);
    assert_int_equal(explained, 0);
    assert_true(tried >= (all ? 900 : 200));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_mistakes_are_explained), cmocka_unit_test(other_mistakes),
        cmocka_unit_test(what_is_said_of_others),        cmocka_unit_test(lanes_that_exchange_narrow_sums),
        cmocka_unit_test(uninformative_inputs),          cmocka_unit_test(noise_is_not_explained),
        cmocka_unit_test(threads_find_what_one_finds),   cmocka_unit_test(powers_of_keys_beyond_the_last),
    };
    return cmocka_run_group_tests_name("oracle: search", tests, scratch_begin, scratch_end);
}
