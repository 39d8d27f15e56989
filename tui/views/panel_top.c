/* The top of the screen: what was run, the verdict per stage; and the legend. */
#include "tui/views/panels.h"

#include "engine/base/units.h"
#include "engine/verdict/own.h"
#include "engine/verdict/reports.h"
#include "tui/views/layout.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "1,8,512,64", "1,8/2,200,333,64 causal": batch, heads (query/kv), q_len, kv_len where it differs, head_dim. */
static void shape_words(const struct asc_problem *p, char *out, size_t bytes)
{
    char heads[32], kv[16] = "", types[TYPES_BYTES];
    problem_types(p, types);
    snprintf(heads, sizeof heads, "%d", (int)p->heads);
    if (p->kv_heads != p->heads)
        snprintf(heads, sizeof heads, "%d/%d", (int)p->heads, (int)p->kv_heads);
    if (p->kv_len != p->q_len)
        snprintf(kv, sizeof kv, ",%d", (int)p->kv_len);
    snprintf(out, bytes, "%d,%s,%d%s,%d %s%s", (int)p->batch, heads, (int)p->q_len, kv, (int)p->head_dim, types,
             p->causal == ASC_CAUSAL_NONE ? "" : " causal");
}

static void shape_long_words(const struct asc_problem *p, char *out, size_t bytes)
{
    static const char *const causal[] = {"dense", "causal top-left", "causal bottom-right"};
    char kv_heads[24] = "", types[TYPES_BYTES];
    problem_types(p, types);
    if (p->kv_heads != p->heads)
        snprintf(kv_heads, sizeof kv_heads, " Hkv%d", (int)p->kv_heads);
    snprintf(out, bytes, "B%d H%d%s Lq%d Lkv%d D%d %s %s", (int)p->batch, (int)p->heads, kv_heads, (int)p->q_len,
             (int)p->kv_len, (int)p->head_dim, types,
             p->causal >= 0 && p->causal <= ASC_CAUSAL_BOTTOM_RIGHT ? causal[p->causal] : "?");
}

static void backend_words(const struct session *s, bool roomy, char *out, size_t bytes)
{
    out[0] = '\0';
    if (!s->run.trace)
        return;
    const struct trace_info *info = &s->run.trace->info;
    const char *probes = s->run.trace->info.probes_off ? ", probes off" : s->run.trace->info.checked ? ", checked" : "";
    char seconds[32], where[128];
    units_seconds(info->seconds, seconds, sizeof seconds); /* "": nobody took the time */
    if (info->device[0])
        snprintf(where, sizeof where, "%s %s", backend_names[info->backend], info->device);
    else
        snprintf(where, sizeof where, "%s%s%s ×%d", backend_names[info->backend], *info->tensor_core ? " as " : "",
                 info->tensor_core, info->workers);
    const struct run *newest = runs_newest(&s->runs);
    char of[32] = "";
    if (newest && s->run.number < newest->number)
        snprintf(of, sizeof of, " of %d", newest->number);
    if (roomy)
        snprintf(out, bytes, " │ %s%s%s%s │ run %d%s", where, probes, *seconds ? "  " : "", seconds, s->run.number, of);
    else if (*of)
        snprintf(out, bytes, "  RUN %d%s", s->run.number, of);
    else
        snprintf(out, bytes, "  %s%s%s%s%s%s", backend_names[info->backend], *info->tensor_core ? " as " : "",
                 info->tensor_core, probes, *seconds ? " " : "", seconds);
}

static enum style verdict_style(const struct session *s)
{
    if (s->job.phase == PHASE_FAILED)
        return STYLE_BAD;
    if (!s->run.judgement || !s->run.trace)
        return STYLE_STRONG;
    if (s->run.judgement->summary.culprits || s->run.trace->info.capture.off || reports_count(s->run.trace) ||
        !trace_complete(s->run.trace))
        return STYLE_BAD;
    if (s->run.judgement->summary.suspicious)
        return STYLE_WARNING;
    return s->run.judgement->complete && s->job.phase == PHASE_READY ? STYLE_OK : STYLE_STRONG;
}

