/* What tests/gpu/numerics.sh measures on a GPU, tried on devices that are none: a right one holds, every planted
   mistake is seen, and the search finds the arithmetic that was planted. */
#include "engine/oracle/bound.h"
#include "tests/gpu/numerics_host.h"
#include "tests/unit/lib/temporary.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct numerics_host plain(void)
{
    return (struct numerics_host){.only = VECTOR_INSTRUCTIONS};
}

/* The candidates and the emulator, written apart, agree on every finite fill. */
static void candidates_are_the_emulator(void **state)
{
    (void)state;
    long elements = 0;
    for (uint32_t instruction = 0; instruction < VECTOR_INSTRUCTIONS; instruction++) {
        const struct vector_product p = vector_product(instruction);
        const int model = p.text ? vector_model(instruction, 90) : VECTOR_NO_MODEL;
        if (model == VECTOR_NO_MODEL)
            continue;
        struct candidate c = candidate_of_model((enum tensor_core)model);
        c.products = c.products < p.k ? c.products : p.k;
        for (uint32_t fill = VECTOR_NORMAL; fill < VECTOR_SPECIAL; fill++) {
            const struct vector_row row = {instruction, fill, 1 + fill % 3, 1, 512};
            struct vector_inputs in;
            uint32_t out[512] = {0};
            assert_int_equal(vector_inputs_new(&row, (int)fill, &in), 0);
            const int n = p.rows * p.columns;
            for (int tile = 0; tile < 512 / n; tile++)
                assert_int_equal(vector_emulate(&in, &row, (enum tensor_core)model, tile, out + (ptrdiff_t)tile * n),
                                 0);
            for (int i = 0; i < 512; i++) {
                struct candidate_element e;
                if (!candidate_take(&in, &row, i, out[i], &e))
                    continue;
                elements++;
                if (candidate_result(&c, &e, p.sum) != out[i])
                    fail_msg("%s fill %u element %d: %08x, the emulator's %08x", p.text, fill, i,
                             candidate_result(&c, &e, p.sum), out[i]);
            }
            free(in.code);
        }
    }
    print_message("# %ld elements\n", elements);
    assert_true(elements > 20000);
}

/* The rows of one section, with what stands in their columns. */
struct table {
    char *text;
    size_t size;
    FILE *file;
    struct numerics_table t;
};

static void table_open(struct table *x)
{
    *x = (struct table){0};
    x->file = open_memstream(&x->text, &x->size);
    assert_non_null(x->file);
    x->t.tsv = x->file;
}

static void table_done(struct table *x)
{
    fclose(x->file); /* fills text */
    x->file = NULL;
}

static void table_close(struct table *x)
{
    free(x->text);
}

