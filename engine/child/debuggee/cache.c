#include "engine/child/debuggee/cache.h"

#include "engine/child/debuggee/say.h"
#include "engine/trace/event.h"
#include "engine/trace/rope.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_LOOKED_AT = 64, NOWHERE = -1 };

static enum problem_tensor_id tensor_of(int array)
{
    return array == ARRAY_V || array == ARRAY_V_NEW ? TENSOR_V : TENSOR_K;
}

static const void *data_of(const struct asc_problem *p, int array)
{
    return tensor_of(array) == TENSOR_V ? p->v : p->k;
}

static bool turns(const struct asc_problem *p, int array)
{
    return p->rope && tensor_of(array) == TENSOR_K;
}

int cache_fill(const struct placed *t, int array, void *cache)
{
    const struct asc_problem *p = t->p;
    const size_t item = dtype_bytes(t->of.dtype);
    const unsigned char *from = data_of(p, array);
    float *turned = turns(p, array) ? rope_tensor(p, 0, (int)t->of.dtype, from) : NULL;
    if (turns(p, array) && !turned)
        return -1;
    for (int b = 0; b < p->batch; b++)
        for (int row = 0; row < asc_cache_len(p, b); row++)
            for (int h = 0; h < t->of.heads; h++) {
                const size_t in = (size_t)problem_tensor_at(&t->of, b, h, row);
                const size_t to = (size_t)placed_at(t, 0, b, h, row);
                for (int d = 0; d < t->of.cols; d++)
                    if (turned)
                        dtype_store(t->of.dtype, cache, to + (size_t)(d * t->to.col), (double)turned[in + (size_t)d]);
                    else
                        memcpy((unsigned char *)cache + (to + (size_t)(d * t->to.col)) * item,
                               from + (in + (size_t)d) * item, item);
            }
    free(turned);
    return 0;
}

void cache_new_rows(const struct asc_problem *p, int array, void *rows)
{
    const struct problem_tensor of = problem_tensor(p, tensor_of(array));
    const struct asc_strides to = asc_strides_of_new(p, array == ARRAY_V_NEW);
    const size_t item = dtype_bytes(of.dtype);
    for (int b = 0; b < p->batch; b++)
        for (int i = 0; i < p->new_keys; i++)
            for (int h = 0; h < of.heads; h++)
                memcpy((unsigned char *)rows + (size_t)(to.batch * b + to.head * h + to.row * i) * item,
                       (const unsigned char *)data_of(p, array) +
                           (size_t)problem_tensor_at(&of, b, h, asc_cache_len(p, b) + i) * item,
                       (size_t)of.cols * item);
}

/* Rows of the memory: of all pages, or of all sequences with what lies behind them. */
struct cache {
    const struct asc_problem *p;
    struct placed t;
    int array;
    double rope_error;
    enum dtype type;
    int64_t blocks, rows;      /* pages and rows of one; sequences and kv_len */
    int64_t *owner;            /* owned, [blocks * rows]: batch * kv_len + key; NOWHERE: nobody's */
    const unsigned char *left; /* what is there */
    unsigned char *image;      /* owned: what was; what has been looked at is as `left` has it */
    double *row;               /* owned: one */
    size_t item;
};

/* A row of a head of the memory. */
struct spot {
    int64_t block, row;
    int head;
};

static int64_t element(const struct cache *c, const struct spot *at)
{
    return c->t.first + c->t.to.batch * at->block + c->t.to.head * at->head + c->t.to.row * at->row;
}

static int64_t place(const struct cache *c, const struct spot *at)
{
    return at->block * c->rows + at->row;
}

/* Where a key of a sequence belongs. */
static struct spot spot_of(const struct cache *c, int batch, int head, int key)
{
    const struct asc_problem *p = c->p;
    if (c->t.paged)
        return (struct spot){p->page_table[(int64_t)batch * asc_table_pages(p) + key / p->page_size],
                             key % p->page_size, head};
    return (struct spot){batch, key + (p->left_pad ? p->kv_len - asc_kv_len(p, batch) : 0), head};
}

