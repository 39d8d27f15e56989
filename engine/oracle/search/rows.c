/* Rules of rows: rows of Q, K or V are other rows or have other scales, or the mask counts from other rows. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

const struct source *source_of(const struct search *search, enum asc_channel of, int head)
{
    for (int i = 0; i < search->n_sources; i++)
        if (search->sources[i].of == of && search->sources[i].head == head)
            return &search->sources[i];
    return NULL;
}

int count_sources(const struct search *search, enum asc_channel of)
{
    int n = 0;
    for (int i = 0; i < search->n_sources; i++)
        n += search->sources[i].of == of;
    return n;
}

int head_of(const struct search *search, const struct sample_tile *t, enum asc_channel of)
{
    return of == asc_q ? t->at[0] * search->heads + t->at[1] : t->at[0] * search->kv_heads + t->kv_head;
}

int heads_of(const struct search *search, enum asc_channel of)
{
    return of == asc_q ? search->heads : search->kv_heads;
}

int head_from(const struct search *search, const struct rule *rule, const struct sample_tile *t, enum asc_channel of)
{
    const enum asc_channel by = rule->rows.by_query ? asc_q : of;
    const int own = head_of(search, t, by), heads = heads_of(search, by);
    if (!rule->rows.of_batch)
        return map_at(&rule->rows.head, own);
    return map_at(&rule->rows.head, own % heads) + own / heads * heads_of(search, rule->rows.tensor);
}

int piece_elements(const struct sample_tile *t, enum asc_channel ch)
{
    const int type = values_type(t->c, ch);
    return type < 0 ? 8 : 16 / (int)dtype_bytes((enum dtype)type);
}

bool source_rows(const struct search *search, const struct oracle_case *c, enum asc_channel of, int head, int first,
                 int n, double *out, double *loose)
{
    const struct source *source = source_of(search, of, head);
    const size_t D = (size_t)oracle_dim(c, of);
    const int type = values_type(c, of), begin = first < 0 ? 0 : first;
    const int end = source && first + n > source->rows.rows ? source->rows.rows : first + n;
    double unit = 0, half_tiny = 0;
    for (size_t i = 0; i < (size_t)n * D; i++) {
        out[i] = NAN;
        loose[i] = 0;
    }
    if (!source || !source->rows.data || begin >= end)
        return false;
    double *to = out + (size_t)(begin - first) * D;
    struct coding coding = source->coding;
    codes_load(c, &(struct coded_rows){of, &source->rows, &coding, begin, end - begin}, to,
               loose + (size_t)(begin - first) * D);
    if (!coding.scale && type >= 0 && (enum dtype)type != source->rows.dtype &&
        bound_narrow((enum dtype)type, &unit, &half_tiny))
        for (size_t i = 0; i < (size_t)(end - begin) * D; i++)
            to[i] = bound_round((enum dtype)type, to[i]);
    return true;
}

/* How many heads' rows lie side by side. */
static int heads_beside(const struct source *source)
{
    return source->rows.cols > 0 && source->rows.row_stride > source->rows.cols
               ? (int)(source->rows.row_stride / source->rows.cols)
               : 1;
}

int flat_row(const struct search *search, enum asc_channel of, int head, int row)
{
    const struct source *source = source_of(search, of, head);
    const int beside = source ? heads_beside(source) : 1;
    return source ? (head / beside * source->rows.rows + row) * beside + head % beside : -1;
}

int packed_row(const struct search *search, const struct sample_tile *t, int group, int row)
{
    const int head = t->at[AXIS_HEAD];
    const bool beside = t->c->conventions.kv_head_map == ASC_HEADS_INTERLEAVED;
    return group == 0 ? row : row * group + (beside ? head / search->kv_heads : head % group);
}

