#include "tui/recent.h"

#include "engine/base/replace.h"
#include "engine/session/session.h"
#include "tui/config.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 1600 };

int recent_path(char *path, size_t bytes)
{
    return config_path("XDG_STATE_HOME", ".local/state", "recent", path, bytes);
}

/* Copies whole, or not at all. */
static int take_word(const char *text, char *out, size_t bytes)
{
    const size_t n = strlen(text);
    if (n >= bytes)
        return -1;
    memcpy(out, text, n + 1);
    return 0;
}

/* A line behind those that are there. */
static int add_line(char *lines, size_t bytes, const char *line)
{
    const size_t used = strlen(lines);
    if (used + strlen(line) + 2 > bytes)
        return -1;
    snprintf(lines + used, bytes - used, "%s\n", line);
    return 0;
}

static int take_number(const char *text, int *out)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > 10000)
        return -1;
    *out = (int)value;
    return 0;
}

/* "WORD REST" of an entry that has begun. */
static int take_fact(char *line, struct recent_entry *e)
{
    char *rest = strchr(line, ' ');
    if (!rest)
        return -1;
    const size_t n = (size_t)(rest++ - line);
    if (strncmp(line, "set ", 4) == 0)
        return strchr(rest, '=') ? add_line(e->set, sizeof e->set, rest) : -1;
    if (strncmp(line, "at ", 3) == 0)
        return take_word(rest, e->at, sizeof e->at);
    if (strncmp(line, "split ", 6) == 0)
        return take_number(rest, &e->split);
    if ((n == 4 && (strncmp(line, "mark", n) == 0 || strncmp(line, "stop", n) == 0)) || strncmp(line, "pin ", 4) == 0)
        return add_line(e->kept, sizeof e->kept, line);
    return -1;
}

static bool same(const struct recent_entry *a, const char *path, const char *set)
{
    return strcmp(a->path, path) == 0 && strcmp(a->set, set) == 0;
}

/* The entry that was read last is whole: one that there is already, which is newer, stays. */
static void end_entry(struct recent *r)
{
    for (int i = 0; i + 1 < r->n; i++)
        if (same(&r->at[i], r->at[r->n - 1].path, r->at[r->n - 1].set)) {
            r->n--;
            return;
        }
}

static int begin_entry(struct recent *r, const char *path)
{
    struct recent_entry *e = &r->at[r->n];
    *e = (struct recent_entry){.split = 0};
    if (path[0] != '/' || take_word(path, e->path, sizeof e->path) != 0)
        return -1;
    r->n++;
    return 0;
}

/* "open PATH" begins an entry; what stands behind one that makes no sense goes with it. */
static int take_line(struct recent *r, char *line, bool *inside)
{
    if (strncmp(line, "open ", 5) != 0)
        return *inside ? take_fact(line, &r->at[r->n - 1]) : -1;
    if (*inside)
        end_entry(r);
    *inside = false;
    if (r->n == RECENT_MAX)
        return 0;
    const int failed = begin_entry(r, line + 5);
    *inside = !failed;
    return failed;
}

void recent_load(struct recent *r)
{
    char path[512], line[LINE_BYTES];
    bool inside = false;
    r->n = r->damaged = 0;
    FILE *in = recent_path(path, sizeof path) == 0 ? fopen(path, "r") : NULL;
    for (int number = 1; in && fgets(line, sizeof line, in); number++) {
        char *end = strchr(line, '\n');
        for (int c = 0; !end && c != '\n' && c != EOF;) /* the rest of a line that is too long */
            c = fgetc(in);
        if (end)
            *end = '\0';
        if ((!end || take_line(r, line, &inside) != 0) && r->n < RECENT_MAX && !r->damaged)
            r->damaged = number;
    }
    if (inside)
        end_entry(r);
    if (in)
        fclose(in);
}

const struct recent_entry *recent_find(const struct recent *r, const char *path, const char *set)
{
    const struct recent_entry *other = NULL;
    for (int i = 0; i < r->n; i++) {
        if (same(&r->at[i], path, set))
            return &r->at[i];
        if (!other && strcmp(r->at[i].path, path) == 0)
            other = &r->at[i];
    }
    return other;
}

/* What tells entries of one file apart comes soon: "my.cu  batch=1 heads=8", by the folder that one is in, and without
   sections, which no two of these keys need. */
