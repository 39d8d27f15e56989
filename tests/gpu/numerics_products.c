/* Matrix instructions: every bit against the emulator, how much of its bound they take, and which arithmetic fits. */
#include "tests/gpu/numerics.h"
#include "tests/gpu/numerics_models.h"

#include <errno.h>

enum { ROWS_MAX = 32, FIT_PER_ROW = 1000 };

static const char *const fill_names[] = {"normal", "positive", "wide exponents", "zeros and ones",
                                         "tiny",   "huge",     "NaN and inf",    "integers"};

/* Chains of 1, 2 and 4 with and without an accumulator; special operands. */
static int rows_of(uint32_t instruction, int elements, struct vector_row rows[ROWS_MAX])
{
    static const uint32_t plain[][2] = {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {4, 0}, {4, 1}};
    const struct vector_product p = vector_product(instruction);
    const int tile = p.rows * p.columns;
    const uint32_t count = (uint32_t)((elements + tile - 1) / tile * tile);
    int n = 0;
    rows[n++] = (struct vector_row){instruction, VECTOR_INTEGERS, 2, 1, count};
    for (uint32_t fill = VECTOR_NORMAL; fill <= VECTOR_WIDE; fill++)
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            rows[n++] = (struct vector_row){instruction, fill, plain[i][0], plain[i][1], count};
    for (uint32_t fill = VECTOR_ZEROS; fill <= VECTOR_SPECIAL; fill++)
        rows[n++] = (struct vector_row){instruction, fill, 1, 1, count};
    rows[n++] = (struct vector_row){instruction, VECTOR_SPECIAL, 2, 0, count};
    return n;
}

/* The row's outputs from the device: as device->product(). */
static int compute(struct numerics_device *d, const struct vector_row *row, int number, uint32_t *out, const char **why)
{
    struct vector_inputs in;
    if (vector_inputs_new(row, number, &in) != 0) {
        *why = "out of memory";
        return -1;
    }
    const struct vector_product p = in.product;
    const size_t k = (size_t)in.k, tiles = (size_t)in.tiles, rows = (size_t)p.rows, columns = (size_t)p.columns;
    const size_t n_a = tiles * rows * k * dtype_bytes(p.operand), n_b = tiles * columns * k * dtype_bytes(p.operand);
    const size_t n_c = tiles * rows * columns;
    int status = -1;
    unsigned char *packed = malloc(n_a + n_b + n_c * dtype_bytes(p.sum));
    uint32_t *all = malloc(n_c * sizeof *all);
    *why = "out of memory";
    if (packed && all) {
        vector_pack(p.operand, in.a, tiles * rows * k, packed);
        vector_pack(p.operand, in.b, tiles * columns * k, packed + n_a);
        vector_pack(p.sum, in.c, n_c, packed + n_a + n_b);
        status = d->product(d, row, in.tiles, packed, packed + n_a, packed + n_a + n_b, all, why);
    }
    if (status == 1)
        memcpy(out, all, row->count * sizeof *out);
    free(all);
    free(packed);
    free(in.code);
    return status;
}

/* What is collected of one instruction for the search. */
struct collection {
    struct candidate_element *elements; /* owned, [ROWS_MAX * FIT_PER_ROW] */
    int n;
    uint32_t instruction;
};

static int collect(struct collection *s, const struct vector_row *row, int number, int row_of_set, const uint32_t *out)
{
    struct vector_inputs in;
    if (vector_inputs_new(row, number, &in) != 0)
        return -1;
    const int stride = (int)row->count > FIT_PER_ROW ? (int)row->count / FIT_PER_ROW : 1;
    int taken = 0;
    for (int at = 0; at < (int)row->count && taken < FIT_PER_ROW && s->n < ROWS_MAX * FIT_PER_ROW; at += stride) {
        struct candidate_element *e = &s->elements[s->n];
        if (!candidate_take(&in, row, at, out[at], e))
            continue;
        e->row = row_of_set;
        s->n++;
        taken++;
    }
    free(in.code);
    return 0;
}

