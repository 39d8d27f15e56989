#include "engine/cursor/operands.h"

#include "engine/trace/layout.h"
#include "engine/verdict/case.h"

/* Row `row` of a matrix, alone. */
static void keep_row(struct matrix *m, int row)
{
    if (m->data)
        m->data = (const unsigned char *)m->data + (size_t)((int64_t)row * m->row_stride) * dtype_bytes(m->dtype);
    m->rows = 1;
}

static void keep_row_of_tiles(struct matrix *tiles, struct matrix *padding, int kv_tiles, int row)
{
    for (int i = 0; tiles && i < kv_tiles * ASC_CHANNELS; i++)
        if (i % ASC_CHANNELS != asc_k && i % ASC_CHANNELS != asc_v)
            keep_row(&tiles[i], row);
    /* Of s and p; that of v has rows of its own. */
    for (int i = 0; padding && i < 2 * kv_tiles; i++)
        keep_row(&padding[i], row);
}

/* Rows do not meet in any formula: a q tile of one row, the right one, is judged as that row is among others. */
void slot_case_row(struct slot_case *c, int row)
{
    struct oracle_case *o = &c->c;
    keep_row_of_tiles(c->captured, c->padding, o->kv_tiles, row);
    keep_row_of_tiles(c->fed, c->fed_padding, o->kv_tiles, row);
    keep_row(&o->in_q, row);
    if (o->bias.data)
        keep_row(&o->bias, row);
    o->q_codes.first += row;
    o->q_tile = o->q_tile * o->br + row;
    o->br = 1;
}

int operands_find(const struct judgement *j, const struct trace *t, struct place place, int row, int col,
                  struct judge_scratch *scratch, struct derivation *out)
{
    const int of_keys = place.channel == asc_k || place.channel == asc_v;
    struct slot_case c;
    *out = (struct derivation){.derived = DERIVED_NOT};
    if (slot_case_make(t, place.slot, &c) != 0)
        return -1;
    slot_case_row(&c, of_keys ? 0 : row);
    c.c.fingerprint = j->fingerprint;
    const int failed = derive_element(&c.c, scratch, place.channel, place.kv, row, col, out);
    slot_case_free(&c);
    return failed;
}
