#include "engine/session/look.h"

#include "engine/session/rounding_look.h"
#include "engine/session/work.h"
#include "engine/study/rounding.h"
#include <stdio.h>

static void wake(void *ctx)
{
    work_wake(ctx);
}

static bool has_run(const struct session *s)
{
    return s->trace && s->judgement && s->phase >= PHASE_JUDGING;
}

static int begin(struct session *s)
{
    return s->laboratory ? 0 : laboratory_new(s->trace, wake, s->work, &s->laboratory);
}

void session_look(struct session *s, unsigned wanted)
{
    if (!wanted || !has_run(s))
        return;
    session_note_lack(s, LACK_LOOK, begin(s) != 0);
    if (!s->laboratory)
        return;
    laboratory_ask(s->laboratory, wanted, wanted & LABORATORY_COMPARISON ? session_slot(s) : -1);
}

void session_look_finish(struct session *s)
{
    if (s->laboratory)
        laboratory_finish(s->laboratory);
}

int session_look_toggle(struct session *s)
{
    const struct laboratory_state *state = session_looked(s);
    if (!state || (!state->total && !state->stopped && !laboratory_busy(s->laboratory)))
        return -1;
    const int stop = !state->stopped;
    laboratory_stop(s->laboratory, stop);
    laboratory_collect(s->laboratory);
    return stop;
}

void session_note_lack(struct session *s, enum lack what, bool lacking)
{
    s->lacks = lacking ? s->lacks | what : s->lacks & ~(unsigned)what;
}

bool session_lacks_memory(const struct session *s)
{
    const struct laboratory_state *looked = session_looked(s);
    const struct rounding_progress *rounding = session_rounding(s);
    return s->lacks || (looked && looked->failed) || (rounding && rounding->err.code == ERR_SYSTEM);
}

const struct laboratory_state *session_looked(const struct session *s)
{
    return s->laboratory ? laboratory_state(s->laboratory) : NULL;
}

const struct comparison *session_comparison(const struct session *s)
{
    const struct laboratory_state *state = session_looked(s);
    return state && state->comparison && state->comparison->slot == session_slot(s) ? state->comparison : NULL;
}

int session_collect_look(struct session *s)
{
    const int rounded = s->rounding && rounding_scan_collect(s->rounding);
    return (s->laboratory && laboratory_collect(s->laboratory)) || rounded;
}

void session_drop_look(struct session *s)
{
    laboratory_free(s->laboratory);
    s->laboratory = NULL;
    rounding_scan_free(s->rounding);
    s->rounding = NULL;
}

int session_try(struct session *s, const char *words)
{
    struct whatif_choice choice;
    char bad[32];
    if (!has_run(s))
        return session_refuse(s, "there is no run to ask this of yet");
    if (begin(s) != 0)
        return session_refuse(s, "out of memory for the prediction");
    whatif_of_run(s->trace, &choice);
    if (whatif_parse(words, &choice, bad) != 0) {
        session_say(s, "'%s' is not one of e4m3 e5m2 u8 f16 bf16 [qkvp]= tensor head rows:N xN offset:N factor:N", bad);
        return -1;
    }
    return laboratory_try(s->laboratory, &choice) == 0 ? 0 : session_refuse(s, "there is no room for one more row");
}

int session_run_choice(struct session *s, const struct whatif_choice *choice)
{
    static const char *const keys[] = {"shape.dtype", "shape.k_dtype", "shape.v_dtype"};
    struct whatif_choice own;
    char scales[32] = "head";
    struct err err = {0};
    if (!s->has_scenario)
        return session_refuse(s, "a saved trace cannot be rerun: open its scenario");
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    whatif_of_run(s->trace, &own);
    if (choice->factor != 1)
        return session_refuse(s, "scenarios cannot scale the quantization factors: this row is a prediction only");
    if (choice->p_type != own.p_type || choice->p_offset != own.p_offset || choice->p_factor != own.p_factor)
        return session_refuse(s, "the type of P belongs to the kernel: this row is a prediction only");
    if (choice->scales != WHATIF_HEAD)
        snprintf(scales, sizeof scales, choice->scales == WHATIF_ROWS ? "rows:%d" : "tensor", choice->rows);
    if (s->trace->conventions.quantized != ASC_QUANTIZED_GIVEN)
        return session_refuse(s, "this kernel quantizes in its own launch: a scenario cannot choose its formats");
    for (int i = 0; i < 3; i++)
        if (session_set(s, keys[i], dtype_name((enum dtype)choice->type[i]), &err) != 0)
            return session_refuse(s, err.message);
    if (problem_has_codes(&s->scenario.problem) && session_set(s, "quant.scales", scales, &err) != 0)
        return session_refuse(s, err.message);
    return session_rerun(s);
}
