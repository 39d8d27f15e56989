/* What the search is made of: index maps, conditions, least squares, numbers that have a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/map.h"
#include "engine/oracle/search/region.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/search/turned.h"
#include <math.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 64 };

static void expect_map(int (*from)(int i), int first, const char *words)
{
    struct pair pairs[COUNT];
    struct map map;
    char said[128];
    size_t n = 0;
    for (int i = first; i < COUNT; i++)
        pairs[n++] = (struct pair){i, from(i)};
    assert_true(map_fit(pairs, n, COUNT, &map) < INFINITY);
    for (int i = first; i < COUNT; i++)
        assert_int_equal(map_at(&map, i), from(i));
    map_words(&map, "r", said, sizeof said);
    assert_string_equal(said, words);
}

static int same(int i)
{
    return i;
}
static int before(int i)
{
    return i - 8;
}
static int clamped(int i)
{
    return i + 3 < 50 ? i + 3 : 50;
}
static int exchanged(int i)
{
    return i ^ 8;
}
static int halved(int i)
{
    return i / 2;
}
static int of_sixteen(int i)
{
    return i % 16;
}
static int first_of_eight(int i)
{
    return i & ~7;
}
static int rotated(int i)
{
    return (i + 5) % 64;
}
static int fixed(int i)
{
    return (void)i, 7;
}
static int of_sixteen_within_32(int i)
{
    return i & ~16;
}
static int bits_crossed(int i)
{
    return (i & ~3) | (i & 1) << 1 | (i & 2) >> 1;
}

static void maps_are_found_and_said(void **state)
{
    (void)state;
    expect_map(same, 0, "r");
    expect_map(before, 8, "r - 8");
    expect_map(clamped, 0, "min(r + 3, 50)");
    expect_map(exchanged, 0, "r ^ 8");
    expect_map(halved, 0, "r / 2");
    expect_map(of_sixteen, 0, "r mod 16");
    expect_map(of_sixteen_within_32, 0, "r mod 16 of each 32");
    expect_map(first_of_eight, 0, "r - r mod 8");
    expect_map(rotated, 0, "(r + 5) mod 64");
    expect_map(fixed, 0, "7");
    expect_map(bits_crossed, 0, "r' (0 2 1 3 for r = 0 to 3 of each 4)");
}

/* Heads of Q that share those of K in twos, counted from one further on: of 8 no map of bits gives that. */
static void shared_heads_have_a_map(void **state)
{
    enum { HEADS = 8, GROUP = 2 };
    struct pair pairs[HEADS];
    struct map map;
    char said[64];
    (void)state;
    for (int wraps = 0; wraps < 2; wraps++) {
        for (int h = 0; h < HEADS; h++)
            pairs[h] = (struct pair){h, wraps ? (h + 1) / GROUP % (HEADS / GROUP) : (h + 1) / GROUP};
        assert_true(map_fit_shared(pairs, HEADS, GROUP, HEADS / GROUP, &map) < INFINITY);
        for (int h = 0; h < HEADS; h++)
            assert_int_equal(map_at(&map, h), pairs[h].to);
        map_words(&map, "h", said, sizeof said);
        assert_string_equal(said, wraps ? "(h + 1) / 2 mod 4" : "(h + 1) / 2");
    }
    for (int h = 0; h < HEADS; h++) /* their own, and a number that is off too far, are none of it */
        pairs[h] = (struct pair){h, h / GROUP};
    assert_true(map_fit_shared(pairs, HEADS, GROUP, HEADS / GROUP, &map) == INFINITY);
    for (int h = 0; h < HEADS; h++)
        pairs[h] = (struct pair){h, (h + GROUP + 1) / GROUP};
    assert_true(map_fit_shared(pairs, HEADS, GROUP, HEADS / GROUP, &map) == INFINITY);
}

/* What no map gives is none, but for a difference that most have. */
/* Of the blocks of sixteen the first two alone are seen, which bits exchanged would give as well: what those do to the
   bits of the others is a guess. */