static void take_flat(const struct search *search, const struct rule *rule, const struct sample_tile *t, int row,
                      double *out, double *loose)
{
    const enum asc_channel of = rule->rows.tensor;
    const struct source *any = source_of(search, of, 0);
    const int D = oracle_dim(t->c, of), span = rule->rows.span ? rule->rows.span : D, pieces = D / span;
    const int own = flat_row(search, rule->rows.operand, head_of(search, t, rule->rows.operand), row);
    const int beside = any ? heads_beside(any) : 1, length = any ? any->rows.rows : 0;
    double *from = search->rows[2], *from_loose = search->rows[3];
    int loaded = -1;
    for (int p = 0; p < pieces; p++) {
        const int at = map_at(&rule->map, own * pieces + p), there = at / pieces, position = there / beside;
        if (p == 0 || there != loaded)
            source_rows(search, t->c, of, at >= 0 && length ? position / length * beside + there % beside : -1,
                        length ? position % length : 0, 1, from, from_loose);
        loaded = there;
        memcpy(out + (ptrdiff_t)p * span, from + (ptrdiff_t)(at % pieces) * span, (size_t)span * sizeof *out);
        memcpy(loose + (ptrdiff_t)p * span, from_loose + (ptrdiff_t)(at % pieces) * span, (size_t)span * sizeof *loose);
    }
}

/* A row of a page, through its heads: of a page's own rows alone it needs no table. */
static void take_in_page(const struct search *search, const struct rule *rule, const struct sample_tile *t, int row,
                         double *out, double *loose)
{
    const int size = search->page_size, heads = search->kv_heads, own = head_of(search, t, rule->rows.operand);
    const int at = map_at(&rule->map, own % heads * size + row % size);
    const bool there = at >= 0 && at < heads * size;
    source_rows(search, t->c, rule->rows.tensor, there ? own - own % heads + at / size : -1,
                there ? row - row % size + at % size : 0, 1, out, loose);
}

static bool concerns(const struct from_rows *f, int r, int d)
{
    return !f->partly || term_holds(&f->only, f->only.axis == AXIS_ROW ? r : d);
}

/* Pieces that lie in the tile's own rows, in shared memory: of what lies behind it there nothing is known. */
static bool within_tile(const struct search *search, const struct rule *rule)
{
    return rule->rows.span > 0 && search->sample->channel > asc_v;
}

/* What the rule says of one row, or of pieces of it; the rest of it stays. */
static void take(const struct search *search, const struct rule *rule, const struct sample_tile *t, int head, int first,
                 int r, int own_row, double *out, double *loose)
{
    const int D = oracle_dim(t->c, rule->rows.operand), span = rule->rows.span ? rule->rows.span : D;
    const int pieces = D / span, block = rule->rows.operand == asc_q ? t->c->br : t->c->bc;
    const bool by_piece = rule->rows.span > 0, within = within_tile(search, rule);
    int loaded = -2;
    for (int p = 0; p < pieces; p++) {
        const int from = map_at(&rule->map, by_piece ? r * pieces + p : r);
        const int piece = by_piece ? (from % pieces + pieces) % pieces : p,
                  line = by_piece ? (from - piece) / pieces : from;
        const bool there = !within || (from >= 0 && line < block), has_tile = within && there;
        const int source = there ? first + line : -1;
        const size_t at = has_tile ? (size_t)line * (size_t)oracle_dim(t->c, rule->rows.tensor) : 0;
        const double *row = has_tile ? search->sizes[0] + at : search->rows[2],
                     *row_loose = has_tile ? search->sizes[1] + at : search->rows[3];
        if (!has_tile && source != loaded) {
            source_rows(search, t->c, rule->rows.tensor, head, source, 1, search->rows[2], search->rows[3]);
            loaded = source;
        }
        for (int d = 0; d < span; d++) {
            if (!concerns(&rule->rows, own_row, p * span + d))
                continue;
            out[p * span + d] = row[piece * span + d + rule->rows.shift];
            loose[p * span + d] = row_loose[piece * span + d + rule->rows.shift];
        }
    }
}

/* A row of the tile as it is read at another distance than rows lie at. Of padding nothing is known. */
static void take_apart(const struct search *search, const struct rule *rule, const struct sample_tile *t, int head,
                       int first, int r, double *out, double *loose)
{
    const struct from_rows *f = &rule->rows;
    const int D = oracle_dim(t->c, f->operand), there = oracle_dim(t->c, f->tensor);
    const int block = f->operand == asc_q ? t->c->br : t->c->bc;
    double *row = search->rows[2], *row_loose = search->rows[3];
    int loaded = -1;
    for (int c = 0; c < D; c++) {
        const int at = r * f->read + c, line = at / f->lie, col = at % f->lie;
        if (line != loaded && line < block)
            source_rows(search, t->c, f->tensor, head, first + line, 1, row, row_loose);
        loaded = line;
        out[c] = line < block && col < there ? row[col] : NAN;
        loose[c] = line < block && col < there ? row_loose[col] : 0;
    }
}