void header_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const bool roomy = area.cols >= 118;
    const struct asc_problem *p = shown_problem(s);
    char shape[128], terms[TERMS_BYTES], backend[160], facts[368];
    problem_terms(p, s->run.trace ? &s->run.trace->plan : NULL, terms);
    if (roomy)
        shape_long_words(p, shape, sizeof shape);
    else
        shape_words(p, shape, sizeof shape);
    backend_words(s, roomy, backend, sizeof backend);
    snprintf(facts, sizeof facts, "%s%s%s%s", roomy ? " │ " : "  ", shape, terms, backend);

    const char *word = session_verdict_word(s);
    int col = canvas_put(c, area, 0, 0, STYLE_STRONG, "attnscope") + 2;
    const char *watching = session_watching(s) ? "watch " : "";
    int facts_cols = text_columns(facts), word_cols = text_columns(word) + text_columns(watching);
    int title_cols = area.cols - col - facts_cols - word_cols - 2;
    struct rect title = {area.row, area.col + col, 1, title_cols};
    int used = canvas_put(c, title, 0, 0, STYLE_TEXT, s->title);
    if (used > title_cols || text_columns(s->title) > title_cols) {
        canvas_put(c, title, 0, title_cols - 1, STYLE_DIM, "…");
        used = title_cols;
    }
    struct rect rest = {area.row, area.col + col + used, 1, area.cols - col - used - word_cols - 1};
    canvas_put_cut(c, rest, 0, 0, STYLE_TEXT, facts);
    text_right(c, area, 0, verdict_style(s), word);
    canvas_put(c, area, 0, area.cols - word_cols, STYLE_DIM, watching);
}

/* What became of a mark since the run before, right behind it. */
static void change_draw(struct canvas *c, struct rect area, int row, int col, enum change_kind kind)
{
    if (kind != CHANGE_NONE)
        canvas_put(c, area, row, col, kind == CHANGE_BETTER ? STYLE_OK : STYLE_BAD, kind == CHANGE_BETTER ? "▲" : "▼");
}

/* Behind the stages: the value of the kernel's own at which the cursor is, else how many there are. */
static void own_draw(const struct session *s, struct canvas *c, struct rect area, int col)
{
    const int n = s->run.trace ? plan_values(&s->run.trace->plan) : 0, ch = (int)s->at.cursor.channel;
    char words[OWN_WORDS_BYTES];
    if (!n || area.cols - col < 6)
        return;
    if (!channel_is_own(s->at.cursor.channel)) {
        canvas_printf(c, area, 0, col, STYLE_DIM, "+%d", n);
        return;
    }
    snprintf(words, sizeof words, "[%s]", session_label(s, s->at.cursor.channel));
    canvas_put_cut(c, area, 0, col, STYLE_STRONG, words);
    const struct own_count *count = s->run.judgement ? &s->run.judgement->summary.own[ch - ASC_CHANNELS] : NULL;
    if (count && count->nan)
        canvas_printf(c, area, 1, col, STYLE_NONFINITE, "%llu NaN", (unsigned long long)count->nan);
}

/* One mark of a stage in `step` columns, a blank behind it; "par" says as much as "part". */
static void mark_draw(struct canvas *c, struct rect area, int row, int col, int step, enum stage_status mark,
                      enum change_kind change)
{
    enum style style;
    const char *text = stage_status_text(mark, &style);
    const int used = canvas_printf(c, area, row, col, style, "%s", text_columns(text) >= step ? "par" : text);
    change_draw(c, area, row, col + used, change);
}

void strip_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const bool narrow = area.cols < 80;
    const int step = area.cols > 80 ? 8 : narrow ? (area.cols - 8) / ASC_CHANNELS : 6;
    const int first = area.cols > 80 ? 9 : narrow ? 7 : 8;
    hit_add(c, area, (struct rect){0, first, 3, step * ASC_CHANNELS}, HIT_STAGE, 0, 0, step);
    canvas_put(c, area, 1, 0, STYLE_DIM, "global");
    canvas_put(c, area, 2, 0, STYLE_DIM, "local");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        int col = first + ch * step;
        const int over = col + 3 + text_columns(channel_label(ch)) - area.cols; /* a blank behind the last one */
        if (ch == (int)s->at.cursor.channel)
            canvas_printf(c, area, 0, over > 0 ? col - over : col, STYLE_STRONG, "[%s]", channel_label(ch));
        else
            canvas_put(c, area, 0, col, STYLE_TEXT, channel_label(ch));
        const struct stage_summary *stage = s->run.judgement ? &s->run.judgement->summary.stage[ch] : NULL;
        mark_draw(c, area, 1, col, step, stage ? stage->global : STAGE_UNKNOWN, s->run.change.stage[ch].global);
        mark_draw(c, area, 2, col, step, stage ? stage->local : STAGE_UNKNOWN, s->run.change.stage[ch].local);
    }
    own_draw(s, c, area, first + ASC_CHANNELS * step);
}

