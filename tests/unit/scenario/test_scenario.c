/* Scenarios: what a file says arrives, and each mistake gets its one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/text.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"
#include "engine/trace/event.h"
#include "tests/unit/lib/temporary.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Below a folder of the test's own: s/ for scenarios, root/ in the place of attnscope's folder. */
static char folder[TEMPORARY];
static int repository = -1;

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static int enter_folder(void **state)
{
    (void)state;
    repository = open(".", O_RDONLY | O_DIRECTORY);
    if (repository < 0 || !mkdtemp(temporary(folder, "scenario")) || chdir(folder) != 0)
        return -1;
    if (mkdir("s", 0700) != 0 || mkdir("root", 0700) != 0 || mkdir("root/kernels", 0700) != 0)
        return -1;
    write_text("s/own.cu", "");
    write_text("s/fix.patch", "");
    write_text("root/kernels/k.cu", "");
    write_text("root/own.cu", "");
    return 0;
}

static int leave_folder(void **state)
{
    (void)state;
    static const char *const made[] = {"s/own.cu",          "s/fix.patch", "s/x.ini",   "s/full.ini",
                                       "root/kernels/k.cu", "root/own.cu", "s/list.ini"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        unlink(made[i]);
    const int removed = rmdir("root/kernels") == 0 && rmdir("root") == 0 && rmdir("s/a b") == 0 && rmdir("s") == 0;
    const int back = fchdir(repository) == 0;
    close(repository);
    return removed && back && rmdir(folder) == 0 ? 0 : -1;
}

static const char *said(const struct err *err)
{
    static char line[4200];
    snprintf(line, sizeof line, "%s: %s", err->where, err->message);
    return line;
}

static void read_text(const char *text, struct scenario *s)
{
    struct err err = {0};
    write_text("s/x.ini", text);
    if (scenario_read("s/x.ini", "root", s, &err) != 0)
        fail_msg("%s", said(&err));
}

#define KERNEL "[scenario]\nkernel = own.cu\n"

static const struct {
    const char *text, *said;
} mistakes[] = {
#define MISTAKE(text, said) {text, said},
#include "tests/unit/scenario/scenario_mistakes.def"
#undef MISTAKE
};

static int is_zero(const struct scenario *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) {
        if (bytes[i])
            return 0;
    }
    return 1;
}

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct scenario s;
        struct err err = {0};
        char want[1024];
        write_text("s/x.ini", mistakes[i].text);
        snprintf(want, sizeof want, "s/x.ini%s", mistakes[i].said);
        if (scenario_read("s/x.ini", "root", &s, &err) == 0)
            fail_msg("taken: %s", mistakes[i].text);
        assert_string_equal(said(&err), want);
        assert_int_equal(err.code, ERR_INPUT);
        assert_true(is_zero(&s));
        scenario_free(&s);
    }
}

static void test_no_text_file(void **state)
{
    (void)state;
    struct scenario s;
    struct err err = {0};
    write_bytes("s/x.ini", "[shape]\nheads\0= 8\n", 18);
    assert_int_equal(scenario_read("s/x.ini", "root", &s, &err), -1);
    assert_string_equal(said(&err), "s/x.ini:2: expected text, found byte 0x00");
    assert_int_equal(scenario_read("s", "root", &s, &err), -1);
    assert_string_equal(said(&err), "s: expected a scenario file, found a folder");
    assert_int_equal(scenario_read("s/gone.ini", "root", &s, &err), -1);
    assert_string_equal(said(&err), "s/gone.ini: expected a scenario file: No such file or directory");
    assert_true(is_zero(&s));
    char *large = malloc(1 << 20);
    assert_non_null(large);
    memset(large, '\n', 1 << 20);
    write_bytes("s/x.ini", large, 1 << 20);
    assert_int_equal(scenario_read("s/x.ini", "root", &s, &err), -1);
    assert_string_equal(said(&err), "s/x.ini: expected a scenario of less than 1048576 bytes");
    memset(large, 'a', 600);
    large[600] = '\0';
    assert_int_equal(scenario_read(large, "root", &s, &err), -1);
    assert_string_equal(err.message, "expected a path of less than 512 bytes and a name of less than 128");
    free(large);
    assert_int_equal(scenario_read("s/gone.ini", "root", &s, NULL), -1);
}

