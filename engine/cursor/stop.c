#include "engine/cursor/stop.h"

#include "engine/oracle/values.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum question { COUNT, MEASURE, STEP, VALUE };

static const struct {
    const char *word;
    enum question question;
    const char *meaning;
} stops[STOP_KINDS] = {
#define STOP(id, word, kind, meaning) {word, kind, meaning},
#include "engine/cursor/stops.def"
#undef STOP
};

static const char *const comparisons[] = {
    [STOP_MORE] = ">", [STOP_LESS] = "<", [STOP_AT_LEAST] = ">=", [STOP_AT_MOST] = "<=", [STOP_EQUAL] = "="};
enum { COMPARISONS = sizeof comparisons / sizeof *comparisons };

const char *stop_word(enum stop_kind kind)
{
    return stops[kind].word;
}

const char *stop_meaning(enum stop_kind kind)
{
    return stops[kind].meaning;
}

bool stop_needs_number(enum stop_kind kind)
{
    return stops[kind].question == MEASURE || stops[kind].question == VALUE;
}

/* Words of a condition; comparisons stand alone even without blanks around them. */
struct words {
    char word[6][24];
    int n;
};

static int split(const char *text, struct words *out, struct err *err)
{
    out->n = 0;
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        const size_t sign = strspn(text, "<>=");
        const size_t length = sign ? sign : strcspn(text, " \t<>=");
        if (out->n == 6 || length >= sizeof out->word[0])
            return err_set(err, ERR_INPUT, "", "unexpected '%.20s': expected [global] [STAGE] CONDITION [> NUMBER]",
                           text);
        snprintf(out->word[out->n++], sizeof out->word[0], "%.*s", (int)length, text);
        text += length;
    }
    return out->n ? 0 : err_set(err, ERR_INPUT, "", "expected a condition, such as nan, s off > 8 or m falls");
}

static int kind_of(const char *word)
{
    for (int i = 0; i < STOP_KINDS; i++)
        if (stops[i].word[0] && strcmp(stops[i].word, word) == 0)
            return i;
    return -1;
}

static int comparison_of(const char *word)
{
    if (strcmp(word, "==") == 0)
        return STOP_EQUAL;
    for (int i = 0; i < COMPARISONS; i++)
        if (strcmp(comparisons[i], word) == 0)
            return i;
    return -1;
}

static int parse_number(const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    return end != word && *end == '\0' && !isnan(*out) ? 0 : -1;
}

/* [global] [STAGE | any]; returns how many words that were. */
static int parse_subject(const struct words *w, const struct asc_plan *plan, struct stop *out)
{
    int i = 0;
    if (i < w->n && strcmp(w->word[i], "global") == 0) {
        out->global = true;
        i++;
    }
    if (i < w->n && strcmp(w->word[i], "any") == 0) {
        i++;
    } else if (i < w->n && channel_from_name(w->word[i]) >= 0) {
        out->channel = channel_from_name(w->word[i++]);
    } else if (i < w->n && plan && plan_channel_from_name(plan, w->word[i]) >= 0) {
        snprintf(out->own, sizeof out->own, "%s", w->word[i++]);
    }
    return i;
}

static bool steps_over_kv(int channel)
{
    return channel == asc_m || channel == asc_l || channel == asc_alpha || channel == asc_u;
}

static int parse_comparison(const struct words *w, int i, struct stop *out, struct err *err)
{
    const char *word = stops[out->kind].word;
    const int asked = stop_needs_number(out->kind);
    if (i == w->n && !asked)
        return 0;
    if (i == w->n || comparison_of(w->word[i]) < 0)
        return err_set(err, ERR_INPUT, "", "expected >, <, >=, <= or =%s%s, found '%s'", *word ? " after " : "", word,
                       i < w->n ? w->word[i] : "");
    if (stops[out->kind].question == STEP)
        return err_set(err, ERR_INPUT, "", "'%s' does not take a number", word);
    out->comparison = (enum stop_comparison)comparison_of(w->word[i]);
    if (i + 2 != w->n || parse_number(w->word[i + 1], &out->number) != 0)
        return err_set(err, ERR_INPUT, "", "expected one number after '%s'", w->word[i]);
    return 0;
}

int stop_parse(const char *text, const struct asc_plan *plan, struct stop *out, struct err *err)
{
    struct words w;
    *out = (struct stop){.kind = STOP_VALUE, .channel = -1, .comparison = STOP_MORE};
    if (split(text, &w, err) != 0)
        return -1;
    int i = parse_subject(&w, plan, out);
    const int kind = i < w.n ? kind_of(w.word[i]) : STOP_BAD;
    if (kind >= 0) {
        out->kind = (enum stop_kind)kind;
        i += i < w.n;
    } else if (comparison_of(w.word[i]) < 0) {
        return err_set(err, ERR_INPUT, "",
                       "'%s' is neither a stage nor a condition: expected bad, off, nan, inf, missing, extra, ratio, "
                       "mean, falls, rises or a comparison",
                       w.word[i]);
    }
    if (stops[out->kind].question == STEP && !steps_over_kv(out->channel) && !out->own[0])
        return err_set(err, ERR_INPUT, "", "'%s' applies to m, l, alpha or u: `m %s`", stop_word(out->kind),
                       stop_word(out->kind));
    if (out->kind == STOP_VALUE && out->channel < 0 && !out->own[0])
        return err_set(err, ERR_INPUT, "", "name a stage, as in `m > 100`");
    if (parse_comparison(&w, i, out, err) != 0)
        return -1;
    size_t used = 0;
    for (int k = 0; k < w.n && used < sizeof out->text; k++)
        used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s%s", k ? " " : "", w.word[k]);
    return 0;
}

