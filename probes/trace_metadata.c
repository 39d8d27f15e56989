#include "engine/base/bounded_json.h"
#include "probes/trace_file.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a struct that are stored under their own names: 32-bit integers, spelled out where they are choices. */
struct field {
    const char *key;
    size_t offset;
    const char *const *names; /* NULL: a number */
};

#define FIELD(type, name, names)                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct type, name), names                                                                      \
    }
static const struct field problem_fields[] = {
    FIELD(asc_problem, batch, NULL),
    FIELD(asc_problem, heads, NULL),
    FIELD(asc_problem, kv_heads, NULL),
    FIELD(asc_problem, q_len, NULL),
    FIELD(asc_problem, kv_len, NULL),
    FIELD(asc_problem, head_dim, NULL),
    FIELD(asc_problem, causal, problem_causal_names),
    FIELD(asc_problem, window_left, NULL),
    FIELD(asc_problem, window_right, NULL),
    FIELD(asc_problem, has_sink, NULL),
    FIELD(asc_problem, has_alibi, NULL),
    FIELD(asc_problem, bias_kind, problem_bias_names),
    FIELD(asc_problem, layout, problem_layout_names),
    {0},
};
static const struct field plan_fields[] = {
    FIELD(asc_plan, br, NULL),
    FIELD(asc_plan, bc, NULL),
    FIELD(asc_plan, threads, NULL),
    FIELD(asc_plan, kv_splits, NULL),
    {0},
};
static const struct field run_fields[] = {FIELD(trace_info, workers, NULL), {0}};
static const struct field event_fields[] = {FIELD(trace_event, line, NULL), {0}};
static const struct field site_fields[] = {FIELD(trace_site, line, NULL), {0}};

/* Character arrays in a struct. */
struct text_field {
    const char *key;
    size_t offset, bytes;
    int may_lack; /* 1: traces of an earlier version have none; it is empty then */
};

#define SINCE(type, name, lacks)                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct type, name), sizeof((struct type *)NULL)->name, lacks                                   \
    }
#define TEXT(type, name) SINCE(type, name, 0)
static const struct text_field run_texts[] = {
    TEXT(trace_info, kernel),
    TEXT(trace_info, source_name),
    TEXT(trace_info, scenario_name),
    TEXT(trace_info, patch_name),
    SINCE(trace_info, define, 1),
    TEXT(trace_info, backend),
    SINCE(trace_info, device, 1),
    SINCE(trace_info, tensor_core, 1),
    SINCE(trace_info, probes, 1),
    TEXT(trace_info, status),
    TEXT(trace_info, status_text),
    SINCE(trace_info, stopped, 1),
    {0},
};
static const struct text_field run_checks[] = {SINCE(trace_info, checks, 1), {0}};
static const struct text_field event_texts[] = {
    TEXT(trace_event, kind), TEXT(trace_event, text), TEXT(trace_event, file), {0}};
/* These are written where they are known. */
static const struct field event_place[] = {
    FIELD(trace_event, batch, NULL),
    FIELD(trace_event, head, NULL),
    FIELD(trace_event, q_tile, NULL),
    FIELD(trace_event, kv_tile, NULL),
    FIELD(trace_event, other_line, NULL),
    FIELD(trace_event, times, NULL),
    {0},
};
static const struct text_field event_other[] = {SINCE(trace_event, other_file, 1), {0}};
static const struct text_field site_texts[] = {TEXT(trace_site, file), {0}};

/* JSON texts are UTF-8. Kernels, compilers and cut-off buffers need not be: each byte that is not becomes '?'. */
static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    const size_t n = strlen(text);
    char *clean = malloc(n + 1);
    if (!clean)
        return NULL;
    for (size_t i = 0, take; i < n; i += take) {
        const unsigned char c = (unsigned char)text[i];
        take = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        json_t *one = i + take <= n ? json_stringn(text + i, take) : NULL;
        if (one)
            memcpy(clean + i, text + i, take);
        else
            clean[i] = '?', take = 1;
        json_decref(one);
    }
    value = json_stringn(clean, n);
    free(clean);
    return value;
}

