/* The masks that a run applied, as JSON. */
#include "cli/report.h"

#include "engine/verdict/masks.h"

static json_t *name_json(const struct mask_name *name)
{
    const struct mask_evidence *e = &name->evidence;
    char words[128];
    mask_name_words(name, words, sizeof words);
    return json_pack("{s:s, s:s, s:i, s:{s:I, s:I, s:I, s:I}}", "name", mask_shift_name(name->shift), "sentence", words,
                     "keys", mask_shift_moves(name->shift) ? name->by : 0, "evidence", "elements",
                     (json_int_t)e->elements, "explained", (json_int_t)e->explained, "discriminating",
                     (json_int_t)e->telling, "rows", (json_int_t)e->rows);
}

json_t *report_json_mask(const struct session *s)
{
    static const char *const sources[MASK_SOURCES] = {[MASK_FROM_S] = "s", [MASK_FROM_P] = "p"};
    const struct masks *m = s->judgement->masks;
    struct mask_counts n;
    const enum mask_source source = masks_total(m, &n);
    if (source == MASK_NOT_KNOWN)
        return json_null();
    json_t *names = json_array();
    for (int i = 0; i < m->n_names && atomic_load_explicit(&m->named, memory_order_acquire); i++)
        json_array_append_new(names, name_json(&m->name[i]));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "from", sources[source], "seen", (json_int_t)n.both,
                     "hidden", (json_int_t)n.neither, "only_applied", (json_int_t)n.only_applied, "only_wanted",
                     (json_int_t)n.only_wanted, "unknown", (json_int_t)n.unknown, "names", names);
}
