/* The laboratory on real runs of kernels on the CPU: formats, comparison and attribution, predictions against what the
   same formats measure. */
#include "engine/oracle/codes.h"
#include "engine/run/output_error.h"
#include "engine/session/look.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static atomic_int woken;

static void wake(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&woken, 1);
}

/* settings: "key=value" each, the last one NULL. */
static struct session *run(const char *kernel, const char *shape, const char *const *settings)
{
    struct scenario scenario;
    struct session *s;
    struct runner_paths paths;
    struct err err = {0};
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    scenario_init(&scenario);
    snprintf(scenario.kernel, sizeof scenario.kernel, "%s/kernels/%s.cu", paths.root, kernel);
    assert_int_equal(scenario_set(&scenario, "scenario.backend", "cpu", &err), 0);
    assert_int_equal(scenario_parse_shape(shape, &scenario.problem, &err), 0);
    for (; *settings; settings++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(*settings, "="), *settings);
        if (scenario_set(&scenario, key, strchr(*settings, '=') + 1, &err) != 0)
            fail_msg("%s: %s", *settings, err.message);
    }
    assert_int_equal(session_open_adhoc(&scenario, &s, &err), 0);
    assert_int_equal(session_start(s), 0);
    if (session_finish(s, 0) != 0)
        fail_msg("%s: %s", s->job.err.where, s->job.err.message);
    return s;
}

static struct laboratory *look(const struct session *s, unsigned wanted, int slot)
{
    struct laboratory *l;
    assert_int_equal(laboratory_new(s->run.trace, wake, NULL, &l), 0);
    laboratory_ask(l, wanted, slot);
    laboratory_finish(l);
    assert_false(laboratory_state(l)->failed);
    return l;
}

/* Predicted and measured differ by what the kernel's f32 sums and exponentials err by and by the few f16 values of
   codes that these round otherwise, each 2^-11 or less of what rounding to e4m3 moves (2^-4 of a value) or u8 (2^-8):
   errors that are independent of the predicted ones change a root mean square by half their square, and 2^-8 of it
   would show as 2^-17. One in 500 has room for those that are not independent. */
#define WITHIN 0.002

static void predictions_are_what_runs_measure(void **state)
{
    (void)state;
    static const char *const scales[] = {"quant.scales=tensor", "quant.scales=head", "quant.scales=rows:48"};
    static const char *const fills[] = {"fill.kind=normal", "fill.kind=outliers"};
    for (int i = 0; i < 6; i++) {
        const char *const settings[] = {"shape.k_dtype=e4m3", "shape.dtype=e4m3",          scales[i % 3],
                                        fills[i / 3],         "shape.causal=bottom-right", NULL};
        struct session *s = run("fp8_e4m3", "1,4,100,170,64", settings);
        struct laboratory *l = look(s, LABORATORY_WHATIF, -1);
        const struct whatif *w = laboratory_state(l)->whatif;
        struct unquantized_error error;
        struct err err;
        assert_int_equal(output_error_unquantized(s->run.trace, &error, &err), 0);
        assert_int_equal(laboratory_state(l)->predicted, w->all);
        assert_float_equal(path_rms(&w->measured), error.rms, 1e-9);
        assert_float_equal(w->measured.largest, error.largest, 1e-9);
        print_message("%s %s: measured %.6g predicted %.6g\n", scales[i % 3], fills[i / 3], error.rms,
                      path_rms(&w->row[0].o));
        assert_true(fabs(path_rms(&w->row[0].o) / error.rms - 1) <= WITHIN);
        assert_int_equal(w->row[0].choice.scales, i % 3 == 0 ? WHATIF_TENSOR : i % 3 == 1 ? WHATIF_HEAD : WHATIF_ROWS);
        laboratory_free(l);
        session_free(s);
    }
}