static void put_fields(json_t *to, const struct field *fields, const void *from)
{
    for (const struct field *f = fields; f->key; f++) {
        int32_t number;
        memcpy(&number, (const char *)from + f->offset, sizeof number);
        json_object_set_new(to, f->key, f->names ? json_string(f->names[number]) : json_integer(number));
    }
}

static void put_texts(json_t *to, const struct text_field *fields, const void *from)
{
    for (const struct text_field *f = fields; f->key; f++)
        json_object_set_new(to, f->key, text_value((const char *)from + f->offset));
}

static json_t *problem_value(const struct asc_problem *p)
{
    json_t *value = json_object();
    put_fields(value, problem_fields, p);
    json_object_set_new(value, "dtype", json_string(dtype_name((enum dtype)p->dtype)));
    /* Where all is as it was before there were codes, traces are as they were. */
    if (p->k_dtype != p->dtype || p->v_dtype != p->dtype || problem_has_codes(p)) {
        json_object_set_new(value, "k_dtype", json_string(dtype_name((enum dtype)p->k_dtype)));
        json_object_set_new(value, "v_dtype", json_string(dtype_name((enum dtype)p->v_dtype)));
        json_object_set_new(value, "scale_rows", json_integer(p->scale_rows));
    }
    json_object_set_new(value, "scale", json_real((double)p->scale));
    json_object_set_new(value, "softcap", json_real((double)p->softcap));
    return value;
}

static json_t *plan_value(const struct asc_plan *plan)
{
    json_t *value = json_object();
    put_fields(value, plan_fields, plan);
    if (plan->workspace_bytes)
        json_object_set_new(value, "workspace_bytes", json_integer((json_int_t)plan->workspace_bytes));
    return value;
}

static json_t *conventions_value(const struct asc_conventions *c)
{
    json_t *value = json_object();
    char choice[32];
    for (int i = 0; i < CONVENTIONS; i++) {
        const double number = convention_get(c, i);
        json_t *one = NULL;
        switch (conventions[i].kind) {
        case CONVENTION_CHOICE:
            convention_choice(i, (int)number, choice, sizeof choice);
            one = json_string(choice);
            break;
        case CONVENTION_COUNT:
            one = json_integer((json_int_t)number);
            break;
        case CONVENTION_REAL:
            one = json_real(number);
            break;
        }
        json_object_set_new(value, conventions[i].name, one);
    }
    return value;
}

static json_t *types_value(const struct layout *l)
{
    json_t *value = json_object(), *channels = json_object();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (l->channel[ch].dtype >= 0)
            json_object_set_new(channels, channel_name(ch), json_string(dtype_name((enum dtype)l->channel[ch].dtype)));
    json_object_set_new(value, "o", json_string(dtype_name((enum dtype)l->o.dtype)));
    json_object_set_new(value, "channels", channels);
    return value;
}

static json_t *fields_value(const struct field *fields, const void *from)
{
    json_t *value = json_object();
    put_fields(value, fields, from);
    return value;
}

static json_t *run_value(const struct trace_info *info)
{
    json_t *value = fields_value(run_fields, info);
    put_texts(value, run_texts, info);
    if (info->checks[0])
        put_texts(value, run_checks, info);
    json_object_set_new(value, "seconds", json_real(isfinite(info->seconds) ? info->seconds : 0.0));
    return value;
}

static json_t *sites_value(const struct trace_info *info)
{
    json_t *value = json_array();
    for (size_t i = 0; i < info->n_sites; i++) {
        json_t *site = fields_value(site_fields, &info->sites[i]);
        put_texts(site, site_texts, &info->sites[i]);
        json_object_set_new(site, "channel", json_string(channel_name(info->sites[i].channel)));
        json_array_append_new(value, site);
    }
    return value;
}