static void bits_that_no_pair_has_are_a_guess(void **state)
{
    enum { LINE = 16, APART = 64, LINES = 2, ALL = 100 };
    struct pair pairs[LINE * LINES];
    struct map map;
    (void)state;
    for (int i = 0; i < LINE * LINES; i++)
        pairs[i] = (struct pair){i, i / LINE * APART + i % LINE};
    assert_true(map_fit(pairs, (size_t)LINE * LINES, ALL, &map) < INFINITY);
    assert_int_equal(map.kind, MAP_PITCH);
    assert_int_equal(map.a, LINE);
    assert_int_equal(map.b, APART);
}

static void scattered_pairs_have_no_map(void **state)
{
    (void)state;
    struct pair pairs[COUNT];
    struct map map;
    for (int i = 0; i < COUNT; i++)
        pairs[i] = (struct pair){i, (i * 29 + i * i * 7) % COUNT};
    assert_true(map_fit(pairs, COUNT, COUNT, &map) == INFINITY);
    for (int i = 0; i < COUNT; i++)
        pairs[i] = (struct pair){i, i % 5 ? i + 2 : 3 * i % COUNT};
    assert_true(map_fit(pairs, COUNT, COUNT, &map) < INFINITY);
    assert_int_equal(map.kind, MAP_PLUS);
    assert_int_equal(map.a, 2);
}

/* K of 128 rows of two panels, of which the second is read 64 rows behind the first, not 128; or 256. */
static void panels_lie_apart(void **state)
{
    (void)state;
    struct map map = {.kind = MAP_PANELS, .a = 16, .b = 64, .bits = 128};
    for (int row = 0; row < 128; row++)
        for (int piece = 0; piece < 16; piece++) {
            const int from = piece < 8  ? row * 16 + piece
                             : row < 64 ? (row + 64) * 16 + piece - 8
                                        : (row - 64) * 16 + piece;
            assert_int_equal(map_at(&map, row * 16 + piece), from);
        }
    map.b = 256;
    assert_int_equal(map_at(&map, 5 * 16 + 3), 5 * 16 + 3);
    assert_true(map_at(&map, 5 * 16 + 9) >= 128 * 16); /* behind the tile */
}

/* Every descriptor is found by the places that it reads, as itself or as one that reads the same; but not the right
   one, nor one of which the swizzle alone is another, which is a map of bits. */
static void descriptors_are_found(void **state)
{
    (void)state;
    enum { ROWS = 32, PIECES = MAP_PANEL_PIECES };
    int found = 0;
    for (int way = 0; way < MAP_DESCRIPTORS; way += 7) {
        struct pair pairs[ROWS * PIECES];
        struct map wanted, map;
        size_t moved = 0;
        char words[128];
        map_describe(way, PIECES, &wanted);
        for (int i = 0; i < ROWS * PIECES; i++) {
            pairs[i] = (struct pair){i, map_at(&wanted, i)};
            moved += pairs[i].to != i;
        }
        map_descriptor(&wanted, words, sizeof words);
        assert_true((moved > 0) <= (words[0] != '\0'));
        const bool of_bits =
            map_fit(pairs, (size_t)ROWS * PIECES, ROWS * PIECES, &map) < INFINITY && map.kind == MAP_BITS;
        if (moved * 10 < (size_t)ROWS * PIECES || of_bits)
            continue;
        assert_true(map_fit_places(pairs, (size_t)ROWS * PIECES, PIECES, &map) < INFINITY);
        size_t met = 0;
        for (int i = 0; i < ROWS * PIECES; i++)
            met += map_at(&map, i) == pairs[i].to;
        assert_true(met * 10 >= (size_t)ROWS * PIECES * 9);
        found += map.kind == MAP_DESCRIBED;
    }
    assert_true(found >= 40);
}

/* Codes of e2m1 that are all read by one table are told by it; a code that is read as two numbers is no matter of a
   table. */