/* From one run, what two others measure. */
static void predictions_of_other_formats(void **state)
{
    (void)state;
    static const char *const settings[] = {"shape.dtype=e4m3", "shape.k_dtype=e4m3", "quant.scales=head",
                                           "fill.kind=outliers", NULL};
    static const char *const mixed[] = {"scenario.define=MIXED=1", "shape.dtype=f16",    "shape.k_dtype=e4m3",
                                        "quant.scales=rows:64",    "fill.kind=outliers", NULL};
    struct session *s = run("fp8_e4m3", "1,2,100,170,64", settings), *other = run("fp8_e4m3", "1,2,100,170,64", mixed);
    struct laboratory *l = look(s, LABORATORY_WHATIF, -1);
    struct unquantized_error error;
    struct whatif_choice wanted = laboratory_state(l)->whatif->row[0].choice;
    struct err err;
    char bad[32], a[96], b[96];
    assert_int_equal(output_error_unquantized(other->run.trace, &error, &err), 0);
    assert_int_equal(whatif_parse("q=f16 rows:64", &wanted, bad), 0);
    whatif_words(&wanted, a, sizeof a);
    int found = 0;
    for (int i = 0; i < laboratory_state(l)->whatif->n; i++) {
        const struct whatif_row *row = &laboratory_state(l)->whatif->row[i];
        whatif_words(&row->choice, b, sizeof b);
        if (strcmp(a, b) != 0)
            continue;
        found = 1;
        print_message("%s: measured %.6g predicted %.6g\n", a, error.rms, path_rms(&row->o));
        assert_true(fabs(path_rms(&row->o) / error.rms - 1) <= WITHIN);
    }
    assert_true(found);
    laboratory_free(l);
    session_free(other);
    session_free(s);
}

/* fp8_mma multiplies codes and has P in e4m3. */
static void codes_are_multiplied(void **state)
{
    (void)state;
    static const char *const settings[] = {"shape.dtype=e4m3", "shape.k_dtype=e4m3", "quant.scales=head", NULL};
    struct session *s = run("fp8_mma", "1,2,100,170,64", settings);
    struct laboratory *l =
        look(s, LABORATORY_WHATIF | LABORATORY_FORMATS | LABORATORY_COMPARISON | LABORATORY_SURVEY, 1);
    const struct laboratory_state *state_ = laboratory_state(l);
    const struct whatif *w = state_->whatif;
    const struct formats *f = state_->formats;
    struct survey_row total;
    print_message("measured %.6g predicted %.6g\n", path_rms(&w->measured), path_rms(&w->row[0].o));
    assert_true(fabs(path_rms(&w->row[0].o) / path_rms(&w->measured) - 1) <= WITHIN);
    assert_int_equal(f->n, 4);
    assert_int_equal(f->tensor[3].channel, asc_p);
    assert_int_equal(f->tensor[3].source, FORMATS_DECLARED);
    assert_true(f->tensor[3].counts.known == f->tensor[3].counts.elements);
    assert_int_equal(f->tensor[3].counts.saturated, 0);
    for (int i = 0; i < f->n; i++)
        for (int g = 0; g < f->tensor[i].n_groups; g++)
            assert_true(f->tensor[i].groups[g].best_rms <= f->tensor[i].groups[g].rms * (1 + 1e-6));
    /* Q, K, V and P all have a part; what adds up e4m3 on Hopper nearly none. */
    assert_int_equal(state_->surveyed, s->run.trace->layout.n_slots);
    survey_total(state_->survey, state_->surveyed, &total);
    double sum = 0;
    for (int p = 0; p < PLAYERS; p++) {
        print_message("%s %.3f\n", player_name((enum player)p), total.share[p]);
        sum += total.share[p];
    }
    assert_float_equal(sum, 1, 1e-9);
    assert_true(total.share[PLAYER_Q] > 0.05 && total.share[PLAYER_K] > 0.05 && total.share[PLAYER_V] > 0.05);
    assert_true(total.share[PLAYER_P] > 0.02);
    assert_true(fabs(total.share[PLAYER_REST]) < 0.02);
    /* And the f16 path is better. */
    assert_true(path_rms(&total.o[PATH_F16]) * 10 < path_rms(&total.o[PATH_RUN]));
    const struct comparison *c = state_->comparison;
    assert_non_null(c);
    assert_int_equal(c->slot, 1);
    assert_true(c->given_known && c->has_output && c->attribution.s_recorded && c->attribution.p_recorded);
    for (int kv = 0; kv < c->paths.kv_tiles; kv++)
        for (int path = 0; path < PATHS; path++) {
            const struct path_tile *tile = &c->paths.tile[kv];
            assert_true(tile->visited && tile->s[path].n && tile->p[path].n && tile->ul[path].n);
            assert_int_equal(tile->s[path].bad + tile->p[path].bad + tile->ul[path].bad, 0);
        }
    /* U / l behind the last tile is what O was made of. */
    const struct path_tile *last = &c->paths.tile[c->paths.kv_tiles - 1];
    assert_float_equal(path_rms(&last->ul[PATH_RUN]), path_rms(&c->paths.o[PATH_RUN]), 1e-4);
    assert_float_equal(path_rms(&last->ul[PATH_F16]), path_rms(&c->paths.o[PATH_F16]), 2e-4);
    char words[256];
    comparison_words(s->run.trace, c, 3, 5, words, sizeof words);
    print_message("%s\n", words);
    laboratory_free(l);
    session_free(s);
}

