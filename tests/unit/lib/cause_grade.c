#include "tests/unit/lib/cause_grade.h"

#include <stdio.h>

const struct listed_mistake listed[LISTED_END] = {
#define LISTED(id, cause, second, needs) [id] = {#id, cause, second, needs, false},
#include "tests/unit/lib/causes_listed.def"
#undef LISTED
#define ALIKE(id, cause, why) [id] = {#id, CAUSE_##cause, CAUSE_NONE, 0, true},
#include "tests/unit/lib/causes_alike.def"
#undef ALIKE
};

const char *const unlisted[MISTAKES] = {
#define UNLISTED(id) [id] = #id,
#include "tests/unit/lib/causes_unlisted.def"
#undef UNLISTED
};

/* causes_same.def */
static const enum cause same[][2] = {
#define SAME(a, b, why) {CAUSE_##a, CAUSE_##b},
#define COINCIDE(fill, a, b, why)
#define BECOMES(mistake, fill, cause, why)
#include "tests/unit/lib/causes_same.def"
#undef SAME
#undef COINCIDE
#undef BECOMES
};

bool synonyms(enum cause a, enum cause b)
{
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if ((same[i][0] == a && same[i][1] == b) || (same[i][0] == b && same[i][1] == a))
            return true;
    return a == b;
}

static const struct {
    enum fill fill;
    enum cause a, b;
} coincide[] = {
#define SAME(a, b, why)
#define COINCIDE(fill, a, b, why) {fill, CAUSE_##a, CAUSE_##b},
#define BECOMES(mistake, fill, cause, why)
#include "tests/unit/lib/causes_same.def"
#undef SAME
#undef COINCIDE
#undef BECOMES
};

static bool coincides(enum fill fill, enum cause a, enum cause b)
{
    for (size_t i = 0; i < sizeof coincide / sizeof coincide[0]; i++)
        if (coincide[i].fill == fill &&
            ((coincide[i].a == a && coincide[i].b == b) || (coincide[i].a == b && coincide[i].b == a)))
            return true;
    return false;
}

/* Whether this unlisted mistake is that listed one on the inputs of the run. */
static bool becomes(const struct spec *s, enum cause cause)
{
    static const struct {
        enum mistake mistake;
        enum fill fill;
        enum cause cause;
    } same_here[] = {
#define SAME(a, b, why)
#define COINCIDE(fill, a, b, why)
#define BECOMES(mistake, fill, cause, why) {mistake, fill, CAUSE_##cause},
#include "tests/unit/lib/causes_same.def"
#undef SAME
#undef COINCIDE
#undef BECOMES
    };
    for (size_t i = 0; i < sizeof same_here / sizeof same_here[0]; i++)
        if (same_here[i].mistake == s->mistake && same_here[i].fill == s->fill && same_here[i].cause == cause)
            return true;
    return false;
}

/* Whether the cause is a second fault that the run has, the mistake's consequence. */
static bool follows(const struct outcome *o, enum cause cause)
{
    return o->cuts_p && (cause == CAUSE_u_p_saturated || cause == CAUSE_l_p_saturated);
}

bool is_misnamed(const struct outcome *o, const struct spec *s)
{
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (o->named[cause] && !becomes(s, (enum cause)cause) && !follows(o, (enum cause)cause))
            return true;
    return false;
}

unsigned offers(const struct spec *s)
{
    const bool has_mask = s->causal || s->has_window;
    unsigned set = FORWARD * !s->backward | HUGE_V | (s->p_rounded == ASC_P_E4M3 ? 0 : OFFSET);
    set |= s->causal ? CAUSAL : 0;
    set |= s->causal == ASC_CAUSAL_TOP_LEFT ? TOP_LEFT : 0;
    set |= s->causal == ASC_CAUSAL_BOTTOM_RIGHT ? BOTTOM_RIGHT : 0;
    set |= s->causal && s->backward && s->skips_masked ? EMPTY_ROWS : 0;
    set |= s->q_len != s->kv_len ? OBLONG : 0;
    set |= s->causal == ASC_CAUSAL_BOTTOM_RIGHT && s->q_len > s->kv_len ? NO_KEYS | NO_KEY_YET : 0;
    set |= s->causal && s->backward && s->masked_value == 0 ? NO_KEY_YET : 0;
    set |= s->lanes > 1 ? LANES : 0;
    set |= s->bc == s->head_dim ? SQUARE : 0;
    set |= s->kv_len % s->bc ? TAIL : 0;
    set |= s->unit == ASC_UNIT_RAW ? RAW : 0;
    set |= (s->unit != ASC_UNIT_RAW || s->softcap > 0) && !s->folds_scale ? SCALES : 0;
    set |= s->unit == ASC_UNIT_LOG2 ? LOG2 : NOT_LOG2;
    set |= s->p_dtype == DTYPE_F32 ? 0 : NARROW_P;
    set |= s->p_dtype == DTYPE_F32 && !s->p_rounded ? WIDE_PV : 0;
    set |= s->p_dtype == DTYPE_F32 && !(s->p_rounded && s->sums_rounded) ? WIDE_L : 0;
    set |= has_mask ? MASK : 0;
    set |= s->has_window && s->causal ? WINDOW : 0;
    set |= s->softcap > 0 ? CAPPED : 0;
    set |= s->late_u ? 0 : EARLY_U;
    set |= s->lse_base2 ? 0 : NATURAL_LSE;
    set |= s->m_lag > 0 ? LAGS : 0;
    set |= s->tensor_cores && !s->late_u ? CORES : 0;
    set |= s->head_dim % 16 ? 0 : PIECES;
    return set;
}

int grade(const struct outcome *o, const struct spec *s)
{
    const enum mistake mistake = s->mistake;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        if (o->named[cause] && !synonyms((enum cause)cause, listed[mistake].cause) &&
            !coincides(s->fill, (enum cause)cause, listed[mistake].cause) && !follows(o, (enum cause)cause) &&
            !(listed[mistake].second && synonyms((enum cause)cause, listed[mistake].second)))
            return -1;
    }
    const enum cause second = listed[mistake].second;
    const bool has_second = second && o->culprits & 1u << cause_channel(second); /* feeding may heal it */
    const int right = o->named[listed[mistake].cause] && (!has_second || o->named[second]);
    return right;
}

struct spec spec_of(const struct spec *shape, enum mistake mistake, enum fill fill, unsigned seed)
{
    struct spec s = *shape;
    s.mistake = mistake;
    s.fill = fill;
    s.seed = seed;
    s.v_times = 1;
    if (mistake < LISTED_END) {
        s.p_offset = listed[mistake].needs & OFFSET ? 10 : 0;
        s.v_times = listed[mistake].needs & HUGE_V ? 300 : 1;
    }
    return s;
}

void print_case(const struct spec *s, const char *where, const struct outcome *o)
{
    const enum mistake mistake = s->mistake;
    const bool is_listed = mistake > RIGHT && mistake < LISTED_END;
    const struct cause_evidence *e = &o->evidence[is_listed ? listed[mistake].cause : CAUSE_NONE];
    char names[512];
    write_names(o, names, sizeof names);
    printf("# %s, %s, fill %d, seed %u: named%s", is_listed ? listed[mistake].name : unlisted[mistake], where,
           (int)s->fill, s->seed, names);
    if (is_listed)
        printf("; %llu of %llu explained, %llu in %llu rows tell, chance %llu of %llu",
               (unsigned long long)e->explained, (unsigned long long)e->elements, (unsigned long long)e->discriminating,
               (unsigned long long)e->rows, (unsigned long long)e->chance_hit, (unsigned long long)e->chance_tried);
    printf("\n");
}