static void put_known(json_t *to, const struct trace_event *event)
{
    struct trace_event unknown;
    trace_event_init(&unknown);
    for (const struct field *f = event_place; f->key; f++) {
        int32_t number;
        memcpy(&number, (const char *)event + f->offset, sizeof number);
        if (memcmp(&number, (const char *)&unknown + f->offset, sizeof number) != 0)
            json_object_set_new(to, f->key, json_integer(number));
    }
    if (event->other_file[0])
        put_texts(to, event_other, event);
}

static json_t *events_value(const struct trace_info *info)
{
    json_t *value = json_array();
    for (size_t i = 0; i < info->n_events; i++) {
        json_t *event = fields_value(event_fields, &info->events[i]);
        put_texts(event, event_texts, &info->events[i]);
        put_known(event, &info->events[i]);
        json_array_append_new(value, event);
    }
    return value;
}

/* One more metadata entry; json is taken over. */
static json_t *capture_value(const struct trace_capture *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "wanted", (json_int_t)c->wanted, "judged", (json_int_t)c->judged,
                     "off", (json_int_t)c->off, "differing", (json_int_t)c->differing, "off_places",
                     text_value(c->off_places));
}

static int put_json(struct safetensors_text *out, int n, const char *key, json_t *json)
{
    out[n] = (struct safetensors_text){key, json ? json_dumps(json, JSON_COMPACT) : NULL};
    json_decref(json);
    return n + 1;
}

static int put_text(struct safetensors_text *out, int n, const char *key, const char *text)
{
    if (!text)
        return n;
    json_t *value = text_value(text);
    out[n] = (struct safetensors_text){key, value ? strdup(json_string_value(value)) : NULL};
    json_decref(value);
    return n + 1;
}

int trace_metadata_write(const struct trace *t, struct safetensors_text out[TRACE_TEXTS_MAX], struct err *err)
{
    int n = put_text(out, 0, "attnscope.format", TRACE_FORMAT);
    n = put_json(out, n, "attnscope.problem", problem_value(&t->problem));
    n = put_json(out, n, "attnscope.plan", plan_value(&t->plan));
    n = put_json(out, n, "attnscope.conventions", conventions_value(&t->conventions));
    n = put_json(out, n, "attnscope.types", types_value(&t->layout));
    n = put_json(out, n, "attnscope.run", run_value(&t->info));
    n = put_json(out, n, "attnscope.sites", sites_value(&t->info));
    n = put_json(out, n, "attnscope.events", events_value(&t->info));
    if (t->info.capture.wanted)
        n = put_json(out, n, "attnscope.capture", capture_value(&t->info.capture));
    if (t->info.launches.n || t->info.launches.budget.stated)
        n = put_json(out, n, "attnscope.launches", launches_json(&t->info.launches));
    n = put_text(out, n, "attnscope.source", t->info.source);
    n = put_text(out, n, "attnscope.scenario", t->info.scenario);
    for (int i = 0; i < n; i++)
        if (!out[i].value) {
            trace_metadata_free(out, n);
            return err_set(err, ERR_SYSTEM, out[i].key, "no memory for the metadata");
        }
    return n;
}

void trace_metadata_free(struct safetensors_text *texts, int n)
{
    for (int i = 0; i < n; i++)
        free((void *)(uintptr_t)texts[i].value);
}

/* What a metadata entry is read with: its key is named in messages. */
struct entry {
    const char *path, *key;
    struct err *err;
};

static int refuse(const struct entry *e, const char *field, const char *expected)
{
    return err_set(e->err, ERR_INPUT, e->path, "metadata %s: %s must be %s", e->key, field, expected);
}