/* fp8_sim quantizes in its own launch; its codes are those that are counted. */
static void made_by_the_launch(void **state)
{
    (void)state;
    static const char *const settings[] = {"fill.k.kind=zero-head", NULL};
    struct session *s = run("fp8_sim", "1,2,64,100,64", settings);
    struct laboratory *l = look(s, LABORATORY_FORMATS | LABORATORY_WHATIF, -1);
    const struct formats *f = laboratory_state(l)->formats;
    const struct whatif *w = laboratory_state(l)->whatif;
    assert_int_equal(f->n, 3);
    assert_int_equal(f->tensor[1].source, FORMATS_MADE);
    assert_int_equal(f->tensor[1].n_groups, 2);
    int zeros = 0;
    for (int i = 0; i < 2; i++) {
        const struct formats_group *g = &f->tensor[1].groups[i];
        if (g->amax != 0)
            continue;
        zeros++;
        assert_float_equal(g->scale, 1, 0);
        assert_float_equal(g->best_scale, 1, 0);
        assert_float_equal(g->rms, 0, 0);
        assert_true(isinf(g->headroom));
        assert_float_equal(formats_badness(g), 0, 0);
    }
    assert_int_equal(zeros, 1);
    assert_int_equal(f->tensor[0].counts.saturated + f->tensor[0].counts.nan, 0);
    print_message("measured %.6g predicted %.6g\n", path_rms(&w->measured), path_rms(&w->row[0].o));
    assert_true(fabs(path_rms(&w->row[0].o) / path_rms(&w->measured) - 1) <= WITHIN);
    laboratory_free(l);
    session_free(s);
}

/* Groups of one row, and one that ends early. */
static void small_groups(void **state)
{
    (void)state;
    static const int rows[] = {1, 48};
    for (int i = 0; i < 2; i++) {
        char scales[32];
        snprintf(scales, sizeof scales, "quant.scales=rows:%d", rows[i]);
        const char *const settings[] = {"shape.dtype=e4m3", "shape.k_dtype=e4m3", scales, NULL};
        struct session *s = run("fp8_e4m3", "1,1,50,70,64", settings);
        struct laboratory *l = look(s, LABORATORY_FORMATS, -1);
        const struct formats_tensor *k = &laboratory_state(l)->formats->tensor[1];
        assert_int_equal(k->n_groups, codes_groups(70, rows[i]));
        int all = 0;
        for (int g = 0; g < k->n_groups; g++) {
            all += k->groups[g].rows;
            assert_int_equal(k->groups[g].first, g * rows[i]);
            assert_true(fabs(k->groups[g].headroom) < 1e-6); /* amax becomes the largest code */
            assert_int_equal(k->groups[g].elements, (uint64_t)k->groups[g].rows * 64);
        }
        for (int g = 1; g < k->n_groups; g++)
            assert_true(formats_badness(&k->groups[k->order[g - 1]]) >= formats_badness(&k->groups[k->order[g]]));
        assert_int_equal(all, 70);
        assert_int_equal(k->counts.elements, 70 * 64);
        laboratory_free(l);
        session_free(s);
    }
}