/* How many lines start with the words, fields parted by tabs. */
static int lines(const struct table *x, const char *start)
{
    int n = 0;
    for (const char *line = x->text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        n += strncmp(line, start, strlen(start)) == 0;
    return n;
}

static const char *line_of(const struct table *x, const char *start)
{
    const char *at = strstr(x->text, start);
    assert_non_null(at);
    return at;
}

/* Plants an arithmetic in an instruction: the search ranks it, or one no element tells from it, first, with every
   element equal, and its words stand in the table. */
static void planted(uint32_t instruction, struct candidate c)
{
    struct numerics_host h = plain();
    h.only = instruction;
    h.product = &c;
    struct numerics_device d = host_device(&h, 90);
    struct table x;
    char words[200];
    char start[100];
    table_open(&x);
    assert_int_equal(numerics_products(&d, &x.t, 128, 1), 0);
    table_done(&x);
    candidate_text(&c, words, sizeof words);
    const char *text = vector_product(instruction).text;
    snprintf(start, sizeof start, "info\tcandidate\t%s\trank 1\t", text);
    const char *first = line_of(&x, start);
    long n = 0;
    long equal = -1;
    assert_int_equal(sscanf(first + strlen(start), "%ld\t%ld", &n, &equal), 2);
    if (equal != n || n < 1000)
        fail_msg("%s: planted %s, best %.*s", text, words, (int)strcspn(first, "\n"), first);
    const char *end = first + strcspn(first, "\n");
    if ((size_t)(end - first) < strlen(words) || !memmem(first, (size_t)(end - first), words, strlen(words)))
        fail_msg("%s: planted %s, found %.*s", text, words, (int)(end - first), first);
    table_close(&x);
}

static void search_finds_what_is_planted(void **state)
{
    (void)state;
    planted(VECTOR_WGMMA_E4M3, candidate_of_model(TENSOR_CORE_WGMMA_E4M3));
    planted(VECTOR_MMA_E4M3, candidate_of_model(TENSOR_CORE_MMA_E4M3));
    struct candidate c = {.products = 32, .fraction = 13, .result = 23, .pair = 2, .carry = CARRY_ADDED};
    planted(VECTOR_WGMMA_E4M3, c);
    c.carry = CARRY_ADDED_CUT;
    c.fraction = 14;
    planted(VECTOR_WGMMA_E4M3, c);
    c = (struct candidate){.products = 16, .fraction = 13, .result = 13, .pair = 2, .carry = CARRY_ADDED_NARROW};
    planted(VECTOR_WGMMA_E4M3, c);
    c = (struct candidate){.products = 32, .fraction = 13, .result = 14, .pair = 2, .floor = 1};
    planted(VECTOR_WGMMA_E5M2, c);
    c = (struct candidate){.products = 8, .fraction = 24, .result = 23, .pair = 2, .half = HALF_CHUNK_CUT};
    planted(VECTOR_MMA_F16_F16, c);
}

/* A device that computes as the emulator says passes whole, one that lacks the newest instructions too. */
static void a_right_device_holds(void **state)
{
    (void)state;
    static const int architectures[] = {80, 89, 90};
    for (int i = 0; i < 3; i++) {
        struct numerics_host h = plain();
        struct numerics_device d = host_device(&h, architectures[i]);
        struct table x;
        table_open(&x);
        numerics_table_start(&x.t, &d);
        assert_int_equal(numerics_products(&d, &x.t, 2048, 0), 0);
        assert_int_equal(numerics_functions(&d, &x.t), 0);
        assert_int_equal(numerics_conversions(&d, &x.t, 2), 0);
        const int end = numerics_table_end(&x.t);
        table_done(&x);
        if (end != 0 || lines(&x, "FAIL\t") != 0)
            fail_msg("sm_%d: %.600s", architectures[i], strstr(x.text, "\nFAIL\t"));
        assert_true(lines(&x, "ok\tproduct\t") >= 100);
        assert_true(lines(&x, "ok\tfunction\t") >= 40);
        assert_int_equal(lines(&x, "ok\tconversion\t"), NUMERICS_CONVERSIONS);
        assert_int_equal(lines(&x, "SKIP\tproduct\twgmma.m64n8k16.f32.f16.f16\t"), architectures[i] < 90);
        assert_int_equal(lines(&x, "SKIP\tfunction\tex2.approx.ftz.bf16x2") > 0, architectures[i] < 90);
        table_close(&x);
    }
}

/* Function errors just beyond a bound, a NaN, and one wrong code of 2^32 fail the run. */
static void mistakes_fail(void **state)
{
    (void)state;
    struct numerics_host h = plain();
    struct numerics_device d = host_device(&h, 90);
    struct table x;
    h.relative = 0x1p-21;
    table_open(&x);
    assert_int_equal(numerics_functions(&d, &x.t), 0);
    table_done(&x);
    assert_int_equal(lines(&x, "FAIL\tfunction\tex2.approx.ftz.f32\t-126 <= x < -1\t"), 1);
    assert_int_equal(lines(&x, "FAIL\tfunction\t__expf\t-1 <= x <= -0\t"), 1);
    assert_int_equal(lines(&x, "FAIL\tfunction\t__fdividef\t"), 1);
    assert_int_equal(lines(&x, "FAIL\tfunction\ttanh.approx.f32\t"), 0);
    table_close(&x);

    h = plain();
    h.wrong = 1;
    h.wrong_code = 0x80000000u + 65521u * 100;
    d.function_step = 65521;
    table_open(&x);
    assert_int_equal(numerics_functions(&d, &x.t), 0);
    table_done(&x);
    assert_int_equal(lines(&x, "FAIL\tfunction\texp2f\t-1 <= x <= -0\t"), 1);
    table_close(&x);

    h.wrong_code = 65521u * 777;
    table_open(&x);
    assert_int_equal(numerics_conversions(&d, &x.t, 2), 0);
    table_done(&x);
    assert_int_equal(lines(&x, "FAIL\tconversion\t"), 8); /* all of f32 */
    const char *line = line_of(&x, "FAIL\tconversion\tcvt.rn.f16.f32\t");
    char wrong[64];
    snprintf(wrong, sizeof wrong, "first wrong argument %08x", h.wrong_code);
    assert_non_null(memmem(line, strcspn(line, "\n"), wrong, strlen(wrong)));
    table_close(&x);
}

/* An arithmetic that is coarser than what is claimed fails; one that is finer passes where only the bound is claimed,
   as on GPUs that have not been measured. */
static void products_fail(void **state)
{
    (void)state;
    static const struct {
        uint32_t instruction;
        int sm, products, fraction, result, fails;
    } cases[] = {{VECTOR_MMA_F16, 90, 16, 25, 22, 1},   {VECTOR_MMA_F16, 90, 16, 25, 23, 0},
                 {VECTOR_WGMMA_F16, 90, 16, 26, 23, 1}, {VECTOR_WGMMA_E4M3, 90, 32, 13, 14, 1},
                 {VECTOR_MMA_F16_K8, 80, 8, 26, 23, 0}, {VECTOR_MMA_F16_K8, 80, 8, 13, 13, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct candidate c = {
            .products = cases[i].products, .fraction = cases[i].fraction, .result = cases[i].result, .pair = 2};
        struct numerics_host h = plain();
        h.only = cases[i].instruction;
        h.product = &c;
        struct numerics_device d = host_device(&h, cases[i].sm);
        struct table x;
        table_open(&x);
        assert_int_equal(numerics_products(&d, &x.t, 512, 0), 0);
        const int end = numerics_table_end(&x.t);
        table_done(&x);
        /* Special operands are not among what a candidate computes. */
        char words[100];
        snprintf(words, sizeof words, "FAIL\tproduct\t%s\tNaN and inf", vector_product(cases[i].instruction).text);
        const int special = lines(&x, words);
        if ((lines(&x, "FAIL\t") > special) != cases[i].fails)
            fail_msg("case %zu: %d rows fail", i, lines(&x, "FAIL\t"));
        assert_true(end == 1 || !cases[i].fails);
        table_close(&x);
    }
}

/* A device whose tiles lie turned fails by its integers, whatever its arithmetic. */
static int turned_product(struct numerics_device *d, const struct vector_row *row, int tiles, const void *a,
                          const void *b, const void *c, uint32_t *out, const char **why)
{
    const int done = host_product(d, row, tiles, a, b, c, out, why);
    const struct vector_product p = vector_product(row->instruction);
    for (int i = 0, j = tiles * p.rows * p.columns - 1; i < j; i++, j--) {
        const uint32_t swapped = out[i];
        out[i] = out[j];
        out[j] = swapped;
    }
    return done;
}

static void layout_fails(void **state)
{
    (void)state;
    struct numerics_host h = plain();
    h.only = VECTOR_WGMMA_E4M3;
    struct numerics_device d = host_device(&h, 90);
    d.product = turned_product;
    struct table x;
    table_open(&x);
    assert_int_equal(numerics_products(&d, &x.t, 512, 0), 0);
    table_done(&x);
    assert_int_equal(lines(&x, "FAIL\tproduct\twgmma.m64n8k32.f32.e4m3.e4m3\tintegers"), 1);
    table_close(&x);
}

/* What is recorded is judged again from the file, and its arithmetic found. */
static void recorded_vectors(void **state)
{
    (void)state;
    char path[TEMPORARY];
    const int fd = mkstemp(temporary(path, "vectors"));
    assert_true(fd >= 0);
    close(fd);
    const struct candidate c = {.products = 32, .fraction = 13, .result = 14, .pair = 2, .carry = CARRY_ADDED_CUT};
    struct numerics_host h = plain();
    h.only = VECTOR_WGMMA_E4M3;
    h.product = &c;
    struct numerics_device d = host_device(&h, 90);
    const char *why = "";
    assert_int_equal(numerics_record(&d, path, &why), 0);
    struct table x;
    table_open(&x);
    assert_int_equal(numerics_replay(path, &x.t), 0);
    table_done(&x);
    char words[200];
    candidate_text(&c, words, sizeof words);
    const char *line = line_of(&x, "info\tcandidate\twgmma.m64n8k32.f32.e4m3.e4m3\trank 1\t");
    assert_non_null(memmem(line, strcspn(line, "\n"), words, strlen(words)));
    assert_true(lines(&x, "FAIL\tproduct\twgmma.m64n8k32.f32.e4m3.e4m3\t") >= 5); /* it is not the emulator's */
    table_close(&x);
    assert_int_equal(truncate(path, 300), 0);
    table_open(&x);
    assert_int_equal(numerics_replay(path, &x.t), -1);
    table_done(&x);
    assert_int_equal(lines(&x, "FAIL\tproduct\t"), 1);
    table_close(&x);
    assert_int_equal(unlink(path), 0);
}

/* The bounds that are measured are those that the oracle applies. */
static void bounds_are_the_oracle_s(void **state)
{
    (void)state;
    const struct oracle_case none = {0};
    for (int i = -870; i < 880; i += 3) {
        const double x = i * 0.1;
        const double y = exp(x), ratio = 1e-9;
        assert_true(fabs(numerics_bound(NUMERICS_EX2_FTZ, x, y) - (y * bound_exp(0, 0) + BOUND_TINY)) <= y * ratio);
        assert_true(fabs(numerics_bound(NUMERICS_EXPF_FAST, x, y) - (y * bound_exp(x, 0) + BOUND_TINY)) <= y * ratio);
        assert_true(numerics_bound(NUMERICS_LOGF_FAST, y, x) <= bound_lse(0, x, 0) * (1 + ratio));
        assert_true(numerics_bound(NUMERICS_DIVIDE_FAST, 1, y) <= bound_divide(y) * (1 + ratio));
        assert_true(numerics_bound(NUMERICS_RCP, 1, y) <= bound_divide(y) - BOUND_U * y);
        assert_true(numerics_bound(NUMERICS_TANH, x, 1) <= bound_tanh(&none) + BOUND_TINY);
    }
}

/* What an H200 was measured to err by at most (docs/gpu-report/numerics.md) leaves room in every constant, so that
   another GPU's last place is no fault of a kernel's, and not so much that the constant says nothing. */
static void measured(void **state)
{
    (void)state;
    const struct oracle_case none = {0};
    const double u = BOUND_U;
    const struct {
        double error, bound;
    } cases[] = {{0x1p-22 * 0.6113, BOUND_EXP},                    /* ex2.approx: 2^-22.71 */
                 {0x1p-14 * 0.1823, bound_tanh(&none)},            /* tanh.approx: 2^-16.46 */
                 {2 * u * 0.8245, bound_divide(1) - 2 * u},        /* rcp.approx */
                 {0x1p-22 * 0.6507, bound_divide(1)},              /* __fdividef */
                 {0x1p-22 * 0.732, bound_lse(0, M_LN2, 0)},        /* __logf between 0.5 and 2 */
                 {0x1p-17 * 1.181, bound_lse(0, 127 * M_LN2, 0)}}; /* and beyond */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!(cases[i].bound >= 1.2 * cases[i].error && cases[i].bound <= 8 * cases[i].error))
            fail_msg("case %zu: bound %g, measured %g", i, cases[i].bound, cases[i].error);
}

static void driver_version(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue Sep  1 10:00:00 UTC 2026\nGCC version:  gcc "
         "12\n",
         "580.159.03"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65  Release Build\n", "580.65"},
        {"NVRM version: none\n", ""},
        {"", ""}};
    char path[TEMPORARY];
    const int fd = mkstemp(temporary(path, "driver"));
    assert_true(fd >= 0);
    char out[32];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const size_t n = strlen(files[i][0]);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, files[i][0], n, 0), n);
        numerics_driver_version(path, out, sizeof out);
        assert_string_equal(out, files[i][1]);
    }
    close(fd);
    assert_int_equal(unlink(path), 0);
    numerics_driver_version(path, out, sizeof out);
    assert_string_equal(out, "");
}

