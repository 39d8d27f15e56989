/* A sweep as a file, and the shards of one sweep put together. */
#include "engine/base/bounded_json.h"
#include "engine/base/file_map.h"
#include "engine/base/json_memory.h"
#include "engine/base/replace.h"
#include "engine/base/utf8.h"
#include "engine/sweep/sweep.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, SHARDS_MOST = 4096 };

/* ---- writing ---- */

/* Bytes that are no UTF-8 become U+FFFD. */
static json_t *text_json(const char *text)
{
    char *whole = malloc(3 * strlen(text) + 1);
    uint32_t code;
    size_t used = 0;
    if (!whole)
        end_without_memory();
    for (size_t n; (n = utf8_decode(text, &code)) > 0; text += n)
        used += utf8_write(code, whole + used);
    json_t *json = json_stringn(whole, used);
    free(whole);
    return json;
}

static json_t *texts_json(char *const *text, int n)
{
    json_t *json = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(json, text_json(text[i]));
    return json;
}

/* What all shards of a sweep have in common. */
static json_t *common_json(const struct sweep *s)
{
    json_t *axes = json_array();
    for (int i = 0; i < s->n_axes; i++)
        json_array_append_new(axes, json_pack("{s:o, s:o}", "key", text_json(s->axis[i].key), "values",
                                              texts_json(s->axis[i].value, s->axis[i].n)));
    return json_pack("{s:i, s:o, s:s, s:o, s:o, s:[i, i], s:f, s:I, s:I, s:o}", "format", FORMAT, "kernel",
                     text_json(s->kernel), "text", s->text, "base", texts_json(s->base, s->n_base), "axes", axes,
                     "tile", s->br, s->bc, "grid", s->grid, "sample", (json_int_t)s->sample, "points",
                     (json_int_t)s->whole, "command", text_json(s->command ? s->command : ""));
}

static json_t *rule_json(const struct sweep *s, int i)
{
    const struct sweep_rule *r = &s->rules.rule[i];
    json_t *same = json_array();
    for (int k = 0; k < s->rules.n_same && i == 0; k++)
        json_array_append_new(same, text_json(s->same_words[k]));
    return json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:f, s:f, s:o}", "where", text_json(s->rule_words[i]), "exact",
                     (int)sweep_rule_is_exact(r), "points_inside", (json_int_t)r->in, "failing_inside",
                     (json_int_t)r->in_bad, "points_outside", (json_int_t)r->out, "failing_outside",
                     (json_int_t)r->out_bad, "bits", r->bits, "bits_needed", r->needed, "same", same);
}

static json_t *point_json(const struct sweep *s, const struct sweep_point *p)
{
    json_t *at = json_object();
    for (int i = 0; i < s->n_axes; i++)
        json_object_set_new(at, s->axis[i].key, text_json(s->axis[i].value[p->at[i]]));
    json_t *again = p->runs ? json_pack("[i, i]", p->runs_failed, p->runs) : NULL;
    return json_pack("{s:I, s:o, s:s, s:o, s:o, s:o, s:f, s:o*}", "number", (json_int_t)p->number, "at", at, "result",
                     sweep_result_names[p->result], "what", text_json(p->what ? p->what : ""), "why",
                     text_json(p->why ? p->why : ""), "command", text_json(p->command ? p->command : ""), "seconds",
                     p->seconds, "again", again);
}

json_t *sweep_json(const struct sweep *s)
{
    json_t *rules = json_array(), *points = json_array(), *said = json_array();
    char line[SWEEP_LINE_BYTES];
    for (int i = 0; sweep_sentence(s, i, line, sizeof line); i++)
        json_array_append_new(said, text_json(line));
    for (int i = 0; i < s->rules.n; i++)
        json_array_append_new(rules, rule_json(s, i));
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(points, point_json(s, &s->point[i]));
    json_t *shard = s->shards ? json_pack("{s:i, s:i}", "number", s->shard, "of", s->shards) : json_null();
    return json_pack("{s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:i, s:f, s:o}", "sweep", common_json(s), "shard", shard,
                     "ended", (int)s->ended, "result", sweep_verdict(s), "said", said, "rules", rules, "error",
                     s->error ? text_json(s->error) : json_null(), "error_status", s->error ? s->error_status : 0,
                     "seconds", s->seconds, "points", points);
}

