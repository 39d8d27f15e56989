#include "engine/trace/trace_file.h"

#include "engine/base/bounded_json.h"
#include "engine/base/text.h"
#include "engine/trace/own_values.h"
#include "engine/trace/trace_fields.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a metadata entry is read with: its key is named in messages. */
struct entry {
    const char *path, *key;
    struct err *err;
};

static int refuse(const struct entry *e, const char *field, const char *expected)
{
    return err_set(e->err, ERR_INPUT, e->path, "metadata %s: %s must be %s", e->key, field, expected);
}

static int get_fields(const struct entry *e, const json_t *from, const struct trace_field *fields, void *to)
{
    for (const struct trace_field *f = fields; f->key; f++) {
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

static int get_texts(const struct entry *e, const json_t *from, const struct trace_text *fields, void *to)
{
    for (const struct trace_text *f = fields; f->key; f++) {
        const json_t *value = json_object_get(from, f->key);
        if (!value && f->may_lack)
            continue;
        if (!json_is_string(value) || json_string_length(value) >= f->bytes)
            return refuse(e, f->key, "a text that is not too long");
        memcpy((char *)to + f->offset, json_string_value(value), json_string_length(value) + 1);
    }
    return 0;
}

/* Its name, or the one it had in older traces; absent or empty: none. */
static int get_event(const struct entry *e, const json_t *from, const char *key, enum event_kind *out)
{
    const json_t *value = json_object_get(from, key);
    const char *name = json_string_value(value);
    *out = name && strcmp(name, "uninitialised") == 0 ? EVENT_UNINITIALIZED : event_from_name(name);
    return *out == EVENT_NONE && value && !(name && !*name)
               ? refuse(e, key, "a kind of event, as expect.event takes it")
               : 0;
}

/* "on" or "off"; absent or empty, as in older traces: *out stays. */
static int get_switch(const struct entry *e, const json_t *from, const char *key, bool *out)
{
    const json_t *value = json_object_get(from, key);
    const char *word = json_string_value(value);
    const bool on = word && strcmp(word, "on") == 0, off = word && strcmp(word, "off") == 0;
    if (on || off)
        *out = on;
    return value && !on && !off && !(word && !*word) ? refuse(e, key, "on or off") : 0;
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
    int64_t rows = 0, dims = 0;
    p->k_dtype = p->v_dtype = p->dtype;
    if ((json_object_get(from, "k_dtype") && get_dtype(e, from, "k_dtype", &p->k_dtype) != 0) ||
        (json_object_get(from, "v_dtype") && get_dtype(e, from, "v_dtype", &p->v_dtype) != 0) ||
        (json_object_get(from, "scale_rows") && get_count(e, from, "scale_rows", 0, INT32_MAX, &rows) != 0) ||
        (json_object_get(from, "scale_dims") && get_count(e, from, "scale_dims", 0, INT32_MAX, &dims) != 0))
        return -1;
    p->scale_rows = (int32_t)rows;
    p->scale_dims = (int32_t)dims;
    return 0;
}

/* One of a list of names; not said: the first. */
static int get_name(const struct entry *e, const json_t *from, const char *key, const char *const *names,
                    const char *what, int32_t *to)
{
    const json_t *value = json_object_get(from, key);
    for (int i = 0; value && names[i]; i++)
        if (json_is_string(value) && strcmp(names[i], json_string_value(value)) == 0)
            *to = i;
    return value && (!json_is_string(value) || strcmp(names[*to], json_string_value(value)) != 0) ? refuse(e, key, what)
                                                                                                  : 0;
}

/* Where they are not said, all sequences are of one length, in one piece, and V is as wide as K. */
static int get_newer(const struct entry *e, const json_t *from, struct asc_problem *p)
{
    const struct {
        const char *key;
        int32_t *to;
        int most, otherwise;
    } fields[] = {{"has_q_lens", &p->has_q_lens, 1, 0},
                  {"has_kv_lens", &p->has_kv_lens, 1, 0},
                  {"page_size", &p->page_size, ASC_LENGTH_MAX, 0},
                  {"pages", &p->pages, ASC_LENGTH_MAX, 0},
                  {"head_dim_v", &p->head_dim_v, ASC_HEAD_DIM_MAX, p->head_dim},
                  {"v_in_k", &p->v_in_k, 1, 0},
                  {"left_pad", &p->left_pad, 1, 0},
                  {"new_keys", &p->new_keys, ASC_LENGTH_MAX, 0},
                  {"rope_dim", &p->rope_dim, ASC_HEAD_DIM_MAX, 0},
                  {"rope_offset", &p->rope_offset, ASC_LENGTH_MAX, 0}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int64_t value = fields[i].otherwise;
        if (json_object_get(from, fields[i].key) && get_count(e, from, fields[i].key, 0, fields[i].most, &value) != 0)
            return -1;
        *fields[i].to = (int32_t)value;
    }
    if (json_object_get(from, "rope_base") && get_float(e, from, "rope_base", &p->rope_base) != 0)
        return -1;
    if (json_object_get(from, "dropout") && get_float(e, from, "dropout", &p->dropout) != 0)
        return -1;
    if (get_name(e, from, "mask_kind", problem_bias_names, "which dimensions a mask has", &p->mask_kind) != 0 ||
        get_name(e, from, "keep_kind", problem_bias_names, "which dimensions the kept weights have", &p->keep_kind) !=
            0 ||
        get_name(e, from, "strides", problem_lie_names, "how arrays lie", &p->lie) != 0 ||
        get_name(e, from, "scale_type", problem_scale_type_names, "a type of scales", &p->scale_type) != 0 ||
        (json_object_get(from, "q_tensor_scale") && get_float(e, from, "q_tensor_scale", &p->q_tensor_scale) != 0) ||
        (json_object_get(from, "k_tensor_scale") && get_float(e, from, "k_tensor_scale", &p->k_tensor_scale) != 0) ||
        (json_object_get(from, "v_tensor_scale") && get_float(e, from, "v_tensor_scale", &p->v_tensor_scale) != 0) ||
        get_name(e, from, "rope", problem_rope_names, "how RoPE pairs elements", &p->rope) != 0)
        return -1;
    return get_texts(e, from, trace_problem_texts, p);
}

static int read_problem(const struct entry *e, const json_t *from, struct trace *t)
{
    if (get_fields(e, from, trace_problem_fields, &t->problem) != 0 ||
        get_dtype(e, from, "dtype", &t->problem.dtype) != 0 || get_float(e, from, "scale", &t->problem.scale) != 0 ||
        get_float(e, from, "softcap", &t->problem.softcap) != 0)
        return -1;
    if (get_code_types(e, from, &t->problem) != 0 || get_newer(e, from, &t->problem) != 0)
        return -1;
    return problem_check(&t->problem, e->path, e->err);
}

/* May lack: the kernel has none. */
static int read_values(const struct entry *e, const json_t *from, struct asc_plan *plan)
{
    const json_t *values = json_object_get(from, "values");
    const size_t n = json_array_size(values);
    if (values && (!json_is_array(values) || n > ASC_OWN_CHANNELS))
        return refuse(e, "values", "an array of at most 8");
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(values, i);
        const char *name = json_string_value(json_object_get(value, "name")),
                   *columns = json_string_value(json_object_get(value, "columns"));
        struct asc_value *to = &plan->value[i];
        to->cols = -1;
        for (int k = 0; columns && own_value_cols[k]; k++)
            if (strcmp(own_value_cols[k], columns) == 0)
                to->cols = k;
        if (!name || *own_value_name_refused(name) || plan_channel_from_name(plan, name) >= 0)
            return refuse(e, "name of a value", "one that no other has");
        if (to->cols < 0)
            return refuse(e, "columns of a value", "1, bc, head_dim or head_dim_v");
        if (get_dtype(e, value, "type", &to->dtype) != 0)
            return -1;
        snprintf(to->name, sizeof to->name, "%.23s", name);
    }
    return 0;
}

static int read_plan(const struct entry *e, const json_t *from, struct trace *t)
{
    int64_t workspace = 0;
    if (json_object_get(from, "workspace_bytes") &&
        get_count(e, from, "workspace_bytes", 0, (int64_t)ASC_WORKSPACE_MAX, &workspace) != 0)
        return -1;
    t->plan.workspace_bytes = (uint64_t)workspace;
    if (json_object_get(from, trace_plan_deal->key) && get_fields(e, from, trace_plan_deal, &t->plan) != 0)
        return -1;
    return read_values(e, from, &t->plan) != 0 ? -1 : get_fields(e, from, trace_plan_fields, &t->plan);
}

/* By its name, or by the one it had in older traces. */
static const json_t *find_convention(const json_t *from, const char *name)
{
    static const struct {
        const char *now, *older;
    } renamed[] = {{"quantized", "quantised"}, {"quantized_rows", "quantised_rows"}, {"quantized_by", "quantised_by"}};
    const json_t *value = json_object_get(from, name);
    for (size_t i = 0; !value && i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(name, renamed[i].now) == 0)
            value = json_object_get(from, renamed[i].older);
    return value;
}

static int read_convention(const struct entry *e, const json_t *from, int i, struct asc_conventions *out)
{
    const char *name = conventions[i].name;
    const json_t *value = find_convention(from, name);
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
    bool probes = true;
    if (json_object_get(from, trace_run_memory->key) && get_fields(e, from, trace_run_memory, &t->info) != 0)
        return -1;
    if (get_fields(e, from, trace_run_fields, &t->info) != 0 || get_texts(e, from, trace_run_texts, &t->info) != 0 ||
        get_switch(e, from, "probes", &probes) != 0 || get_switch(e, from, "checks", &t->info.checked) != 0 ||
        get_event(e, from, "stopped", &t->info.stopped) != 0)
        return -1;
    if (!json_is_number(seconds))
        return refuse(e, "seconds", "a number");
    t->info.seconds = json_number_value(seconds);
    t->info.probes_off = !probes;
    return 0;
}

static int read_capture(const struct entry *e, const json_t *from, struct trace *t)
{
    struct trace_capture *c = &t->info.capture;
    if (get_count(e, from, "wanted", 1, INT64_MAX, &c->wanted) != 0 ||
        get_count(e, from, "judged", 0, c->wanted, &c->judged) != 0 ||
        get_count(e, from, "off", 0, c->judged, &c->off) != 0 ||
        get_count(e, from, "differing", -1, c->wanted, &c->differing) != 0 ||
        (json_object_get(from, "unusual") && get_count(e, from, "unusual", 0, c->judged, &c->unusual) != 0) ||
        (json_object_get(from, "by_gpu") && get_count(e, from, "by_gpu", 0, c->judged, &c->by_gpu) != 0))
        return -1;
    return get_texts(e, from, trace_capture_texts, c);
}

static int read_launches(const struct entry *e, const json_t *from, struct trace *t)
{
    const char *wrong = launches_read(from, &t->info.launches);
    if (wrong == launches_no_memory)
        return err_no_memory(e->err, e->path, "its launches");
    return wrong ? refuse(e, wrong, "as docs/trace-format.md says") : 0;
}

static int read_sites(const struct entry *e, const json_t *from, struct trace *t)
{
    if (!json_is_array(from))
        return refuse(e, "it", "an array");
    t->info.n_sites = json_array_size(from);
    t->info.sites = calloc(t->info.n_sites + 1, sizeof *t->info.sites);
    if (!t->info.sites)
        return err_no_memory(e->err, e->path, "its probe lines");
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const json_t *value = json_array_get(from, i);
        const char *name = json_string_value(json_object_get(value, "channel"));
        const int channel = name ? plan_channel_from_name(&t->plan, name) : -1;
        if (channel < 0)
            return refuse(e, "channel", "the name of a channel");
        t->info.sites[i].channel = (enum asc_channel)channel;
        if (get_fields(e, value, trace_site_fields, &t->info.sites[i]) != 0 ||
            get_texts(e, value, trace_site_texts, &t->info.sites[i]) != 0)
            return -1;
    }
    return 0;
}