/* Pieces of rows of Q and of K, both out of place within their rows. */
static bool both_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                         double *bound)
{
    struct operands x = t->x;
    double *const moved[] = {[asc_q] = search->operand, [asc_k] = search->loose};
    const int span = rule->rows.span, pieces = t->c->head_dim / span;
    for (int of = asc_q; of <= asc_k; of++) {
        const int n = (of == asc_q ? (int)query_rows(t) : x.cols) * pieces;
        struct map map = rule->map;
        if (map.kind == MAP_DESCRIBED)
            map.bits = of == asc_q ? MAP_DESCRIBED_ROWS : 0;
        for (int i = 0; i < n; i++) {
            const int from = map_at(&map, i);
            for (int d = 0; d < span; d++) /* of what lies behind the tile nothing is known */
                moved[of][i * span + d] = from < n ? x.of[of].value[(ptrdiff_t)from * span + d] : NAN;
        }
        x.of[of].value = x.size[of] = moved[of];
    }
    search_formula(search, t, &x, want, bound);
    return true;
}

bool rows_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                  double *bound)
{
    if (rule->rows.operand == asc_s)
        return both_forward(search, rule, t, want, bound);
    const enum asc_channel ch = rule->rows.operand, stage = search->sample->channel;
    const int D = oracle_dim(t->c, ch), n = ch == asc_q ? t->c->in_q.rows : stage <= asc_v ? t->rows : t->x.cols;
    const int block = ch == asc_q ? t->c->br : t->c->bc, tile = ch == asc_q ? t->at[AXIS_Q_TILE] : t->kv;
    const int head = head_from(search, rule, t, ch);
    const int first = rule->rows.whole ? 0 : map_at(&rule->rows.tile, tile) * block;
    if (!source_of(search, rule->rows.tensor, head) || oracle_dim(t->c, rule->rows.tensor) < D + rule->rows.shift)
        return false;
    for (int r = 0; r < n && rule->rows.flat; r++)
        take_flat(search, rule, t, tile * block + r, search->operand + (size_t)r * D, search->loose + (size_t)r * D);
    for (int r = 0; r < n && rule->rows.paged; r++)
        take_in_page(search, rule, t, tile * block + r, search->operand + (size_t)r * D, search->loose + (size_t)r * D);
    for (int r = 0; r < n && rule->rows.lie; r++)
        take_apart(search, rule, t, head, first, r, search->operand + (size_t)r * D, search->loose + (size_t)r * D);
    const size_t values = (size_t)n * (size_t)D;
    if (rule->rows.partly) {
        const double fold = stage == asc_q ? values_fold(t->c) : 1;
        for (size_t i = 0; i < values; i++) {
            search->operand[i] = stage == ch ? t->want[i] / fold : t->x.of[ch].value[i];
            search->loose[i] = stage == ch ? t->bound[i] : t->x.of[ch].loose[i];
        }
    }
    const bool taken = !rule->rows.flat && !rule->rows.paged && !rule->rows.lie;
    if (taken && within_tile(search, rule))
        source_rows(search, t->c, rule->rows.tensor, head, first, block, search->sizes[0], search->sizes[1]);
    for (int r = 0; r < n && taken; r++)
        take(search, rule, t, head, first, rule->rows.whole ? tile * block + r : r, r, search->operand + (size_t)r * D,
             search->loose + (size_t)r * D);
    /* Rows beyond the last one: kernels have zeros there. Of what is read beyond them nothing is known. */
    for (size_t i = 0; i < values; i++) {
        if (isnan(search->operand[i]) && stage == ch &&
            (rule->rows.lie || (rule->rows.whole && (rule->rows.span || rule->rows.paged))))
            search->loose[i] = INFINITY;
        else if (isnan(search->operand[i]))
            search->operand[i] = 0;
    }
    if (stage == ch) {
        memcpy(want, search->operand, values * sizeof *want);
        memcpy(bound, search->loose, values * sizeof *bound);
        if (ch == asc_q)
            for (size_t i = 0; i < values; i++)
                want[i] *= values_fold(t->c);
        return true;
    }
    struct operands x = t->x;
    x.of[ch] = (struct operand){search->operand, search->loose, 0};
    x.size[ch] = search->operand;
    search_formula(search, t, &x, want, bound);
    return true;
}

