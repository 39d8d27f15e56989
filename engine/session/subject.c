/* A command line that makes the shown run again. */
#include "engine/base/path.h"
#include "engine/base/utf8.h"
#include "engine/build/cache.h"
#include "engine/build/patch.h"
#include "engine/session/session.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
    char *at;
    size_t left; /* with the NUL; 0: there was no room */
};

static void put(struct words *w, const char *text, size_t n)
{
    if (w->left <= n) {
        w->left = 0;
        return;
    }
    memcpy(w->at, text, n);
    w->at += n;
    w->left -= n;
    *w->at = '\0';
}

/* The byte as it stands between $' and ', where what a terminal acts on has no other place (POSIX.1-2024, 2.2.4). */
static void put_escaped(struct words *w, unsigned char byte)
{
    char text[8];
    const bool plain = byte >= 0x20 && byte < 0x7F && byte != '\'' && byte != '\\';
    snprintf(text, sizeof text, plain ? "%c" : "\\%03o", byte); /* three digits and no more, as \x is not */
    put(w, text, strlen(text));
}

/* The word holds what a terminal is not shown as it is. */
static bool is_foreign(const char *word)
{
    char name[UTF8_NAME_BYTES];
    uint32_t code;
    for (size_t n; (n = utf8_decode(word, &code)) > 0; word += n)
        if (utf8_name(word, n, code, name) > 0)
            return true;
    return false;
}

/* A word as a shell reads it: in quotes where it holds more than what stands for itself. */
static void put_word(struct words *w, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        put(w, word, strlen(word));
        return;
    }
    const bool foreign = is_foreign(word);
    put(w, foreign ? "$'" : "'", foreign ? 2 : 1);
    for (; *word; word++) {
        const bool quote = *word == '\'';
        if (foreign)
            put_escaped(w, (unsigned char)*word);
        else
            put(w, quote ? "'\\''" : word, quote ? 4 : 1);
    }
    put(w, "'", 1);
}

/* A path, which no command may take for an option. */
static void put_path(struct words *w, const char *path)
{
    if (path[0] == '-')
        put(w, "./", 2);
    put_word(w, path);
}

int subject_word(const char *word, char *out, size_t bytes)
{
    struct words w = {out, bytes};
    put_word(&w, word);
    return w.left ? 0 : -1;
}

/* " --set KEY=VALUE", and the same for what the words before it open. */
static int put_key(struct words *w, struct scenario *opened, enum scenario_key_id id, const char *value)
{
    const struct scenario_key *key = &scenario_keys[id];
    char setting[1024];
    snprintf(setting, sizeof setting, "%s.%s=%s", section_names[key->section], key->name, value);
    put(w, " --set ", 7);
    put_word(w, setting);
    return scenario_key_set(opened, id, value, "", NULL);
}

/* What the command line may begin with: the file, if it says nothing that the run was not made by, else the kernel. */
static int open_again(const struct session *s, const struct scenario *made, struct scenario *out)
{
    if (made->path[0] && session_read(made->path, s->subject.paths.root, out, NULL) == 0) {
        int more = 0;
        for (int id = 0; id < KEY_COUNT; id++)
            more |= scenario_decides((enum scenario_key_id)id) && scenario_said(out, (enum scenario_key_id)id) &&
                    !scenario_said(made, (enum scenario_key_id)id);
        if (!more)
            return 0;
        scenario_free(out);
    }
    scenario_init(out);
    snprintf(out->kernel, sizeof out->kernel, "%s", made->kernel);
    return 0;
}