static int get_stack(const struct entry *e, const json_t *from, const char *key, struct trace_stack *stack)
{
    const json_t *value = json_object_get(from, key);
    if (!value)
        return 0;
    if (!json_is_array(value) || json_array_size(value) < 2 || json_array_size(value) > TRACE_FRAMES)
        return refuse(e, key, "an array of 2 to 8 frames");
    for (; stack->n < (int)json_array_size(value); stack->n++) {
        const json_t *frame = json_array_get(value, (size_t)stack->n);
        if (get_fields(e, frame, trace_frame_fields, &stack->at[stack->n]) != 0 ||
            get_texts(e, frame, trace_frame_texts, &stack->at[stack->n]) != 0)
            return -1;
    }
    return 0;
}

static int get_known(const struct entry *e, const json_t *from, struct trace_event *event)
{
    for (const struct trace_field *f = trace_event_place; f->key; f++) {
        const struct trace_field one[] = {*f, {0}};
        if (json_object_get(from, f->key) && get_fields(e, from, one, event) != 0)
            return -1;
    }
    return get_stack(e, from, "stack", &event->stack) || get_stack(e, from, "other_stack", &event->other_stack) ? -1
           : get_texts(e, from, trace_event_other, event) || get_texts(e, from, trace_event_recorder, event)    ? -1
                                                                                                                : 0;
}