void stage_list(unsigned stages, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", stages & 1u << CULPRIT_LOOP ? "the kv loop" : "");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (stages & 1u << ch) {
            size_t used = strlen(out);
            snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", channel_label(ch));
        }
    }
}

void culprit_words(unsigned culprits, char *out, size_t bytes)
{
    stage_list(culprits, out, bytes);
    if (culprits && !(culprits & (culprits - 1)) && !(culprits & 1u << CULPRIT_LOOP)) {
        size_t used = strlen(out);
        snprintf(out + used, bytes - used, " alone");
    }
}

void facts_draw(const struct session *s, struct canvas *c, struct rect area)
{
    if (!s->run.trace || !s->run.judgement)
        return;
    const struct summary *summary = &s->run.judgement->summary;
    const bool left_out = summary->unvisited > 0;
    const bool ended = trace_complete(s->run.trace);
    const char *none = ended ? "none" : "none so far";
    char words[64], culprits[64], line[96];
    snprintf(words, sizeof words, "%s", none);
    snprintf(culprits, sizeof culprits, "%s", none);
    if (left_out)
        tile_words(s, summary->first_unvisited, words, sizeof words);
    else if (summary->first.slot >= 0)
        place_words(s, summary->first, words, sizeof words);
    if (summary->culprits)
        culprit_words(summary->culprits, culprits, sizeof culprits);
    snprintf(line, sizeof line, "%s %s", left_out ? "skipped " : "first bad", words);
    canvas_put_cut(c, area, 0, 0, STYLE_TEXT, line);
    snprintf(line, sizeof line, "culprit   %s", culprits);
    canvas_put_cut(c, area, 1, 0, STYLE_TEXT, line);
    const struct trace_capture *capture = &s->run.trace->info.capture;
    const long long all = trace_places(s->run.trace);
    size_t used;
    if (s->run.trace->info.probes_off || !ended)
        used = (size_t)snprintf(line, sizeof line, "recorded  %s", ended ? "nothing" : "in part");
    else
        used = (size_t)snprintf(line, sizeof line, "recorded  %d/%lld q tiles", s->run.trace->layout.n_slots, all);
    if (capture->wanted)
        snprintf(line + used, sizeof line - used, ", o %lld/%lld judged, %lld off", (long long)capture->judged,
                 (long long)capture->wanted, (long long)capture->off);
    canvas_put_cut(c, area, 2, 0, STYLE_TEXT, line);
}

/* In the order of need: what has no room is left out; the help has all of it. */
void legend_draw(const struct session *s, struct canvas *c, struct rect area)
{
    static const int order[] = {STATUS_REPORT, CLASS_OFF,         STATUS_UPSTREAM, CLASS_NAN,
                                CLASS_INF,     CLASS_MISSING,     CLASS_OK,        STATUS_MASKED,
                                CLASS_EXTRA,   STATUS_UNRECORDED, STATUS_UNJUDGED};
    const int n = (int)(sizeof order / sizeof *order);
    int all = text_columns("◆ here");
    const int begin = s->run.trace && reports_placed(s->run.trace) ? 0 : 1; /* a sign that most runs have no use for */
    for (int i = begin; i < n; i++)
        all += 4 + text_columns(sign_word(order[i]));
    const int gap = all <= area.cols ? 2 : 1;
    int col = canvas_put(c, area, 0, 0, STYLE_CURSOR, "◆");
    col += canvas_put(c, area, 0, col, STYLE_DIM, " here");
    for (int i = begin; i < n; i++) {
        const char *word = sign_word(order[i]);
        if (col + gap + 2 + text_columns(word) > area.cols)
            break;
        col += gap;
        col += canvas_put(c, area, 0, col, sign_style(order[i]), sign_glyph(order[i])) + 1;
        col += canvas_put(c, area, 0, col, STYLE_DIM, word);
    }
}
