/* Saved files and real runs: a kernel of the ladder, copied, edited and run again on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "engine/session/watch.h"
#include "tests/unit/lib/temporary.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TEMPORARY];
static char *kernel; /* owned: v2b_scalar.cu, with an #include of scale.h */

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* What v2b_scalar includes beside it. */
static char *ladder;

static char *replaced(const char *text, const char *old, const char *now)
{
    const char *at = strstr(text, old);
    char *made = malloc(strlen(text) + strlen(now) + 1);
    assert_non_null(at);
    sprintf(made, "%.*s%s%s", (int)(at - text), text, now, at + strlen(old));
    return made;
}

static char *read_text(const char *root, const char *name)
{
    char path[600], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/kernels/%s", root, name);
    FILE *in = fopen(path, "r");
    if (!in || getdelim(&text, &bytes, '\0', in) < 0)
        return NULL;
    fclose(in);
    return text;
}

static int read_kernel(void **state)
{
    (void)state;
    struct runner_paths paths;
    if (runner_find_paths(&paths, NULL) != 0)
        return -1;
    ladder = read_text(paths.root, "ladder.cuh");
    char *text = read_text(paths.root, "v2b_scalar.cu");
    if (!ladder || !text)
        return -1;
    char *included = replaced(text, "#include \"ladder.cuh\"", "#include \"ladder.cuh\"\n#include \"scale.h\"");
    free(text);
    kernel = replaced(included, "s[i] *= p.scale;", "s[i] *= SCALE;");
    free(included);
    return 0;
}

static int forget_kernel(void **state)
{
    (void)state;
    free(kernel);
    free(ladder);
    return 0;
}

static void put_scenario(int kv_len)
{
    char text[256];
    snprintf(text, sizeof text,
             "[scenario]\nkernel = k.cu\nbackend = cpu\n[shape]\nheads = 1\nq_len = 64\nkv_len = %d\nhead_dim = 64\n",
             kv_len);
    put("s.ini", text);
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(temporary(folder, "rerun")))
        return -1;
    put("k.cu", kernel);
    put("ladder.cuh", ladder);
    put("scale.h", "#define SCALE p.scale\n");
    put_scenario(100);
    return 0;
}

/* Until nothing is under way, nothing is due and as many runs have been made; only a failing test waits long. */
static void wait_runs(struct session *s, int made)
{
    for (int i = 0; i < 600 && !(s->runs.made >= made && !session_busy(s)); i++) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, 200);
        session_update(s);
    }
    assert_int_equal(s->runs.made, made);
}

/* Long enough for another save to be told, if there was one. */
static void wait_quiet(struct session *s)
{
    for (int i = 0; i < 4; i++) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, WATCH_QUIET_MS);
        session_update(s);
    }
    assert_false(session_busy(s));
}

