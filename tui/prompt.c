#include "tui/prompt.h"

#include "engine/base/utf8.h"
#include "tui/keys/actions.h"
#include <stdio.h>
#include <string.h>

#define LIST_ROWS 8
#define CONTROL(letter) ((letter) - 'a' + 1)

void candidates_add(struct candidates *c, const char *word, const char *text, const char *help)
{
    if (c->n == CANDIDATES_MAX || strncmp(text, word, strlen(word)) != 0)
        return;
    snprintf(c->at[c->n].text, sizeof c->at->text, "%s", text);
    snprintf(c->at[c->n++].help, sizeof c->at->help, "%s", help);
}

void prompt_open(struct prompt *p, const char *sign, const char *line, prompt_complete *complete, void *ctx)
{
    p->sign = sign;
    snprintf(p->line, sizeof p->line, "%s", line);
    p->at = strlen(p->line);
    p->complete = complete;
    p->ctx = ctx;
    p->list.n = 0;
    p->recalled = 0;
}

static struct prompt_history *history_of(struct prompt *p)
{
    return &p->history[p->sign[0] != ':'];
}

static void remember(struct prompt *p)
{
    struct prompt_history *h = history_of(p);
    if (!p->line[0] || (h->n && strcmp(h->line[h->n - 1], p->line) == 0))
        return;
    if (h->n == PROMPT_HISTORY)
        memmove(h->line, h->line + 1, (size_t)--h->n * sizeof *h->line);
    memcpy(h->line[h->n++], p->line, sizeof p->line);
}

static void recall(struct prompt *p, int by)
{
    const struct prompt_history *h = history_of(p);
    const int to = p->recalled + by;
    if (to < 0 || to > h->n)
        return;
    if (p->recalled == 0)
        memcpy(p->own, p->line, sizeof p->own);
    p->recalled = to;
    memcpy(p->line, to ? h->line[h->n - to] : p->own, sizeof p->line);
    p->at = strlen(p->line);
}

/* Where the character before (behind) the cursor begins; combining ones go with their base. */
static size_t before(const struct prompt *p)
{
    size_t last = 0;
    uint32_t code;
    for (size_t i = 0; i < p->at;) {
        const size_t length = utf8_decode(p->line + i, &code);
        if (utf8_columns(p->line + i, length, code) > 0)
            last = i;
        i += length;
    }
    return last;
}

static size_t behind(const struct prompt *p)
{
    uint32_t code;
    size_t i = p->at + utf8_decode(p->line + p->at, &code), length;
    while ((length = utf8_decode(p->line + i, &code)) > 0 && utf8_columns(p->line + i, length, code) == 0)
        i += length;
    return i;
}

static void cut(struct prompt *p, size_t from, size_t to)
{
    memmove(p->line + from, p->line + to, strlen(p->line + to) + 1);
    p->at = from;
}

static void insert(struct prompt *p, const char *bytes, size_t n)
{
    const size_t length = strlen(p->line);
    if (length + n >= sizeof p->line)
        return;
    memmove(p->line + p->at + n, p->line + p->at, length - p->at + 1);
    memcpy(p->line + p->at, bytes, n);
    p->at += n;
}

/* The beginning of the word before the cursor, and of the blanks behind it. */
static size_t word_before(const struct prompt *p)
{
    size_t i = p->at;
    while (i > 0 && p->line[i - 1] == ' ')
        i--;
    while (i > 0 && p->line[i - 1] != ' ')
        i--;
    return i;
}

static void put_word(struct prompt *p, const char *text, size_t n)
{
    cut(p, p->list.from, p->at);
    insert(p, text, n);
}

static void complete(struct prompt *p, int by)
{
    struct candidates *list = &p->list;
    if (list->n > 0) { /* shown already: the next one */
        p->chosen = p->chosen < 0 ? (by > 0 ? 0 : list->n - 1) : (p->chosen + by + list->n) % list->n;
        put_word(p, list->at[p->chosen].text, strlen(list->at[p->chosen].text));
        return;
    }
    if (!p->complete)
        return;
    list->from = p->at;
    p->chosen = -1;
    p->complete(p->ctx, p->line, p->at, list);
    if (list->n == 0)
        return;
    /* As far as they agree; never into the middle of a character. */
    const char *first = list->at[0].text;
    size_t common = strlen(first);
    for (int i = 1; i < list->n; i++)
        for (size_t k = 0; k < common; k++)
            if (list->at[i].text[k] != first[k])
                common = k;
    while (common > 0 && ((unsigned char)first[common] & 0xC0) == 0x80)
        common--;
    put_word(p, first, common);
    if (list->n > 1)
        return;
    list->n = 0;
    /* The word is whole: on to the next one, unless it goes on itself. */
    if (!p->line[p->at] && common > 0 && first[common - 1] != '=' && first[common - 1] != '/')
        insert(p, " ", 1);
}

