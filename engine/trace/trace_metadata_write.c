#include "engine/trace/trace_file.h"

#include "engine/base/json_memory.h"
#include "engine/trace/own_values.h"
#include "engine/trace/trace_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void put_fields(json_t *to, const struct trace_field *fields, const void *from)
{
    for (const struct trace_field *f = fields; f->key; f++) {
        int32_t number;
        memcpy(&number, (const char *)from + f->offset, sizeof number);
        json_object_set_new(to, f->key, f->names ? json_string(f->names[number]) : json_integer(number));
    }
}

static void put_texts(json_t *to, const struct trace_text *fields, const void *from)
{
    for (const struct trace_text *f = fields; f->key; f++)
        json_object_set_new(to, f->key, text_value((const char *)from + f->offset));
}

static json_t *problem_value(const struct asc_problem *p)
{
    json_t *value = json_object();
    put_fields(value, trace_problem_fields, p);
    json_object_set_new(value, "dtype", json_string(dtype_name((enum dtype)p->dtype)));
    /* Where all is as it was before there were codes, traces are as they were. */
    if (p->k_dtype != p->dtype || p->v_dtype != p->dtype || problem_has_codes(p)) {
        json_object_set_new(value, "k_dtype", json_string(dtype_name((enum dtype)p->k_dtype)));
        json_object_set_new(value, "v_dtype", json_string(dtype_name((enum dtype)p->v_dtype)));
        json_object_set_new(value, "scale_rows", json_integer(p->scale_rows));
    }
    if (p->scale_dims)
        json_object_set_new(value, "scale_dims", json_integer(p->scale_dims));
    if (p->scale_type)
        json_object_set_new(value, "scale_type", json_string(problem_scale_type_names[p->scale_type]));
    if (p->scale_type == ASC_SCALE_E4M3) {
        json_object_set_new(value, "q_tensor_scale", json_real((double)p->q_tensor_scale));
        json_object_set_new(value, "k_tensor_scale", json_real((double)p->k_tensor_scale));
        json_object_set_new(value, "v_tensor_scale", json_real((double)p->v_tensor_scale));
    }
    if (p->head_dim_v != p->head_dim)
        json_object_set_new(value, "head_dim_v", json_integer(p->head_dim_v));
    if (p->v_in_k)
        json_object_set_new(value, "v_in_k", json_integer(1));
    if (p->lie != ASC_CONTIGUOUS)
        json_object_set_new(value, "strides", json_string(problem_lie_names[p->lie]));
    if (p->left_pad)
        json_object_set_new(value, "left_pad", json_integer(1));
    if (p->new_keys)
        json_object_set_new(value, "new_keys", json_integer(p->new_keys));
    if (p->rope) {
        json_object_set_new(value, "rope", json_string(problem_rope_names[p->rope]));
        json_object_set_new(value, "rope_dim", json_integer(p->rope_dim));
        json_object_set_new(value, "rope_offset", json_integer(p->rope_offset));
        json_object_set_new(value, "rope_base", json_real((double)p->rope_base));
    }
    if (p->dropout > 0) {
        json_object_set_new(value, "dropout", json_real((double)p->dropout));
        json_object_set_new(value, "keep_kind", json_string(problem_bias_names[p->keep_kind]));
    }
    if (p->mask_kind)
        json_object_set_new(value, "mask_kind", json_string(problem_bias_names[p->mask_kind]));
    if (p->mask_formula[0])
        json_object_set_new(value, "mask_formula", text_value(p->mask_formula));
    if (p->score_mod[0])
        json_object_set_new(value, "score_mod", text_value(p->score_mod));
    if (p->has_q_lens)
        json_object_set_new(value, "has_q_lens", json_integer(1));
    if (p->has_kv_lens)
        json_object_set_new(value, "has_kv_lens", json_integer(1));
    if (p->page_size) {
        json_object_set_new(value, "page_size", json_integer(p->page_size));
        json_object_set_new(value, "pages", json_integer(p->pages));
    }
    json_object_set_new(value, "scale", json_real((double)p->scale));
    json_object_set_new(value, "softcap", json_real((double)p->softcap));
    return value;
}