int sweep_write(const struct sweep *s, const char *path, struct err *err)
{
    struct replacement r;
    json_t *json = sweep_json(s);
    char *text = json ? json_memory_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(json);
    if (!text)
        return err_no_memory(err, path, "the sweep");
    int failed = replace_open(&r, path, 0666, err);
    if (!failed) {
        fputs(text, r.file);
        fputs("\n", r.file);
        failed = replace_commit(&r, err);
    }
    free(text);
    return failed;
}

/* ---- reading ---- */

struct reading {
    const char *path;
    struct err *err;
    bool failed;
};

static void refuse(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct reading *r, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!r->failed)
        (void)err_set(r->err, ERR_INPUT, r->path, "is no sweep: %s", text);
    r->failed = true;
}

static const json_t *get(struct reading *r, const json_t *of, const char *key, json_type type)
{
    static const char *const names[] = {"an object", "a list", "a text", "a whole number", "a number"};
    const json_t *x = json_object_get(of, key);
    if (x && (json_typeof(x) == type || (type == JSON_REAL && json_is_integer(x))))
        return x;
    refuse(r, "expected %s as `%s`", (size_t)type < sizeof names / sizeof *names ? names[type] : "true or false", key);
    return NULL;
}

static const char *get_text(struct reading *r, const json_t *of, const char *key)
{
    const json_t *x = get(r, of, key, JSON_STRING);
    return x ? json_string_value(x) : "";
}

static long long get_whole(struct reading *r, const json_t *of, const char *key, long long least, long long most)
{
    const json_t *x = get(r, of, key, JSON_INTEGER);
    const long long value = x ? json_integer_value(x) : least;
    if (value >= least && value <= most)
        return value;
    refuse(r, "expected %lld to %lld as `%s`, found %lld", least, most, key, value);
    return least;
}

static double get_real(struct reading *r, const json_t *of, const char *key)
{
    const json_t *x = get(r, of, key, JSON_REAL);
    return x ? json_number_value(x) : 0;
}

static bool get_bool(struct reading *r, const json_t *of, const char *key)
{
    const json_t *x = json_object_get(of, key);
    if (!x || !json_is_boolean(x))
        refuse(r, "expected true or false as `%s`", key);
    return json_is_true(x);
}

static char *copy_text(struct reading *r, const char *text)
{
    char *copy = strdup(text);
    if (!copy && !r->failed) {
        (void)err_no_memory(r->err, r->path, "the sweep");
        r->failed = true;
    }
    return copy;
}

/* NULL: an empty text is none. */
static char *own_text(struct reading *r, const json_t *of, const char *key)
{
    const char *text = get_text(r, of, key);
    return text[0] ? copy_text(r, text) : NULL;
}

/* Owned texts of a list; what is none is refused. */
static char **own_texts(struct reading *r, const json_t *of, const char *key, int *n)
{
    const json_t *list = get(r, of, key, JSON_ARRAY);
    const size_t all = json_array_size(list);
    char **out = calloc(all + 1, sizeof *out);
    *n = 0;
    for (size_t i = 0; i < all && out && !r->failed; i++) {
        const json_t *x = json_array_get(list, i);
        if (!json_is_string(x))
            refuse(r, "expected texts in `%s`", key);
        else if ((out[*n] = copy_text(r, json_string_value(x))))
            ++*n;
    }
    if (!out)
        refuse(r, "there is no memory for it");
    return out;
}

static void read_common(struct reading *r, const json_t *common, struct sweep *s)
{
    const json_t *axes = get(r, common, "axes", JSON_ARRAY), *tile = get(r, common, "tile", JSON_ARRAY);
    if (get_whole(r, common, "format", 0, 1 << 30) != FORMAT)
        refuse(r, "its format is not %d, that of this attnscope", FORMAT);
    snprintf(s->kernel, sizeof s->kernel, "%s", get_text(r, common, "kernel"));
    snprintf(s->text, sizeof s->text, "%s", get_text(r, common, "text"));
    s->base = own_texts(r, common, "base", &s->n_base);
    s->command = own_text(r, common, "command");
    s->grid = get_real(r, common, "grid");
    s->sample = (uint64_t)get_whole(r, common, "sample", 0, INT64_MAX);
    s->whole = (size_t)get_whole(r, common, "points", 0, 1 << 20);
    s->br = (int)json_integer_value(json_array_get(tile, 0));
    s->bc = (int)json_integer_value(json_array_get(tile, 1));
    if (s->br < 1 || s->bc < 1)
        refuse(r, "expected two numbers from 1 on as `tile`");
    if (json_array_size(axes) > SWEEP_AXES)
        refuse(r, "it has more than %d axes", SWEEP_AXES);
    for (size_t i = 0; i < json_array_size(axes) && !r->failed; i++) {
        struct sweep_axis *axis = &s->axis[s->n_axes++];
        axis->key = copy_text(r, get_text(r, json_array_get(axes, i), "key"));
        axis->value = own_texts(r, json_array_get(axes, i), "values", &axis->n);
        if (axis->n < 1 || axis->n > 4096)
            refuse(r, "expected 1 to 4096 values of an axis");
    }
}