void rule_sees(const struct search *search, struct operands *x, int r, int from, int to)
{
    from = from < 0 ? 0 : from > x->cols ? x->cols : from;
    search->seen[0][r] = from;
    search->seen[1][r] = to < from ? from : to > x->cols ? x->cols : to;
    x->hidden = search->seen[0];
    x->visible = search->seen[1];
}

/* All scores, or none, hidden. */
static void see(const struct search *search, const struct sample_tile *t, bool all, double *want, double *bound)
{
    struct operands x = t->x;
    for (int r = 0; r < t->c->in_q.rows; r++)
        rule_sees(search, &x, r, 0, all ? x.cols : 0);
    x.mask = NULL;
    search_formula(search, t, &x, want, bound);
}

/* The mask takes a column for another. */
static bool seen_by_column(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                           double *bound)
{
    const int first = t->kv * t->c->bc;
    see(search, t, false, want, bound);
    see(search, t, true, search->operand, search->loose);
    for (size_t i = 0; i < sample_cells(t); i++) {
        const int col = (int)(i % (size_t)t->cols), key = first + map_at(&rule->col_map, col);
        if (!schedule_shows(t->c, (int)(i / (size_t)t->cols), key) || first + col >= t->c->kv_len)
            continue;
        want[i] = search->operand[i];
        bound[i] = search->loose[i];
    }
    return true;
}

bool seen_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                  double *bound)
{
    struct operands x = t->x;
    const int first = t->kv * t->c->bc, above = rule->rows.whole ? t->at[AXIS_Q_TILE] * t->c->br : 0;
    if (search->sample->channel != asc_s)
        return false;
    if (rule->col_map.kind != MAP_SAME)
        return seen_by_column(search, rule, t, want, bound);
    for (int r = 0; r < t->c->in_q.rows; r++) {
        const int row = packed_row(search, t, rule->rows.packed, above + r);
        const struct key_range own = schedule_range(t->c, r),
                               other = schedule_range(t->c, map_at(&rule->map, row) - above);
        const int from = (rule->rows.hidden ? other.first + (int)rule->plus : own.first) - first;
        const int to = (rule->rows.hidden ? own.last : other.last + (int)rule->plus) - first;
        rule_sees(search, &x, r, from, to);
    }
    search_formula(search, t, &x, want, bound);
    return true;
}

int row_of_head(const struct sample_tile *t, enum asc_channel operand, int line)
{
    return (operand == asc_q ? t->at[AXIS_Q_TILE] * t->c->br : t->kv * t->c->bc) + line;
}

int group_of(const struct coding *coding, int row)
{
    return coding->rows > 0 ? row / coding->rows : 0;
}

int scale_part_of(const struct coding *coding, int col)
{
    return coding->dims > 0 ? col / coding->dims : 0;
}

bool is_coded(const struct source *source)
{
    return source && source->coding.scale && source->coding.groups > 0;
}