static int make(struct cache *c, const struct asc_problem *p, int array, double rope_error, const void *left)
{
    *c = (struct cache){
        .p = p, .t = placed_of(p, tensor_of(array)), .array = array, .rope_error = rope_error, .left = left};
    c->type = c->t.of.dtype;
    c->item = dtype_bytes(c->type);
    c->blocks = c->t.paged ? p->pages : p->batch;
    c->rows = c->t.paged ? p->page_size : p->kv_len;
    c->owner = malloc((size_t)(c->blocks * c->rows) * sizeof *c->owner);
    c->image = malloc((size_t)c->t.elements * c->item);
    c->row = malloc((size_t)c->t.of.cols * sizeof *c->row);
    if (!c->owner || !c->image || !c->row)
        return -1;
    memset(c->owner, 0xFF, (size_t)(c->blocks * c->rows) * sizeof *c->owner);
    for (int b = 0; b < p->batch; b++)
        for (int key = 0; key < asc_kv_len(p, b); key++) {
            const struct spot at = spot_of(c, b, 0, key);
            c->owner[place(c, &at)] = (int64_t)b * p->kv_len + key;
        }
    array_list_nan(c->image, (size_t)c->t.elements * c->item, c->item);
    return cache_fill(&c->t, array, c->image);
}

static void end(const struct cache *c)
{
    free(c->owner);
    free(c->image);
    free(c->row);
}

/* What the trace has of a key. */
static const unsigned char *given(const struct cache *c, int batch, int head, int key)
{
    return (const unsigned char *)data_of(c->p, c->array) +
           (size_t)problem_tensor_at(&c->t.of, batch, head, key) * c->item;
}

/* Whether the row that lies there is that one, turned by a position; negative: not turned. */
static bool holds(const struct cache *c, const struct spot *at, const unsigned char *row, int position)
{
    const struct rope rope = {c->p->rope, c->p->rope_dim, (double)c->p->rope_base};
    const int64_t first = element(c, at), col = c->t.to.col;
    if (position < 0) {
        for (int d = 0; d < c->t.of.cols; d++)
            if (memcmp(c->left + (size_t)(first + d * col) * c->item, row + (size_t)d * c->item, c->item) != 0)
                return false;
        return true;
    }
    for (int d = 0; d < c->t.of.cols; d++)
        c->row[d] = dtype_load(c->type, row, (size_t)d);
    rope_row(&rope, position, c->row);
    for (int d = 0; d < c->t.of.cols; d++) {
        double loose = 0, low = c->row[d], high = c->row[d];
        if (d < rope.dim) {
            int32_t pair[2];
            asc_rope_pair(rope.kind, rope.dim, rope.kind == ASC_ROPE_HALF ? d % (rope.dim / 2) : d / 2, pair);
            loose = rope_loose(hypot(c->row[pair[0]], c->row[pair[1]]), c->rope_error);
        }
        dtype_store(c->type, &low, 0, low - loose);
        dtype_store(c->type, &high, 0, high + loose);
        const double got = dtype_load(c->type, c->left, (size_t)(first + d * col));
        if (!(got >= dtype_load(c->type, &low, 0) && got <= dtype_load(c->type, &high, 0)))
            return false;
    }
    return true;
}

static int own_position(const struct cache *c, int key)
{
    return turns(c->p, c->array) ? c->p->rope_offset + key : -1;
}

/* Elements of a row that are not as the image has them; it has them afterwards. */
static int take(struct cache *c, const struct spot *at)
{
    int changed = 0;
    for (int d = 0; d < c->t.of.cols; d++) {
        const size_t i = (size_t)(element(c, at) + d * c->t.to.col) * c->item;
        changed += memcmp(c->image + i, c->left + i, c->item) != 0;
        memcpy(c->image + i, c->left + i, c->item);
    }
    return changed;
}

/* A new row that is not where it belongs. */
struct lost {
    int batch, head, key;
    bool written;      /* something else is there */
    struct spot found; /* block NOWHERE: nowhere */
    int position;      /* what it was turned by where it stands; INT32_MAX: it is another row */
};

static struct spot find(const struct cache *c, const struct lost *l)
{
    const unsigned char *row = given(c, l->batch, l->head, l->key);
    const struct spot own = spot_of(c, l->batch, l->head, l->key);
    for (int64_t block = 0; block < c->blocks; block++)
        for (int64_t r = 0; r < c->rows; r++)
            for (int head = 0; head < c->t.of.heads; head++) {
                const struct spot at = {block, r, head};
                if (element(c, &at) != element(c, &own) && holds(c, &at, row, own_position(c, l->key)))
                    return at;
            }
    return (struct spot){.block = NOWHERE};
}