static json_t *plan_value(const struct asc_plan *plan)
{
    json_t *value = json_object();
    put_fields(value, trace_plan_fields, plan);
    if (plan->kv_deal != ASC_DEAL_RANGES)
        put_fields(value, trace_plan_deal, plan);
    if (plan->workspace_bytes)
        json_object_set_new(value, "workspace_bytes", json_integer((json_int_t)plan->workspace_bytes));
    json_t *values = json_array();
    for (int i = 0; i < plan_values(plan); i++)
        json_array_append_new(values, json_pack("{s:s, s:s, s:s}", "name", plan->value[i].name, "columns",
                                                own_value_cols[plan->value[i].cols], "type",
                                                dtype_name((enum dtype)plan->value[i].dtype)));
    if (json_array_size(values))
        json_object_set(value, "values", values);
    json_decref(values);
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

static json_t *types_value(const struct asc_plan *plan, const struct layout *l)
{
    json_t *value = json_object(), *channels = json_object();
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        if (l->channel[ch].dtype >= 0)
            json_object_set_new(channels, plan_channel_name(plan, ch),
                                json_string(dtype_name((enum dtype)l->channel[ch].dtype)));
    json_object_set_new(value, "o", json_string(dtype_name((enum dtype)l->o.dtype)));
    json_object_set_new(value, "channels", channels);
    return value;
}

static json_t *fields_value(const struct trace_field *fields, const void *from)
{
    json_t *value = json_object();
    put_fields(value, fields, from);
    return value;
}

static json_t *run_value(const struct trace_info *info)
{
    json_t *value = fields_value(trace_run_fields, info);
    if (info->memory != MEMORY_AUTO)
        put_fields(value, trace_run_memory, info);
    put_texts(value, trace_run_texts, info);
    json_object_set_new(value, "stopped", json_string(event_name(info->stopped)));
    json_object_set_new(value, "probes", json_string(info->probes_off ? "off" : "on"));
    if (info->checked)
        json_object_set_new(value, "checks", json_string("on"));
    json_object_set_new(value, "seconds", json_real(isfinite(info->seconds) ? info->seconds : 0.0));
    return value;
}

static json_t *sites_value(const struct asc_plan *plan, const struct trace_info *info)
{
    json_t *value = json_array();
    for (size_t i = 0; i < info->n_sites; i++) {
        json_t *site = fields_value(trace_site_fields, &info->sites[i]);
        put_texts(site, trace_site_texts, &info->sites[i]);
        json_object_set_new(site, "channel", json_string(plan_channel_name(plan, info->sites[i].channel)));
        json_array_append_new(value, site);
    }
    return value;
}

static void put_stack(json_t *to, const char *key, const struct trace_stack *stack)
{
    json_t *value = stack->n ? json_array() : NULL;
    for (int i = 0; i < stack->n; i++) {
        json_t *frame = fields_value(trace_frame_fields, &stack->at[i]);
        put_texts(frame, trace_frame_texts, &stack->at[i]);
        json_array_append_new(value, frame);
    }
    if (value)
        json_object_set_new(to, key, value);
}

static json_t *sources_value(const struct trace_info *info)
{
    json_t *value = json_object();
    for (size_t i = 0; i < info->n_sources; i++)
        json_object_set_new(value, info->sources[i].file, text_value(info->sources[i].text));
    return value;
}

static void put_known(json_t *to, const struct trace_event *event)
{
    struct trace_event unknown;
    trace_event_init(&unknown);
    for (const struct trace_field *f = trace_event_place; f->key; f++) {
        int32_t number;
        memcpy(&number, (const char *)event + f->offset, sizeof number);
        if (memcmp(&number, (const char *)&unknown + f->offset, sizeof number) != 0)
            json_object_set_new(to, f->key, json_integer(number));
    }
    if (event->other_file[0])
        put_texts(to, trace_event_other, event);
    if (event->recorder_file[0])
        put_texts(to, trace_event_recorder, event);
    put_stack(to, "stack", &event->stack);
    put_stack(to, "other_stack", &event->other_stack);
}

static json_t *events_value(const struct trace_info *info)
{
    json_t *value = json_array();
    for (size_t i = 0; i < info->n_events; i++) {
        json_t *event = fields_value(trace_event_fields, &info->events[i]);
        json_object_set_new(event, "kind", json_string(event_name(info->events[i].kind)));
        put_texts(event, trace_event_texts, &info->events[i]);
        put_known(event, &info->events[i]);
        json_array_append_new(value, event);
    }
    return value;
}

static json_t *capture_value(const struct trace_capture *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "wanted", (json_int_t)c->wanted, "judged",
                     (json_int_t)c->judged, "off", (json_int_t)c->off, "differing", (json_int_t)c->differing, "unusual",
                     (json_int_t)c->unusual, "off_places", text_value(c->off_places), "unusual_places",
                     text_value(c->unusual_places), "by_gpu", (json_int_t)c->by_gpu, "judge", text_value(c->judge));
}

static json_t *inputs_value(const struct trace *t)
{
    char hash[TRACE_HASH_BYTES];
    json_t *value = json_object(), *hashes = json_object();
    for (int i = 0; trace_input_name(i); i++) {
        trace_input_hash(t, i, hash);
        if (hash[0])
            json_object_set_new(hashes, trace_input_name(i), json_string(hash));
    }
    if (t->info.inputs[0])
        json_object_set_new(value, "from", text_value(t->info.inputs));
    json_object_set_new(value, "hash", hashes);
    return value;
}

/* One more metadata entry; json is taken over. */
static int put_json(struct safetensors_text *out, int n, const char *key, json_t *json)
{
    out[n] = (struct safetensors_text){key, json ? json_memory_dumps(json, JSON_COMPACT) : NULL};
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
    n = put_json(out, n, "attnscope.types", types_value(&t->plan, &t->layout));
    n = put_json(out, n, "attnscope.run", run_value(&t->info));
    n = put_json(out, n, "attnscope.sites", sites_value(&t->plan, &t->info));
    n = put_json(out, n, "attnscope.events", events_value(&t->info));
    n = put_json(out, n, "attnscope.inputs", inputs_value(t));
    if (t->info.capture.wanted)
        n = put_json(out, n, "attnscope.capture", capture_value(&t->info.capture));
    if (t->info.launches.n || t->info.launches.budget.stated)
        n = put_json(out, n, "attnscope.launches", launches_json(&t->info.launches));
    n = put_text(out, n, "attnscope.source", t->info.source);
    if (t->info.n_sources)
        n = put_json(out, n, "attnscope.sources", sources_value(&t->info));
    n = put_text(out, n, "attnscope.scenario", t->info.scenario);
    n = put_text(out, n, "attnscope.settings", t->info.settings);
    for (int i = 0; i < n; i++)
        if (!out[i].value) {
            trace_metadata_free(out, n);
            return err_no_memory(err, out[i].key, "the metadata");
        }
    return n;
}

void trace_metadata_free(struct safetensors_text *texts, int n)
{
    for (int i = 0; i < n; i++)
        free((void *)(uintptr_t)texts[i].value);
}
