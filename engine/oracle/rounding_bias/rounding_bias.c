#include "engine/oracle/rounding_bias/rounding_bias.h"

#include "engine/trace/layout.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

double rounding_drift_error(const struct rounding_drift *d)
{
    if (!(d->n >= 2))
        return NAN;
    const double mean = d->sum / d->n;
    return sqrt(fmax(0, d->squares / d->n - mean * mean) / (d->n - 1));
}

void rounding_drift_merge(struct rounding_drift *to, const struct rounding_drift *from)
{
    to->n += from->n;
    to->sum += from->sum;
    to->squares += from->squares;
}

static void decide(struct rounding_cell *cell, enum rounding_state state, enum rounding_evidence evidence,
                   enum rounding_reason why)
{
    cell->state = state;
    cell->evidence = evidence;
    cell->why = why;
}

static void decide_off(struct rounding_cell *cell)
{
    const bool conversion = cell->narrow && cell->off_step == cell->off;
    decide(cell, ROUNDING_FOUND,
           cell->off_bits == cell->off ? ROUNDING_BY_BITS
           : conversion                ? ROUNDING_BY_CONVERSION
                                       : ROUNDING_BY_BOUND,
           ROUNDING_CLEAR);
    if (conversion)
        cell->size = cell->steps / (double)cell->elements;
}

static void decide_negated(struct rounding_cell *cell)
{
    if (!cell->broken)
        decide(cell, ROUNDING_NONE, ROUNDING_BY_NEGATION, ROUNDING_CLEAR);
    else if (cell->unsteady)
        decide(cell, ROUNDING_INCONCLUSIVE, ROUNDING_BY_NEGATION, ROUNDING_UNSTEADY);
    else
        decide(cell, ROUNDING_FOUND, ROUNDING_BY_NEGATION, ROUNDING_CLEAR);
    cell->size = cell->even / (double)cell->compared;
}

static enum rounding_reason refusal(const struct rounding_cell *cell)
{
    switch (cell->fit.state) {
    case CLUSTERED_UNBALANCED:
        return ROUNDING_UNBALANCED;
    case CLUSTERED_COARSE:
        return ROUNDING_COARSE;
    case CLUSTERED_FEW:
        return ROUNDING_FEW;
    case CLUSTERED_NOTHING:
        return ROUNDING_OPERANDS;
    case CLUSTERED_EXACT:
    case CLUSTERED_FITTED:
        break;
    }
    return ROUNDING_CLEAR;
}

static void decide_fitted(struct rounding_cell *cell)
{
    const struct clustered *f = &cell->fit;
    const enum rounding_reason why = cell->barred != ROUNDING_CLEAR ? cell->barred : refusal(cell);
    if (why != ROUNDING_CLEAR) {
        decide(cell, ROUNDING_INCONCLUSIVE, ROUNDING_BY_NOTHING, why);
        return;
    }
    if (f->state == CLUSTERED_EXACT) {
        decide(cell, ROUNDING_NONE, ROUNDING_BY_EXACT, ROUNDING_CLEAR);
        return;
    }
    cell->size = f->intercept;
    cell->error = f->error;
    cell->z = f->z;
    const bool large = fabs(f->intercept) >= ROUNDING_LEAST_SIZE;
    if (large && fabs(f->z) > ROUNDING_LEAST_Z)
        decide(cell, ROUNDING_FOUND, ROUNDING_BY_REGRESSION, ROUNDING_CLEAR);
    else if (ROUNDING_LEAST_Z * f->error > ROUNDING_TO_SEE)
        decide(cell, ROUNDING_INCONCLUSIVE, ROUNDING_BY_REGRESSION, ROUNDING_FEW);
    else if (large && fabs(f->z) > ROUNDING_DOUBT_Z)
        decide(cell, ROUNDING_INCONCLUSIVE, ROUNDING_BY_REGRESSION, ROUNDING_DOUBT);
    else
        decide(cell, ROUNDING_NONE, ROUNDING_BY_REGRESSION, ROUNDING_CLEAR);
}

