#include "engine/study/text_diff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Lines of either side whose longest common subsequence is looked for, as a product: 8 MB of lengths. Beyond it the
   middle counts as replaced. */
#define TABLE_MAX ((size_t)4 << 20)

struct line {
    const char *text;
    size_t length;
};

struct side {
    struct line *lines; /* owned, [n] */
    size_t n;
};

static int split(const char *text, struct side *out)
{
    size_t n = 0;
    text = text ? text : "";
    for (const char *c = text; *c; c += *c == '\n') {
        c += strcspn(c, "\n");
        n++;
    }
    out->n = 0;
    out->lines = malloc((n + 1) * sizeof *out->lines);
    if (!out->lines)
        return -1;
    while (out->n < n) {
        const size_t length = strcspn(text, "\n");
        out->lines[out->n++] = (struct line){text, length};
        text += length;
        text += *text == '\n';
    }
    return 0;
}

static bool equal(const struct line *a, const struct line *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* keep[i] = 1: line i of `before` is in `now` too; the kept ones follow each other in both. -1 without memory. */
static int find_common(const struct side *a, const struct side *b, unsigned char *keep_a, unsigned char *keep_b)
{
    size_t head = 0, tail = 0;
    while (head < a->n && head < b->n && equal(&a->lines[head], &b->lines[head]))
        keep_a[head] = keep_b[head] = 1, head++;
    while (tail < a->n - head && tail < b->n - head && equal(&a->lines[a->n - 1 - tail], &b->lines[b->n - 1 - tail])) {
        keep_a[a->n - 1 - tail] = keep_b[b->n - 1 - tail] = 1;
        tail++;
    }
    const size_t rows = a->n - head - tail, cols = b->n - head - tail;
    if (!rows || !cols || rows > UINT16_MAX || cols > UINT16_MAX || rows * cols > TABLE_MAX)
        return 0;
    /* length[i][j]: of the longest common subsequence of a's lines from i on and b's from j on. */
    uint16_t *length = calloc((rows + 1) * (cols + 1), sizeof *length);
    if (!length)
        return -1;
#define LENGTH(i, j) length[(i) * (cols + 1) + (j)]
    for (size_t i = rows; i-- > 0;)
        for (size_t j = cols; j-- > 0;)
            LENGTH(i, j) = equal(&a->lines[head + i], &b->lines[head + j]) ? (uint16_t)(LENGTH(i + 1, j + 1) + 1)
                           : LENGTH(i + 1, j) >= LENGTH(i, j + 1)          ? LENGTH(i + 1, j)
                                                                           : LENGTH(i, j + 1);
    for (size_t i = 0, j = 0; i < rows && j < cols;) {
        if (equal(&a->lines[head + i], &b->lines[head + j])) {
            keep_a[head + i++] = 1;
            keep_b[head + j++] = 1;
        } else if (LENGTH(i + 1, j) >= LENGTH(i, j + 1)) {
            i++;
        } else {
            j++;
        }
    }
#undef LENGTH
    free(length);
    return 0;
}

/* Every line of both, in order. */
static size_t merge(const struct side *a, const struct side *b, const unsigned char *keep_a,
                    const unsigned char *keep_b, struct diff_line *out)
{
    size_t n = 0, i = 0, j = 0;
    while (i < a->n || j < b->n) {
        const int from_a = i < a->n && !keep_a[i], from_b = !from_a && j < b->n && !keep_b[j];
        const struct line *line = from_b || i >= a->n ? &b->lines[j] : &a->lines[i];
        out[n++] = (struct diff_line){from_a   ? '-'
                                      : from_b ? '+'
                                               : ' ',
                                      (int)i + 1, (int)j + 1, line->text, line->length};
        i += !from_b;
        j += !from_a;
    }
    return n;
}

/* Leaves the changes and what stands around them; '@' stands for lines that go, in place of the last of them. */
static size_t shorten(struct diff_line *lines, size_t n, size_t context)
{
    size_t kept = 0, since = SIZE_MAX / 2, next = 0;
    int left_out = 0;
    for (size_t i = 0; i < n; i++) {
        for (next = next > i ? next : i; next < n && lines[next].op == ' '; next++)
            ;
        since = lines[i].op != ' ' ? 0 : since + 1;
        const struct diff_line line = lines[i];
        if (since > context && (next == n || next - i > context)) {
            left_out = 1;
            continue;
        }
        if (left_out)
            lines[kept++] = (struct diff_line){'@', line.before, line.now, "", 0};
        lines[kept++] = line;
        left_out = 0;
    }
    return kept;
}

int text_diff_make(const char *before, const char *now, int context, struct text_diff *out)
{
    struct side a = {0}, b = {0};
    *out = (struct text_diff){0};
    int failed = split(before, &a) != 0 || split(now, &b) != 0;
    unsigned char *keep = failed ? NULL : calloc(a.n + b.n + 1, 1);
    out->lines = failed ? NULL : malloc((a.n + b.n + 1) * sizeof *out->lines);
    failed = !keep || !out->lines || find_common(&a, &b, keep, keep + a.n) != 0;
    if (!failed) {
        out->n = merge(&a, &b, keep, keep + a.n, out->lines);
        for (size_t i = 0; i < out->n; i++) {
            out->added += out->lines[i].op == '+';
            out->removed += out->lines[i].op == '-';
        }
        out->n = shorten(out->lines, out->n, (size_t)context);
    }
    free(a.lines);
    free(b.lines);
    free(keep);
    if (failed)
        text_diff_free(out);
    return failed ? -1 : 0;
}

void text_diff_free(struct text_diff *d)
{
    free(d->lines);
    *d = (struct text_diff){0};
}