static void nothing_quantized(void **state)
{
    (void)state;
    static const char *const settings[] = {NULL};
    struct session *s = run("v2c_wmma", "1,2,64,100,64", settings);
    struct laboratory *l = look(s, LABORATORY_FORMATS | LABORATORY_COMPARISON | LABORATORY_SURVEY, 0);
    const struct laboratory_state *x = laboratory_state(l);
    struct survey_row total;
    assert_int_equal(x->formats->n, 0);
    survey_total(x->survey, x->surveyed, &total);
    assert_float_equal(total.share[PLAYER_Q], 0, 1e-9);
    assert_float_equal(total.share[PLAYER_V], 0, 1e-9);
    assert_true(total.share[PLAYER_P] > 0.05);
    /* It is an f16 kernel: its error is that of the f16 path. */
    assert_float_equal(path_rms(&total.o[PATH_RUN]) / path_rms(&total.o[PATH_F16]), 1, 0.2);
    laboratory_free(l);
    session_free(s);
}

static void scans_stop_and_go_on(void **state)
{
    (void)state;
    static const char *const settings[] = {NULL};
    struct session *s = run("v2c_wmma", "1,2,128,100,64", settings);
    struct laboratory *l;
    assert_int_equal(laboratory_new(s->run.trace, wake, NULL, &l), 0);
    laboratory_stop(l, 1);
    laboratory_ask(l, LABORATORY_SURVEY | LABORATORY_COMPARISON, 2);
    laboratory_finish(l);
    assert_int_equal(laboratory_state(l)->surveyed, 0);
    assert_int_equal(laboratory_state(l)->comparison->slot, 2);
    assert_true(laboratory_state(l)->stopped);
    laboratory_stop(l, 0);
    laboratory_finish(l);
    assert_int_equal(laboratory_state(l)->surveyed, s->run.trace->layout.n_slots);
    struct whatif_choice odd = {.type = {DTYPE_E4M3, DTYPE_F16, DTYPE_U8}, .factor = 3, .p_type = -1, .p_factor = 1};
    assert_int_equal(laboratory_try(l, &odd), 0);
    laboratory_finish(l);
    const struct whatif *w = laboratory_state(l)->whatif;
    assert_float_equal(w->row[w->n - 1].choice.factor, 3, 0);
    assert_int_equal(w->row[w->n - 1].o.n, (uint64_t)w->slots * 64 * 64);
    assert_true(atomic_load(&woken) > 0);
    laboratory_free(l);
    session_free(s);
}

/* x is heard as soon as something was asked for, also before the first piece of a scan has begun. */
static void a_scan_that_has_just_begun_stops(void **state)
{
    (void)state;
    static const char *const settings[] = {NULL};
    struct session *s = run("v2c_wmma", "1,2,128,100,64", settings);
    assert_int_equal(session_look_toggle(s), -1);
    session_look(s, LABORATORY_SURVEY | LABORATORY_COMPARISON);
    assert_int_equal(session_look_toggle(s), 1);
    session_look_finish(s);
    assert_true(session_looked(s)->surveyed < s->run.trace->layout.n_slots);
    assert_int_equal(session_look_toggle(s), 0);
    session_look_finish(s);
    assert_int_equal(session_looked(s)->surveyed, s->run.trace->layout.n_slots);
    session_free(s);
}