/* What a scale of e4m3 or e8m0 is taken to be, over what it is. */
static double scale_read(const struct coding *coding, enum scale_reading reading, double scale)
{
    const double tensor = (double)coding->tensor;
    uint8_t code = 0;
    dtype_store(coding->scale_type == ASC_SCALE_E8M0 ? DTYPE_E8M0 : DTYPE_E4M3, &code, 0, scale);
    switch (reading) {
    case SCALE_AS_E4M3:
        return dtype_load(DTYPE_E4M3, &code, 0) / scale;
    case SCALE_AS_E5M2:
        return dtype_load(DTYPE_E5M2, &code, 0) / scale;
    case SCALE_AS_E8M0:
        return dtype_load(DTYPE_E8M0, &code, 0) / scale;
    case SCALE_AS_NUMBER:
        return code / scale;
    case SCALE_BIAS_126:
        return 2;
    case SCALE_BIAS_128:
        return 0.5;
    case SCALE_SIGN:
        return code < 128 ? 1 : -1;
    case SCALE_SIGNED:
        return code < 128 ? 1 : 0x1p-256;
    case SCALE_OF_BLOCK:
        return 1 / tensor;
    case SCALE_OF_TENSOR:
        return 1 / scale;
    case SCALE_TENSOR_TWICE:
        return tensor;
    case SCALE_BLOCK_TWICE:
        return scale;
    case SCALE_IN_F16:
        return bound_round(DTYPE_F16, scale) / scale;
    case SCALE_IN_BF16:
        return bound_round(DTYPE_BF16, scale) / scale;
    case SCALE_IN_E4M3:
        return bound_round(DTYPE_E4M3, scale) / scale;
    case SCALE_POWER_NEAREST:
        return exp2(rint(log2(scale))) / scale;
    case SCALE_POWER_ABOVE:
        return exp2(ceil(log2(scale))) / scale;
    case SCALE_POWER_BELOW:
        return exp2(floor(log2(scale))) / scale;
    default:
        return 1;
    }
}

/* The scale that stands at the rule's number; NaN: there is none. */
static double scale_counted(const struct search *search, const struct rule *rule, const struct source *own, int row,
                            int col)
{
    const struct blocks *by = &rule->blocks;
    const int of_head = own->coding.groups * own->coding.parts, r = row + by->row_plus, d = col + by->dim_plus;
    const int at = own->head * of_head + (r < 0 ? 0 : r) / by->rows * own->coding.parts + (d < 0 ? 0 : d) / by->dims;
    const struct source *from = source_of(search, own->of, at / of_head);
    return is_coded(from) ? (double)from->coding.scale[at % of_head] : NAN;
}

/* What the rule makes of the scale of element `col` of an operand's row, over what it is; NaN: there is no such one. */
static double scale_ratio(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                          enum asc_channel ch, int line, int col)
{
    const struct source *own = source_of(search, ch, head_of(search, t, ch));
    if (ch != rule->rows.operand && rule->rows.operand != asc_s)
        return 1;
    if (!is_coded(own))
        return NAN;
    const int row = row_of_head(t, ch, line);
    const int place[SCALE_AXES] = {own->head, group_of(&own->coding, row), scale_part_of(&own->coding, col)};
    const double scale = (double)own->coding.scale[codes_scale_at(&own->coding, row, col)];
    const double all = scale * (double)own->coding.tensor;
    if (rule->power != 1)
        return rule->power == 0 ? 1 / all : all;
    if (rule->blocks.rows)
        return scale_counted(search, rule, own, row, col) / scale;
    if (rule->scale_reading != SCALE_AS_IT_IS)
        return scale_read(&own->coding, rule->scale_reading, scale);
    return scale_by(search, rule, place, head_from(search, rule, t, ch)) / scale;
}

/* The group that holds the first row of a group of K or V where that row lies in its page. */
static int paged_group(const struct search *search, const struct coding *coding, int head, int group)
{
    const int row = coding->rows > 0 ? group * coding->rows : 0, size = search->page_size;
    const int64_t entry = (int64_t)(head / search->kv_heads) * search->table_pages + row / size;
    return group_of(coding, search->page_table[entry] * size + row % size);
}

double scale_by(const struct search *search, const struct rule *rule, const int place[SCALE_AXES], int head)
{
    const struct source *own = source_of(search, rule->rows.operand, place[0]),
                        *from = source_of(search, rule->rows.tensor, head);
    const int parts = own ? own->coding.parts : 1, of_head = own ? own->coding.groups * parts : 1;
    int at;
    if (rule->rows.flat) {
        const int base = place[0] * of_head, i = place[1] * parts + place[2];
        at = rule->rows.whole ? base + map_at(&rule->map, i) : map_at(&rule->map, base + i);
        from = at >= 0 ? source_of(search, rule->rows.tensor, at / of_head) : NULL;
        at %= of_head;
    } else {
        const int part = map_at(&rule->col_map, place[2]);
        int group = map_at(&rule->map, place[1]);
        if (rule->rows.paged && own && search->page_table) {
            /* Which may be one of a later head. */
            group = paged_group(search, &own->coding, place[0], group) + place[0] * own->coding.groups;
            from = source_of(search, rule->rows.tensor, group / own->coding.groups);
            group %= own->coding.groups;
        }
        if (!is_coded(from) || part < 0 || part >= from->coding.parts || group < 0 || group >= from->coding.groups)
            return NAN;
        at = group * from->coding.parts + part;
    }
    return is_coded(from) && at >= 0 && at < from->coding.groups * from->coding.parts ? (double)from->coding.scale[at]
                                                                                      : NAN;
}