/* Edges of the scale: a NaN, an infinity and a flushed result are weighed by what they stand for. */
static void weighing(void **state)
{
    (void)state;
    static const struct {
        int function;
        double x, got;
        int right;
    } cases[] = {{NUMERICS_EX2, -INFINITY, 0, 1},
                 {NUMERICS_EX2, -INFINITY, 0x1p-120, 0},
                 {NUMERICS_EX2, -130, 0, 1},
                 {NUMERICS_EX2, 128, INFINITY, 1},
                 {NUMERICS_EX2, 127, INFINITY, 0},
                 {NUMERICS_EX2, 128, -INFINITY, 0},
                 {NUMERICS_EX2, NAN, NAN, 1},
                 {NUMERICS_EX2, NAN, 1, 0},
                 {NUMERICS_EX2, 0, NAN, 0},
                 {NUMERICS_EX2, 0, 1 + 0x1p-23, 1},
                 {NUMERICS_EX2, 0, 1 + 0x1p-21, 0},
                 {NUMERICS_LOGF, 0, -INFINITY, 1},
                 {NUMERICS_LOGF, 0, -100, 0},
                 {NUMERICS_LOGF, -1, NAN, 1},
                 {NUMERICS_RCP, 0, INFINITY, 1},
                 {NUMERICS_RCP, INFINITY, 0, 1},
                 {NUMERICS_TANH, INFINITY, 1, 1},
                 {NUMERICS_TANH, INFINITY, INFINITY, 0},
                 {NUMERICS_EXPF, -INFINITY, 0, 1},
                 {NUMERICS_EXPF_FAST, -INFINITY, 0, 1},
                 {NUMERICS_EXPF, -INFINITY, 0x1p-149, 0},
                 {NUMERICS_EXPF_FAST, -INFINITY, NAN, 0},
                 {NUMERICS_EX2, -INFINITY, 0x1p-149, 0},
                 {NUMERICS_RCP, -INFINITY, -0x1p-149, 0},
                 {NUMERICS_EX2_F16, 16, INFINITY, 1},
                 {NUMERICS_EX2_F16, 15, INFINITY, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct numerics_worst w = numerics_worst_none;
        numerics_weigh(cases[i].function, cases[i].x, 1, cases[i].got, 7, &w);
        if ((w.violations == 0) != cases[i].right || (w.violations && w.first != 7))
            fail_msg("case %zu", i);
        if (cases[i].right && !(numerics_unpack(w.ratio) <= 1))
            fail_msg("case %zu: error / bound %g", i, (double)numerics_unpack(w.ratio));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_the_emulator),
        cmocka_unit_test(search_finds_what_is_planted),
        cmocka_unit_test(a_right_device_holds),
        cmocka_unit_test(mistakes_fail),
        cmocka_unit_test(products_fail),
        cmocka_unit_test(layout_fails),
        cmocka_unit_test(recorded_vectors),
        cmocka_unit_test(bounds_are_the_oracle_s),
        cmocka_unit_test(measured),
        cmocka_unit_test(driver_version),
        cmocka_unit_test(weighing),
    };
    return cmocka_run_group_tests_name("numerics", tests, NULL, NULL);
}