static int judge_row(struct numerics_table *t, const struct vector_row *row, int number, int sm, const uint32_t *out)
{
    const struct vector_product p = vector_product(row->instruction);
    enum vector_claim claim;
    const int model = vector_row_model(row, sm, &claim);
    char setting[80];
    snprintf(setting, sizeof setting, "%s, chain %u, %s", fill_names[row->fill], row->chain,
             row->accumulator ? "C" : "C = 0");
    struct numerics_row r = {.status = NUMERICS_INFO, .section = "product", .what = p.text, .setting = setting};
    r.n = row->count;
    r.equal = -1;
    r.error = r.ratio = -1;
    r.error_unit = "";
    snprintf(r.note, sizeof r.note, "no model of the emulator for sm_%d", sm);
    if (model == VECTOR_NO_MODEL) {
        numerics_table_row(t, &r);
        return 0;
    }
    struct vector_judgement j;
    if (vector_judge(row, number, (enum tensor_core)model, out, &j) != 0)
        return -1;
    r.equal = (long long)j.equal;
    r.ratio = j.worst;
    static const char *const words[] = {[VECTOR_OPEN] = "nothing is claimed",
                                        [VECTOR_BOUND] = "its bound is claimed",
                                        [VECTOR_EQUAL] = "every bit is claimed"};
    const int holds = j.worst <= 1 && (claim != VECTOR_EQUAL || j.equal == j.n);
    if (claim != VECTOR_OPEN)
        r.status = holds ? NUMERICS_OK : NUMERICS_FAIL;
    int used =
        snprintf(r.note, sizeof r.note, "emulator %s (%s)", tensor_core_name((enum tensor_core)model), words[claim]);
    if (row->fill == VECTOR_INTEGERS)
        used =
            snprintf(r.note, sizeof r.note, "exact; where this fails, elements lie elsewhere than this program thinks");
    if (j.first_unequal >= 0)
        snprintf(r.note + used, sizeof r.note - (size_t)used, "; first other: element %d is %08x", j.first_unequal,
                 out[j.first_unequal]);
    numerics_table_row(t, &r);
    return 0;
}

/* An element no candidate explains, for a look by hand. */
static void show_element(struct numerics_table *t, const char *what, const struct candidate_element *e,
                         const struct candidate_fit *fit, enum dtype sum)
{
    struct numerics_row r = {.status = NUMERICS_INFO, .section = "unexplained", .what = what, .setting = ""};
    char setting[80];
    snprintf(setting, sizeof setting, "row %d, k %d, chain %d", e->row, e->k, e->chain);
    r.setting = setting;
    r.n = 1;
    r.equal = 0;
    r.error = r.ratio = -1;
    r.error_unit = "";
    int used = snprintf(r.note, sizeof r.note, "C %a, device %08x, candidate %08x; products", (double)e->start, e->got,
                        candidate_result(&fit->candidate, e, sum));
    for (int k = 0; k < e->k * e->chain && used > 0 && used < (int)sizeof r.note - 24; k++)
        used += snprintf(r.note + used, sizeof r.note - (size_t)used, " %dp%d", e->product[k], e->place[k]);
    numerics_table_row(t, &r);
}

/* The candidates that fit best, over all rows of an instruction whose numbers are finite. */
static int fit(struct numerics_table *t, const struct collection *s)
{
    const struct vector_product p = vector_product(s->instruction);
    struct candidate_fit best[CANDIDATES_BEST];
    int all_equal = 0;
    const int n = candidates_fit(s->elements, s->n, p.sum, best, &all_equal);
    if (n < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        char setting[32];
        struct numerics_row r = {.status = NUMERICS_INFO, .section = "candidate", .what = p.text, .setting = setting};
        snprintf(setting, sizeof setting, "rank %d", i + 1);
        r.n = best[i].n;
        r.equal = best[i].equal;
        r.error = r.ratio = -1;
        r.error_unit = "";
        candidate_text(&best[i].candidate, r.note, sizeof r.note);
        if (i == 0 && all_equal > CANDIDATES_BEST - 1) {
            const size_t used = strlen(r.note);
            snprintf(r.note + used, sizeof r.note - used, "; at least %d candidates agree with every element",
                     all_equal);
        }
        numerics_table_row(t, &r);
    }
    if (n > 0 && best[0].first_unequal >= 0) {
        int shown = 0;
        for (int i = best[0].first_unequal; i < s->n && shown < 4; i++)
            if (candidate_result(&best[0].candidate, &s->elements[i], p.sum) != s->elements[i].got) {
                show_element(t, p.text, &s->elements[i], &best[0], p.sum);
                shown++;
            }
    }
    return 0;
}

static int say(struct numerics_table *t, enum numerics_status status, const char *what, const char *setting,
               const char *why)
{
    struct numerics_row r = {.status = status, .section = "product", .what = what, .setting = setting};
    r.equal = -1;
    r.error = r.ratio = -1;
    r.error_unit = "";
    snprintf(r.note, sizeof r.note, "%s", why);
    numerics_table_row(t, &r);
    return -1;
}

static int measure(struct numerics_device *d, struct numerics_table *t, int elements, int search, struct collection *s)
{
    struct vector_row rows[ROWS_MAX];
    const struct vector_product p = vector_product(s->instruction);
    const int n = rows_of(s->instruction, elements, rows);
    uint32_t *out = malloc((size_t)(elements + p.rows * p.columns) * sizeof *out);
    int status = 0;
    s->n = 0;
    for (int i = 0; out && status == 0 && i < n; i++) {
        const char *why = "";
        const int done = compute(d, &rows[i], i, out, &why);
        if (done != 1) {
            status = say(t, done ? NUMERICS_FAIL : NUMERICS_SKIP, p.text, "", why);
            free(out);
            return done ? status : 0;
        }
        status = judge_row(t, &rows[i], i, d->sm, out);
        if (status == 0)
            status = collect(s, &rows[i], i, i, out);
    }
    if (!out || status != 0 || (search && fit(t, s) != 0))
        status = say(t, NUMERICS_FAIL, p.text, "", "out of memory");
    free(out);
    return status;
}