/* A NaN compares as no number does. */
static bool compares(const struct stop *stop, double value)
{
    switch (stop->comparison) {
    case STOP_MORE:
        return value > stop->number;
    case STOP_LESS:
        return value < stop->number;
    case STOP_AT_LEAST:
        return value >= stop->number;
    case STOP_AT_MOST:
        return value <= stop->number;
    case STOP_EQUAL:
        return value == stop->number;
    }
    return false;
}

static struct matrix captured(const struct trace *t, struct place place)
{
    const struct tile tile = trace_tile(t, place.channel, place.slot, place.kv);
    return (struct matrix){tile.data, tile.dtype, tile.cols, tile.valid_rows, tile.valid_cols};
}

/* How many NaN there are; the first one's place. */
static uint32_t count_nan(const struct matrix *m, int *row, int *col)
{
    uint32_t n = 0;
    for (int r = 0; m->data && r < m->rows; r++)
        for (int c = 0; c < m->cols; c++) {
            const size_t i = (size_t)(r * m->row_stride + c);
            if (!isnan(values_element(m, i)) || !values_element_written(m, i))
                continue;
            if (n++ == 0) {
                *row = r;
                *col = c;
            }
        }
    return n;
}

static uint32_t count_infinite(const struct matrix *m, int *row, int *col)
{
    uint32_t n = 0;
    for (int r = 0; m->data && r < m->rows; r++)
        for (int c = 0; c < m->cols; c++)
            if (isinf(values_element(m, (size_t)(r * m->row_stride + c))) && n++ == 0) {
                *row = r;
                *col = c;
            }
    return n;
}

static bool value_holds(const struct stop *stop, const struct matrix *m, int *row, int *col)
{
    for (int r = 0; m->data && r < m->rows; r++)
        for (int c = 0; c < m->cols; c++)
            if (compares(stop, values_element(m, (size_t)(r * m->row_stride + c)))) {
                *row = r;
                *col = c;
                return true;
            }
    return false;
}

static bool step_holds(const struct stop *stop, const struct matrix *m, const struct matrix *before, int *row, int *col)
{
    for (int r = 0; m->data && before->data && r < m->rows; r++)
        for (int c = 0; c < m->cols; c++) {
            const double now = values_element(m, (size_t)(r * m->row_stride + c)),
                         then = values_element(before, (size_t)(r * before->row_stride + c));
            if (stop->kind == STOP_FALLS ? now < then : now > then) {
                *row = r;
                *col = c;
                return true;
            }
        }
    return false;
}

static enum tile_status class_of(enum stop_kind kind)
{
    return kind == STOP_OFF       ? CLASS_OFF
           : kind == STOP_INF     ? CLASS_INF
           : kind == STOP_MISSING ? CLASS_MISSING
                                  : CLASS_EXTRA;
}

bool stop_is_about(const struct stop *stop, const struct asc_plan *plan, enum asc_channel ch)
{
    if (stop->own[0])
        return channel_is_own(ch) && strcmp(plan_channel_name(plan, ch), stop->own) == 0;
    return stop->channel < 0 || stop->channel == (int)ch;
}

bool stop_holds(const struct stop *stop, const struct trace *t, const struct judgement *j, struct place place,
                int before, int *row, int *col)
{
    *row = *col = -1;
    if (!trace_has(t, place.channel) || !stop_is_about(stop, &t->plan, place.channel))
        return false;
    const struct tile_verdicts *tile = judgement_tile(j, place);
    const struct verdict *v = stop->global ? &tile->global : &tile->local;
    const struct matrix m = captured(t, place),
                        last = captured(t, (struct place){place.slot, before < 0 ? 0 : before, place.channel});
    if (stop->kind == STOP_INF && channel_is_own(place.channel)) /* nobody knows which are expected */
        return compares(stop, count_infinite(&m, row, col));
    switch (stop->kind) {
    case STOP_NAN:
        return compares(stop, count_nan(&m, row, col));
    case STOP_BAD: /* what a run that ended early never came to does not count */
        return judgement_tile_bad(j, place, stop->global) && compares(stop, verdict_bad(v));
    case STOP_RATIO:
        return v->judged && compares(stop, (double)v->worst_ratio);
    case STOP_MEAN:
        return v->judged && compares(stop, (double)v->mean_error);
    case STOP_FALLS:
    case STOP_RISES:
        return before >= 0 && step_holds(stop, &m, &last, row, col);
    case STOP_VALUE:
        return value_holds(stop, &m, row, col);
    default:
        return v->judged && compares(stop, v->count[class_of(stop->kind)]);
    }
}

bool stop_element(const struct stop *stop, const struct tile_detail *d, int *row, int *col)
{
    const uint8_t *classes = stop->global ? d->class_global : d->class_local;
    const double *want = stop->global ? d->want_global : d->want_local;
    const double *bound = stop->global ? d->bound_global : d->bound_local;
    double worst = -1;
    int found = -1;
    for (int i = 0; d->got && i < d->rows * d->cols; i++) {
        if (stops[stop->kind].question == MEASURE) {
            double ratio = fabs(d->got[i] - want[i]) / bound[i];
            if (classes[i] == CLASS_OK) /* within what its type rounds */
                ratio = fmin(ratio, 1);
            if (ratio > worst || (found < 0 && class_bad(classes[i]))) {
                worst = ratio > worst ? ratio : worst;
                found = i;
            }
        } else if (stop->kind == STOP_BAD ? class_bad(classes[i]) : classes[i] == class_of(stop->kind)) {
            found = i;
            break;
        }
    }
    if (found < 0)
        return false;
    *row = found / d->cols;
    *col = found % d->cols;
    return true;
}