static struct session *watching(void)
{
    char path[512];
    struct session *s;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/s.ini", folder);
    if (session_open(path, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(session_start(s), 0);
    assert_int_equal(session_watch(s, 1), 0);
    wait_runs(s, 1);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    return s;
}

static void headers_and_kernel(void **state)
{
    (void)state;
    struct session *s = watching();
    char words[256];
    s->at.cursor.kv_tile = 1;
    put("scale.h", "#define SCALE p.scale * p.scale\n");
    wait_runs(s, 2);
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->at.cursor.kv_tile, 1); /* the cursor stays */
    change_words(&s->run.change, words, sizeof words);
    assert_non_null(strstr(words, "since run 1: S worse (0 → "));
    /* Back and forth between both; values, verdicts and the cursor are those of the run that is shown. */
    const struct trace *second = s->run.trace;
    assert_int_equal(session_flip(s), 0);
    assert_ptr_not_equal(s->run.trace, second);
    assert_int_equal(s->run.number, 1);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    assert_int_equal(s->at.cursor.kv_tile, 1);
    assert_int_equal(s->run.change.state, CHANGE_NOTHING);
    assert_int_equal(session_flip(s), 0);
    assert_ptr_equal(s->run.trace, second);
    assert_non_null(s->run.finding);
    /* What is looked for in one run does not go on in another. */
    assert_int_equal(session_add_stop(s, "nan"), 1);
    session_seek(s, 1);
    assert_int_equal(session_flip(s), 0);
    session_finish(s, 0);
    assert_int_equal(s->run.number, 1);
    assert_int_equal(s->at.cursor.kv_tile, 1);
    assert_int_equal(session_flip(s), 0);
    char *other = replaced(kernel, "s[i] *= SCALE;", "s[i] *= p.scale;");
    put("k.cu", other);
    free(other);
    wait_runs(s, 3);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    change_words(&s->run.change, words, sizeof words);
    assert_non_null(strstr(words, "S better"));
    wait_quiet(s);
    assert_int_equal(s->runs.made, 3);
    session_free(s);
}

/* Those of a folder that `include` names: a header there, one that it includes, and one that a save adds. */
static void headers_of_include_folders(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/scale.h", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/inc", folder);
    mkdir(path, 0755);
    put("inc/scale.h", "#include \"deeper.h\"\n");
    put("inc/deeper.h", "#define SCALE p.scale\n");
    put("s.ini", "[scenario]\nkernel = k.cu\ninclude = inc\nbackend = cpu\n[shape]\nheads = 1\nq_len = 64\n");
    struct session *s = watching();
    put("inc/deeper.h", "#define SCALE p.scale * 2\n");
    wait_runs(s, 2);
    assert_string_equal(session_verdict_word(s), "FAIL");
    put("inc/late.h", "#define SCALE p.scale\n");
    put("inc/scale.h", "#include \"late.h\"\n");
    wait_runs(s, 3);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    put("inc/late.h", "#define SCALE p.scale * 3\n");
    wait_runs(s, 4);
    assert_string_equal(session_verdict_word(s), "FAIL");
    session_free(s);
}

static unsigned char *copy_of(const struct trace *t)
{
    unsigned char *copy = malloc(t->n_bytes);
    memcpy(copy, t->bytes, t->n_bytes);
    return copy;
}

static void run_again(struct session *s, const char *kept)
{
    char numbers[64] = "";
    const int made = s->runs.made;
    s->subject.scenario.fill_q.seed++; /* other values: in another run's memory they would show */
    assert_int_equal(session_start(s), 0);
    wait_runs(s, made + 1);
    for (int i = 0; i < s->runs.n; i++)
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%d", i ? " " : "",
                 s->runs.at[i].number);
    assert_string_equal(numbers, kept);
}

/* A run that is kept holds what it held, whichever runs follow in the memory of those that go. */
static void kept_runs_stay(void **state)
{
    (void)state;
    struct session *s = watching();
    unsigned char *first = copy_of(s->run.trace);
    s->subject.scenario.capture.mem_bytes = 5 * run_bytes(&s->runs.at[0]) / 2; /* two of them, and not three */
    run_again(s, "1 2");
    assert_int_equal(session_show_run(s, 1), 0);
    assert_memory_equal(s->run.trace->bytes, first, s->run.trace->n_bytes);
    run_again(s, "1 2 3");
    assert_memory_equal(s->runs.at[0].trace->bytes, first, s->run.trace->n_bytes);
    unsigned char *third = copy_of(s->run.trace);
    run_again(s, "2 3 4");
    assert_int_equal(session_show_run(s, 3), 0);
    run_again(s, "3 4 5");
    assert_memory_equal(s->runs.at[0].trace->bytes, third, s->run.trace->n_bytes);
    free(third);
    free(first);
    session_free(s);
}