/* {file: text} */
static int read_sources(const struct entry *e, const json_t *from, struct trace *t)
{
    const char *file;
    json_t *value;
    if (!json_is_object(from))
        return refuse(e, "it", "an object");
    t->info.sources = calloc(json_object_size(from) + 1, sizeof *t->info.sources);
    if (!t->info.sources)
        return err_no_memory(e->err, e->path, "its sources");
    json_object_foreach((json_t *)(uintptr_t)from, file, value)
    {
        struct trace_source *source = &t->info.sources[t->info.n_sources];
        if (!json_is_string(value) || strlen(file) >= sizeof source->file)
            return refuse(e, "a file", "a text under a name that is not too long");
        memcpy(source->file, file, strlen(file) + 1);
        source->text = strdup(json_string_value(value));
        if (!source->text)
            return err_no_memory(e->err, e->path, "its sources");
        t->info.n_sources++;
    }
    return 0;
}

static int read_events(const struct entry *e, const json_t *from, struct trace *t)
{
    if (!json_is_array(from))
        return refuse(e, "it", "an array");
    t->info.n_events = json_array_size(from);
    t->info.events = calloc(t->info.n_events + 1, sizeof *t->info.events);
    if (!t->info.events)
        return err_no_memory(e->err, e->path, "its events");
    for (size_t i = 0; i < t->info.n_events; i++) {
        const json_t *value = json_array_get(from, i);
        trace_event_init(&t->info.events[i]);
        if (get_fields(e, value, trace_event_fields, &t->info.events[i]) != 0 ||
            get_texts(e, value, trace_event_texts, &t->info.events[i]) != 0 ||
            get_event(e, value, "kind", &t->info.events[i].kind) != 0 || get_known(e, value, &t->info.events[i]) != 0)
            return -1;
    }
    return 0;
}

