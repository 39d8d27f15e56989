#include "tui/show.h"
#include "cli/report.h"
#include "engine/base/utf8.h"
#include "engine/session/common.h"
#include "engine/session/look.h"
#include "tests/fuzz/fuzz.h"
#include "tui/views/view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fail(const char *why)
{
    fputs(why, stderr);
    abort();
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        fail("the input cannot be written\n");
    return path;
}

/* What a canvas shows never makes a terminal do anything. */
static void check_shown(const char *text)
{
    char name[UTF8_NAME_BYTES];
    uint32_t code;
    for (size_t n; (n = utf8_decode(text, &code)) > 0; text += n)
        if (code != '\n' && utf8_name(text, n, code, name) > 0)
            fail("a view shows a control character\n");
}

/* The text that write() makes, which is the caller's. */
static char *text_of(void (*write)(const struct session *s, FILE *out), const struct session *s)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        fail("no memory\n");
    write(s, out);
    if (fclose(out) != 0)
        fail("no memory\n");
    return text;
}

static void write_report(const struct session *s, FILE *out)
{
    char why[512];
    struct err err = {0};
    report_write(s, out);
    report_write_expectation(s, out);
    (void)report_status(s, why, sizeof why);
    json_t *json = report_json(s, "trace", &s->job.err);
    if (!json || report_dump(json, out, &err) != 0)
        fail("there is no JSON report\n");
    json_decref(json);
}

static void draw(struct session *s, enum view_id view, unsigned size)
{
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 60}, {81, 25}};
    char *text = NULL;
    size_t bytes;
    struct err err = {0};
    session_look(s, views[view]->looks);
    session_look_finish(s);
    session_want_states(s, view == VIEW_STATE);
    session_want_picture(s, view == VIEW_PICTURE ? (enum picture_scope)(size >> 3 & 1) : PICTURE_TILE, false);
    if (view == VIEW_BIAS) {
        session_want_rounding(s);
        session_finish_rounding(s);
    }
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        fail("no memory\n");
    if (tui_show(s, view, sizes[size % 4][0], sizes[size % 4][1], (int)(size >> 2 & 1), out, &err) != 0)
        fail("a view cannot be shown\n");
    fclose(out);
    check_shown(text);
    free(text);
}

static void step(struct session *s, unsigned choice)
{
    bool (*const steps[])(struct session *, int) = {session_step_stage, session_step_head,    session_step_q,
                                                    session_step_kv,    session_step_row,     session_step_col,
                                                    session_step_bad,   session_step_order,   session_step_visit,
                                                    session_go_root,    session_step_element, session_step_kv};
    steps[choice % (sizeof steps / sizeof *steps)](s, choice & 64 ? -1 : 1);
    if (choice % 7 == 0)
        session_go_worst(s);
}

void fuzz_trace_file(const char *path, unsigned choice)
{
    struct session *s;
    struct err err = {0};
    if (session_open_trace(path, &s, &err) != 0)
        return;
    if (session_start(s) != 0)
        fail("no thread\n");
    session_finish(s, 0);
    if (s->run.trace) {
        free(text_of(write_report, s));
        for (unsigned i = 0; i < 3; i++, choice = choice * 1664525u + 1013904223u) {
            step(s, choice >> 20);
            draw(s, (enum view_id)((choice >> 8) % VIEW_COUNT), choice >> 16);
        }
    }
    session_free(s);
}