static void read_at(struct reading *r, const json_t *at, const struct sweep *s, struct sweep_point *p)
{
    for (int a = 0; a < s->n_axes && !r->failed; a++) {
        const struct sweep_axis *axis = &s->axis[a];
        const char *value = get_text(r, at, axis->key);
        int i = 0;
        while (i < axis->n && strcmp(axis->value[i], value) != 0)
            i++;
        if (i == axis->n)
            refuse(r, "'%.60s' is no value of %.60s", value, axis->key);
        p->at[a] = (short)(i < axis->n ? i : 0);
    }
}

static void read_point(struct reading *r, const json_t *json, const struct sweep *s, struct sweep_point *p)
{
    const char *result = get_text(r, json, "result");
    int i = 0;
    *p = (struct sweep_point){.number = (size_t)get_whole(r, json, "number", 0, (long long)s->whole - 1),
                              .seconds = get_real(r, json, "seconds"),
                              .what = own_text(r, json, "what"),
                              .why = own_text(r, json, "why"),
                              .command = own_text(r, json, "command")};
    const json_t *again = json_object_get(json, "again");
    p->runs_failed = (int)json_integer_value(json_array_get(again, 0));
    p->runs = (int)json_integer_value(json_array_get(again, 1));
    if (p->runs_failed < 0 || p->runs < p->runs_failed)
        refuse(r, "expected how many runs of how many failed as `again`");
    while (i < SWEEP_RESULTS && strcmp(result, sweep_result_names[i]) != 0)
        i++;
    if (i == SWEEP_RESULTS)
        refuse(r, "expected ok, fail, declined or not tried as `result`, found '%.60s'", result);
    p->result = (enum sweep_result)i;
    read_at(r, get(r, json, "at", JSON_OBJECT), s, p);
}

static void read_all(struct reading *r, const json_t *json, struct sweep *s)
{
    const json_t *common = get(r, json, "sweep", JSON_OBJECT), *shard = json_object_get(json, "shard"),
                 *points = get(r, json, "points", JSON_ARRAY);
    if (r->failed)
        return;
    read_common(r, common, s);
    if (json_is_object(shard)) {
        s->shards = (int)get_whole(r, shard, "of", 1, SHARDS_MOST);
        s->shard = (int)get_whole(r, shard, "number", 1, s->shards);
    }
    s->ended = get_bool(r, json, "ended");
    s->seconds = get_real(r, json, "seconds");
    s->error_status = (int)get_whole(r, json, "error_status", 0, 3);
    if (s->error_status)
        s->error = own_text(r, json, "error");
    s->point = calloc(json_array_size(points) + 1, sizeof *s->point);
    if (!s->point) {
        refuse(r, "there is no memory for it");
        return;
    }
    for (size_t i = 0; i < json_array_size(points) && !r->failed; i++) {
        read_point(r, json_array_get(points, i), s, &s->point[s->n++]);
        if (s->n > 1 && s->point[s->n - 1].number <= s->point[s->n - 2].number)
            refuse(r, "its points are not in the order of their numbers");
    }
}

int sweep_read(const char *path, struct sweep *out, struct err *err)
{
    struct reading r = {.path = path, .err = err};
    const unsigned char *bytes;
    size_t n;
    sweep_init(out);
    if (file_map_open(path, &bytes, &n, err) != 0)
        return -1;
    json_t *json = bounded_json((const char *)bytes, n, path, err);
    if (json)
        read_all(&r, json, out);
    if (json && !r.failed)
        r.failed = file_map_check(bytes, err) != 0;
    file_map_close(bytes);
    json_decref(json);
    if (json && !r.failed)
        r.failed = sweep_find(out, err) != 0;
    if (json && !r.failed)
        return 0;
    sweep_free(out);
    return -1;
}

/* ---- shards ---- */

