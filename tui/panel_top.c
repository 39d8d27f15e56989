/* The top of the screen: what was run, the verdict per stage, the finding. */
#include "tui/panels.h"

#include "tui/layout.h"
#include "tui/sign.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "1,8,512,64", "1,8/2,200,333,64 causal": batch, heads (query/kv), q_len, kv_len where it differs, head_dim. */
static void shape_words(const struct asc_problem *p, char *out, size_t bytes)
{
    char heads[32], kv[16] = "";
    snprintf(heads, sizeof heads, "%d", (int)p->heads);
    if (p->kv_heads != p->heads)
        snprintf(heads, sizeof heads, "%d/%d", (int)p->heads, (int)p->kv_heads);
    if (p->kv_len != p->q_len)
        snprintf(kv, sizeof kv, ",%d", (int)p->kv_len);
    snprintf(out, bytes, "%d,%s,%d%s,%d %s%s", (int)p->batch, heads, (int)p->q_len, kv, (int)p->head_dim,
             dtype_name((enum dtype)p->dtype), p->causal == ASC_CAUSAL_NONE ? "" : " causal");
}

static void shape_long_words(const struct asc_problem *p, char *out, size_t bytes)
{
    static const char *const causal[] = {"dense", "causal top-left", "causal bottom-right"};
    char kv_heads[24] = "";
    if (p->kv_heads != p->heads)
        snprintf(kv_heads, sizeof kv_heads, " Hkv%d", (int)p->kv_heads);
    snprintf(out, bytes, "B%d H%d%s Lq%d Lkv%d D%d %s %s", (int)p->batch, (int)p->heads, kv_heads, (int)p->q_len,
             (int)p->kv_len, (int)p->head_dim, dtype_name((enum dtype)p->dtype),
             p->causal >= 0 && p->causal <= ASC_CAUSAL_BOTTOM_RIGHT ? causal[p->causal] : "?");
}

static void backend_words(const struct session *s, int roomy, char *out, size_t bytes)
{
    out[0] = '\0';
    if (!s->trace)
        return;
    const struct trace_info *info = &s->trace->info;
    if (roomy)
        snprintf(out, bytes, " │ %s ×%d  %.2f s │ run %d", info->backend, info->workers, info->seconds, s->run_number);
    else
        snprintf(out, bytes, "  %s %.2fs", info->backend, info->seconds);
}

static enum style verdict_style(const struct session *s)
{
    if (s->phase == PHASE_FAILED)
        return STYLE_BAD;
    if (!s->judgement)
        return STYLE_STRONG;
    if (s->judgement->summary.culprits)
        return STYLE_BAD;
    if (s->judgement->summary.suspicious)
        return STYLE_WARNING;
    return s->judgement->complete && s->phase == PHASE_READY ? STYLE_OK : STYLE_STRONG;
}

void header_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const int roomy = area.cols >= 118;
    const struct asc_problem *p = shown_problem(s);
    char shape[128], backend[96], facts[256];
    if (roomy)
        shape_long_words(p, shape, sizeof shape);
    else
        shape_words(p, shape, sizeof shape);
    backend_words(s, roomy, backend, sizeof backend);
    snprintf(facts, sizeof facts, "%s%s%s", roomy ? " │ " : "  ", shape, backend);

    const char *word = session_verdict_word(s);
    int col = canvas_put(c, area, 0, 0, STYLE_STRONG, "attnscope") + 2;
    int facts_cols = text_columns(facts), word_cols = text_columns(word);
    int title_cols = area.cols - col - facts_cols - word_cols - 2;
    struct rect title = {area.row, area.col + col, 1, title_cols};
    int used = canvas_put(c, title, 0, 0, STYLE_TEXT, s->title);
    if (used > title_cols || text_columns(s->title) > title_cols) {
        canvas_put(c, title, 0, title_cols - 1, STYLE_DIM, "…");
        used = title_cols;
    }
    struct rect rest = {area.row, area.col + col + used, 1, area.cols - col - used - word_cols - 1};
    canvas_put(c, rest, 0, 0, STYLE_TEXT, facts);
    text_right(c, area, 0, verdict_style(s), word);
}

void strip_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const int step = area.cols > 80 ? 8 : 6, first = area.cols > 80 ? 9 : 8;
    canvas_put(c, area, 1, 0, STYLE_DIM, "global");
    canvas_put(c, area, 2, 0, STYLE_DIM, "local");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        int col = first + ch * step;
        if (ch == (int)s->cursor.channel)
            canvas_printf(c, area, 0, col, STYLE_STRONG, "[%s]", channel_label(ch));
        else
            canvas_put(c, area, 0, col, STYLE_TEXT, channel_label(ch));
        const struct stage_summary *stage = s->judgement ? &s->judgement->summary.stage[ch] : NULL;
        enum style style;
        const char *text = mark_text(stage ? stage->global : MARK_UNKNOWN, &style);
        canvas_put(c, area, 1, col, style, text);
        text = mark_text(stage ? stage->local : MARK_UNKNOWN, &style);
        canvas_put(c, area, 2, col, style, text);
    }
}