/* A row is run: what was predicted is measured; the laboratory goes with the run that it was about. */
static void rows_are_run(void **state)
{
    (void)state;
    static const char *const settings[] = {"shape.dtype=e4m3", "shape.k_dtype=e4m3", "fill.kind=outliers", NULL};
    struct session *s = run("fp8_e4m3", "1,2,50,70,64", settings);
    struct whatif_choice choice;
    char words[96], bad[32];
    session_look(s, LABORATORY_WHATIF | LABORATORY_COMPARISON);
    session_look_finish(s);
    whatif_of_run(s->run.trace, &choice);
    assert_int_equal(whatif_parse("rows:16", &choice, bad), 0);
    double predicted = NAN;
    for (int i = 0; i < session_looked(s)->whatif->n; i++) {
        whatif_words(&session_looked(s)->whatif->row[i].choice, words, sizeof words);
        if (strcmp(words, "e4m3 rows:16 p=f16") == 0)
            predicted = path_rms(&session_looked(s)->whatif->row[i].o);
    }
    choice.factor = 2;
    assert_int_equal(session_run_choice(s, &choice), -1);
    assert_non_null(strstr(s->message, "factor"));
    choice.factor = 1;
    choice.p_type = DTYPE_E4M3;
    assert_int_equal(session_run_choice(s, &choice), -1);
    choice.p_type = DTYPE_F16;
    assert_int_equal(session_run_choice(s, &choice), 0);
    assert_int_equal(session_finish(s, 0), 0);
    assert_null(session_looked(s));
    assert_int_equal(s->run.trace->problem.scale_rows, 16);
    session_look(s, LABORATORY_WHATIF);
    session_look_finish(s);
    print_message("predicted %.6g, then measured %.6g\n", predicted, path_rms(&session_looked(s)->whatif->measured));
    assert_true(fabs(predicted / path_rms(&session_looked(s)->whatif->measured) - 1) <= WITHIN);
    /* And back, while a scan is under way. */
    session_look(s, ~0U);
    assert_int_equal(session_show_run(s, 1), 0);
    assert_int_equal(s->run.trace->problem.scale_rows, 0);
    session_look(s, LABORATORY_SURVEY);
    session_free(s);
}

static void choices_as_words(void **state)
{
    (void)state;
    struct whatif_choice c = {.type = {DTYPE_F16, DTYPE_F16, DTYPE_F16}, .factor = 1, .p_type = DTYPE_F16};
    char words[96], bad[32];
    static const char *const wrong[] = {"e4m4", "rows:0", "rows:1.5", "x0",           "x",   "offset:99",
                                        "p=u8", "z=f16",  "q=",       "head tensors", "xnan"};
    assert_int_equal(whatif_parse("  q=f16 k=e4m3  v=u8 rows:16 x0.5 p=e4m3 offset:8", &c, bad), 0);
    whatif_words(&c, words, sizeof words);
    assert_string_equal(words, "q=f16 k=e4m3 v=u8 rows:16 x0.5 p=e4m3 offset:8");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct whatif_choice before = c;
        assert_int_equal(whatif_parse(wrong[i], &c, bad), -1);
        assert_memory_equal(&before, &c, sizeof c);
    }
    assert_string_equal(bad, "xnan");
    assert_int_equal(whatif_parse("", &c, bad), 0);
    assert_int_equal(whatif_parse("bf16 p=bf16 offset:0", &c, bad), 0);
    whatif_words(&c, words, sizeof words);
    assert_string_equal(words, "bf16 x0.5 p=bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_as_words),
        cmocka_unit_test(predictions_are_what_runs_measure),
        cmocka_unit_test(predictions_of_other_formats),
        cmocka_unit_test(codes_are_multiplied),
        cmocka_unit_test(made_by_the_launch),
        cmocka_unit_test(small_groups),
        cmocka_unit_test(nothing_quantized),
        cmocka_unit_test(scans_stop_and_go_on),
        cmocka_unit_test(a_scan_that_has_just_begun_stops),
        cmocka_unit_test(rows_are_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