void recent_words(const struct recent_entry *e, char *out, size_t bytes)
{
    char here[PATH_MAX];
    const size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;
    const char *path = n > 1 && strncmp(e->path, here, n) == 0 && e->path[n] == '/' ? e->path + n + 1 : e->path;
    size_t used = (size_t)snprintf(out, bytes, "%s", path);
    for (const char *line = e->set; *line && used < bytes;) {
        const int all = (int)strcspn(line, "\n");
        const char *key = strncmp(line, "shape.", 6) == 0 ? line + 6 : line;
        used += (size_t)snprintf(out + used, bytes - used, "%s%.*s", line == e->set ? "  " : " ",
                                 all - (int)(key - line), key);
        line += all + (line[all] == '\n');
    }
}

/* The folder that a path lies in, and those above it. */
static int make_folders(char *path)
{
    for (char *c = path + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        const bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *c = '/';
        if (failed)
            return -1;
    }
    return 0;
}

/* Each line of a text, with a word before it. */
static void write_lines(FILE *out, const char *word, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", word, (int)n, text);
    }
}

static int write_entry(FILE *out, const struct recent_entry *e)
{
    fprintf(out, "open %s\n", e->path);
    write_lines(out, "set ", e->set);
    if (e->at[0])
        fprintf(out, "at %s\n", e->at);
    if (e->split)
        fprintf(out, "split %d\n", e->split);
    write_lines(out, "", e->kept);
    return ferror(out) ? -1 : 0;
}

static int write_list(FILE *out, const struct recent_entry *first)
{
    struct recent *before = malloc(sizeof *before);
    if (!before)
        return -1;
    recent_load(before);
    int failed = write_entry(out, first), n = 1;
    for (int i = 0; i < before->n && n < RECENT_MAX && !failed; i++)
        if (!same(&before->at[i], first->path, first->set)) {
            failed = write_entry(out, &before->at[i]);
            n++;
        }
    free(before);
    return failed;
}

int recent_note(const struct recent_entry *entry)
{
    char path[512];
    struct replacement r;
    if (strpbrk(entry->path, "\n") || recent_path(path, sizeof path) != 0 || make_folders(path) != 0 ||
        replace_open(&r, path, 0600, NULL) != 0)
        return -1;
    if (write_list(r.file, entry) == 0)
        return replace_commit(&r, NULL);
    replace_drop(&r);
    return -1;
}

/* ---- what belongs to the session ---- */

void recent_take(struct recent_entry *e, const struct session *s)
{
    const struct jumps *j = &s->at.jumps;
    char line[CURSOR_WORDS_BYTES + 16], words[CURSOR_WORDS_BYTES];
    e->kept[0] = '\0';
    for (int i = 0; i < MARKS_MAX; i++) {
        if (!(j->marked >> i & 1))
            continue;
        cursor_words(s->run.trace, &j->mark[i], words);
        snprintf(line, sizeof line, "mark %c %s", jumps_letter(i), words);
        add_line(e->kept, sizeof e->kept, line);
    }
    for (int i = 0; i < s->at.pins.n; i++) {
        cursor_words(s->run.trace, &s->at.pins.at[i].at, words);
        snprintf(line, sizeof line, "pin %s", words);
        add_line(e->kept, sizeof e->kept, line);
    }
    for (int i = 0; i < s->search.n; i++) {
        snprintf(line, sizeof line, "stop %s", s->search.stops[i].text);
        add_line(e->kept, sizeof e->kept, line);
    }
}

static bool give_line(struct session *s, const char *line)
{
    struct cursor at = {0};
    const bool mark = strncmp(line, "mark ", 5) == 0 && line[5] && line[6] == ' ';
    if (strncmp(line, "stop ", 5) == 0)
        return session_add_stop(s, line + 5);
    if (cursor_read(line + (mark ? 7 : 4), s->run.trace ? &s->run.trace->plan : NULL, &at, NULL) != 0)
        return false;
    return mark ? jumps_set_mark(&s->at.jumps, (unsigned char)line[5], &at)
                : strncmp(line, "pin ", 4) == 0 && pins_toggle(&s->at.pins, &at) == 1;
}

int recent_give(const struct recent_entry *e, struct session *s)
{
    char line[256];
    int senseless = 0;
    for (const char *text = e->kept; *text;) {
        const size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        senseless += n >= sizeof line || !give_line(s, line);
        text += n + (text[n] == '\n');
    }
    session_hush(s);
    return senseless;
}