void rounding_decide(struct rounding_cell *cell)
{
    cell->size = cell->error = cell->z = NAN;
    if (!cell->elements)
        decide(cell, ROUNDING_UNRECORDED, ROUNDING_BY_NOTHING, ROUNDING_CLEAR);
    else if (cell->off)
        decide_off(cell);
    else if (cell->fixed == cell->elements) /* what is masked is in no tensor core's tile */
        decide(cell, ROUNDING_NONE, cell->by_bits ? ROUNDING_BY_BITS : ROUNDING_BY_EXACT, ROUNDING_CLEAR);
    else if (cell->compared)
        decide_negated(cell);
    else if (cell->narrow && 2 * cell->only >= cell->elements)
        decide(cell, ROUNDING_NONE, ROUNDING_BY_CONVERSION, ROUNDING_CLEAR);
    else
        decide_fitted(cell);
}

/* The means of cells, weighed by their elements. */
struct weighed {
    double weight, intercept, slope, variance, slope_variance;
};

static void combine_fits(const struct rounding_cell *const *cells, const int *group, int n, struct clustered *out)
{
    struct weighed all = {0};
    int state = -1;
    for (int i = 0; i < n; i++) {
        double weight = 0, error = 0, slope_error = 0; /* of the group that begins here */
        int begun = 0;
        for (int k = 0; k < i && !begun; k++)
            begun = group[k] == group[i];
        for (int k = i; k < n && !begun; k++) {
            const struct clustered *f = &cells[k]->fit;
            if (group[k] != group[i] || cells[k]->barred != ROUNDING_CLEAR || !cells[k]->elements)
                continue;
            if (f->state != CLUSTERED_FITTED) {
                state = state < 0 ? (int)f->state : state;
                continue;
            }
            const double w = (double)cells[k]->elements;
            weight += w;
            error += w * f->error;
            slope_error += w * f->slope_error;
            all.intercept += w * f->intercept;
            all.slope += w * f->slope;
        }
        all.weight += weight;
        all.variance += error * error;
        all.slope_variance += slope_error * slope_error;
    }
    *out = (struct clustered){.state = state < 0 ? CLUSTERED_NOTHING : (enum clustered_state)state};
    if (!(all.weight > 0))
        return;
    *out = (struct clustered){.state = CLUSTERED_FITTED,
                              .intercept = all.intercept / all.weight,
                              .error = sqrt(all.variance) / all.weight,
                              .slope = all.slope / all.weight,
                              .slope_error = sqrt(all.slope_variance) / all.weight};
    out->z = out->error > 0 ? out->intercept / out->error : 0;
}

static void add(struct rounding_cell *to, const struct rounding_cell *from)
{
    to->elements += from->elements;
    to->off += from->off;
    to->off_bits += from->off_bits;
    to->off_step += from->off_step;
    to->fixed += from->fixed;
    to->by_bits += from->by_bits;
    to->only += from->only;
    to->compared += from->compared;
    to->broken += from->broken;
    to->steps += from->steps;
    to->even += from->even;
    to->narrow |= from->narrow;
    to->unsteady |= from->unsteady;
    if (from->state == ROUNDING_INCONCLUSIVE)
        to->inconclusive += from->elements;
    if (from->barred != ROUNDING_CLEAR)
        to->refused += from->elements;
}

void rounding_combine(const struct rounding_cell *const *cells, const int *group, int n, struct rounding_cell *out)
{
    const struct rounding_cell *found = NULL, *open = NULL;
    *out = (struct rounding_cell){0};
    for (int i = 0; i < n; i++) {
        const struct rounding_cell *c = cells[i];
        add(out, c);
        if (c->state == ROUNDING_FOUND && (!found || fabs(c->z) > fabs(found->z)))
            found = c;
        if (c->state == ROUNDING_INCONCLUSIVE && (!open || c->elements > open->elements))
            open = c;
        if (c->barred != ROUNDING_CLEAR)
            out->barred = c->barred;
    }
    combine_fits(cells, group, n, &out->fit);
    if (2 * out->refused < out->elements)
        out->barred = ROUNDING_CLEAR;
    rounding_decide(out);
    if (found && out->state != ROUNDING_FOUND) {
        decide(out, ROUNDING_FOUND, found->evidence, ROUNDING_CLEAR);
        out->size = found->size;
        out->error = found->error;
        out->z = found->z;
    } else if (open && out->state == ROUNDING_NONE && out->evidence == ROUNDING_BY_REGRESSION &&
               2 * out->inconclusive > out->elements) {
        decide(out, ROUNDING_INCONCLUSIVE, open->evidence, open->why);
    }
}

