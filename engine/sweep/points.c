/* The axes of a sweep, their values, and which points of the grid are drawn. */
#include "engine/base/path.h"
#include "engine/base/philox.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"
#include "engine/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 4096, GRID_LISTED = 1 << 20, DRAWS_FOR_EACH = 64, NAME_BYTES = 64 };

static const struct {
    const char *key, *values, *group;
} usual[] = {
#define SWEEP_AXIS(key, values, group) {key, values, group},
#include "engine/sweep/axes.def"
#undef SWEEP_AXIS
};
enum { USUAL = sizeof usual / sizeof *usual };

const char *sweep_axis_name(const struct sweep_axis *axis)
{
    static const char *const plain[] = {"shape.", "define."};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strncmp(axis->key, plain[i], strlen(plain[i])) == 0)
            return axis->key + strlen(plain[i]);
    return axis->key;
}

int sweep_set(struct scenario *scenario, const char *word, struct err *err)
{
    char key[NAME_BYTES];
    const size_t n = strcspn(word, "=");
    if (strncmp(word, "define.", 7) == 0)
        return scenario_define(scenario, word + 7, err);
    if (word[n] != '=' || n >= sizeof key)
        return err_set(err, ERR_INPUT, "", "expected KEY=VALUE, found '%.200s'", word);
    snprintf(key, sizeof key, "%.*s", (int)n, word);
    return scenario_set(scenario, key, word + n + 1, err);
}

static int set_value(struct scenario *scenario, const struct sweep_axis *axis, int value, struct err *err)
{
    char word[1024];
    snprintf(word, sizeof word, "%s=%s", axis->key, axis->value[value]);
    return sweep_set(scenario, word, err);
}

int sweep_apply(const struct sweep *s, const struct sweep_point *p, const struct scenario *base, struct scenario *out,
                struct err *err)
{
    if (scenario_copy(base, out) != 0)
        return err_no_memory(err, "", "the scenario");
    int failed = 0;
    for (int i = 0; i < s->n_axes && !failed; i++)
        failed = set_value(out, &s->axis[i], p->at[i], err);
    if (!failed)
        failed = scenario_check(out, err);
    if (failed)
        scenario_free(out);
    return failed;
}

/* ---- values ---- */

/* "kv_len" is shape.kv_len: the first section that has it, the shape's before others. */
static int name_key(const char *name, char key[NAME_BYTES])
{
    static const enum section order[] = {SECTION_SHAPE, SECTION_FILL, SECTION_QUANT, SECTION_SCENARIO};
    snprintf(key, NAME_BYTES, "%s", name);
    if (strchr(name, '.'))
        return 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (scenario_key_find(section_names[order[i]], name) >= 0) {
            snprintf(key, NAME_BYTES, "%s.%s", section_names[order[i]], name);
            return 0;
        }
    return -1;
}

static int add_value(struct sweep_axis *axis, const char *value, struct err *err)
{
    for (int i = 0; i < axis->n; i++)
        if (strcmp(axis->value[i], value) == 0)
            return 0;
    if (axis->n == VALUES_MOST)
        return err_set(err, ERR_USAGE, "--over", "%s has more than %d values", axis->key, VALUES_MOST);
    char **more = realloc(axis->value, (size_t)(axis->n + 1) * sizeof *more);
    if (more)
        axis->value = more;
    char *own = more ? strdup(value) : NULL;
    if (!own)
        return err_no_memory(err, "--over", "the values");
    axis->value[axis->n++] = own;
    return 0;
}

/* "1..128", "64..512:64". 1: it is none. */
static int add_range(struct sweep_axis *axis, const char *text, struct err *err)
{
    int from, to, step = 1, end = 0, more = 0;
    char value[16];
    if (sscanf(text, "%9d..%9d%n:%9d%n", &from, &to, &end, &step, &more) < 2 || text[more ? more : end])
        return 1;
    if (step < 1 || to < from)
        return err_set(err, ERR_USAGE, "--over", "%s: expected FROM..TO or FROM..TO:STEP, found '%.100s'", axis->key,
                       text);
    for (int64_t x = from; x <= to; x += step) {
        snprintf(value, sizeof value, "%d", (int)x);
        if (add_value(axis, value, err) != 0)
            return -1;
    }
    return 0;
}