/* "S, l". */
static void stage_list(unsigned stages, char *out, size_t bytes)
{
    out[0] = '\0';
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (stages & 1u << ch) {
            size_t used = strlen(out);
            snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", channel_label(ch));
        }
    }
}

/* "S alone", "S, l". */
static void culprit_words(unsigned culprits, char *out, size_t bytes)
{
    stage_list(culprits, out, bytes);
    if (culprits && !(culprits & (culprits - 1))) {
        size_t used = strlen(out);
        snprintf(out + used, bytes - used, " alone");
    }
}

void facts_draw(const struct session *s, struct canvas *c, struct rect area)
{
    if (!s->trace || !s->judgement)
        return;
    const struct summary *summary = &s->judgement->summary;
    char words[64] = "none", culprits[64] = "none";
    if (summary->first.slot >= 0)
        place_words(s, summary->first, words, sizeof words);
    if (summary->culprits)
        culprit_words(summary->culprits, culprits, sizeof culprits);
    const struct asc_problem *p = &s->trace->problem;
    canvas_printf(c, area, 0, 0, STYLE_TEXT, "first bad %s", words);
    canvas_printf(c, area, 1, 0, STYLE_TEXT, "culprit   %s", culprits);
    canvas_printf(c, area, 2, 0, STYLE_TEXT, "recorded  %d/%lld q tiles", s->trace->layout.n_slots,
                  (long long)p->batch * p->heads * s->trace->layout.q_tiles);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* The finding's own line, or a shorter one of the same facts. */
static void finding_words(const struct finding *f, int cols, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", f->text);
    if (text_columns(out) <= cols || f->cause == CAUSE_NONE)
        return;
    const struct cause_evidence *e = &f->evidence;
    snprintf(out, bytes, "%s = %s explains %.4g%% (rounding %.2g%%): %s", channel_label(f->channel),
             cause_formula(f->cause), percent(e->explained, e->elements), percent(e->rounding, e->elements),
             cause_sentence(f->cause));
}

static void site_words(const struct session *s, enum asc_channel ch, char *out, size_t bytes)
{
    const struct trace_site *site = s->trace ? trace_site(s->trace, ch) : NULL;
    out[0] = '\0';
    if (!site)
        return;
    const char *slash = strrchr(site->file, '/');
    snprintf(out, bytes, "%s:%d", slash ? slash + 1 : site->file, site->line);
}

static void first_bad_draw(const struct session *s, struct canvas *c, struct rect area, int row, const char *so_far)
{
    const struct summary *summary = &s->judgement->summary;
    char words[64], culprits[64];
    if (row >= area.rows || summary->first.slot < 0)
        return;
    place_words(s, summary->first, words, sizeof words);
    culprit_words(summary->culprits, culprits, sizeof culprits);
    canvas_printf(c, area, row, 0, STYLE_TEXT, "first bad%s %s   culprit %s", so_far, words, culprits);
}

static void activity_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    const double seconds = vs->now > s->activity_since ? vs->now - s->activity_since : 0;
    int col = canvas_printf(c, area, 0, 0, STYLE_STRONG, "%s  %.1f s", s->activity, seconds) + 2;
    if (s->total > 0) {
        const int bar_cols = 20;
        const double share = s->done < 0 ? 0 : s->done > s->total ? 1 : s->done / s->total;
        const int filled = (int)lround(share * bar_cols);
        for (int i = 0; i < bar_cols; i++)
            canvas_put(c, area, 0, col + i, i < filled ? STYLE_OK : STYLE_DIM, i < filled ? "█" : "░");
        canvas_printf(c, area, 0, col + bar_cols + 1, STYLE_TEXT, "%.0f of %.0f  (x stops)", s->done, s->total);
    } else {
        canvas_put(c, area, 0, col, STYLE_DIM, "(x stops)");
    }
    if (s->judgement)
        first_bad_draw(s, c, area, 1, " so far");
}

static void error_line_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const char *where = s->err.where;
    if (session_failed_to_show(s)) { /* the panels give way to the whole text */
        canvas_printf(c, area, 0, 0, STYLE_BAD, "%s error%s", err_name(s->err.code),
                      s->trace ? "; the run before it is still in views 2, 3 and 4" : ": nothing was run");
        return;
    }
    canvas_printf(c, area, 0, 0, STYLE_BAD, "%s error%s%s: %.*s", err_name(s->err.code), *where ? ": " : "", where,
                  (int)strcspn(s->err.message, "\n"), s->err.message);
    if (s->judgement && area.rows > 1)
        first_bad_draw(s, c, area, 1, " of what was recorded");
}