static void a_table_of_codes_is_read_off(void **state)
{
    (void)state;
    enum { TILE = 2 * HALF_CODES };
    const float scale = 0.25f;
    struct oracle_case c = {.k_codes = {.scale = &scale, .groups = 1, .parts = 1, .tensor = 1}, .bc = 2};
    double want[TILE], got[TILE];
    struct sample_tile tile = {.c = &c, .rows = 2, .cols = HALF_CODES, .got = got, .want = want};
    const struct sample s = {.channel = asc_k, .tiles = &tile, .n = 1};
    float table[HALF_CODES];
    for (int i = 0; i < TILE; i++) {
        const uint8_t code = (uint8_t)(i % HALF_CODES);
        want[i] = got[i] = 0.25 * dtype_load(DTYPE_E2M1, &code, 0);
    }
    assert_int_equal(half_table(&s, table), 0);
    for (int i = 1; i < TILE; i += HALF_CODES) /* code 1, 0.5, as 0.75, in both rows */
        got[i] = 0.25 * 0.75;
    assert_int_equal(half_table(&s, table), 1);
    assert_true(table[1] == 0.75f && table[2] == 1);
    got[1] = 0.25;
    assert_int_equal(half_table(&s, table), 0);
}

static void expect_term(int (*in)(int x), enum condition condition, int a, int b)
{
    uint8_t sides[2][COUNT];
    struct term term = {.axis = AXIS_ROW};
    for (int x = 0; x < COUNT; x++) {
        sides[0][x] = (uint8_t)(in(x) != 0);
        sides[1][x] = !sides[0][x];
    }
    assert_true(term_fit(sides[0], sides[1], COUNT, &term) < INFINITY);
    assert_int_equal(term.condition, condition);
    assert_int_equal(term.a, a);
    assert_int_equal(term.b, b);
}

static int upper(int x)
{
    return x % 16 >= 8;
}
static int from_32(int x)
{
    return x >= 32;
}
static int below_48(int x)
{
    return x < 48;
}
static int only_5(int x)
{
    return x == 5;
}
static int not_5(int x)
{
    return x != 5;
}
static int third(int x)
{
    return x % 3 == 1;
}
static int between(int x)
{
    return x >= 8 && x < 24;
}

static void conditions_are_found(void **state)
{
    (void)state;
    expect_term(upper, UPPER, 16, 0);
    expect_term(from_32, UPPER, 64, 0);
    expect_term(below_48, BELOW, 48, 0);
    expect_term(only_5, EQUAL, 5, 0);
    expect_term(not_5, NOT, 5, 0);
    expect_term(third, RESIDUE, 3, 1);
    expect_term(between, WITHIN, 8, 23);
}

/* Rows 0 to 7 of 16 are explained; of each other row `lucky` of 64 elements are, too. */
static bool rows_have_region(int lucky, bool by_chance, struct region *region)
{
    enum { ROWS = 32, COLS = 64 };
    const struct oracle_case c = {.bc = COLS, .br = ROWS};
    struct sample_tile tile = {.c = &c, .rows = ROWS, .cols = COLS};
    const struct sample s = {.channel = asc_u, .tiles = &tile, .n = 1};
    uint8_t labels[ROWS * COLS], *const of[] = {labels};
    for (int i = 0; i < ROWS * COLS; i++)
        labels[i] = i / COLS % 16 < 8 || (i % COLS - i / COLS + COLS) % COLS < lucky ? LABEL_IN : LABEL_OUT;
    return region_fit(&s, of, by_chance, region);
}

static void a_region_leaves_out_what_chance_explains(void **state)
{
    (void)state;
    struct region region;
    assert_true(rows_have_region(0, false, &region));
    assert_false(rows_have_region(7, false, &region));
    assert_true(rows_have_region(7, true, &region)); /* 7 for 57 */
    assert_int_equal(region.n, 1);
    assert_int_equal(region.term[0].axis, AXIS_ROW);
    assert_int_equal(region.term[0].condition, LOWER);
    assert_int_equal(region.term[0].a, 16);
    assert_false(rows_have_region(8, true, &region)); /* 8 for 56, one for seven */
}

static void equations_that_say_nothing_are_told(void **state)
{
    (void)state;
    /* The third unknown is the sum of the first two in every equation. */
    double a[9] = {2, 0, 0, 1, 2, 0, 3, 3, 6}, b[3] = {4, 5, 9};
    unsigned char known[3];
    solve_symmetric(a, b, 3, 1, known);
    assert_true(known[0] && known[1] && !known[2]);
    assert_true(fabs(b[0] - 1) < 1e-12 && fabs(b[1] - 2) < 1e-12);
    double x[] = {5, 1, 3};
    assert_true(median(x, 3) == 3);
    assert_true(isnan(median(x, 0)));
}