/* Of values that were codes, where they are multiplied: each has its own scale. */
static bool forward_operand(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                            double *bound)
{
    const enum asc_channel of = rule->rows.operand;
    const int cols = oracle_dim(t->c, of), n = of == asc_q ? t->c->in_q.rows : t->x.cols;
    struct operands x = t->x;
    struct operand *it = &x.of[of];
    if (!it->value || of > asc_v)
        return false;
    for (int i = 0; i < n * cols; i++) {
        const double by = rule->factor * scale_ratio(search, rule, t, of, i / cols, i % cols);
        search->operand[i] = it->value[i] * by;
        search->loose[i] = x.size[of][i] * fabs(by);
    }
    *it = (struct operand){search->operand, it->loose, false};
    x.size[of] = search->loose;
    if (of == asc_v)
        x.input_v = search->operand;
    search_formula(search, t, &x, want, bound);
    rule_loosen(t, want, bound, 4);
    return true;
}

/* The same of scores and maxima in the exponent, or of the product with V. */
static bool forward_one_scale(struct search *search, double by, const struct sample_tile *t, double *want,
                              double *bound)
{
    struct sample_tile edited = *t;
    struct oracle_case c = *t->c;
    struct operands x = t->x;
    if (isnan(by))
        return false;
    if (search->sample->channel == asc_u) {
        x.times_v *= by;
    } else {
        /* A raw maximum without a cap counts `scale`: so any factor can be had for it. */
        c.scale = values_natural_m(t->c) * by;
        c.softcap = 0;
        c.conventions.s_unit = c.conventions.m_unit = ASC_UNIT_RAW;
        x.s_natural *= by;
    }
    edited.c = &c;
    search_formula(search, &edited, &x, want, bound);
    rule_loosen(t, want, bound, 4);
    return true;
}

bool scale_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                   double *bound)
{
    const enum asc_channel stage = search->sample->channel, of = rule->rows.operand;
    const bool inputs = stage <= asc_v;
    const struct source *own = source_of(search, of, of <= asc_v ? head_of(search, t, of) : 0);
    double *by_row = search->rows[2], *by_col = search->rows[3];
    if (!inputs && is_coded(own) && own->coding.parts > 1)
        return (stage == asc_s || stage == asc_u) && forward_operand(search, rule, t, want, bound);
    if (of == asc_v ? stage == asc_u : stage > asc_s) {
        const double by = of == asc_v
                              ? scale_ratio(search, rule, t, asc_v, 0, 0)
                              : scale_ratio(search, rule, t, asc_q, 0, 0) * scale_ratio(search, rule, t, asc_k, 0, 0);
        return forward_one_scale(search, rule->factor * by, t, want, bound);
    }
    for (int r = 0; r < t->rows; r++)
        by_row[r] = rule->factor * scale_ratio(search, rule, t,
                                               inputs        ? stage
                                               : of == asc_v ? asc_v
                                                             : asc_q,
                                               stage == asc_o ? 0 : r, 0);
    for (int col = 0; col < t->cols; col++)
        by_col[col] = stage == asc_s ? scale_ratio(search, rule, t, asc_k, col, 0) : 1;
    const bool by_part = inputs && is_coded(own) && own->coding.parts > 1;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const double factor = by_part ? rule->factor * scale_ratio(search, rule, t, stage, (int)(i / (size_t)t->cols),
                                                                   (int)(i % (size_t)t->cols))
                                      : by_row[i / (size_t)t->cols] * by_col[i % (size_t)t->cols];
        want[i] = isfinite(t->want[i]) ? factor * t->want[i] : t->want[i];
        bound[i] = isfinite(t->want[i]) ? fabs(factor) * t->bound[i] + 4 * BOUND_U * fabs(want[i]) : t->bound[i];
    }
    return true;
}