static int get_fields(const struct entry *e, const json_t *from, const struct field *fields, void *to)
{
    for (const struct field *f = fields; f->key; f++) {
        const json_t *value = json_object_get(from, f->key);
        int32_t number = -1;
        if (!f->names) {
            const json_int_t wide = json_integer_value(value);
            if (!json_is_integer(value) || wide < INT32_MIN || wide > INT32_MAX)
                return refuse(e, f->key, "a 32-bit integer");
            number = (int32_t)wide;
        }
        for (int i = 0; f->names && json_is_string(value) && f->names[i]; i++)
            if (strcmp(f->names[i], json_string_value(value)) == 0)
                number = i;
        if (f->names && number < 0)
            return refuse(e, f->key, "one of the names in docs/trace-format.md");
        memcpy((char *)to + f->offset, &number, sizeof number);
    }
    return 0;
}

static int get_texts(const struct entry *e, const json_t *from, const struct text_field *fields, void *to)
{
    for (const struct text_field *f = fields; f->key; f++) {
        const json_t *value = json_object_get(from, f->key);
        if (!value && f->may_lack)
            continue;
        if (!json_is_string(value) || json_string_length(value) >= f->bytes)
            return refuse(e, f->key, "a text that is not too long");
        memcpy((char *)to + f->offset, json_string_value(value), json_string_length(value) + 1);
    }
    return 0;
}

static int get_dtype(const struct entry *e, const json_t *from, const char *key, int32_t *out)
{
    *out = dtype_from_name(json_string_value(json_object_get(from, key)));
    return *out < 0 ? refuse(e, key, "the name of an element type") : 0;
}

static int get_float(const struct entry *e, const json_t *from, const char *key, float *out)
{
    const json_t *value = json_object_get(from, key);
    if (!json_is_number(value) || !(fabs(json_number_value(value)) <= FLT_MAX))
        return refuse(e, key, "a finite number");
    *out = (float)json_number_value(value);
    return 0;
}

static int get_count(const struct entry *e, const json_t *from, const char *field, int64_t low, int64_t high,
                     int64_t *out)
{
    const json_t *value = json_object_get(from, field);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return refuse(e, field, "a count that fits the others");
    *out = (int64_t)json_integer_value(value);
    return 0;
}

/* Where they are not said, K and V are of the type of Q. */
static int get_code_types(const struct entry *e, const json_t *from, struct asc_problem *p)
{
    int64_t rows = 0;
    p->k_dtype = p->v_dtype = p->dtype;
    if ((json_object_get(from, "k_dtype") && get_dtype(e, from, "k_dtype", &p->k_dtype) != 0) ||
        (json_object_get(from, "v_dtype") && get_dtype(e, from, "v_dtype", &p->v_dtype) != 0) ||
        (json_object_get(from, "scale_rows") && get_count(e, from, "scale_rows", 0, INT32_MAX, &rows) != 0))
        return -1;
    p->scale_rows = (int32_t)rows;
    return 0;
}

static int read_problem(const struct entry *e, const json_t *from, struct trace *t)
{
    if (get_fields(e, from, problem_fields, &t->problem) != 0 || get_dtype(e, from, "dtype", &t->problem.dtype) != 0 ||
        get_float(e, from, "scale", &t->problem.scale) != 0 || get_float(e, from, "softcap", &t->problem.softcap) != 0)
        return -1;
    if (get_code_types(e, from, &t->problem) != 0)
        return -1;
    return problem_check(&t->problem, e->path, e->err);
}

static int read_plan(const struct entry *e, const json_t *from, struct trace *t)
{
    int64_t workspace = 0;
    if (json_object_get(from, "workspace_bytes") &&
        get_count(e, from, "workspace_bytes", 0, (int64_t)ASC_WORKSPACE_MAX, &workspace) != 0)
        return -1;
    t->plan.workspace_bytes = (uint64_t)workspace;
    return get_fields(e, from, plan_fields, &t->plan);
}

