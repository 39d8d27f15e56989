/* shape.mask and shape.score_mod: what a scenario's formulas say, and the bytes of a mask. */
#include "engine/scenario/keys.h"

#include "engine/base/text.h"
#include "engine/trace/expression.h"
#include <string.h>

static int parse(const struct scenario *s, enum scenario_key_id id, const int *line, struct expression *out,
                 struct err *err)
{
    char where[WHERE_BYTES], why[EXPRESSION_WHY_BYTES];
    if (expression_parse(id == KEY_MASK ? s->problem.mask_formula : s->problem.score_mod, id != KEY_MASK, out, why) ==
        0)
        return 0;
    scenario_where(s, line, id, where, sizeof where);
    return err_set(err, ERR_INPUT, where, "%s", why);
}

int scenario_settle_formulas(struct scenario *s, const int *line, struct err *err)
{
    struct asc_problem *p = &s->problem;
    struct expression formula;
    char spec[ARRAY_NAME_BYTES], where[WHERE_BYTES];
    if (p->score_mod[0] && parse(s, KEY_SCORE_MOD, line, &formula, err) != 0)
        return -1;
    if (!scenario_input(s, INPUT_KEEP, spec))
        p->keep_kind = p->dropout > 0 ? ASC_BIAS_FULL : ASC_BIAS_NONE;
    if (scenario_input(s, INPUT_MASK, spec)) {
        scenario_where(s, line, KEY_MASK, where, sizeof where);
        return scenario_stated(s, KEY_MASK)
                   ? err_set(err, ERR_INPUT, where, "expected no `inputs.mask` beside it, found both")
                   : 0;
    }
    p->mask_kind = ASC_BIAS_NONE;
    if (!p->mask_formula[0])
        return 0;
    if (parse(s, KEY_MASK, line, &formula, err) != 0)
        return -1;
    const bool lengths =
        (formula.uses & 1u << EXPRESSION_Q_LEN && p->q_lens) || (formula.uses & 1u << EXPRESSION_KV_LEN && p->kv_lens);
    const bool heads = formula.uses & 1u << EXPRESSION_H, batches = formula.uses & 1u << EXPRESSION_B || lengths;
    p->mask_kind = heads && batches ? ASC_BIAS_FULL
                   : heads          ? ASC_BIAS_PER_HEAD
                   : batches        ? ASC_BIAS_PER_BATCH
                                    : ASC_BIAS_SHARED;
    return 0;
}

int fill_mask(const struct asc_problem *p, uint8_t *out, struct err *err)
{
    const struct asc_strides strides = asc_mask_strides(p);
    const int batches = strides.batch ? p->batch : 1, heads = strides.head ? p->heads : 1;
    struct expression formula;
    char why[EXPRESSION_WHY_BYTES];
    if (expression_parse(p->mask_formula, false, &formula, why) != 0)
        return err_set(err, ERR_INPUT, "shape.mask", "%s", why);
    for (int b = 0; b < batches; b++)
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < p->q_len; i++) {
                uint8_t *row = out + strides.batch * b + strides.head * h + strides.row * i;
                /* Nobody reads behind a sequence: 0 there, whatever the formula would say. */
                const int keys =
                    i < asc_q_len(p, b) || !strides.batch ? strides.batch ? asc_kv_len(p, b) : p->kv_len : 0;
                memset(row + keys, 0, (size_t)(p->kv_len - keys));
                for (int j = 0; j < keys; j++) {
                    const int64_t at[EXPRESSION_WHOLE] = {i, j, h, b, asc_q_len(p, b), asc_kv_len(p, b)};
                    int64_t sees = 0;
                    if (!expression_whole(&formula, formula.n - 1, at, &sees))
                        return err_set(
                            err, ERR_INPUT, "shape.mask",
                            "the formula has no value at i = %d, j = %d, h = %d, b = %d: it divides by 0, or a "
                            "number passes 64 bits",
                            i, j, h, b);
                    row[j] = sees != 0;
                }
            }
    return 0;
}
