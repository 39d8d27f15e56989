#include "cli/check_table.h"

#include "engine/base/path.h"
#include "engine/verdict/reports.h"
#include <string.h>

#define TERMINAL_COLS 80

static size_t add(char *out, size_t bytes, const char *before, const char *text)
{
    const size_t used = strlen(out);
    if (text[0] && used < bytes)
        snprintf(out + used, bytes - used, "%s%s%s", used ? " " : "", before, text);
    return strlen(out);
}

/* "s 0,0,0,1": batch, head, q tile, kv tile; what is not stated is a dot, and left out at the end. */
static void first_words(int channel, const int at[4], char *out, size_t bytes)
{
    int n = 4;
    char place[64] = "";
    while (n > 0 && at[n - 1] < 0)
        n--;
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(place);
        if (at[i] < 0)
            snprintf(place + used, sizeof place - used, "%s.", i ? "," : "");
        else
            snprintf(place + used, sizeof place - used, "%s%d", i ? "," : "", at[i]);
    }
    add(out, bytes, "", channel >= 0 ? culprit_name(channel) : "");
    add(out, bytes, "", place);
}

static void expected_words(const struct expect *e, char *out, size_t bytes)
{
    out[0] = '\0';
    if (e->verdict != EXPECT_FAIL) {
        snprintf(out, bytes, "clean");
        return;
    }
    char events[EVENT_SET_BYTES];
    report_events_words(e->stopped, false, events);
    add(out, bytes, "stopped by ", events);
    first_words(e->first_channel, e->first, out, bytes);
    add(out, bytes, "", e->cause);
    report_events_words(e->events, e->no_event, events);
    add(out, bytes, "", events);
    add(out, bytes, "at ", e->event_at);
    if (!out[0])
        snprintf(out, bytes, "fail");
}

static void found_words(const struct session *s, char *out, size_t bytes)
{
    const struct judgement *j = s->run.judgement;
    char words[256] = "", lines[640] = "";
    out[0] = '\0';
    if (!j || !j->complete) {
        snprintf(out, bytes, "%s", session_verdict_word(s));
        return;
    }
    const struct trace_event *report = session_event(s);
    add(out, bytes, "stopped by ", event_name(s->run.trace->info.stopped));
    if (j->summary.first.slot >= 0) {
        const struct place first = j->summary.first;
        const int32_t *slot = trace_slot_place(s->run.trace, first.slot);
        const int at[4] = {slot[0], slot[1], slot[2], channel_per_kv(first.channel) ? first.kv : -1};
        first_words(j->summary.unvisited ? CULPRIT_LOOP : (int)first.channel, at, out, bytes);
        if (j->summary.unvisited)
            add(words, sizeof words, "", "tiles skipped");
        for (int i = 0; i < j->n_findings; i++)
            add(words, sizeof words, "", finding_says(&j->findings[i], s->run.trace));
        add(out, bytes, "", words[0] ? words : findings_unknown(j));
    }
    reports_words(s->run.trace, words, sizeof words);
    add(out, bytes, "", words);
    if (report && (words[0] || s->run.trace->info.stopped != EVENT_NONE))
        event_lines(report, 1, lines, sizeof lines);
    add(out, bytes, "at ", lines);
    if (!out[0])
        snprintf(out, bytes, "%s", session_verdict(s) == RUN_IS_CLEAN ? "clean" : session_verdict_word(s));
}

void check_table_fill(const struct session *s, struct check_result *r)
{
    static const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    const struct expect *e = s && s->subject.has_scenario ? &s->subject.scenario.expect : &nothing;
    struct expect_parts *p = &r->parts;
    *p = (struct expect_parts){PART_NOT_STATED, PART_NOT_STATED, PART_NOT_STATED};
    if (s && s->run.judgement)
        judgement_parts(s->run.judgement, s->run.trace, e, p);
    /* What is wrong beside the three, such as a budget, shows somewhere. */
    if (r->status == 1 && p->stage != PART_WRONG && p->tile != PART_WRONG && p->finding != PART_WRONG)
        p->stage = PART_WRONG;
    if (s)
        expected_words(e, r->short_expected, sizeof r->short_expected);
    else
        snprintf(r->short_expected, sizeof r->short_expected, "-");
    if (r->status == 0)
        snprintf(r->short_found, sizeof r->short_found, "same");
    else if (r->status > 1)
        snprintf(r->short_found, sizeof r->short_found, "ERROR: %s", err_name(r->err.code));
    else if (s)
        found_words(s, r->short_found, sizeof r->short_found);
}

/* How much of every path is the same folder. */
static size_t common_folder(const struct check_result *results, size_t n)
{
    size_t common = (size_t)path_folder(results[0].path);
    for (size_t i = 1; i < n; i++)
        while (common && strncmp(results[i].path, results[0].path, common) != 0)
            do
                common--;
            while (common && results[0].path[common - 1] != '/');
    return common;
}

/* The path below that folder, without ".ini". */
static int name_of(const struct check_result *r, size_t folder, const char **name)
{
    const size_t n = strlen(r->path + folder);
    *name = r->path + folder;
    return (int)(path_ends_in(*name, ".ini") ? n - 4 : n);
}

const char *expect_part_word(enum expect_part part)
{
    return part == PART_RIGHT ? "right" : part == PART_WRONG ? "wrong" : "not stated";
}

/* Counts what is stated and what of that is right. */
static const char *mark(enum expect_part part, size_t *right, size_t *stated)
{
    *stated += part != PART_NOT_STATED;
    *right += part == PART_RIGHT;
    return part == PART_RIGHT ? "ok" : part == PART_WRONG ? "NO" : "-";
}

void check_table_write(const struct check_result *results, size_t n, FILE *out)
{
    static const char expected_head[] = "expected (at b,h,q,k)";
    const size_t folder = common_folder(results, n);
    size_t right[3] = {0}, stated[3] = {0}, met = 0;
    int name_width = (int)strlen("scenario"), expected_width = (int)strlen(expected_head);
    const char *name;
    for (size_t i = 0; i < n; i++) {
        const int width = name_of(&results[i], folder, &name), expected = (int)strlen(results[i].short_expected);
        name_width = width > name_width ? width : name_width;
        expected_width = expected > expected_width ? expected : expected_width;
    }
    /* Rows of "same" fit a terminal; a longer expectation moves what is found in its own row. */
    const int room = TERMINAL_COLS - (int)strlen(" stage tile finding  same") - name_width;
    if (expected_width > room)
        expected_width = room > (int)strlen(expected_head) ? room : (int)strlen(expected_head);
    fprintf(out, "\n%-*s stage tile finding %-*s found\n", name_width, "scenario", expected_width, expected_head);
    for (size_t i = 0; i < n; i++) {
        const struct check_result *r = &results[i];
        const int width = name_of(r, folder, &name);
        text_inline(out, "%.*s%*s %-5s", width, name, name_width - width, "",
                    mark(r->parts.stage, &right[0], &stated[0]));
        fprintf(out, " %-4s", mark(r->parts.tile, &right[1], &stated[1]));
        text_inline(out, " %-7s %-*s %s", mark(r->parts.finding, &right[2], &stated[2]), expected_width,
                    r->short_expected, r->short_found);
        fputs("\n", out);
        met += r->status == 0;
    }
    fprintf(out, "%zu of %zu as expected: stage %zu of %zu, tile %zu of %zu, finding %zu of %zu right\n", met, n,
            right[0], stated[0], right[1], stated[1], right[2], stated[2]);
}