/* Lengths and scale that no key says: those of a shape that was given as a whole. */
static int put_shape(struct words *w, const struct asc_problem *made, struct scenario *opened)
{
    const struct {
        enum scenario_key_id id;
        int length;
    } lengths[] = {{KEY_BATCH, made->batch},          {KEY_HEADS, made->heads},   {KEY_KV_HEADS, made->kv_heads},
                   {KEY_Q_LEN, made->q_len},          {KEY_KV_LEN, made->kv_len}, {KEY_HEAD_DIM, made->head_dim},
                   {KEY_HEAD_DIM_V, made->head_dim_v}};
    char number[32];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct asc_problem *p = &opened->problem;
        const int now[] = {p->batch, p->heads, p->kv_heads, p->q_len, p->kv_len, p->head_dim, p->head_dim_v};
        snprintf(number, sizeof number, "%d", lengths[i].length);
        if (now[i] != lengths[i].length && put_key(w, opened, lengths[i].id, number) != 0)
            return -1;
    }
    /* As many digits as tell two neighbors of float32 apart: 9 (IEEE 754, 5.12.2). */
    snprintf(number, sizeof number, "%.9g", (double)made->scale);
    return opened->problem.scale == made->scale ? 0 : put_key(w, opened, KEY_SCALE, number);
}

/* The kernel, with its patch, is not the text that this run was built from. */
static bool is_edited(const struct scenario *made, const struct trace *t)
{
    char *now = NULL;
    const int failed = made->patch[0] ? patch_apply(made->kernel, made->patch, &now, NULL)
                                      : cache_read_text(made->kernel, "the kernel", &now, NULL);
    const bool edited = failed || (t->info.source && strcmp(now, t->info.source) != 0);
    free(now);
    return edited;
}

int session_subject(const struct session *s, char *out, size_t bytes, bool *edited)
{
    struct words w = {out, bytes};
    const struct scenario *made = session_made_by(s);
    struct scenario opened;
    *edited = false;
    const struct run *shown = runs_shown(&s->runs);
    if (!s->subject.has_scenario && s->bundle.open) {
        put_path(&w, s->bundle.path);
    } else if (!made && shown && shown->saved) {
        put_path(&w, shown->saved);
        return w.left ? 0 : -1;
    }
    if (!made || !s->run.trace || open_again(s, made, &opened) != 0)
        return -1;
    put_path(&w, opened.path[0] ? opened.path : opened.kernel);
    int failed = 0;
    for (int i = 0; i < KEY_COUNT && !failed; i++) {
        const enum scenario_key_id id = (enum scenario_key_id)i;
        const char *said = scenario_said(made, id), *there = scenario_said(&opened, id);
        if (scenario_decides(id) && said && (!there || strcmp(said, there) != 0))
            failed = put_key(&w, &opened, id, said) != 0;
    }
    failed = failed || put_shape(&w, &made->problem, &opened) != 0;
    scenario_free(&opened);
    *edited = is_edited(made, s->run.trace);
    return failed || !w.left ? -1 : 0;
}

int session_settings(const struct session *s, char *out, size_t bytes)
{
    struct words w = {out, bytes};
    struct scenario file;
    bool trace = false;
    out[0] = '\0';
    if (!s->subject.has_scenario || !s->subject.path[0])
        return 0;
    if (!path_ends_in(s->subject.path, ".ini") && !path_ends_in(s->subject.path, ".cu") &&
        (trace_is(s->subject.path, &trace, NULL) != 0 || trace))
        return 0; /* it is opened as it is */
    if (session_read(s->subject.path, s->subject.paths.root, &file, NULL) != 0)
        return -1;
    int failed = 0;
    for (int i = 0; i < KEY_COUNT && !failed; i++) {
        const enum scenario_key_id id = (enum scenario_key_id)i;
        const char *now = scenario_said(&s->subject.scenario, id), *there = scenario_said(&file, id);
        char setting[1200];
        if (!scenario_decides(id) || (now && there && strcmp(now, there) == 0) || (!now && !there))
            continue;
        failed = !now || strchr(now, '\n') || strlen(now) > 1024;
        if (!failed) {
            snprintf(setting, sizeof setting, "%s.%s=%s\n", section_names[scenario_keys[id].section],
                     scenario_keys[id].name, now);
            put(&w, setting, strlen(setting));
        }
    }
    scenario_free(&file);
    return failed || !w.left ? -1 : 0;
}