/* Of V too: a kernel may turn what should not be turned. */
static int find_position(const struct cache *c, const struct lost *l)
{
    const bool may_turn = c->p->rope && c->p->rope_dim <= c->t.of.cols;
    const unsigned char *row = given(c, l->batch, l->head, l->key);
    const struct spot own = spot_of(c, l->batch, l->head, l->key);
    for (int position = 0; may_turn && position < asc_rope_rows(c->p); position++)
        if (holds(c, &own, row, position))
            return position;
    return INT32_MAX;
}

/* Whether the new row of V stands there where K's should be, or of K where V's should: one array went to both caches.
 */
static bool is_of_the_other(const struct cache *c, const struct lost *l)
{
    const int other = c->array == ARRAY_K ? ARRAY_V : ARRAY_K;
    const struct problem_tensor of = problem_tensor(c->p, tensor_of(other));
    if (of.dtype != c->type || of.cols != c->t.of.cols)
        return false;
    const unsigned char *row = (const unsigned char *)data_of(c->p, other) +
                               (size_t)problem_tensor_at(&of, l->batch, l->head, l->key) * c->item;
    const struct spot own = spot_of(c, l->batch, l->head, l->key);
    return holds(c, &own, row, -1) ||
           (c->p->rope && c->p->rope_dim <= of.cols && holds(c, &own, row, c->p->rope_offset + l->key));
}

/* Where among the new rows what stands in a key's place was read from, in elements; NOWHERE: from nowhere, or from
   several places. */
static int64_t read_from(const struct cache *c, const struct spot *at, const unsigned char *rows, int64_t elements)
{
    int64_t found = NOWHERE;
    for (int64_t from = 0; from + c->t.of.cols <= elements; from++)
        if (holds(c, at, rows + (size_t)from * c->item, -1)) {
            if (found != NOWHERE)
                return NOWHERE;
            found = from;
        }
    return found;
}

/* The strides by which the new rows were read, where one set of them says it of all and it is not their own. */
static bool read_by(const struct cache *c, const unsigned char *rows, const struct asc_strides *own,
                    struct asc_strides *by)
{
    const struct asc_problem *p = c->p;
    const int counts[] = {p->batch, c->t.of.heads, p->new_keys};
    int64_t *const steps[] = {&by->batch, &by->head, &by->row};
    int64_t first = 0;
    *by = *own;
    for (int axis = -1; axis < 3; axis++) { /* -1: the first row of all */
        int at[3] = {0};
        if (axis >= 0 && counts[axis] < 2)
            continue;
        at[axis >= 0 ? axis : 0] = axis >= 0;
        const struct spot spot = spot_of(c, at[0], at[1], asc_cache_len(p, at[0]) + at[2]);
        const int64_t from = read_from(c, &spot, rows, p->batch * own->batch);
        if (from == NOWHERE)
            return false;
        if (axis < 0)
            first = from;
        else
            *steps[axis] = from - first;
    }
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < c->t.of.heads; h++)
            for (int i = 0; i < p->new_keys; i++) {
                const struct spot spot = spot_of(c, b, h, asc_cache_len(p, b) + i);
                const int64_t from = first + by->batch * b + by->head * h + by->row * i;
                if (from < 0 || from + c->t.of.cols > p->batch * own->batch ||
                    !holds(c, &spot, rows + (size_t)from * c->item, -1))
                    return false;
            }
    return first == 0;
}

/* "the new rows are read 64 elements apart, where they lie 96 apart". false: no strides say where they were read. */
static bool say_strides(const struct cache *c, char *out, size_t bytes)
{
    const struct asc_strides own = asc_strides_of_new(c->p, tensor_of(c->array) == TENSOR_V);
    unsigned char *rows = turns(c->p, c->array) ? NULL : calloc((size_t)(c->p->batch * own.batch), c->item);
    struct asc_strides by;
    bool said = rows != NULL;
    if (said) {
        cache_new_rows(c->p, tensor_of(c->array) == TENSOR_V ? ARRAY_V_NEW : ARRAY_K_NEW, rows);
        said = read_by(c, rows, &own, &by);
    }
    free(rows);
    if (!said)
        return false;
    const struct {
        const char *what;
        int64_t by, own;
        int count;
    } axes[] = {{"new rows", by.row, own.row, c->p->new_keys},
                {"heads", by.head, own.head, c->t.of.heads},
                {"sequences", by.batch, own.batch, c->p->batch}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0] && used < bytes; i++)
        if (axes[i].count > 1 && axes[i].by != axes[i].own)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s are read %lld elements apart, where they lie %lld",
                                     used ? ", " : "", axes[i].what, (long long)axes[i].by, (long long)axes[i].own);
    return used > 0;
}

