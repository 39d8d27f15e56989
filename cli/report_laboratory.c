/* `--json` of what the laboratory finds: how values fare as codes, where the error of O comes from, what if. */
#include "cli/report.h"

#include "engine/study/comparison.h"
#include "engine/study/formats.h"
#include "engine/study/whatif.h"

enum { MOST_SLOTS = 16 }; /* half a second at 8 heads of 512 queries and keys */

static json_t *group_json(const struct formats_group *g)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "batch", g->batch,
                     "head", g->head, "first_row", g->first, "rows", g->rows, "first_column", g->first_col, "scale",
                     report_json_number(g->scale), "amax", report_json_number(g->amax), "headroom_bits",
                     report_json_number(g->headroom), "best_scale", report_json_number(g->best_scale), "rms_error",
                     report_json_number(g->rms), "best_rms_error", report_json_number(g->best_rms), "elements",
                     (json_int_t)g->elements, "saturated", (json_int_t)g->saturated, "flushed", (json_int_t)g->flushed,
                     "nan", (json_int_t)g->nan);
}

static json_t *tensor_json(const struct formats_tensor *t)
{
    const struct format_counts *n = &t->counts;
    json_t *codes = json_array(), *groups = json_array();
    for (int i = 0; i < 256; i++)
        json_array_append_new(codes, json_integer((json_int_t)n->code[i]));
    for (int i = 0; i < t->n_groups; i++)
        json_array_append_new(groups, group_json(&t->groups[t->order[i]]));
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "channel", channel_name(t->channel), "dtype",
                  dtype_name(t->type), "source", formats_source_words(t->source), "elements", (json_int_t)n->elements,
                  "nan", (json_int_t)n->nan, "subnormal", (json_int_t)n->subnormal, "codes", codes, "groups", groups);
    if (n->known)
        json_object_update_new(json, json_pack("{s:I, s:I, s:o, s:o}", "saturated", (json_int_t)n->saturated, "flushed",
                                               (json_int_t)n->flushed, "largest_error", report_json_number(n->largest),
                                               "rms_error", report_json_number(formats_rms(n))));
    return json;
}

json_t *report_json_formats(const struct trace *t)
{
    struct formats *f;
    int pieces, failed = formats_begin(t, &f, &pieces) != 0;
    for (int i = 0; !failed && i < pieces; i++)
        failed = formats_piece(t, f, i) != 0;
    json_t *json = !failed && f->n ? json_array() : NULL;
    for (int i = 0; json && i < f->n; i++)
        json_array_append_new(json, tensor_json(&f->tensor[i]));
    if (!failed)
        formats_free(f);
    return json;
}

static json_t *error_json(const struct path_error *e)
{
    return json_pack("{s:o, s:o}", "largest_error", e->n && !e->bad ? report_json_number(e->largest) : json_null(),
                     "rms_error", e->bad ? json_null() : report_json_number(path_rms(e)));
}

json_t *report_json_compare(const struct trace *t)
{
    struct survey_row rows[MOST_SLOTS], total;
    const int all = t->layout.n_slots, n = all < MOST_SLOTS ? all : MOST_SLOTS;
    for (int i = 0; i < n; i++) {
        struct comparison c;
        if (comparison_make(t, (int)((int64_t)i * all / n), &c) != 0)
            return NULL;
        survey_row_of(&c, &rows[i]);
        comparison_free(&c);
    }
    if (!n)
        return NULL;
    survey_total(rows, n, &total);
    json_t *shares = json_object();
    for (int p = 0; p < PLAYERS; p++)
        json_object_set_new(shares, player_name((enum player)p), report_json_number(total.share[p]));
    return json_pack("{s:i, s:o, s:o, s:o}", "q_tiles", n, "f16_path", error_json(&total.o[PATH_F16]), "run",
                     error_json(&total.o[PATH_RUN]), "shares", shares);
}

json_t *report_json_whatif(const struct trace *t)
{
    struct whatif *w;
    int pieces, failed = whatif_begin(t, MOST_SLOTS, &w, &pieces) != 0;
    for (int i = 0; !failed && i < pieces; i++)
        failed = whatif_piece(t, w, i) != 0;
    json_t *json = !failed && w->given_known && pieces ? json_array() : NULL;
    for (int i = 0; json && i < w->n; i++) {
        char words[96];
        whatif_words(&w->row[i].choice, words, sizeof words);
        json_t *row = error_json(&w->row[i].o);
        json_object_set_new(row, "formats", json_string(words));
        json_array_append_new(json, row);
    }
    if (!failed)
        whatif_free(w);
    return json;
}