static int check_one_sweep(struct sweep *shard, char *const *paths, int n, struct err *err)
{
    json_t *first = common_json(&shard[0]);
    int failed = 0;
    for (int i = 0; i < n && !failed; i++) {
        json_t *own = common_json(&shard[i]);
        if (!shard[i].shards)
            failed = err_set(err, ERR_INPUT, paths[i], "is a whole sweep, not a shard of one");
        else if (shard[i].shards != shard[0].shards)
            failed = err_set(err, ERR_INPUT, paths[i], "is one of %d shards, and %s one of %d", shard[i].shards,
                             paths[0], shard[0].shards);
        else if (!json_equal(first, own))
            failed =
                err_set(err, ERR_INPUT, paths[i],
                        "is of another sweep than %s: kernel, settings, axes and sample have to be the same", paths[0]);
        json_decref(own);
    }
    json_decref(first);
    return failed;
}

/* The command that runs a shard alone, into its own file where that is known. */
static void say_command(const struct sweep *s, int shard, const char *path, void (*say)(const char *line))
{
    char own[64], *line;
    snprintf(own, sizeof own, "shard-%d.json", shard);
    if (asprintf(&line, "  %s --shard %d/%d --save %s", s->command, shard, s->shards, path ? path : own) < 0)
        end_without_memory();
    say(line);
    free(line);
}

/* Each shard once, and to its end. */
static int check_complete(struct sweep *shard, char *const *paths, int n, void (*say)(const char *line),
                          struct err *err)
{
    const int of = shard[0].shards;
    int *file_of = calloc((size_t)of + 1, sizeof *file_of); /* its place, from 1 */
    int lacking = 0, failed = 0;
    char line[1024];
    if (!file_of)
        return err_no_memory(err, "", "the shards");
    for (int i = 0; i < n && !failed; i++) {
        int *at = &file_of[shard[i].shard];
        if (*at)
            failed =
                err_set(err, ERR_INPUT, paths[i], "is shard %d of %d, as %s is", shard[i].shard, of, paths[*at - 1]);
        *at = i + 1;
    }
    for (int k = 1; k <= of && !failed; k++) {
        const int i = file_of[k] - 1;
        if (i >= 0 && shard[i].ended)
            continue;
        lacking++;
        if (i < 0)
            snprintf(line, sizeof line, "shard %d of %d is missing; this runs it alone:", k, of);
        else
            snprintf(line, sizeof line, "shard %d of %d (%s) was stopped before its end; this runs it alone:", k, of,
                     paths[i]);
        say(line);
        say_command(&shard[0], k, i < 0 ? NULL : paths[i], say);
    }
    free(file_of);
    return lacking ? err_set(err, ERR_RUN, "--merge", "%d of %d shards are missing or were stopped", lacking, of)
                   : failed;
}

static int by_number(const void *a, const void *b)
{
    const struct sweep_point *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* The points of all into the first, which becomes the whole. */
static int join(struct sweep *shard, int n, struct sweep *out, struct err *err)
{
    struct sweep_point *all = calloc(shard[0].whole + 1, sizeof *all);
    if (!all)
        return err_no_memory(err, "", "the points");
    *out = shard[0];
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        for (size_t p = 0; p < shard[i].n && used < out->whole; p++)
            all[used++] = shard[i].point[p];
        free(shard[i].point);
        shard[i].point = NULL;
        shard[i].n = 0;
        if (i == 0)
            continue;
        out->seconds += shard[i].seconds;
        if (!out->error && shard[i].error) {
            out->error = shard[i].error;
            out->error_status = shard[i].error_status;
            shard[i].error = NULL;
        }
    }
    sweep_init(&shard[0]);
    qsort(all, used, sizeof *all, by_number);
    out->point = all;
    out->n = used;
    out->shard = out->shards = 0;
    for (size_t p = 0; p < out->whole; p++)
        if (p >= used || all[p].number != p)
            return err_set(err, ERR_INPUT, "", "point %zu of the sweep is in no shard", p);
    return sweep_find(out, err);
}

int sweep_merge(char *const *paths, int n, void (*say)(const char *line), struct sweep *out, struct err *err)
{
    struct sweep *shard = calloc((size_t)n, sizeof *shard);
    int read = 0, failed = shard ? 0 : err_no_memory(err, "", "the shards");
    sweep_init(out);
    while (read < n && !failed)
        failed = sweep_read(paths[read], &shard[read], err) != 0 ? -1 : (read++, 0);
    if (!failed)
        failed = check_one_sweep(shard, paths, n, err) || check_complete(shard, paths, n, say, err);
    if (!failed && join(shard, n, out, err) != 0) {
        sweep_free(out);
        failed = -1;
    }
    for (int i = 0; i < read; i++)
        sweep_free(&shard[i]);
    free(shard);
    return failed ? -1 : 0;
}