/* Hashes are made anew of what is there. */
static int read_inputs(const struct entry *e, const json_t *from, struct trace *t)
{
    static const struct trace_text fields[] = {
        {"from", offsetof(struct trace_info, inputs), sizeof t->info.inputs, true}, {0}};
    return get_texts(e, from, fields, &t->info);
}

static int read_types(const struct entry *e, const json_t *from, const struct asc_plan *plan,
                      struct layout_types *types)
{
    const char *name;
    json_t *value, *channels = json_object_get(from, "channels");
    if (get_dtype(e, from, "o", &types->o) != 0)
        return -1;
    if (!json_is_object(channels))
        return refuse(e, "channels", "an object");
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        types->channel[ch] = -1;
    json_object_foreach(channels, name, value)
    {
        const int ch = plan_channel_from_name(plan, name);
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
    const int result = read ? read(e, json, t) : read_types(e, json, &t->plan, types);
    json_decref(json);
    return result;
}

/* A plain text of the metadata; absent stays NULL. */
static int read_text(const struct safetensors *file, const struct entry *e, char **out)
{
    const char *text = safetensors_metadata(file, e->key);
    *out = text ? strdup(text) : NULL;
    return text && !*out ? err_no_memory(e->err, e->path, "metadata %s", e->key) : 0;
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
        return err_set(err, ERR_INPUT, path, "is a safetensors file, but not an attnscope trace");
    if (strcmp(format, TRACE_FORMAT) != 0)
        return err_set(err, ERR_ABI, path, "is a trace of format %s; this program reads format %s",
                       text_name(format, strlen(format), version, sizeof version), TRACE_FORMAT);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (read_entry(file, &(struct entry){path, entries[i].key, err}, t, types, entries[i].read) != 0)
            return -1;
    if (safetensors_metadata(file, "attnscope.capture") &&
        read_entry(file, &(struct entry){path, "attnscope.capture", err}, t, types, read_capture) != 0)
        return -1;
    if (safetensors_metadata(file, "attnscope.inputs") &&
        read_entry(file, &(struct entry){path, "attnscope.inputs", err}, t, types, read_inputs) != 0)
        return -1;
    if (safetensors_metadata(file, "attnscope.launches") &&
        read_entry(file, &(struct entry){path, "attnscope.launches", err}, t, types, read_launches) != 0)
        return -1;
    if (read_text(file, &(struct entry){path, "attnscope.source", err}, &t->info.source) != 0)
        return -1;
    if (safetensors_metadata(file, "attnscope.sources") &&
        read_entry(file, &(struct entry){path, "attnscope.sources", err}, t, types, read_sources) != 0)
        return -1;
    if (read_text(file, &(struct entry){path, "attnscope.settings", err}, &t->info.settings) != 0)
        return -1;
    return read_text(file, &(struct entry){path, "attnscope.scenario", err}, &t->info.scenario);
}