/* Apart by blanks where there are any, else by commas: a window has one of its own. */
static int add_words(struct sweep_axis *axis, const char *text, struct err *err)
{
    const char *apart = strchr(text, ' ') ? " " : ",";
    char word[512];
    while (*text) {
        const size_t n = strcspn(text, apart);
        if (n >= sizeof word)
            return err_set(err, ERR_USAGE, "--over", "a value of %s is too long", axis->key);
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        text += n + (text[n] != '\0');
        const int range = n ? add_range(axis, word, err) : 0;
        if (range < 0 || (range > 0 && add_value(axis, word, err) != 0))
            return -1;
    }
    return axis->n ? 0 : err_set(err, ERR_USAGE, "--over", "expected values of %s", axis->key);
}

/* Lengths around a tile of t: whole ones, a row more or less, parts, several with a tail of every kind. */
static int add_lengths(struct sweep_axis *axis, int t, struct err *err)
{
    const int lengths[] = {1,         t / 4,         t / 2, t - 1,         t,     t + 1,    t + t / 2, 2 * t - 1, 2 * t,
                           2 * t + 3, 2 * t + t / 4, 3 * t, 3 * t + t / 2, 4 * t, 5 * t + 7};
    char value[16];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        snprintf(value, sizeof value, "%d", lengths[i] > 0 ? lengths[i] : 1);
        if (add_value(axis, value, err) != 0)
            return -1;
    }
    return 0;
}

static void drop_value(struct sweep_axis *axis, int i)
{
    free(axis->value[i]);
    axis->n--;
    memmove(&axis->value[i], &axis->value[i + 1], (size_t)(axis->n - i) * sizeof *axis->value);
}

/* Those of the usual ones that the kernel declines, the rest being the base, say nothing about it. */
static int drop_declined(struct sweep_axis *axis, const struct sweep_kernel *kernel, struct err *err)
{
    for (int i = axis->n; i-- > 0;) {
        struct scenario now;
        struct err refused;
        if (scenario_copy(kernel->base, &now) != 0)
            return err_no_memory(err, "", "the scenario");
        const bool taken = set_value(&now, axis, i, &refused) == 0 && scenario_check(&now, &refused) == 0 &&
                           kernel->takes(kernel->ctx, &now);
        scenario_free(&now);
        if (!taken)
            drop_value(axis, i);
    }
    return 0;
}

static bool all_numbers(const struct sweep_axis *axis)
{
    double x;
    for (int i = 0; i < axis->n; i++)
        if (value_real(axis->value[i], &x) != 0)
            return false;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const double x = strtod(*(char *const *)a, NULL), y = strtod(*(char *const *)b, NULL);
    return (x > y) - (x < y);
}

/* Every value is one that the key takes. */
static int check_values(const struct sweep_axis *axis, const struct scenario *base, struct err *err)
{
    for (int i = 0; i < axis->n; i++) {
        struct scenario now;
        struct err refused;
        if (scenario_copy(base, &now) != 0)
            return err_no_memory(err, "", "the scenario");
        const int failed = set_value(&now, axis, i, &refused);
        scenario_free(&now);
        if (failed)
            return err_set(err, ERR_USAGE, "--over", "%s: %s", axis->key, refused.message);
    }
    return 0;
}

static void free_axis(struct sweep_axis *axis)
{
    for (int i = 0; i < axis->n; i++)
        free(axis->value[i]);
    free(axis->value);
    free(axis->key);
    *axis = (struct sweep_axis){0};
}

/* A later axis of the same key takes the place of an earlier one. values NULL: usual ones. */
static int add_axis(struct sweep *s, const char *key, const char *values, bool stated,
                    const struct sweep_kernel *kernel, struct err *err)
{
    struct sweep_axis axis = {.key = strdup(key)};
    int failed = axis.key ? 0 : err_no_memory(err, "--over", "an axis");
    if (!failed && strcmp(values, "tiles") == 0 && !stated)
        failed = add_lengths(&axis, strcmp(key, "shape.q_len") == 0 ? s->br : s->bc, err);
    else if (!failed)
        failed = add_words(&axis, values, err);
    if (!failed && stated)
        failed = check_values(&axis, kernel->base, err);
    if (!failed && !stated)
        failed = drop_declined(&axis, kernel, err);
    int at = 0;
    while (!failed && at < s->n_axes && strcmp(s->axis[at].key, key) != 0)
        at++;
    if (!failed && at == SWEEP_AXES)
        failed = err_set(err, ERR_USAGE, "--over", "at most %d axes", SWEEP_AXES);
    if (failed || (!stated && axis.n < 2)) { /* one value is no axis */
        free_axis(&axis);
        return failed;
    }
    if (all_numbers(&axis))
        qsort(axis.value, (size_t)axis.n, sizeof *axis.value, by_number);
    if (at < s->n_axes)
        free_axis(&s->axis[at]);
    else
        s->n_axes++;
    s->axis[at] = axis;
    return 0;
}