static void saves_during_a_run_are_one_more(void **state)
{
    (void)state;
    struct session *s = watching();
    put("scale.h", "#define SCALE p.scale * 2\n");
    for (int i = 0; i < 100 && !session_busy(s); i++) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, 200);
        session_update(s);
    }
    assert_true(session_busy(s));
    s->subject.rerun_due = 1; /* two saves that were told while it is under way */
    s->subject.rerun_due = 1;
    wait_runs(s, 3);
    wait_quiet(s);
    assert_int_equal(s->runs.made, 3);
    /* Stopping what is under way stops what would follow. */
    assert_int_equal(session_start(s), 0);
    s->subject.rerun_due = 1;
    session_cancel(s);
    assert_int_equal(s->subject.rerun_due, 0);
    session_finish(s, 0);
    session_free(s);
}

static void a_build_that_fails_keeps_the_run(void **state)
{
    (void)state;
    struct session *s = watching();
    const struct trace *first = s->run.trace;
    put("scale.h", "#define SCALE p.scal\n");
    for (int i = 0; i < 600 && s->job.phase != PHASE_FAILED; i++) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, 200);
        session_update(s);
    }
    assert_int_equal(s->job.phase, PHASE_FAILED);
    assert_int_equal(s->job.err.code, ERR_BUILD);
    assert_ptr_equal(s->run.trace, first);
    assert_int_equal(s->runs.made, 1);
    assert_string_equal(session_verdict_word(s), "NOT BUILT"); /* whatever is said of the run that is shown */
    /* Stepping still works, and showing the run puts the error away. */
    assert_int_equal(session_step_kv(s, 1), 1);
    assert_int_equal(session_show_run(s, 1), 0);
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    put("scale.h", "#define SCALE p.scale\n");
    wait_runs(s, 2);
    assert_int_equal(s->job.phase, PHASE_READY);
    session_free(s);
}