static void edit(struct prompt *p, int key)
{
    char bytes[4];
    switch (key) {
    case KEY_ID_LEFT:
    case CONTROL('b'):
        p->at = before(p);
        break;
    case KEY_ID_RIGHT:
    case CONTROL('f'):
        p->at = behind(p);
        break;
    case KEY_ID_HOME:
    case CONTROL('a'):
        p->at = 0;
        break;
    case KEY_ID_END:
    case CONTROL('e'):
        p->at = strlen(p->line);
        break;
    case KEY_ID_UP:
    case CONTROL('p'):
        recall(p, 1);
        break;
    case KEY_ID_DOWN:
    case CONTROL('n'):
        recall(p, -1);
        break;
    case KEY_ID_BACKSPACE:
        cut(p, before(p), p->at);
        break;
    case KEY_ID_DELETE:
    case CONTROL('d'):
        cut(p, p->at, behind(p));
        break;
    case CONTROL('w'):
        cut(p, word_before(p), p->at);
        break;
    case CONTROL('u'):
        cut(p, 0, p->at);
        break;
    case CONTROL('k'):
        p->line[p->at] = '\0';
        break;
    default:
        if (key == KEY_ID_SPACE)
            key = ' ';
        if (key >= ' ' && key != 0x7F && key < KEY_ID_NONE)
            insert(p, bytes, utf8_write((uint32_t)key, bytes));
    }
}

enum prompt_result prompt_key(struct prompt *p, int key)
{
    if (key == KEY_ID_TAB || key == KEY_ID_SHIFT_TAB) {
        complete(p, key == KEY_ID_TAB ? 1 : -1);
        return PROMPT_OPEN;
    }
    p->list.n = 0;
    /* A backspace before the first character leaves, too. */
    if (key == KEY_ID_ESC || key == CONTROL('c') || key == CONTROL('g') || (key == KEY_ID_BACKSPACE && !p->line[0])) {
        p->sign = NULL;
        return PROMPT_LEFT;
    }
    if (key == KEY_ID_ENTER) {
        remember(p);
        p->sign = NULL;
        return PROMPT_ENTERED;
    }
    edit(p, key);
    return PROMPT_OPEN;
}

static void list_draw(const struct prompt *p, struct canvas *c)
{
    const struct candidates *list = &p->list;
    const int room = c->rows - 4 < LIST_ROWS ? c->rows - 4 : LIST_ROWS, rows = list->n < room ? list->n : room;
    if (rows <= 0)
        return;
    const struct rect area = {c->rows - 2 - rows, 0, rows + 1, c->cols};
    int first = p->chosen - rows / 2, width = 0;
    first = first > list->n - rows ? list->n - rows : first;
    first = first > 0 ? first : 0;
    for (int i = 0; i < list->n; i++) {
        const int columns = text_columns(list->at[i].text);
        width = columns > width ? columns : width;
    }
    for (int r = 0; r < rows; r++) {
        const struct rect line = {area.row + r, 0, 1, c->cols};
        const bool here = first + r == p->chosen;
        canvas_fill(c, line, STYLE_TEXT, " ");
        canvas_put(c, line, 0, 0, STYLE_RULE, "│");
        canvas_put(c, line, 0, 2, here ? STYLE_CURSOR : STYLE_KEY, list->at[first + r].text);
        canvas_put_cut(c, line, 0, width + 4, here ? STYLE_STRONG : STYLE_DIM, list->at[first + r].help);
    }
    const struct rect rule = {area.row + rows, 0, 1, c->cols};
    canvas_fill(c, rule, STYLE_RULE, "─");
    canvas_printf(c, rule, 0, 1, STYLE_DIM, rows < list->n ? " %d matches, Tab cycles " : " Tab takes the next of %d ",
                  list->n);
}

void prompt_draw(const struct prompt *p, struct canvas *c)
{
    if (!p->sign || c->rows < 1)
        return;
    char head[PROMPT_BYTES];
    const struct rect line = {c->rows - 1, 0, 1, c->cols};
    const int sign_cols = text_columns(p->sign);
    snprintf(head, sizeof head, "%.*s", (int)p->at, p->line);
    /* The cursor stays on the screen: what lies too far to its left is left out. */
    size_t skip = 0;
    uint32_t code;
    while (head[skip] && sign_cols + text_columns(head + skip) > c->cols - 2)
        skip += utf8_decode(head + skip, &code);
    if (p->list.n > 0)
        list_draw(p, c);
    canvas_fill(c, line, STYLE_TEXT, " ");
    int col = canvas_put(c, line, 0, 0, STYLE_KEY, p->sign);
    col += canvas_put(c, line, 0, col, STYLE_TEXT, head + skip);
    char under[8] = " ";
    const size_t length = utf8_decode(p->line + p->at, &code);
    if (length > 0)
        snprintf(under, sizeof under, "%.*s", (int)length, p->line + p->at);
    col += canvas_put(c, line, 0, col, STYLE_CURSOR, under);
    canvas_put_cut(c, line, 0, col, STYLE_TEXT, p->line + p->at + length);
}

int word_distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    const int n = (int)strnlen(a, MOST - 1), m = (int)strnlen(b, MOST - 1);
    int row[3][MOST]; /* two rows before, the row before, this one */
    for (int k = 0; k <= m; k++)
        row[1][k] = k;
    for (int i = 1; i <= n; i++) {
        row[2][0] = i;
        for (int k = 1; k <= m; k++) {
            int least = row[1][k - 1] + (a[i - 1] != b[k - 1]);
            least = row[1][k] + 1 < least ? row[1][k] + 1 : least;
            least = row[2][k - 1] + 1 < least ? row[2][k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && row[0][k - 2] + 1 < least)
                least = row[0][k - 2] + 1;
            row[2][k] = least;
        }
        memcpy(row[0], row[1], sizeof *row);
        memcpy(row[1], row[2], sizeof *row);
    }
    return row[1][m];
}