const char *rounding_state_word(enum rounding_state state)
{
    static const char *const words[] = {
        [ROUNDING_UNRECORDED] = "not recorded",
        [ROUNDING_NONE] = "none",
        [ROUNDING_INCONCLUSIVE] = "inconclusive",
        [ROUNDING_FOUND] = "found",
    };
    return words[state];
}

const char *rounding_evidence_name(enum rounding_evidence evidence)
{
    static const char *const names[] = {
#define ROUNDING_EVIDENCE(id, name, meaning) name,
#include "engine/oracle/rounding_bias/rounding.def"
    };
    return names[evidence];
}

const char *rounding_reason_name(enum rounding_reason reason)
{
    static const char *const names[] = {
#define ROUNDING_REASON(id, name, sentence) name,
#include "engine/oracle/rounding_bias/rounding.def"
    };
    return names[reason];
}

const char *rounding_reason_sentence(enum rounding_reason reason)
{
    static const char *const sentences[] = {
#define ROUNDING_REASON(id, name, sentence) sentence,
#include "engine/oracle/rounding_bias/rounding.def"
    };
    return sentences[reason];
}

const char *rounding_unit(enum asc_channel ch, const struct rounding_cell *cell)
{
    if (cell->narrow)
        return "steps";
    return ch == asc_s ? "ε|q∘k|" : ch == asc_u ? "ε|u,p∘v|" : ch == asc_o ? "2⁻²³|o|" : "";
}

static const char *negated_words(enum asc_channel ch)
{
    return ch == asc_s ? "S(−q) is not −S(q)" : ch == asc_u ? "U(−v) is not −U(v)" : "O(−v) is not −O(v)";
}

static void found_words(enum asc_channel ch, const struct rounding_cell *cell, char *out, size_t bytes)
{
    const double n = (double)cell->elements;
    switch (cell->evidence) {
    case ROUNDING_BY_BITS:
        snprintf(out, bytes, "%.3g %% of the elements do not have the tensor core's bits", 100 * (double)cell->off / n);
        break;
    case ROUNDING_BY_CONVERSION:
        snprintf(out, bytes, "%.3g %% are rounded to the wrong neighbor; mean error %+.3f steps",
                 100 * (double)cell->off / n, cell->size);
        break;
    case ROUNDING_BY_NEGATION:
        snprintf(out, bytes, "%s in %.3g %% of the elements; mean %+.3f %s", negated_words(ch),
                 100 * (double)cell->broken / (double)cell->compared, cell->size, rounding_unit(ch, cell));
        break;
    case ROUNDING_BY_REGRESSION:
        snprintf(out, bytes, "mean error %+.3f ± %.3f %s, z %+.1f", cell->size, cell->error, rounding_unit(ch, cell),
                 cell->z);
        break;
    default:
        snprintf(out, bytes, "%.3g %% are out of their bounds: a mistake", 100 * (double)cell->off / n);
    }
}

static void none_words(enum asc_channel ch, const struct rounding_cell *cell, char *out, size_t bytes)
{
    switch (cell->evidence) {
    case ROUNDING_BY_BITS:
        snprintf(out, bytes, "every element has the tensor core's bits");
        break;
    case ROUNDING_BY_NEGATION:
        snprintf(out, bytes, "%s in all %llu elements",
                 ch == asc_s   ? "S(−q) = −S(q)"
                 : ch == asc_u ? "U(−v) = −U(v)"
                               : "O(−v) = −O(v)",
                 (unsigned long long)cell->compared);
        break;
    case ROUNDING_BY_CONVERSION:
        snprintf(out, bytes, "nearest values; in %.3g %% there is only one",
                 100 * (double)cell->only / (double)cell->elements);
        break;
    case ROUNDING_BY_REGRESSION:
        snprintf(out, bytes, "mean error %+.4f ± %.4f %s", cell->size, cell->error, rounding_unit(ch, cell));
        break;
    default:
        snprintf(out, bytes, "nothing is rounded");
    }
}

void rounding_words(enum asc_channel ch, const struct rounding_cell *cell, char *out, size_t bytes)
{
    out[0] = '\0';
    if (cell->state == ROUNDING_FOUND)
        found_words(ch, cell, out, bytes);
    else if (cell->state == ROUNDING_NONE)
        none_words(ch, cell, out, bytes);
    else if (cell->state == ROUNDING_INCONCLUSIVE)
        snprintf(out, bytes, "%s", rounding_reason_sentence(cell->why));
}