/* What is too large only as a whole is refused at the first length that the file states. */
static void test_sizes_together(void **state)
{
    (void)state;
    struct scenario s;
    struct err err = {0};
    write_text("s/x.ini",
               KERNEL "[shape]\nheads = 16777216\nbatch = 16777216\nq_len = 16777216\nhead_dim = 16777216\n");
    assert_int_equal(scenario_read("s/x.ini", "root", &s, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.where, "s/x.ini:5: shape.batch");
}

static void test_defaults(void **state)
{
    (void)state;
    struct scenario s;
    read_text(KERNEL, &s);
    assert_string_equal(s.name, "x");
    assert_string_equal(s.path, "s/x.ini");
    assert_string_equal(s.kernel, "s/own.cu");
    assert_string_equal(s.patch, "");
    assert_string_equal(s.text, KERNEL);
    const struct asc_problem *p = &s.problem;
    assert_int_equal(p->batch, 1);
    assert_int_equal(p->heads, 8);
    assert_int_equal(p->kv_heads, 8);
    assert_int_equal(p->q_len, 512);
    assert_int_equal(p->kv_len, 512);
    assert_int_equal(p->head_dim, 64);
    assert_int_equal(p->causal, ASC_CAUSAL_NONE);
    assert_int_equal(p->layout, ASC_BHLD);
    assert_int_equal(p->dtype, DTYPE_F16);
    assert_true(p->scale == 0.125F);
    assert_null(p->q);
    assert_null(p->lse);
    assert_int_equal(s.fill_v.kind, FILL_NORMAL);
    assert_true(s.fill_v.sigma == 1.0 && s.fill_v.seed == 0);
    assert_null(s.capture.heads);
    assert_int_equal(s.capture.n_heads, 0);
    assert_int_equal(s.capture.channels, (1u << ASC_CHANNELS) - 1);
    assert_true(s.capture.mem_bytes == UINT64_C(2) << 30);
    assert_int_equal(s.expect.verdict, EXPECT_NOTHING);
    assert_int_equal(s.expect.first_channel, -1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(s.expect.first[i], -1);
    assert_int_equal(s.expect.line_of_expect, 0);
    assert_true(s.limit_s == 30.0);
    scenario_free(&s);
    assert_true(is_zero(&s));
    scenario_free(&s);
    scenario_free(NULL);
}

/* The defaults that the docs print are those that scenario_init() sets: stating one changes nothing. */
static void test_documented_defaults(void **state)
{
    (void)state;
    int values = 0;
    for (int i = 0; i < KEY_COUNT; i++) {
        struct scenario s, stated;
        scenario_init(&s);
        scenario_init(&stated);
        if (i == KEY_KERNEL || i == KEY_PATCH || i == KEY_DEFINE || i == KEY_INCLUDE || i == KEY_EVENT_AT ||
            (i >= KEY_INPUT_FROM && i <= KEY_INPUT_PAGE_TABLE)) /* any text is a value */
            continue;
        if (scenario_key_set(&stated, (enum scenario_key_id)i, scenario_keys[i].by_default, "", NULL) != 0)
            continue; /* words such as "heads" or "not stated" */
        stated.stated[i] = false;
        assert_string_equal(scenario_said(&stated, (enum scenario_key_id)i), scenario_keys[i].by_default);
        free(stated.said[i]);
        stated.said[i] = NULL;
        assert_memory_equal(&s, &stated, sizeof s);
        values++;
    }
    assert_int_equal(values, 53);
}

/* A shape that is given as a whole takes the place of what was stated of lengths and scale; what follows may change it.
 */
static void test_shape_over_a_file(void **state)
{
    (void)state;
    struct scenario s, copy;
    struct err err = {0};
    scenario_init(&s);
    assert_int_equal(scenario_set(&s, "shape.kv_heads", "2", &err), 0);
    assert_int_equal(scenario_set(&s, "shape.kv_len", "70", &err), 0);
    assert_int_equal(scenario_set(&s, "shape.scale", "0.3", &err), 0);
    assert_int_equal(scenario_set_shape(&s, "1,4,100,128", &err), 0);
    assert_int_equal(s.problem.kv_heads, 4);
    assert_int_equal(s.problem.kv_len, 100);
    assert_true(s.problem.scale == scenario_auto_scale(128));
    assert_null(scenario_said(&s, KEY_SCALE));
    assert_string_equal(scenario_said(&s, KEY_Q_LEN), "100");
    assert_int_equal(scenario_set(&s, "shape.q_len", "50", &err), 0);
    assert_int_equal(s.problem.kv_len, 50); /* as without a shape */
    assert_int_equal(scenario_set_shape(&s, "1,4,100,30,64", &err), 0);
    assert_string_equal(scenario_said(&s, KEY_KV_LEN), "30");
    assert_int_equal(scenario_set(&s, "shape.q_len", "50", &err), 0);
    assert_int_equal(s.problem.kv_len, 30);
    assert_int_equal(scenario_set_shape(&s, "1,0,100,64", &err), -1);
    assert_int_equal(s.problem.kv_len, 30);
    /* A copy owns all that it holds. */
    assert_int_equal(scenario_set(&s, "capture.heads", "0,2-3", &err), 0);
    assert_int_equal(scenario_copy(&s, &copy), 0);
    scenario_free(&s);
    assert_int_equal(copy.capture.n_heads, 3);
    assert_int_equal(copy.capture.heads[2], 3);
    assert_string_equal(scenario_said(&copy, KEY_CAPTURED_HEADS), "0,2-3");
    scenario_free(&copy);
}

static void test_everything_stated(void **state)
{
    (void)state;
    static const char text[] =
        "\xef\xbb\xbf; all of it\r\n"
        "[scenario]\r\n"
        "  kernel = kernels/k.cu ; below root\r\n"
        "\tpatch: fix.patch\r\n"
        "define = WS=2 \t _fast WS=1 X=-1.5e+3_f\r\n"
        "limit = 2.5e0\r\n"
        "[shape] ; the problem\n"
        "scale = 0.3\nhead_dim = 128\nkv_heads = 2\nheads = 6\nbatch = 3\nkv_len = 333\n"
        "q_len = 200\ncausal = bottom-right\nlayout = BLHD\ndtype = bf16\n"
        "sink = yes\nalibi = yes\nbias = per-batch\nmask = j <= i || h == 1\nscore_mod = s * 0.5\ndropout = 0.25\n"
        "[fill]\n"
        "k.kind = one-hot\nkind = uniform\nq.sigma = 0.5\nsigma = 2\nv.seed = 7\n"
        "seed = 18446744073709551615\nsink.sigma = 3\nbias.kind = arange\nbias.seed = 8\n"
        "[capture]\n"
        "batches = 0-1\nheads = 0, 3 , 5\nq_tiles = 1,3-5,9\nchannels = s, p,lse\nmem = 512 MiB\n"
        "[expect]\n"
        "verdict = fail\n"
        "first = q1  s k0\n"
        "culprits = s,l\n"
        "cause = scaled-twice , l-not-rescaled\n"
        "event = race , fp-invalid\nevent_at = row[i + 1] += x; y ; not this\nstopped = address,launch";
    struct scenario s;
    struct err err = {0};
    write_text("s/full.ini", text);
    if (scenario_read("s/full.ini", "root", &s, &err) != 0)
        fail_msg("%s", said(&err));
    assert_string_equal(s.name, "full");
    assert_string_equal(s.kernel, "root/kernels/k.cu");
    assert_string_equal(s.patch, "s/fix.patch");
    assert_string_equal(s.define, "_fast WS=1 X=-1.5e+3_f");
    assert_true(s.limit_s == 2.5);
    const struct asc_problem *p = &s.problem;
    assert_int_equal(p->batch, 3);
    assert_int_equal(p->heads, 6);
    assert_int_equal(p->kv_heads, 2);
    assert_int_equal(p->q_len, 200);
    assert_int_equal(p->kv_len, 333);
    assert_int_equal(p->head_dim, 128);
    assert_int_equal(p->causal, ASC_CAUSAL_BOTTOM_RIGHT);
    assert_int_equal(p->layout, ASC_BLHD);
    assert_int_equal(p->dtype, DTYPE_BF16);
    assert_true(p->scale == 0.3F);
    assert_int_equal(p->has_sink, 1);
    assert_int_equal(p->has_alibi, 1);
    assert_int_equal(p->bias_kind, ASC_BIAS_PER_BATCH);
    assert_int_equal(p->mask_kind, ASC_BIAS_PER_HEAD);
    assert_string_equal(p->mask_formula, "j <= i || h == 1");
    assert_string_equal(p->score_mod, "s * 0.5");
    assert_true(p->dropout == 0.25f && p->keep_kind == ASC_BIAS_FULL);
    /* Of the common keys, sinks and bias follow the seed alone. */
    assert_int_equal(s.fill_sink.kind, FILL_NORMAL);
    assert_int_equal(s.fill_bias.kind, FILL_ARANGE);
    assert_true(s.fill_sink.sigma == 3.0 && s.fill_bias.sigma == 1.0);
    assert_true(s.fill_sink.seed == UINT64_MAX && s.fill_bias.seed == 8);
    assert_int_equal(s.fill_q.kind, FILL_UNIFORM);
    assert_int_equal(s.fill_k.kind, FILL_ONE_HOT);
    assert_int_equal(s.fill_v.kind, FILL_UNIFORM);
    assert_true(s.fill_q.sigma == 0.5 && s.fill_k.sigma == 2.0 && s.fill_v.sigma == 2.0);
    assert_true(s.fill_q.seed == UINT64_MAX && s.fill_k.seed == UINT64_MAX && s.fill_v.seed == 7);
    static const int heads[] = {0, 3, 5}, q_tiles[] = {1, 3, 4, 5, 9};
    assert_int_equal(s.capture.n_batches, 2);
    assert_int_equal(s.capture.n_heads, 3);
    assert_memory_equal(s.capture.heads, heads, sizeof heads);
    assert_int_equal(s.capture.n_q_tiles, 5);
    assert_memory_equal(s.capture.q_tiles, q_tiles, sizeof q_tiles);
    assert_int_equal(s.capture.channels, 1u << asc_s | 1u << asc_p | 1u << asc_lse);
    assert_true(s.capture.mem_bytes == UINT64_C(512) << 20);
    assert_int_equal(s.expect.verdict, EXPECT_FAIL);
    assert_int_equal(s.expect.first_channel, asc_s);
    assert_int_equal(s.expect.first[0], -1);
    assert_int_equal(s.expect.first[1], -1);
    assert_int_equal(s.expect.first[2], 1);
    assert_int_equal(s.expect.first[3], 0);
    assert_int_equal(s.expect.culprits, 1u << asc_s | 1u << asc_l);
    char name[64];
    assert_string_equal(s.expect.cause, "scaled-twice,l-not-rescaled");
    assert_int_equal(scenario_listed(s.expect.cause, 0, name), 1);
    assert_string_equal(name, "scaled-twice");
    assert_int_equal(scenario_listed(s.expect.cause, 1, name), 1);
    assert_string_equal(name, "l-not-rescaled");
    assert_int_equal(scenario_listed(s.expect.cause, 2, name), 0);
    assert_int_equal(s.expect.events, 1u << EVENT_RACE | 1u << EVENT_FP_INVALID);
    assert_string_equal(s.expect.event_at, "row[i + 1] += x; y");
    assert_int_equal(s.expect.stopped, 1u << EVENT_ADDRESS | 1u << EVENT_LAUNCH);
    assert_int_equal(s.expect.no_culprits, 0);
    assert_int_equal(s.expect.line_of_expect, 40);
    scenario_free(&s);
}

/* One after the other, the last of a name wins; what does not fit leaves them as they are. */
static void test_define(void **state)
{
    (void)state;
    struct scenario s;
    struct err err = {0};
    char longest[240];
    scenario_init(&s);
    assert_int_equal(scenario_define(&s, "WS=2", &err), 0);
    assert_int_equal(scenario_define(&s, "W", &err), 0);
    assert_int_equal(scenario_define(&s, "WS", &err), 0);
    assert_string_equal(s.define, "W WS");
    assert_true(scenario_stated(&s, KEY_DEFINE));
    assert_int_equal(scenario_define(&s, "W=1 X=2", &err), -1);
    assert_non_null(strstr(said(&err), "-D: expected NAME=VALUE or NAME, "));
    assert_non_null(strstr(said(&err), "found `W=1 X=2`"));
    assert_int_equal(scenario_define(&s, "", &err), -1);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(scenario_define(&s, longest, &err), 0); /* 244 bytes */
    assert_int_equal(scenario_define(&s, "0123456789", &err), -1);
    assert_int_equal(scenario_define(&s, "A123456789", &err), 0); /* 255 */
    assert_int_equal(strlen(s.define), 255);
    assert_int_equal(scenario_define(&s, "W=", &err), -1);
    assert_int_equal(scenario_define(&s, "W=1", &err), -1);
    assert_int_equal(strlen(s.define), 255);
    scenario_free(&s);
}

/* Folders are those of the file, or of root; lines add up; a word keeps its blanks; -I comes before, --flag behind. */
static void test_lists(void **state)
{
    (void)state;
    static const char text[] = "[scenario]\nkernel = own.cu\ninclude = a\\ b kernels\nflags = -O1\ninclude = a\\ b\n"
                               "flags = -I  a\\ b\\\\c\n";
    struct scenario s, again;
    struct err err = {0};
    char longest[1100], word[16];
    assert_int_equal(mkdir("s/a b", 0700), 0);
    write_text("s/list.ini", text);
    if (scenario_read("s/list.ini", "root", &s, &err) != 0)
        fail_msg("%s", said(&err));
    assert_string_equal(s.include, "s/a\\ b root/kernels s/a\\ b");
    assert_string_equal(s.flags, "-O1 -I a\\ b\\\\c");
    scenario_init(&again);
    assert_int_equal(scenario_set(&again, "scenario.flags", scenario_said(&s, KEY_FLAGS), &err), 0);
    assert_string_equal(again.flags, s.flags);
    assert_int_equal(scenario_add_word(&again, KEY_INCLUDE, "x y", "-I", &err), 0);
    assert_int_equal(scenario_add_word(&again, KEY_INCLUDE, "z", "-I", &err), 0);
    assert_string_equal(again.include, "z x\\ y");
    assert_true(scenario_stated(&again, KEY_INCLUDE));
    assert_int_equal(scenario_add_word(&again, KEY_FLAGS, "64", "--flag", &err), 0);
    assert_string_equal(again.flags, "-O1 -I a\\ b\\\\c 64");
    assert_int_equal(scenario_add_word(&again, KEY_FLAGS, "-ofile", "--flag", &err), -1);
    assert_non_null(strstr(said(&err), "--flag: expected flags of g++ or nvcc"));
    assert_non_null(strstr(said(&err), "found `-ofile`"));
    memset(longest, 'x', sizeof longest);
    longest[1020] = '\0';
    assert_int_equal(scenario_add_word(&again, KEY_INCLUDE, longest, "-I", &err), -1);
    longest[1016] = '\0'; /* with what is there: 1023 */
    assert_int_equal(scenario_add_word(&again, KEY_INCLUDE, longest, "-I", &err), 0);
    assert_int_equal(strlen(again.include), 1023);
    assert_int_equal(scenario_add_word(&again, KEY_INCLUDE, "", "-I", &err), -1);
    const char *list = "word too-long-for-it";
    assert_true(value_next(&list, word, sizeof word) && strcmp(word, "word") == 0);
    assert_false(value_next(&list, word, 5));
    scenario_free(&s);
    scenario_free(&again);
}

/* Own folder before root; no root at all; absolute paths. */
static void test_paths(void **state)
{
    (void)state;
    struct scenario s;
    struct err err = {0};
    char text[256], want[128];
    read_text(KERNEL, &s);
    assert_string_equal(s.kernel, "s/own.cu");
    scenario_free(&s);
    snprintf(want, sizeof want, "%s/root/own.cu", folder);
    snprintf(text, sizeof text, "[scenario]\nkernel = %s\n", want);
    read_text(text, &s);
    assert_string_equal(s.kernel, want);
    scenario_free(&s);
    write_text("s/x.ini", "[scenario]\nkernel = kernels/k.cu\n");
    assert_int_equal(scenario_read("s/x.ini", NULL, &s, &err), -1);
    assert_string_equal(said(&err),
                        "s/x.ini:2: scenario.kernel: expected the path of a .cu file, found no file s/kernels/k.cu");
    assert_int_equal(chdir("s"), 0);
    assert_int_equal(scenario_read("x.ini", "../root", &s, &err), 0);
    assert_string_equal(s.kernel, "../root/kernels/k.cu");
    scenario_free(&s);
    assert_int_equal(chdir(".."), 0);
}

static void test_set(void **state)
{
    (void)state;
    struct scenario s;
    struct err err = {0};
    scenario_init(&s);
    assert_int_equal(scenario_set(&s, "shape.heads", "4", &err), 0);
    assert_int_equal(s.problem.kv_heads, 4);
    assert_int_equal(scenario_set(&s, "shape.kv_heads", "2", &err), 0);
    assert_int_equal(scenario_set(&s, "shape.heads", "16", &err), 0);
    assert_int_equal(s.problem.kv_heads, 2);
    assert_int_equal(scenario_set(&s, "shape.head_dim", "16", &err), 0);
    assert_true(s.problem.scale == 0.25F);
    assert_int_equal(scenario_set(&s, "shape.scale", "3", &err), 0);
    assert_int_equal(scenario_set(&s, "shape.head_dim", "64", &err), 0);
    assert_true(s.problem.scale == 3.0F);
    assert_int_equal(scenario_set(&s, "shape.scale", "auto", &err), 0);
    assert_true(s.problem.scale == 0.125F);
    assert_int_equal(scenario_set(&s, "shape.head_dim", "16", &err), 0);
    assert_true(s.problem.scale == 0.25F);
    assert_int_equal(scenario_set(&s, "capture.q_tiles", "0-3", &err), 0);
    assert_int_equal(scenario_set(&s, "capture.q_tiles", "2", &err), 0);
    assert_int_equal(s.capture.n_q_tiles, 1);
    assert_int_equal(scenario_set(&s, "capture.q_tiles", "no", &err), -1);
    assert_int_equal(s.capture.n_q_tiles, 1);
    assert_int_equal(scenario_set(&s, "capture.q_tiles", "all", &err), 0);
    assert_null(s.capture.q_tiles);

    assert_int_equal(scenario_set(&s, "shape.causal", "left", &err), -1);
    assert_string_equal(said(&err), "shape.causal: expected none, top-left or bottom-right, found `left`");
    assert_int_equal(scenario_set(&s, "shape.kv_len", "0", &err), -1);
    assert_int_equal(s.problem.kv_len, 512);
    assert_int_equal(scenario_set(&s, "shape.q_len", "100", &err), 0);
    assert_int_equal(s.problem.kv_len, 100); /* what failed does not count as stated */
    assert_int_equal(scenario_set(&s, "causal", "none", &err), -1);
    assert_string_equal(said(&err), "causal: expected section.key, such as shape.heads");
    assert_int_equal(scenario_set(&s, "shapes.causal", "none", &err), -1);
    assert_string_equal(
        said(&err),
        "shapes.causal: expected a section out of scenario, shape, quant, fill, inputs, capture, expect, budget; "
        "found `shapes`");
    assert_int_equal(scenario_set(&s, "scenario.name", "x", &err), -1);
    assert_string_equal(
        said(&err),
        "scenario.name: expected a key out of kernel, patch, define, include, flags, limit, backend, debug, "
        "probes, checks, profile, tensor_core; found `name`");

    assert_int_equal(scenario_check(&s, &err), -1);
    assert_string_equal(said(&err), "scenario.kernel: expected the path of a .cu file, found no such key");
    assert_int_equal(scenario_set(&s, "scenario.kernel", "anywhere.cu", &err), 0);
    assert_string_equal(s.kernel, "anywhere.cu");
    assert_int_equal(scenario_check(&s, &err), 0);
    assert_int_equal(scenario_set(&s, "shape.kv_heads", "3", &err), 0);
    assert_int_equal(scenario_check(&s, &err), -1);
    assert_string_equal(said(&err), "shape.kv_heads: expected a divisor of heads (16), found 3");
    scenario_free(&s);
}

static void test_shape(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",           "1",           "1,8,512",     "1,8,512,64,64,1", "1,8,0,64",
        "1,8,512,",   ",1,8,512,64", "1,8,512,64 ", "1,-8,512,64",     "1,8,512,99999999999999999999",
        "1;8;512;64", "1,8,512,64,", "1,8/,512,64", "1/2,8,512,64",    "(1,8,512,64",
        "()",         "1,8/0,512,64"};
    struct scenario s;
    struct err err = {0};
    scenario_init(&s);
    s.problem.causal = ASC_CAUSAL_TOP_LEFT;
    assert_int_equal(scenario_parse_shape("2,4,100,16", &s.problem, &err), 0);
    assert_int_equal(s.problem.batch, 2);
    assert_int_equal(s.problem.heads, 4);
    assert_int_equal(s.problem.kv_heads, 4);
    assert_int_equal(s.problem.q_len, 100);
    assert_int_equal(s.problem.kv_len, 100);
    assert_int_equal(s.problem.head_dim, 16);
    assert_true(s.problem.scale == 0.25F);
    assert_int_equal(s.problem.causal, ASC_CAUSAL_TOP_LEFT);
    assert_int_equal(scenario_parse_shape("1,2,30,50,64", &s.problem, &err), 0);
    assert_int_equal(s.problem.q_len, 30);
    assert_int_equal(s.problem.kv_len, 50);
    assert_int_equal(s.problem.head_dim, 64);
    assert_int_equal(scenario_parse_shape("(1,8/2,200,128)", &s.problem, &err), 0);
    assert_true(s.problem.heads == 8 && s.problem.kv_heads == 2 && s.problem.q_len == 200 && s.problem.head_dim == 128);
    assert_int_equal(scenario_set_shape(&s, "1,8/2,200,300,128", &err), 0);
    assert_true(s.problem.kv_heads == 2 && s.problem.kv_len == 300 && s.stated[KEY_KV_HEADS]);
    assert_int_equal(scenario_parse_shape("1,8/3,200,128", &s.problem, &err), -1); /* 8 heads do not share 3 */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char want[256];
        struct asc_problem before = s.problem;
        assert_int_equal(scenario_parse_shape(wrong[i], &s.problem, &err), -1);
        snprintf(want, sizeof want,
                 "shape: expected B,H,L,D or B,H,Lq,Lkv,D, each from 1 to 16777216, H or H/Hkv, found `%s`", wrong[i]);
        assert_string_equal(said(&err), want);
        assert_memory_equal(&before, &s.problem, sizeof before);
    }
    assert_int_equal(scenario_parse_shape("16777216,16777216,16777216,16777216", &s.problem, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
}

/* A number reads the same where the user's decimal point is a comma. */
static void test_locale(void **state)
{
    (void)state;
    double v = 0;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where the machine has it */
    assert_int_equal(value_real("0.125", &v), 0);
    assert_true(v == 0.125);
    setlocale(LC_ALL, "C");
    assert_int_equal(value_real("-1.5E+2", &v), 0);
    assert_true(v == -150.0);
}

static void test_quote(void **state)
{
    (void)state;
    char out[16];
    text_name("a\tb\r\x1b", 5, out, sizeof out);
    assert_string_equal(out, "a^Ib^M^[");
    text_name("0123456789abcdef", 16, out, sizeof out);
    assert_string_equal(out, "0123456789ab...");
    text_name("0123456789a\xc3\xa4xyz", 16, out, sizeof out); /* never half of a character */
    assert_string_equal(out, "0123456789a...");
}

/* The scenarios that come along can be read, from the repository's root. */
static void test_shipped(void **state)
{
    (void)state;
    static const char *const paths[] = {"scenarios/v2b-512.ini", "scenarios/v2b-512-causal.ini",
                                        "scenarios/v2b-tails.ini"};
    struct scenario s;
    struct err err = {0};
    assert_int_equal(fchdir(repository), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (scenario_read(paths[i], ".", &s, &err) != 0)
            fail_msg("%s", said(&err));
        assert_string_equal(s.kernel, "./kernels/v2b_scalar.cu");
        assert_int_equal(s.expect.verdict, EXPECT_CLEAN);
        assert_int_equal(s.problem.causal, i == 1 ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE);
        assert_int_equal(s.problem.q_len, i == 2 ? 200 : 512);
        assert_int_equal(s.problem.kv_len, i == 2 ? 333 : 512);
        scenario_free(&s);
    }
    assert_int_equal(chdir(folder), 0);
}

static void test_docs(void **state)
{
    (void)state;
    char *written = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&written, &n);
    assert_non_null(out);
    assert_int_equal(scenario_write_docs(out), 0);
    assert_int_equal(fclose(out), 0);
    for (int i = 0; i < KEY_COUNT; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| `%s` | ", scenario_keys[i].name);
        assert_non_null(strstr(written, row));
    }
    assert_int_equal(fchdir(repository), 0);
    FILE *file = fopen("docs/scenarios.md", "rb");
    assert_non_null(file);
    char *kept = calloc(1, n + 2);
    assert_non_null(kept);
    assert_int_equal(fread(kept, 1, n + 1, file), n);
    fclose(file);
    assert_string_equal(kept, written); /* else: make docs */
    free(kept);
    free(written);
    assert_int_equal(chdir(folder), 0);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(scenario_write_docs(full), -1);
        fclose(full);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_no_text_file),
        cmocka_unit_test(test_sizes_together),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_documented_defaults),
        cmocka_unit_test(test_shape_over_a_file),
        cmocka_unit_test(test_everything_stated),
        cmocka_unit_test(test_define),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests_name("scenario", tests, enter_folder, leave_folder);
}
