/* A view as text against tests/screens/; UPDATE_GOLDEN=1 writes those files anew. Runs in the repository's root. */
#ifndef UNIT_GOLDEN_SCREEN_H
#define UNIT_GOLDEN_SCREEN_H

#include "tests/unit/tui/fixture_session.h"
#include "tui/views/view.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Not inlined: GCC takes what open_memstream() points at for a variable of this function. */
static __attribute__((noinline)) char *draw_state(const struct session *s, int view, int cols, int rows, int ascii,
                                                  const struct view_state *vs)
{
    struct canvas c;
    char *text = NULL;
    size_t bytes;
    assert_int_equal(canvas_init(&c, cols, rows, ascii), 0);
    view_draw(view, s, &c, vs);
    FILE *out = open_memstream(&text, &bytes);
    canvas_write_text(&c, out);
    fclose(out);
    canvas_free(&c);
    return text;
}

static inline char *draw(const struct session *s, int view, int cols, int rows, int ascii, double now)
{
    const struct view_state vs = {.now = now, .top = view_start_top(view, s, cols, rows)};
    return draw_state(s, view, cols, rows, ascii, &vs);
}

static inline void compare(const char *name, const char *made)
{
    char path[256], kept[65536];
    snprintf(path, sizeof path, "tests/screens/%s.txt", name);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(made, out);
        fclose(out);
    }
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("%s is missing: UPDATE_GOLDEN=1 writes it", path);
    kept[fread(kept, 1, sizeof kept - 1, in)] = '\0';
    fclose(in);
    if (strcmp(kept, made) != 0)
        fail_msg("differs from %s:\n%s", path, made);
}

static inline void check(const struct session *s, int view, const char *name)
{
    static const int sizes[][2] = {{80, 24}, {120, 40}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char file[128];
        char *text = draw(s, view, sizes[i][0], sizes[i][1], 0, 1003.2);
        snprintf(file, sizeof file, "%s-%dx%d", name, sizes[i][0], sizes[i][1]);
        compare(file, text);
        free(text);
    }
}

#endif
