#include "engine/cursor/cursor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t[](),"

bool cursor_same(const struct cursor *a, const struct cursor *b)
{
    return a->batch == b->batch && a->head == b->head && a->q_tile == b->q_tile && a->kv_tile == b->kv_tile &&
           a->channel == b->channel && a->row == b->row && a->col == b->col;
}

void cursor_words(const struct trace *t, const struct cursor *c, char out[CURSOR_WORDS_BYTES])
{
    char kv[16] = "";
    if (channel_per_kv(c->channel))
        snprintf(kv, sizeof kv, ",k%d", c->kv_tile);
    snprintf(out, CURSOR_WORDS_BYTES, "%s[b%d,h%d,q%d%s] r%d c%d",
             t ? plan_channel_name(&t->plan, c->channel) : channel_name(c->channel), c->batch, c->head, c->q_tile, kv,
             c->row, c->col);
}

/* The part that a letter names; NULL: none. */
static int *part(struct cursor *c, char letter)
{
    switch (letter) {
    case 'b':
        return &c->batch;
    case 'h':
        return &c->head;
    case 'q':
        return &c->q_tile;
    case 'k':
        return &c->kv_tile;
    case 'r':
        return &c->row;
    case 'c':
        return &c->col;
    default:
        return NULL;
    }
}

static bool is_number(const char *word)
{
    return *word && strlen(word) <= 9 && word[strspn(word, "0123456789")] == '\0';
}

/* *tile becomes 1 where the word names a tile rather than an element of it. */
static int parse_word(const char *word, const struct asc_plan *plan, struct cursor *c, int *tile)
{
    char lower[32];
    size_t n = 0;
    for (; word[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)word[n]);
    lower[n] = '\0';
    int *value = part(c, lower[0]);
    if (value && is_number(lower + 1)) {
        *value = atoi(lower + 1);
        *tile |= value != &c->row && value != &c->col;
        return 0;
    }
    int channel = plan ? plan_channel_from_name(plan, word) : -1;
    if (channel < 0)
        channel = channel_from_name(lower);
    for (int ch = 0; ch < ASC_CHANNELS && channel < 0; ch++)
        if (strcmp(channel_label(ch), word) == 0)
            channel = ch;
    if (channel < 0)
        return -1;
    c->channel = (enum asc_channel)channel;
    *tile = 1;
    return 0;
}

static int outside(struct err *err, const char *what, int value, int count)
{
    return value < count ? 0
                         : err_set(err, ERR_INPUT, "", "%s %d is out of range: this run has %d, 0 to %d", what, value,
                                   count, count - 1);
}

int cursor_fit(const struct trace *t, struct cursor *c, struct err *err)
{
    if (outside(err, "batch", c->batch, t->problem.batch) != 0 ||
        outside(err, "head", c->head, t->problem.heads) != 0 ||
        outside(err, "q tile", c->q_tile, t->layout.q_tiles) != 0 ||
        outside(err, "kv tile", c->kv_tile, t->layout.kv_tiles) != 0)
        return -1;
    if (!trace_has(t, c->channel))
        return err_set(err, ERR_INPUT, "", "%s is not recorded in this run", plan_channel_label(&t->plan, c->channel));
    const int kv = channel_per_kv(c->channel) ? c->kv_tile : 0;
    const int rows = channel_valid_rows(c->channel, &t->problem, &t->plan, c->batch, c->q_tile, kv);
    const int cols = channel_valid_cols(c->channel, &t->problem, &t->plan, c->batch, kv);
    c->row = c->row < rows ? c->row : rows - 1;
    c->col = c->col < cols ? c->col : cols - 1;
    c->row = c->row > 0 ? c->row : 0;
    c->col = c->col > 0 ? c->col : 0;
    return 0;
}

/* *tile: a tile was named, not only an element of one. */
static int parse(const char *text, const struct asc_plan *plan, struct cursor *to, int *tile, struct err *err)
{
    int n = 0;
    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS), n++) {
        char word[32];
        const size_t length = strcspn(text, SEPARATORS);
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (length >= sizeof word || parse_word(word, plan, to, tile) != 0)
            return err_set(err, ERR_INPUT, "",
                           "'%s' is not part of a place: expected s[b0,h3,q17,k40] r3 c5, or parts of it", word);
        text += length;
    }
    return n ? 0 : err_set(err, ERR_INPUT, "", "expected a place, such as s[b0,h3,q17,k40] or k40 r3");
}

int cursor_read(const char *text, const struct asc_plan *plan, struct cursor *c, struct err *err)
{
    struct cursor to = {.channel = asc_s};
    int tile = 0;
    if (parse(text, plan, &to, &tile, err) != 0)
        return -1;
    *c = to;
    return 0;
}

int cursor_parse(const char *text, const struct trace *t, struct cursor *c, struct err *err)
{
    struct cursor to = *c;
    int tile = 0;
    to.row = to.col = -1;
    if (parse(text, &t->plan, &to, &tile, err) != 0)
        return -1;
    if (to.row < 0)
        to.row = tile ? 0 : c->row;
    if (to.col < 0)
        to.col = tile ? 0 : c->col;
    if (cursor_fit(t, &to, err) != 0)
        return -1;
    *c = to;
    return 0;
}