static int unknown_axis(const char *name, struct err *err)
{
    char names[512] = "";
    for (int i = 0; i < USUAL; i++) {
        const size_t used = strlen(names);
        if (i == 0 || strcmp(usual[i].group, usual[i - 1].group) != 0)
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", usual[i].group);
    }
    return err_set(err, ERR_USAGE, "--over",
                   "'%.60s' has no values of its own: expected AXIS=VALUE,VALUE, such as kv_len=63,64,65 or "
                   "define.WS=1,2, or one of %s",
                   name, names);
}

/* One name of a list: a group, or an axis with usual values. */
static int add_usual(struct sweep *s, const char *name, const struct sweep_kernel *kernel, struct err *err)
{
    bool known = false;
    for (int i = 0; i < USUAL; i++) {
        const char *own = strchr(usual[i].key, '.') + 1;
        if (strcmp(name, usual[i].group) != 0 && strcmp(name, own) != 0 && strcmp(name, usual[i].key) != 0)
            continue;
        known = true;
        if (add_axis(s, usual[i].key, usual[i].values, false, kernel, err) != 0)
            return -1;
    }
    return known ? 0 : unknown_axis(name, err);
}

int sweep_add(struct sweep *s, const char *over, const struct sweep_kernel *kernel, struct err *err)
{
    const char *equals = strchr(over, '=');
    char name[NAME_BYTES], key[NAME_BYTES];
    if (equals) {
        snprintf(name, sizeof name, "%.*s", (int)(equals - over), over);
        if ((size_t)(equals - over) >= sizeof name || name_key(name, key) != 0)
            return unknown_axis(name, err);
        return add_axis(s, key, equals + 1, true, kernel, err);
    }
    while (*over) {
        const size_t n = strcspn(over, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, over);
        over += n + (over[n] == ',');
        if (add_usual(s, name, kernel, err) != 0)
            return -1;
    }
    return 0;
}

/* ---- points ---- */

/* A number that only the sample and the place in the grid decide. */
static uint64_t draw(const struct sweep *s, uint64_t counter, uint32_t of)
{
    const uint32_t at[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), of, 0},
                   key[2] = {(uint32_t)s->sample, (uint32_t)(s->sample >> 32)};
    uint32_t bits[4];
    philox4x32(at, key, bits);
    return (uint64_t)bits[1] << 32 | bits[0];
}

struct placed {
    uint64_t order, place;
};