static int read_convention(const struct entry *e, const json_t *from, int i, struct asc_conventions *out)
{
    const char *name = conventions[i].name;
    const json_t *value = json_object_get(from, name);
    float real = 0;
    int choice = -1;
    if (!value) /* a convention that is younger than the trace: the default, 0, is what there was before */
        return 0;
    switch (conventions[i].kind) {
    case CONVENTION_CHOICE:
        if (json_is_string(value))
            choice = convention_from_choice(i, json_string_value(value));
        if (choice < 0)
            return refuse(e, name, "one of the names in docs/conventions.md");
        convention_set(out, i, choice);
        return 0;
    case CONVENTION_COUNT:
        if (!json_is_integer(value))
            return refuse(e, name, "a whole number");
        convention_set(out, i, (double)json_integer_value(value));
        return 0;
    case CONVENTION_REAL:
        if (get_float(e, from, name, &real) != 0)
            return -1;
        convention_set(out, i, real);
    }
    return 0;
}

static int read_conventions(const struct entry *e, const json_t *from, struct trace *t)
{
    for (int i = 0; i < CONVENTIONS; i++)
        if (read_convention(e, from, i, &t->conventions) != 0)
            return -1;
    t->plan.l_lanes = t->conventions.l_lanes;
    conventions_resolve(&t->conventions, &t->problem);
    return conventions_check(&t->conventions, e->path, e->err);
}

static int read_run(const struct entry *e, const json_t *from, struct trace *t)
{
    const json_t *seconds = json_object_get(from, "seconds");
    if (get_fields(e, from, run_fields, &t->info) != 0 || get_texts(e, from, run_texts, &t->info) != 0 ||
        get_texts(e, from, run_checks, &t->info) != 0)
        return -1;
    if (!json_is_number(seconds))
        return refuse(e, "seconds", "a number");
    t->info.seconds = json_number_value(seconds);
    return 0;
}

static int read_capture(const struct entry *e, const json_t *from, struct trace *t)
{
    static const struct text_field texts[] = {TEXT(trace_capture, off_places), {0}};
    struct trace_capture *c = &t->info.capture;
    if (get_count(e, from, "wanted", 1, INT64_MAX, &c->wanted) != 0 ||
        get_count(e, from, "judged", 0, c->wanted, &c->judged) != 0 ||
        get_count(e, from, "off", 0, c->judged, &c->off) != 0 ||
        get_count(e, from, "differing", -1, c->wanted, &c->differing) != 0)
        return -1;
    return get_texts(e, from, texts, c);
}

static int read_launches(const struct entry *e, const json_t *from, struct trace *t)
{
    const char *wrong = launches_read(from, &t->info.launches);
    return wrong ? refuse(e, wrong, "as docs/trace-format.md says") : 0;
}

static int read_sites(const struct entry *e, const json_t *from, struct trace *t)
{
    if (!json_is_array(from))
        return refuse(e, "it", "an array");
    t->info.n_sites = json_array_size(from);
    t->info.sites = calloc(t->info.n_sites + 1, sizeof *t->info.sites);
    if (!t->info.sites)
        return err_errno(e->err, e->path, "no memory for its probe lines");
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const json_t *value = json_array_get(from, i);
        const char *name = json_string_value(json_object_get(value, "channel"));
        const int channel = name ? channel_from_name(name) : -1;
        if (channel < 0)
            return refuse(e, "channel", "the name of a channel");
        t->info.sites[i].channel = (enum asc_channel)channel;
        if (get_fields(e, value, site_fields, &t->info.sites[i]) != 0 ||
            get_texts(e, value, site_texts, &t->info.sites[i]) != 0)
            return -1;
    }
    return 0;
}

static int get_known(const struct entry *e, const json_t *from, struct trace_event *event)
{
    for (const struct field *f = event_place; f->key; f++) {
        const struct field one[] = {*f, {0}};
        if (json_object_get(from, f->key) && get_fields(e, from, one, event) != 0)
            return -1;
    }
    return get_texts(e, from, event_other, event);
}

