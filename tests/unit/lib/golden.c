#include "tests/unit/lib/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOP_ROWS = 6 }; /* of the overview, above its panels */

char *golden_draw(const struct session *s, enum view_id view, int cols, int rows, bool ascii,
                  const struct view_state *vs)
{
    const struct view_state opened = {.now = 1003.2, .top = view_start_top(view, s, cols, rows)};
    struct canvas c;
    char *text = NULL;
    size_t bytes;
    assert_int_equal(canvas_init(&c, cols, rows, ascii), 0);
    view_draw(view, s, &c, vs ? vs : &opened);
    FILE *out = open_memstream(&text, &bytes);
    canvas_write_text(&c, out);
    fclose(out);
    canvas_free(&c);
    return text;
}

bool golden_has(const struct session *s, enum view_id view, int cols, int rows, const char *words)
{
    char *text = golden_draw(s, view, cols, rows, false, NULL);
    const bool found = strstr(text, words) != NULL;
    if (!found)
        fprintf(stderr, "no '%s' on\n%s", words, text);
    free(text);
    return found;
}

void golden_compare(const char *name, const char *made)
{
    struct runner_paths paths;
    struct err err;
    char path[1024], kept[65536];
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    snprintf(path, sizeof path, "%s/tests/screens/%s.txt", paths.root, name);
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

void golden_screen(const struct session *s, enum view_id view, const struct view_state *vs, int cols, int rows,
                   const char *name)
{
    char file[128];
    char *text = golden_draw(s, view, cols, rows, false, vs);
    snprintf(file, sizeof file, "%s-%dx%d", name, cols, rows);
    golden_compare(file, text);
    free(text);
}

/* Keeps lines [first, end) of a text, less those at its end that are empty. */
static char *keep_lines(char *text, int first, int end)
{
    char *begin = text, *behind;
    for (int line = 0; line < first; line++)
        begin = strchr(begin, '\n') + 1;
    behind = begin;
    for (int line = first; line < end; line++)
        behind = strchr(behind, '\n') + 1;
    while (behind - begin > 1 && behind[-2] == '\n')
        behind--;
    *behind = '\0';
    memmove(text, begin, strlen(begin) + 1);
    return text;
}

void golden_view(const struct session *s, enum view_id view, const struct view_state *vs, const char *name)
{
    char *text = golden_draw(s, view, 120, 40, false, vs);
    golden_compare(name, keep_lines(text, view == VIEW_OVERVIEW ? TOP_ROWS : 1, 38));
    free(text);
}

void golden_top(const struct session *s, const char *name)
{
    char *narrow = keep_lines(golden_draw(s, VIEW_OVERVIEW, 80, 24, false, NULL), 0, TOP_ROWS);
    char *wide = keep_lines(golden_draw(s, VIEW_OVERVIEW, 120, 40, false, NULL), 0, TOP_ROWS);
    char *both = malloc(strlen(narrow) + strlen(wide) + 2);
    assert_non_null(both);
    sprintf(both, "%s\n%s", narrow, wide);
    golden_compare(name, both);
    free(narrow);
    free(wide);
    free(both);
}