int numerics_products(struct numerics_device *d, struct numerics_table *t, int elements_per_row, int search)
{
    struct collection s = {.elements = malloc(sizeof *s.elements * ROWS_MAX * FIT_PER_ROW)};
    int status = s.elements ? 0 : say(t, NUMERICS_FAIL, "", "", "out of memory");
    for (uint32_t i = 0; status == 0 && i < VECTOR_INSTRUCTIONS; i++) {
        s.instruction = i;
        if (vector_product(i).text)
            status = measure(d, t, elements_per_row, search, &s);
    }
    free(s.elements);
    return status;
}

/* A few rows of every instruction, one tile each: what tests need, and what a search for another model can live on. */
static int small_rows(uint32_t instruction, struct vector_row rows[ROWS_MAX])
{
    static const struct {
        uint32_t fill, chain, accumulator;
    } kinds[] = {{VECTOR_INTEGERS, 2, 1}, {VECTOR_NORMAL, 1, 1},   {VECTOR_NORMAL, 4, 0}, {VECTOR_POSITIVE, 1, 0},
                 {VECTOR_POSITIVE, 2, 1}, {VECTOR_POSITIVE, 4, 1}, {VECTOR_WIDE, 1, 0},   {VECTOR_WIDE, 2, 1},
                 {VECTOR_ZEROS, 1, 1},    {VECTOR_TINY, 1, 1},     {VECTOR_HUGE, 1, 1},   {VECTOR_SPECIAL, 1, 1}};
    int n = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        rows[n++] = (struct vector_row){instruction, kinds[i].fill, kinds[i].chain, kinds[i].accumulator, 128};
    return n;
}

static int put_words(FILE *file, const void *words, size_t n)
{
    return fwrite(words, sizeof(uint32_t), n, file) == n;
}

int numerics_record(struct numerics_device *d, const char *path, const char **why)
{
    struct vector_row rows[ROWS_MAX];
    uint32_t out[1024];
    uint32_t n_rows = 0;
    const uint32_t sm = (uint32_t)d->sm;
    FILE *file = fopen(path, "wb");
    int ok = file && put_words(file, VECTOR_MAGIC, 2) && put_words(file, &sm, 1) && put_words(file, &n_rows, 1);
    *why = strerror(errno);
    for (uint32_t i = 0; ok && i < VECTOR_INSTRUCTIONS; i++) {
        const int n = vector_product(i).text ? small_rows(i, rows) : 0;
        for (int j = 0; ok && j < n; j++) {
            const int done = compute(d, &rows[j], (int)n_rows, out, why);
            if (done == 0)
                break;
            ok = done == 1 && put_words(file, &rows[j], sizeof rows[j] / sizeof(uint32_t)) &&
                 put_words(file, out, rows[j].count);
            n_rows++;
        }
    }
    ok = ok && fseek(file, 12, SEEK_SET) == 0 && put_words(file, &n_rows, 1);
    if (file && fclose(file) != 0)
        ok = 0;
    return ok ? 0 : -1;
}

int numerics_replay(const char *path, struct numerics_table *t)
{
    enum { MOST = 1 << 20 };
    struct collection s = {.elements = malloc(sizeof *s.elements * ROWS_MAX * FIT_PER_ROW)};
    uint32_t *words = malloc(MOST * sizeof *words);
    FILE *file = fopen(path, "rb");
    const size_t n_words = words && file ? fread(words, sizeof *words, MOST, file) : 0;
    int sm = 0;
    int n_rows = 0;
    const uint32_t *at = s.elements ? vector_file(words, n_words, &sm, &n_rows) : NULL;
    int status = at ? 0 : say(t, NUMERICS_FAIL, path, "", "no file of vectors");
    if (file)
        fclose(file);
    /* Rows of one instruction follow each other. */
    for (int i = 0; status == 0 && i < n_rows; i++) {
        struct vector_row row = {0};
        const uint32_t *out = NULL;
        at = vector_file_row(at, words + n_words, &row, &out);
        if (!at || !out) {
            status = say(t, NUMERICS_FAIL, path, "", "ends early");
            break;
        }
        if (s.n > 0 && row.instruction != s.instruction) {
            status = fit(t, &s);
            s.n = 0;
        }
        s.instruction = row.instruction;
        if (status == 0 && vector_product(row.instruction).text)
            status = judge_row(t, &row, i, sm, out) != 0 || collect(&s, &row, i, i, out) != 0 ? -1 : 0;
    }
    if (status == 0 && s.n > 0)
        status = fit(t, &s);
    free(words);
    free(s.elements);
    return status;
}
