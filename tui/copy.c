#include "tui/copy.h"

#include "tui/views/panels.h"
#include <stdio.h>
#include <string.h>

static int refuse(char *out, size_t bytes, const char *why)
{
    snprintf(out, bytes, "%s", why);
    return -1;
}

/* As many digits as tell two neighbors of float32 apart: 9 (IEEE 754, 5.12.2). */
static int copy_value(const struct copy_source *from, char *out, size_t bytes)
{
    const struct session *s = from->session;
    const struct tile_detail *d = &s->tile.detail;
    if (!cursor_has_detail(s) || s->at.cursor.row >= d->rows || s->at.cursor.col >= d->cols)
        return refuse(out, bytes, "there is no value under the cursor");
    const size_t i = (size_t)s->at.cursor.row * (size_t)d->cols + (size_t)s->at.cursor.col;
    if (d->class_local[i] == CLASS_MISSING)
        return refuse(out, bytes, "this element was never written");
    snprintf(out, bytes, "%.9g", d->got[i]);
    return 0;
}

static int copy_place(const struct copy_source *from, char *out, size_t bytes)
{
    char words[CURSOR_WORDS_BYTES];
    if (!from->session->run.trace)
        return refuse(out, bytes, "there is no run yet");
    cursor_words(from->session->run.trace, &from->session->at.cursor, words);
    snprintf(out, bytes, "%s", words);
    return 0;
}

static int copy_command(const struct copy_source *from, char *out, size_t bytes)
{
    const struct isolation *isolation = &from->session->run.isolation;
    char place[CURSOR_WORDS_BYTES], subject[COPY_BYTES];
    int n;
    bool edited;
    if (copy_place(from, place, sizeof place) != 0)
        return refuse(out, bytes, place);
    if (session_subject(from->session, subject, sizeof subject, &edited) != 0)
        return refuse(out, bytes, "the command that makes this run is unknown or too long");
    if (isolation->trace) /* a key isolates one stage, and feeds it the reference */
        n = snprintf(out, bytes, "attnscope run --isolate %s %s",
                     channel_name((enum asc_channel)__builtin_ctz(isolation->asked.stages)), subject);
    else
        n = snprintf(out, bytes, "attnscope show --view %s --size %dx%d --at '%s' %s", view_name(from->view),
                     from->cols, from->rows, place, subject);
    if (n < 0 || (size_t)n >= bytes)
        return refuse(out, bytes, "the command is too long");
    return edited;
}

static const struct {
    uint32_t key;
    const char *name, *words;
    int (*text)(const struct copy_source *from, char *out, size_t bytes);
} copies[] = {
    {'v', "value", "the captured value of the element under the cursor", copy_value},
    {'p', "place", "the place of the cursor, as :go and --at accept it", copy_place},
    {'c', "command", "the command that prints this view again", copy_command},
};
#define COPIES (sizeof copies / sizeof *copies)

int copy_text(const struct copy_source *from, uint32_t key, char *out, size_t bytes)
{
    for (size_t i = 0; i < COPIES; i++)
        if (copies[i].key == key)
            return copies[i].text(from, out, bytes);
    return refuse(out, bytes, "nothing was copied");
}

void copy_menu(char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "copy:");
    for (size_t i = 0; i < COPIES && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "  %c %s", (int)copies[i].key, copies[i].name);
}

const char *copy_name(uint32_t key)
{
    for (size_t i = 0; i < COPIES; i++)
        if (copies[i].key == key)
            return copies[i].words;
    return NULL;
}