static int read_events(const struct entry *e, const json_t *from, struct trace *t)
{
    if (!json_is_array(from))
        return refuse(e, "it", "an array");
    t->info.n_events = json_array_size(from);
    t->info.events = calloc(t->info.n_events + 1, sizeof *t->info.events);
    if (!t->info.events)
        return err_errno(e->err, e->path, "no memory for its events");
    for (size_t i = 0; i < t->info.n_events; i++) {
        const json_t *value = json_array_get(from, i);
        trace_event_init(&t->info.events[i]);
        if (get_fields(e, value, event_fields, &t->info.events[i]) != 0 ||
            get_texts(e, value, event_texts, &t->info.events[i]) != 0 || get_known(e, value, &t->info.events[i]) != 0)
            return -1;
    }
    return 0;
}

static int read_types(const struct entry *e, const json_t *from, struct layout_types *types)
{
    const char *name;
    json_t *value, *channels = json_object_get(from, "channels");
    if (get_dtype(e, from, "o", &types->o) != 0)
        return -1;
    if (!json_is_object(channels))
        return refuse(e, "channels", "an object");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types->channel[ch] = -1;
    json_object_foreach(channels, name, value)
    {
        const int ch = channel_from_name(name);
        if (ch < 0)
            return refuse(e, "channels", "the names of channels");
        if (get_dtype(e, channels, name, &types->channel[ch]) != 0)
            return -1;
    }
    return 0;
}

static int read_entry(const struct safetensors *file, const struct entry *e, struct trace *t,
                      struct layout_types *types,
                      int (*read)(const struct entry *e, const json_t *from, struct trace *t))
{
    const char *text = safetensors_metadata(file, e->key);
    if (!text)
        return err_set(e->err, ERR_INPUT, e->path, "metadata %s is missing", e->key);
    char where[512];
    snprintf(where, sizeof where, "%s: metadata %s", e->path, e->key);
    json_t *json = bounded_json(text, strlen(text), where, e->err);
    if (!json)
        return -1;
    const int result = read ? read(e, json, t) : read_types(e, json, types);
    json_decref(json);
    return result;
}

/* A plain text of the metadata; absent stays NULL. */
static int read_text(const struct safetensors *file, const struct entry *e, char **out)
{
    const char *text = safetensors_metadata(file, e->key);
    *out = text ? strdup(text) : NULL;
    return text && !*out ? err_errno(e->err, e->path, "no memory for metadata %s", e->key) : 0;
}

int trace_metadata_read(const struct safetensors *file, const char *path, struct trace *t, struct layout_types *types,
                        struct err *err)
{
    static const struct {
        const char *key;
        int (*read)(const struct entry *e, const json_t *from, struct trace *t); /* NULL: read_types */
    } entries[] = {
        {"attnscope.problem", read_problem}, {"attnscope.plan", read_plan}, {"attnscope.conventions", read_conventions},
        {"attnscope.types", NULL},           {"attnscope.run", read_run},   {"attnscope.sites", read_sites},
        {"attnscope.events", read_events},
    };
    char version[32];
    const char *format = safetensors_metadata(file, "attnscope.format");
    if (!format)
        return err_set(err, ERR_INPUT, path, "is a safetensors file, but no attnscope trace");
    if (strcmp(format, TRACE_FORMAT) != 0)
        return err_set(err, ERR_ABI, path, "is a trace of format %s; this program reads format %s",
                       printable(format, version, sizeof version), TRACE_FORMAT);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (read_entry(file, &(struct entry){path, entries[i].key, err}, t, types, entries[i].read) != 0)
            return -1;
    if (safetensors_metadata(file, "attnscope.capture") &&
        read_entry(file, &(struct entry){path, "attnscope.capture", err}, t, types, read_capture) != 0)
        return -1;
    if (safetensors_metadata(file, "attnscope.launches") &&
        read_entry(file, &(struct entry){path, "attnscope.launches", err}, t, types, read_launches) != 0)
        return -1;
    if (read_text(file, &(struct entry){path, "attnscope.source", err}, &t->info.source) != 0)
        return -1;
    return read_text(file, &(struct entry){path, "attnscope.scenario", err}, &t->info.scenario);
}