/* "key 20 of sequence 1 belongs", "row 3 of page 7 lies, which no sequence uses" */
static void say_spot(const struct cache *c, const struct spot *at, const struct lost *l, char *out, size_t bytes)
{
    const int64_t owner = c->owner[place(c, at)], kv_len = c->p->kv_len;
    char head[24] = "";
    if (at->head != l->head)
        snprintf(head, sizeof head, " of head %d", at->head);
    if (owner != NOWHERE)
        snprintf(out, bytes, "key %lld%s of sequence %lld belongs", (long long)(owner % kv_len), head,
                 (long long)(owner / kv_len));
    else if (c->t.paged)
        snprintf(out, bytes, "row %lld%s of page %lld lies, which no key of a sequence has", (long long)at->row, head,
                 (long long)at->block);
    else
        snprintf(out, bytes, "row %lld%s of sequence %lld lies, which is no key", (long long)at->row, head,
                 (long long)at->block);
}

/* What all that were lost share: as far as this from their places; turned by what their own position plus this is, or
   their number among the new keys. */
enum shared { PLACES_APART, POSITIONS_APART, BY_NUMBER };

static bool share(const struct cache *c, const struct lost *lost, int n, enum shared what, long long *by)
{
    for (int i = 0; i < n; i++) {
        const struct lost *l = &lost[i];
        const int64_t owner = l->found.block == NOWHERE ? NOWHERE : c->owner[place(c, &l->found)];
        const bool told =
            what == PLACES_APART ? owner != NOWHERE && owner / c->p->kv_len == l->batch : l->position != INT32_MAX;
        const long long far = what == PLACES_APART      ? (long long)(owner % c->p->kv_len) - l->key
                              : what == POSITIONS_APART ? (long long)l->position - own_position(c, l->key)
                                                        : l->position - (l->key - asc_cache_len(c->p, l->batch));
        if (!told || (i && far != *by))
            return false;
        *by = far;
    }
    return true;
}

/* What is not turned looks as if it were turned by position 0. */
static bool none_is_turned(const struct lost *lost, int n)
{
    for (int i = 0; i < n; i++)
        if (lost[i].position != 0)
            return false;
    return true;
}

/* What became of the first new row that is not there, and whether the others fared alike. */
static void say_lost(const struct cache *c, const struct lost *lost, int n, char *out, size_t bytes)
{
    const struct lost *l = &lost[0];
    char where[96];
    long long by = 0;
    if (l->found.block == NOWHERE && l->written && say_strides(c, out, bytes))
        return;
    size_t used = (size_t)snprintf(out, bytes, "that of key %d of sequence %d, head %d, ", l->key, l->batch, l->head);
    if (l->found.block != NOWHERE) {
        say_spot(c, &l->found, l, where, sizeof where);
        used += (size_t)snprintf(out + used, bytes - used, "stands where %s", where);
        if (share(c, lost, n, PLACES_APART, &by) && by)
            snprintf(out + used, bytes - used, ": each %lld key%s %s", by < 0 ? -by : by,
                     by == 1 || by == -1 ? "" : "s", by < 0 ? "before its place" : "behind its place");
    } else if (!l->written) {
        snprintf(out + used, bytes - used, "is not written");
    } else if (l->position != INT32_MAX && !turns(c->p, c->array)) {
        snprintf(out + used, bytes - used, "is turned by RoPE, by position %d, as only keys are", l->position);
    } else if (none_is_turned(lost, n)) {
        snprintf(out + used, bytes - used, "is written as it came, not turned by RoPE");
    } else if (l->position != INT32_MAX) {
        used += (size_t)snprintf(out + used, bytes - used, "is turned by position %d, where its own is %d", l->position,
                                 own_position(c, l->key));
        if (n > 1 && share(c, lost, n, POSITIONS_APART, &by))
            snprintf(out + used, bytes - used, ": each by its own %c %lld", by < 0 ? '-' : '+', by < 0 ? -by : by);
        else if (n > 1 && share(c, lost, n, BY_NUMBER, &by))
            snprintf(out + used, bytes - used, ": each by its number among the new keys%s%.0lld", by ? " + " : "", by);
    } else if (is_of_the_other(c, l)) {
        snprintf(out + used, bytes - used, "holds that of %s", c->array == ARRAY_K ? "V" : "K");
    } else {
        snprintf(out + used, bytes - used, "holds something else");
    }
}