static void quiet_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct summary *summary = &s->judgement->summary;
    uint64_t elements = 0;
    unsigned unknown = 0;
    char list[64];
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        elements += summary->stage[ch].elements;
        if (summary->stage[ch].local == MARK_UNKNOWN)
            unknown |= 1u << ch;
    }
    if (summary->culprits) {
        stage_list(summary->culprits, list, sizeof list);
        canvas_printf(c, area, 0, 0, STYLE_BAD, "%s: outside the bound", list);
        first_bad_draw(s, c, area, 1, "");
    } else if (summary->suspicious) {
        static const char *const why = "a bound or a declaration is wrong";
        stage_list(summary->suspicious, list, sizeof list);
        int col =
            canvas_printf(c, area, 0, 0, STYLE_WARNING, "%s: off by the truth, while every local check passes", list);
        if (area.rows > 1)
            canvas_put(c, area, 1, 0, STYLE_WARNING, why);
        else
            canvas_printf(c, area, 0, col, STYLE_WARNING, ": %s", why);
    } else if (s->judgement->complete && elements > 0) {
        const int complete = strcmp(s->trace->info.status, "complete") == 0;
        int col = canvas_printf(c, area, 0, 0, complete ? STYLE_OK : STYLE_WARNING,
                                "%s is within its bound: %llu elements judged",
                                complete ? "every recorded stage" : "what was recorded", (unsigned long long)elements);
        stage_list(unknown, list, sizeof list);
        if (unknown)
            canvas_printf(c, area, 0, col, STYLE_WARNING, ", %s not judged", list);
    } else {
        canvas_put(c, area, 0, 0, STYLE_WARNING, "nothing is judged");
    }
}

/* What the isolated run shows takes the finding's place. */
static void isolation_draw(const struct isolation_result *r, struct canvas *c, struct rect area)
{
    char line[256];
    isolation_line(r, line, sizeof line);
    const int col = canvas_printf(c, area, 0, 0, STYLE_STRONG, "isolated %s: ", r->asked->name);
    const int used = canvas_put(c, area, 0, col, r->after->culprits ? STYLE_BAD : STYLE_OK, line);
    static const char *const back = "r runs the kernel as it is";
    if (area.rows > 1)
        canvas_printf(c, area, 1, 0, STYLE_DIM, "the marks above are the isolated run's; %s", back);
    else if (col + used + 2 + text_columns(back) <= area.cols)
        text_right(c, area, 0, STYLE_DIM, back);
}

void finding_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    struct isolation_result isolated;
    if (s->phase == PHASE_BUILDING || s->phase == PHASE_RUNNING || s->phase == PHASE_JUDGING) {
        activity_draw(s, c, area, vs);
    } else if (s->phase == PHASE_FAILED) {
        error_line_draw(s, c, area);
    } else if (!s->judgement) {
        canvas_put(c, area, 0, 0, STYLE_TEXT, "no run yet: press r");
    } else if (session_isolated(s, &isolated)) {
        isolation_draw(&isolated, c, area);
    } else if (s->finding) {
        char words[256], site[300];
        site_words(s, s->finding->channel, site, sizeof site);
        const int site_cols = text_columns(site), one_line = area.rows == 1;
        const char *lead = one_line ? "FINDING  " : "";
        const struct rect line = {area.row, area.col, 1, area.cols - (one_line ? site_cols + 1 : 0)};
        finding_words(s->finding, line.cols - text_columns(lead), words, sizeof words);
        int col = canvas_put(c, line, 0, 0, STYLE_STRONG, lead);
        canvas_put(c, line, 0, col, STYLE_BAD, words);
        first_bad_draw(s, c, area, 1, "");
        text_right(c, area, area.rows - 1, STYLE_STRONG, site);
    } else {
        quiet_draw(s, c, area);
    }
}

/* In the order of need: what has no room is left out. */
void legend_draw(struct canvas *c, struct rect area)
{
    static const int order[] = {CLASS_OFF,   SIGN_UPSTREAM, CLASS_NAN,   CLASS_INF,       CLASS_MISSING,
                                CLASS_EXTRA, CLASS_OK,      SIGN_MASKED, SIGN_UNRECORDED, SIGN_WAITING};
    int col = canvas_put(c, area, 0, 0, STYLE_CURSOR, "◆");
    col += canvas_put(c, area, 0, col, STYLE_DIM, " here");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *word = sign_word(order[i]);
        if (col + 4 + text_columns(word) > area.cols)
            break;
        col += 2;
        col += canvas_put(c, area, 0, col, sign_style(order[i]), sign_glyph(order[i])) + 1;
        col += canvas_put(c, area, 0, col, STYLE_DIM, word);
    }
}