static int by_order(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The values of a place of the grid, which counts through the last axis first. */
static struct sweep_point point_at(const struct sweep *s, uint64_t place)
{
    struct sweep_point p = {.result = SWEEP_NOT_TRIED};
    for (int i = s->n_axes; i-- > 0;) {
        p.at[i] = (short)(place % (uint64_t)s->axis[i].n);
        place /= (uint64_t)s->axis[i].n;
    }
    return p;
}

static bool is_drawn(const struct sweep *s, const struct sweep_point *p)
{
    for (size_t i = 0; i < s->n; i++)
        if (memcmp(s->point[i].at, p->at, sizeof p->at) == 0)
            return true;
    return false;
}

/* Takes the point unless it cannot be. */
static int take(struct sweep *s, struct sweep_point p, const struct scenario *base, struct err *err)
{
    struct scenario now;
    struct err refused = {0};
    if (sweep_apply(s, &p, base, &now, &refused) != 0) {
        if (refused.code == ERR_INPUT || refused.code == ERR_USAGE)
            return 0;
        *err = refused;
        return -1;
    }
    scenario_free(&now);
    p.number = s->n;
    s->point[s->n++] = p;
    return 0;
}

static int draw_listed(struct sweep *s, const struct scenario *base, size_t most, struct err *err)
{
    const size_t all = (size_t)s->grid;
    struct placed *placed = malloc(all * sizeof *placed);
    int failed = placed ? 0 : err_no_memory(err, "", "the grid");
    for (size_t i = 0; i < all && !failed; i++)
        placed[i] = (struct placed){draw(s, i, 0), i};
    if (!failed)
        qsort(placed, all, sizeof *placed, by_order);
    for (size_t i = 0; i < all && s->n < most && !failed; i++)
        failed = take(s, point_at(s, placed[i].place), base, err);
    free(placed);
    return failed;
}

static int draw_at_random(struct sweep *s, const struct scenario *base, size_t most, struct err *err)
{
    int failed = 0;
    for (uint64_t i = 0; i < most * DRAWS_FOR_EACH && s->n < most && !failed; i++) {
        struct sweep_point p = {.result = SWEEP_NOT_TRIED};
        for (int axis = 0; axis < s->n_axes; axis++)
            p.at[axis] = (short)(draw(s, i, 1 + (uint32_t)axis) % (uint64_t)s->axis[axis].n);
        if (!is_drawn(s, &p))
            failed = take(s, p, base, err);
    }
    return failed;
}

int sweep_draw(struct sweep *s, const struct scenario *base, size_t most, struct err *err)
{
    if (s->n_axes == 0)
        return err_set(err, ERR_USAGE, "--over", "leaves nothing to vary: the kernel takes one value of each axis");
    s->grid = 1;
    for (int i = 0; i < s->n_axes; i++)
        s->grid *= s->axis[i].n;
    s->point = calloc(most, sizeof *s->point);
    if (!s->point)
        return err_no_memory(err, "", "the points");
    const bool listed = s->grid <= GRID_LISTED;
    if ((listed ? draw_listed : draw_at_random)(s, base, most, err) != 0)
        return -1;
    s->whole = s->n;
    return s->n ? 0
                : err_set(err, ERR_USAGE, "--over", "no point of the grid is a problem: scenario keys exclude them");
}

static void free_point(struct sweep_point *p)
{
    free(p->what);
    free(p->why);
    free(p->command);
}

void sweep_take_shard(struct sweep *s, int shard, int of)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->point[i].number % (size_t)of == (size_t)(shard - 1))
            s->point[n++] = s->point[i];
        else
            free_point(&s->point[i]);
    s->n = n;
    s->shard = shard;
    s->shards = of;
}

int sweep_take_base(struct sweep *s, const struct scenario *scenario, struct err *err)
{
    s->base = calloc(KEY_COUNT, sizeof *s->base);
    if (!s->base)
        return err_no_memory(err, "", "the base");
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        const char *said = scenario_said(scenario, (enum scenario_key_id)i);
        if (!said || !scenario_stated(scenario, (enum scenario_key_id)i) || i == KEY_KERNEL || i == KEY_BATCHES ||
            i == KEY_CAPTURED_HEADS || i == KEY_Q_TILES || key->section == SECTION_EXPECT)
            continue;
        if (asprintf(&s->base[s->n_base], "%s.%s=%s", section_names[key->section], key->name, said) < 0)
            return err_no_memory(err, "", "the base");
        s->n_base++;
    }
    return 0;
}

/* Axes that choose a build: macros, what the scenario says of it, types and width. */
int sweep_build_order(const struct sweep *s, const struct sweep_point *a, const struct sweep_point *b)
{
    static const char *const ends[] = {"dtype", ".head_dim"};
    for (int i = 0; i < s->n_axes; i++) {
        const char *key = s->axis[i].key;
        bool of_build = strncmp(key, "define.", 7) == 0 || strncmp(key, "scenario.", 9) == 0;
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
            of_build = of_build || path_ends_in(key, ends[e]);
        if (of_build && a->at[i] != b->at[i])
            return a->at[i] - b->at[i];
    }
    return 0;
}

void sweep_init(struct sweep *s)
{
    *s = (struct sweep){.shown = {-1, -1}};
}

void sweep_free(struct sweep *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_base; i++)
        free(s->base[i]);
    free(s->base);
    for (int i = 0; i < s->n_axes; i++)
        free_axis(&s->axis[i]);
    for (size_t i = 0; i < s->n; i++)
        free_point(&s->point[i]);
    free(s->point);
    free(s->command);
    free(s->error);
    sweep_init(s);
}