/* All new rows, then the rows that were there, then what is nobody's. */
struct damage {
    struct lost lost[ROWS_LOOKED_AT];
    int64_t n_lost, n_new, overwritten, stray;
    int64_t key; /* the first that is overwritten: batch * kv_len + key */
};

static void look(struct cache *c, struct damage *d)
{
    const struct asc_problem *p = c->p;
    for (int b = 0; b < p->batch; b++)
        for (int key = 0; key < asc_kv_len(p, b); key++)
            for (int h = 0; h < c->t.of.heads; h++) {
                const struct spot at = spot_of(c, b, h, key);
                if (key < asc_cache_len(p, b)) {
                    const bool changed = take(c, &at) > 0;
                    d->key = changed && !d->overwritten ? (int64_t)b * p->kv_len + key : d->key;
                    d->overwritten += changed;
                    continue;
                }
                const bool right = holds(c, &at, given(c, b, h, key), own_position(c, key));
                const bool written = take(c, &at) > 0;
                d->n_new++;
                if (!written && asc_q_len(p, b) == 0) /* nobody attends to it: a kernel may leave it out */
                    continue;
                if (!right && d->n_lost++ < ROWS_LOOKED_AT)
                    d->lost[d->n_lost - 1] = (struct lost){b, h, key, written, {NOWHERE, 0, 0}, INT32_MAX};
            }
    for (size_t i = 0; i < (size_t)c->t.elements; i++)
        d->stray += memcmp(c->image + i * c->item, c->left + i * c->item, c->item) != 0;
    const int n = d->n_lost < ROWS_LOOKED_AT ? (int)d->n_lost : ROWS_LOOKED_AT;
    for (int i = 0; i < n; i++) {
        d->lost[i].found = find(c, &d->lost[i]);
        d->lost[i].position = find_position(c, &d->lost[i]);
    }
}

static void say(const struct cache *c, const struct damage *d, char *out, size_t bytes)
{
    const char *name = c->array == ARRAY_V ? "V" : "K";
    char what[256] = "";
    const int n = d->n_lost < ROWS_LOOKED_AT ? (int)d->n_lost : ROWS_LOOKED_AT;
    size_t used = 0;
    if (n) {
        say_lost(c, d->lost, n, what, sizeof what);
        used = (size_t)snprintf(out, bytes, "%lld of %lld new rows are not in the cache of %s as they should be: %s",
                                (long long)d->n_lost, (long long)d->n_new, name, what);
    }
    if (d->overwritten)
        (void)snprintf(out + used, bytes - used,
                       "%s%lld rows that the cache of %s had are overwritten, the first that of key %lld of "
                       "sequence %lld",
                       n ? "; " : "", (long long)d->overwritten, name, (long long)(d->key % c->p->kv_len),
                       (long long)(d->key / c->p->kv_len));
    else if (d->stray && (!n || d->lost[0].found.block == NOWHERE))
        snprintf(out + used, bytes - used, "%s%lld elements of the cache of %s that belong to no key are written",
                 n ? "; " : "", (long long)d->stray, name);
}

void cache_say(const struct asc_problem *problem, int array, double rope_error, const void *left, int socket)
{
    struct cache c;
    struct damage d = {.n_lost = 0};
    char text[480] = "";
    if (make(&c, problem, array, rope_error, left) == 0)
        look(&c, &d);
    else
        snprintf(text, sizeof text, "there is no memory to look at what the cache holds");
    if (d.n_lost || d.overwritten || d.stray)
        say(&c, &d, text, sizeof text);
    end(&c);
    if (!text[0])
        return;
    struct say s;
    say_begin(&s, WIRE_EVENT);
    say_text(&s, "kind", event_name(d.n_new ? EVENT_CACHE : EVENT_SYSTEM));
    say_integer(&s, "line", 0);
    say_text(&s, "file", NULL);
    say_text(&s, "text", text);
    say_end(&s, socket);
}