static void set(struct session *s, const char *key, const char *value)
{
    struct err err = {0};
    if (session_set(s, key, value, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
}

static void rerun(struct session *s, int q_len, int kv_len, const char *said)
{
    const int made = s->runs.made;
    assert_int_equal(session_rerun(s), 0);
    assert_string_equal(s->message, said);
    wait_runs(s, made + 1);
    assert_int_equal(s->run.trace->problem.q_len, q_len);
    assert_int_equal(s->run.trace->problem.kv_len, kv_len);
}

/* Every run that is asked for reads the file again, watched or not; of what was set here and what the file says, what
   was said last counts, key by key. */
static void unwatched(void **state)
{
    (void)state;
    struct session *s = watching();
    struct err err = {0};
    assert_int_equal(session_watch(s, 0), 0);
    put_scenario(70);
    rerun(s, 64, 70, "");
    set(s, "shape.q_len", "40");
    set(s, "shape.kv_len", "50");
    rerun(s, 40, 50, "");
    rerun(s, 40, 50, "");
    put_scenario(90);
    rerun(s, 40, 90,
          "s.ini read again: shape.kv_len=90 in the place of what was set here; shape.q_len=40 kept as set here");
    assert_null(s->subject.settings[KEY_KV_LEN].value);
    set(s, "shape.q_len", "64"); /* what the file says */
    assert_null(s->subject.settings[KEY_Q_LEN].value);
    /* What is refused changes nothing. */
    set(s, "shape.q_len", "30");
    assert_int_equal(session_set(s, "shape.q_len", "0", &err), -1);
    assert_string_equal(err.where, "shape.q_len");
    assert_int_equal(session_set(s, "shape.length", "3", &err), -1);
    assert_string_equal(s->subject.settings[KEY_Q_LEN].value, "30");
    rerun(s, 30, 90, "");
    /* Nor does a file that cannot be read. */
    put_scenario(-3);
    assert_int_equal(session_rerun(s), -1);
    assert_int_equal(s->job.phase, PHASE_FAILED);
    assert_non_null(strstr(s->job.err.where, "s.ini:7"));
    assert_string_equal(session_verdict_word(s), "NOT RUN");
    assert_int_equal(session_set(s, "shape.q_len", "20", &err), -1);
    assert_string_equal(s->subject.settings[KEY_Q_LEN].value, "30");
    put_scenario(90);
    rerun(s, 30, 90, "");
    assert_string_equal(session_verdict_word(s), "CLEAN");
    /* Where nobody looks at tiles, no slot is judged once more for the one under the cursor. */
    assert_non_null(s->tile.detail.got);
    s->tile.unseen = 1;
    rerun(s, 30, 90, "");
    assert_null(s->tile.detail.got);
    assert_null(s->tile.row_want[asc_m]);
    session_free(s);
}

/* What is repeated is the run on the screen, by what decided it. */
static void an_older_run_is_isolated(void **state)
{
    (void)state;
    struct session *s = watching();
    struct isolation_request request;
    assert_int_equal(session_watch(s, 0), 0);
    put_scenario(70);
    rerun(s, 64, 70, "");
    assert_int_equal(session_made_by(s)->problem.kv_len, 70);
    assert_int_equal(session_show_run(s, 1), 0);
    assert_int_equal(session_made_by(s)->problem.kv_len, 100);
    isolation_of_stage(asc_p, &request);
    assert_int_equal(session_isolate(s, &request), 0);
    session_finish(s, 0);
    assert_int_equal(s->job.err.code, ERR_NONE);
    assert_non_null(s->run.isolation.trace);
    assert_int_equal(s->run.trace->problem.kv_len, 100);
    assert_int_equal(s->run.number, 1);
    /* One whose kernel is another by now cannot be repeated. */
    char *other = replaced(kernel, "s[i] *= SCALE;", "s[i] *= SCALE + 0;");
    put("k.cu", other);
    free(other);
    assert_int_equal(session_isolate(s, &request), 0);
    session_finish(s, 0);
    assert_int_equal(s->job.err.code, ERR_INPUT);
    assert_non_null(strstr(s->job.err.message, "has changed since that run"));
    session_free(s);
}

/* The scenario is read again; one that cannot be is an error with its line, and nothing runs. */
static void scenarios(void **state)
{
    (void)state;
    struct session *s = watching();
    set(s, "scenario.checks", "yes"); /* as the key c does: the file does not undo it */
    put_scenario(70);
    wait_runs(s, 2);
    assert_int_equal(s->run.trace->problem.kv_len, 70);
    assert_true(s->run.trace->info.checked);
    assert_int_equal(s->run.change.state, CHANGE_OTHER);
    put_scenario(-3);
    for (int i = 0; i < 100 && s->job.phase != PHASE_FAILED; i++) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, 200);
        session_update(s);
    }
    assert_int_equal(s->job.phase, PHASE_FAILED);
    assert_int_equal(s->job.err.code, ERR_INPUT);
    assert_non_null(strstr(s->job.err.where, "s.ini:7"));
    assert_int_equal(s->subject.scenario.problem.kv_len, 70);
    put_scenario(80);
    wait_runs(s, 3);
    assert_int_equal(s->run.trace->problem.kv_len, 80);
    assert_int_equal(session_watch(s, 0), 0);
    put_scenario(90);
    wait_quiet(s);
    assert_int_equal(s->runs.made, 3);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(headers_and_kernel, begin),
        cmocka_unit_test_setup(headers_of_include_folders, begin),
        cmocka_unit_test_setup(kept_runs_stay, begin),
        cmocka_unit_test_setup(saves_during_a_run_are_one_more, begin),
        cmocka_unit_test_setup(a_build_that_fails_keeps_the_run, begin),
        cmocka_unit_test_setup(scenarios, begin),
        cmocka_unit_test_setup(unwatched, begin),
        cmocka_unit_test_setup(an_older_run_is_isolated, begin),
    };
    return cmocka_run_group_tests(tests, read_kernel, forget_kernel);
}