static void numbers_are_recognized(void **state)
{
    (void)state;
    const struct oracle_case c = {.scale = 0.125, .head_dim = 64, .head_dim_v = 64};
    double value = 0, bits = 0;
    char words[CONSTANT_BYTES];
    assert_true(constant_near(&c, 0.1250001, 1e-6, &value, &bits, words));
    assert_string_equal(words, "the softmax scale");
    assert_true(constant_near(&c, -M_LN2, 1e-9, &value, &bits, words));
    assert_string_equal(words, "minus ln 2");
    assert_false(constant_near(&c, 0.1234, 1e-6, &value, &bits, words));
    assert_false(constant_near(&c, NAN, 1e-6, &value, &bits, words));
}

/* A number that is two things by chance is said to be either; one thing under two names is said once. */
static void two_readings_of_a_number_are_both_said(void **state)
{
    (void)state;
    static const struct {
        double scale, offset, x;
        const char *said;
    } rows[] = {{0.125, 8, 8 * M_LN2, "5.54518 (p_offset · ln 2, or 1 / (softmax scale · log2(e)))"},
                {0.2, 8, 8 * M_LN2, "5.54518 (p_offset · ln 2)"},
                {0.125, 0, 8 * M_LN2, "5.54518 (1 / (softmax scale · log2(e)))"},
                {0.125, 8, -8, "-8 (minus 1 / softmax scale, or minus p_offset)"},
                {0.125, 8, 0.125, "0.125 (the softmax scale)"},
                {0.5, 0, 0.5, "0.5 (1/2, or the softmax scale)"},
                {1, 0, 1, "1"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oracle_case c = {.scale = rows[i].scale, .head_dim = 64, .head_dim_v = 64};
        char said[160];
        c.conventions.p_offset = (float)rows[i].offset;
        constant_say(&c, rows[i].x, said, sizeof said);
        assert_string_equal(said, rows[i].said);
    }
}

static void a_pair_that_is_turned_in_place_uses_what_it_has_just_made(void **state)
{
    (void)state;
    const struct rope rope = {.kind = ASC_ROPE_HALF, .dim = 4, .base = 100};
    const double x[] = {1, 2, 3, 4}, by[] = {3, 0.3}; /* position 3: 3 * 100^0 and 3 * 100^-(1/2) */
    for (int reuse = REUSE_NONE; reuse <= REUSE_SECOND; reuse++) {
        const struct turned how = {
            .by = rope, .reuse = (enum reuse)reuse, .angles = ASC_ROPE_HALF, .signs = ASC_ROPE_HALF, .times = 1};
        double out[4];
        turned_row(&how, &rope, 3, x, 4, out);
        for (int i = 0; i < 2; i++) {
            double a = x[i], b = x[i + 2];
            const double first = a * cos(by[i]) - b * sin(by[i]), second = b * cos(by[i]) + a * sin(by[i]);
            a = reuse == REUSE_FIRST ? first : a;
            b = reuse == REUSE_SECOND ? second : b;
            assert_true(fabs(out[i] - (reuse == REUSE_SECOND ? x[i] * cos(by[i]) - b * sin(by[i]) : first)) < 1e-12);
            assert_true(fabs(out[i + 2] - (reuse == REUSE_FIRST ? x[i + 2] * cos(by[i]) + a * sin(by[i]) : second)) <
                        1e-12);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_heads_have_a_map),
        cmocka_unit_test(maps_are_found_and_said),
        cmocka_unit_test(scattered_pairs_have_no_map),
        cmocka_unit_test(bits_that_no_pair_has_are_a_guess),
        cmocka_unit_test(panels_lie_apart),
        cmocka_unit_test(descriptors_are_found),
        cmocka_unit_test(a_table_of_codes_is_read_off),
        cmocka_unit_test(conditions_are_found),
        cmocka_unit_test(a_region_leaves_out_what_chance_explains),
        cmocka_unit_test(equations_that_say_nothing_are_told),
        cmocka_unit_test(numbers_are_recognized),
        cmocka_unit_test(two_readings_of_a_number_are_both_said),
        cmocka_unit_test(a_pair_that_is_turned_in_place_uses_what_it_has_just_made),
    };
    return cmocka_run_group_tests_name("oracle: search parts", tests, NULL, NULL);
}
