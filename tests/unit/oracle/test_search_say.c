/* What a rule's sentence claims is so at the edges too: of one key, one row, the first tile, the last tile, one head.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/oracle/search/propose.h"
#include "engine/oracle/search/search.h"
#include <cmocka.h>

enum { ONE_TILE = 64, TILES = 128 };

static void expect_of(int rows, int batch, enum asc_channel ch, struct rule rule, const char *words)
{
    const struct oracle_case c = {.scale = 0.125,
                                  .q_len = rows,
                                  .kv_len = rows,
                                  .br = 64,
                                  .bc = 64,
                                  .head_dim = 64,
                                  .head_dim_v = 64,
                                  .kv_splits = 4,
                                  .v_codes = {.groups = 4, .parts = 2}};
    struct sample_tile tile = {.c = &c, .at = {batch, 0, 0}, .cols = 64};
    const struct sample sample = {.channel = ch, .tiles = &tile, .n = 1};
    char said[SENTENCE_BYTES];
    rule.channel = ch;
    rule_say(&sample, &rule, said, sizeof said);
    assert_string_equal(said, words);
}

static void expect_in(int batch, enum asc_channel ch, struct rule rule, const char *words)
{
    expect_of(ONE_TILE, batch, ch, rule, words);
}

static void expect(enum asc_channel ch, struct rule rule, const char *words)
{
    expect_in(1, ch, rule, words);
}

static struct rule of(enum rule_kind kind)
{
    return rule_new(kind);
}

static struct rule in(struct rule rule, enum axis axis, enum condition condition, int a)
{
    rule.region.term[rule.region.n++] = (struct term){axis, condition, a, 0};
    return rule;
}

static void one_is_not_many(void **state)
{
    (void)state;
    struct rule keys = of(RULE_KEYS), seen = of(RULE_SEEN), is = of(RULE_CONSTANT);
    keys.keys = (struct term){AXIS_COL, EQUAL, 5, 0};
    keys.weight = 2;
    expect(asc_l, keys, "l counts key 5 of every tile 2 times");
    expect(asc_l, in(keys, AXIS_ROW, EQUAL, 3), "l counts key 5 2 times in row 3");
    keys.weight = 0;
    keys.keys = (struct term){AXIS_COL, NO_RESIDUE, 4, 1};
    expect(asc_m, keys, "m leaves out all keys but those with c mod 4 = 1 of every tile");
    expect(asc_s, in(is, AXIS_ROW_OF_HEAD, EQUAL, 127), "S is 0 in row 127 of the head");
    expect(asc_s, in(is, AXIS_HEAD, EQUAL, 1), "S is 0 in head 1");
    seen.plus = 1;
    expect(asc_s, seen, "the mask's last key is off by +1: rows see a key too many");
    seen.plus = -64;
    expect(asc_s, seen, "the mask's last key is off by -64: rows see up to 64 keys too few");
    seen.rows.hidden = true;
    expect(asc_s, seen, "the mask's first key is off by -64: rows see up to 64 keys too many");
}

/* Splits that stay with their own are one, a few neighbors, or all but these. */
static void splits_that_stay(void **state)
{
    (void)state;
    static const char *const swapped =
        "m and l of a split are exchanged, each taken for the other, where splits are merged";
    static const struct {
        enum stays stays;
        int together;
        const char *but;
    } rows[] = {{STAYS_NONE, 1, ""},
                {STAYS_OF_COLUMN, 1, ", but for split c / 16 in column c"},
                {STAYS_OF_COLUMN, 2, ", but for the splits i with i / 2 = c / 32 in column c"},
                {STAYS_OF_ROW, 2, ", but for the splits i with i / 2 = r / 32 in row r"},
                {STAYS_LAST, 1, ", but for the last split"},
                {STAYS_LAST, 2, ", but for the last 2 splits"},
                {STAYS_OTHERS, 1, ", of split c / 16 in column c alone"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rule rule = of(RULE_SPLITS);
        char words[SENTENCE_BYTES];
        rule.taken = TAKEN_SWAPPED;
        rule.stays = rows[i].stays;
        rule.stay_together = rows[i].together;
        snprintf(words, sizeof words, "%s%s", swapped, rows[i].but);
        expect(asc_o, rule, words);
    }
}

/* Rows and columns that count in their tile say so, where there is another way to count them. */
static void rows_of_the_tile_are_no_rows_of_the_head(void **state)
{
    (void)state;
    struct rule seen = of(RULE_SEEN), keys = of(RULE_KEYS), rows = of(RULE_ROWS), is = of(RULE_CONSTANT);
    const struct rule from = in(is, AXIS_ROW, FROM, 48), column = in(is, AXIS_COL, EQUAL, 5);
    seen.plus = SEEN_ALL;
    expect_of(TILES, 0, asc_s, in(seen, AXIS_ROW, FROM, 48),
              "keys after the mask's last one are seen too: that limit is missing in rows of the tile from 48 on");
    expect_of(ONE_TILE, 0, asc_s, from, "S is 0 in rows from 48 on");
    expect_of(TILES, 0, asc_s, in(from, AXIS_KV_TILE, EQUAL, 1), "S is 0 in kv tile 1 of rows from 48 on");
    expect_of(TILES, 0, asc_s, in(from, AXIS_HEAD, EQUAL, 1), "S is 0 in head 1 of rows of the tile from 48 on");
    expect_of(TILES, 0, asc_s, column, "S is 0 in column 5 of the tile");
    expect_of(TILES, 0, asc_o, column, "O is 0 in column 5");
    for (int a = 3; a <= 4; a++) { /* of 64 rows the fourth part is the same however they are counted */
        struct rule every = in(is, AXIS_ROW, RESIDUE, a);
        expect_of(TILES, 0, asc_u, every,
                  a == 3 ? "U is 0 in rows of the tile with r mod 3 = 0" : "U is 0 in rows with r mod 4 = 0");
    }
    keys.keys = (struct term){AXIS_COL, EQUAL, 5, 0};
    keys.weight = 2;
    expect_of(TILES, 0, asc_l, in(keys, AXIS_ROW, EQUAL, 3), "l counts key 5 of the tile 2 times in row 3 of the tile");
    rows.rows.operand = rows.rows.tensor = asc_k;
    rows.map = (struct map){.kind = MAP_QUOTIENT, .a = 2};
    expect_of(TILES, 0, asc_k, rows, "K holds row r / 2 of the tile where row r is wanted");
    rows.map = (struct map){.kind = MAP_PLUS, .a = -8};
    expect_of(TILES, 0, asc_k, rows, "K holds row r - 8 where row r is wanted");
}

static void packed_rows(void **state)
{
    (void)state;
    struct rule seen = of(RULE_SEEN), alibi = of(RULE_SCORE), sink = of(RULE_SINK);
    seen.rows.whole = true;
    seen.rows.packed = 3;
    expect(asc_s, seen,
           "the last key that row r of the head sees is that of row n, n being r * 3 + g, its place among packed rows, "
           "and g the head's number in its group");
    alibi.places = (struct places){.edited = true, .packed = 3, .distance = DISTANCE_AWAY};
    expect(
        asc_s, alibi,
        "ALiBi adds slope -|i - j|, i being the diagonal of row r * 3 + g, g being the head's number in its group, j "
        "the key");
    sink.rows.head = (struct map){.kind = MAP_QUOTIENT, .a = 3, .b = 3};
    expect(asc_alpha, sink, "the sink is that of head h - h mod 3 where it should be h");
}

static void the_last_tile_has_none_after_it(void **state)
{
    (void)state;
    struct rule vector = of(RULE_VECTOR);
    vector.slot = SLOT_L;
    vector.entry = ENTRY_L_PREV;
    expect(asc_o, vector, "O is made with another l: l before the last tile");
    vector.slot = SLOT_M;
    vector.entry = ENTRY_M_PREV;
    expect(asc_lse, vector, "LSE is made with another m: m before the last tile");
    expect(asc_p, vector, "P is made with another m: m_prev, the maximum before this tile");
    expect(asc_m, of(RULE_STALE), "m is that of the tile visited before");
}

static void nothing_is_said_of_a_term_that_is_not_there(void **state)
{
    (void)state;
    struct rule terms = of(RULE_TERMS), exponent = of(RULE_EXPONENT);
    terms.old_factor = terms.old_power = 0;
    expect(asc_u, terms, "U = p v: the tiles before are dropped");
    terms.new_factor = 0;
    expect(asc_u, terms, "U = 0");
    exponent.power = 0;
    expect(asc_p, exponent, "P = exp(s): m is not subtracted");
    exponent.factor = 0;
    expect(asc_p, exponent, "P = exp(0): m is not subtracted");
}

static void a_scale_is_that_of_another_group_or_head(void **state)
{
    (void)state;
    struct rule scale = of(RULE_SCALE);
    scale.rows.operand = scale.rows.tensor = asc_k;
    scale.rows.head = (struct map){.kind = MAP_PLUS, .a = 1};
    expect(asc_k, scale,
           "K gets the scale of another head, head h + 1 where it should be h, counted through the batches");
    scale.map = (struct map){.kind = MAP_PLUS, .a = -1};
    expect(asc_k, scale,
           "K gets the scale of another group and head: group g - 1 where group g is wanted, head h + 1 where it "
           "should be "
           "h, counted through the batches");
    /* How heads of other batches are counted a first one alone does not tell. */
    expect_in(0, asc_k, scale,
              "K gets the scale of another group and head: group g - 1 where group g is wanted, head h + 1 where it "
              "should be h");
    scale.rows.head.kind = MAP_SAME;
    expect(asc_k, scale, "K gets the scale of another group: group g - 1 where group g is wanted");
    scale.rows.by_query = true;
    scale.map.kind = MAP_SAME;
    expect(asc_k, scale, "K gets the scale of another head, head h for query head h, counted through the batches");
}

static void codes_and_scales_are_read_otherwise(void **state)
{
    (void)state;
    struct rule half = of(RULE_HALF), scale = of(RULE_SCALE);
    half.rows.operand = scale.rows.operand = scale.rows.tensor = asc_v;
    half.half = HALF_EXCHANGED;
    expect(asc_v, half, "the two codes of each byte of V are exchanged");
    half.half = HALF_E1M2;
    expect(asc_v, half, "the codes of V are read as e1m2: one bit of exponent, two of significand");
    scale.scale_reading = SCALE_TENSOR_TWICE;
    expect(asc_v, scale, "V gets the scale of the tensor twice");
    scale.scale_reading = SCALE_BIAS_128;
    expect(asc_v, scale, "the scales of V are read as 2^(code - 128), not 2^(code - 127)");
    scale.scale_reading = SCALE_AS_E5M2;
    expect(asc_v, scale, "the bits of the scales of V are read as e5m2");
    scale.scale_reading = SCALE_AS_IT_IS;
    scale.rows.flat = true;
    scale.map = (struct map){.kind = MAP_PITCH, .a = 4, .b = 1};
    expect(asc_v, scale, "scales of V are read as if a head had 1 scale, not 4");
    scale.rows.whole = true;
    scale.map = (struct map){.kind = MAP_TURNED, .a = 2, .b = 4};
    expect(asc_v, scale, "scales of V lie as [group][part] and are read as [part][group], of each head");
    scale.map = (struct map){.kind = MAP_TURNED, .a = 4, .b = 2};
    expect(asc_v, scale, "scales of V lie as [part][group] and are read as [group][part], of each head");
    scale.map.b = 1;
    expect(
        asc_v, scale,
        "V gets another scale: number i mod 4 * 1 + i / 4 where number i is wanted, counted through its head, group by "
        "group");
}

static void rows_of_pages_and_of_descriptors(void **state)
{
    (void)state;
    struct rule rows = of(RULE_ROWS);
    rows.rows.operand = rows.rows.tensor = asc_k;
    rows.rows.whole = rows.rows.paged = true;
    rows.map = (struct map){.kind = MAP_TURNED, .a = 16, .b = 2};
    expect(asc_k, rows, "K holds rows with their number and their head's exchanged within a page");
    rows.rows.paged = false;
    rows.map = (struct map){.kind = MAP_BITS, .bits = 8};
    for (int k = 0; k < 8; k++)
        rows.map.row[k] = k == 5 ? 0 : 1u << k;
    expect(asc_k, rows, "K holds row r mod 32 of each 64 where row r is wanted: rows 32 to 63 hold rows 0 to 31");
    rows.map.row[6] = 0;
    expect(asc_k, rows, "K holds row r mod 32 of each 128 where row r is wanted");
    rows.rows.whole = false;
    rows.rows.span = 8;
    map_describe(0, MAP_PANEL_PIECES, &rows.map);
    expect(asc_k, rows,
           "K holds what is read of the swizzle of 128 bytes with k steps of 16 bytes, not 32, rows 32 bytes apart, "
           "not 128, "
           "groups of 8 rows 16 bytes apart, not 1024, a swizzle of 16 bytes, not 128");
    rows.map = (struct map){.kind = MAP_PANELS, .a = 2 * MAP_PANEL_PIECES, .b = 64, .bits = 128};
    expect(asc_s, rows, "K is read with panels of 64 elements that lie 128 rows apart and are read 64 apart");
}

/* Bits that move alike are said at once: a sentence that is cut would lose its region. */
static void maps_of_bits(void **state)
{
    (void)state;
    struct rule place = of(RULE_PLACE);
    place.keys.a = 5;
    place.map = (struct map){.kind = MAP_BITS, .bits = 10};
    for (int k = 0; k < 10; k++)
        place.map.row[k] = k < 5 ? 32u << k : 1u << k;
    expect(asc_s, in(place, AXIS_KV_TILE, EQUAL, 0),
           "S holds columns out of place: bits 0 to 4 of the column are bits 0 to 4 of the row in kv tile 0");
    for (int k = 0; k < 5; k++)
        place.map.row[k] = 1u << k;
    place.map.flip = 31;
    expect(asc_u, place,
           "what the tile adds to U holds columns out of place: bits 0 to 4 of the column are bits 0 to 4 of the "
           "column inverted");
    place.map.flip = 4;
    expect(asc_u, place,
           "what the tile adds to U holds columns out of place: bit 2 of the column is bit 2 of the column inverted");
    place.map.flip = 0;
    place.map.row[2] = 1u << 8;
    place.map.row[8] = 1u << 2;
    expect(asc_s, place,
           "S holds rows and columns out of place: bit 2 of the column and bit 3 of the row are exchanged");
    place.map.row[8] = 0;
    expect(asc_s, place,
           "S holds rows and columns out of place: bit 2 of the column is bit 3 of the row, bit 3 of the row is 0");
    /* Rows of a tile of four: there is no fifth one. */
    place = of(RULE_PLACE);
    place.map = (struct map){.kind = MAP_BITS, .bits = 2, .row = {2, 1}};
    expect(asc_s, place, "S holds row r' (0 2 1 3 for r = 0 to 3), column c where row r, column c is wanted");
}

static void weights_of_splits_and_narrow_sums(void **state)
{
    (void)state;
    struct rule splits = of(RULE_SPLITS), sum = of(RULE_SUMMED);
    splits.keys.condition = EVERY;
    splits.map = (struct map){.kind = MAP_PLUS, .a = -8};
    expect(asc_o, splits, "the splits' weights are those of row r - 8 where row r is merged");
    splits.stays = STAYS_OF_COLUMN;
    splits.by_m = true;
    expect(asc_o, splits,
           "the splits' weights exp(m) / Σ exp(m) l are, but for split c / 16 in column c, those of row r - 8 where "
           "row r is "
           "merged");
    splits.stays = STAYS - 1;
    splits.by_m = false;
    splits.total = TOTAL_ALONE;
    expect(asc_o, splits,
           "the splits' weights are, of the last split alone, divided by the sum of row r - 8 where row r is merged");
    sum.type = DTYPE_BF16;
    sum.share = 8;
    expect(asc_s, sum, "S is summed in bf16: rounded after every 8 elements");
    sum.share = 1;
    sum.cuts = true;
    expect(asc_u, sum, "U is summed in bf16: cut off after every key");
    sum.share = 64;
    expect(asc_s, sum, "the sum that S is made of is cut off to bf16 before it is scaled");
}

static void splits_that_meet_others(void **state)
{
    (void)state;
    struct rule splits = of(RULE_SPLITS);
    splits.of_items = true;
    splits.keys.condition = EVERY;
    splits.map = (struct map){.kind = MAP_BITS, .bits = 2, .row = {1, 2}, .flip = 1};
    expect(asc_o, splits, "the weight of split i ^ 1 meets the output of split i where splits are merged");
    splits.taken = TAKEN_M;
    expect(asc_o, splits, "the m of split i ^ 1 meets the l and the output of split i where splits are merged");
    expect(asc_lse, splits, "the m of split i ^ 1 meets the l of split i where splits are merged");
    splits.total = TOTAL_ALONE;
    expect(asc_o, splits,
           "the m of split i ^ 1 meets the l of split i where splits are merged, in the sum of weights alone");
    splits.total = TOTAL_OWN;
    splits.stays = STAYS_OF_COLUMN;
    splits.map = (struct map){.kind = MAP_FIXED, .a = -1};
    expect(asc_o, splits,
           "the m of the last split meets the output of split i, but for split c / 16 in column c, where splits are "
           "merged, though not in the sum of weights");
    splits = of(RULE_SPLITS);
    splits.keys.condition = EVERY;
    splits.type = DTYPE_F16;
    splits.narrow_lse = true;
    expect(asc_lse, splits, "the LSE of the splits is rounded to f16 before the merge");
    splits.narrow_output = splits.cuts = true;
    expect(asc_o, splits, "the outputs and LSE of the splits are cut off, not rounded, to f16 before the merge");
}

static void narrow_scales_and_angles(void **state)
{
    (void)state;
    struct rule scale = of(RULE_SCALE), turned = of(RULE_TURNED);
    scale.rows.operand = scale.rows.tensor = asc_v;
    scale.scale_reading = SCALE_POWER_ABOVE;
    expect(asc_v, scale, "the scales of V are rounded up to powers of 2");
    scale.scale_reading = SCALE_AS_IT_IS;
    scale.blocks = (struct blocks){.rows = 32, .dims = 16};
    expect(asc_v, scale, "scales of V are looked up as if each stood for 32 rows, not 0, and 16 elements, not 0");
    scale.blocks.row_plus = -1;
    expect(asc_v, scale, "each row of V gets the scale of the one 1 before it");
    turned.rows.operand = asc_q;
    turned.turned.times = -1;
    turned.turned.quarters = 1;
    expect(asc_q, turned, "Q is turned with sine and cosine exchanged");
    turned.turned.times = 1;
    turned.turned.quarters = -1;
    expect(asc_q, turned, "Q is turned by 90 degrees less than by its angle");
    turned.turned.quarters = 0;
    turned.turned.narrow = ROPE_NARROW_BASE;
    turned.turned.narrow_type = DTYPE_BF16;
    expect(asc_q, turned, "Q is turned by angles of which those of position 1 are rounded to bf16");
}

static void what_is_read_further_on_turned_in_place_or_rounded(void **state)
{
    (void)state;
    struct rule rows = of(RULE_ROWS), turned = of(RULE_TURNED), codes = of(RULE_QUANTIZED);
    rows.rows.operand = rows.rows.tensor = asc_v;
    rows.rows.whole = true;
    rows.rows.span = 8;
    rows.map = (struct map){.kind = MAP_PLUS, .a = -3};
    expect(asc_v, in(rows, AXIS_BATCH, EQUAL, 1),
           "V holds, row after row, the element 24 before the one that is wanted in batch 1");
    turned.rows.operand = asc_k;
    turned.turned.times = 1;
    turned.turned.reuse = REUSE_SECOND;
    expect(asc_k, turned,
           "K is turned in place: the first element of each pair is made of the second one that is turned already");
    codes.cuts = true;
    codes.plus = 0.5;
    expect(
        asc_q, codes,
        "codes of Q are rounded by adding 0.5 and cutting off, as is right of positive ones alone: negative ones are "
        "one too high");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_not_many),
        cmocka_unit_test(splits_that_stay),
        cmocka_unit_test(rows_of_the_tile_are_no_rows_of_the_head),
        cmocka_unit_test(packed_rows),
        cmocka_unit_test(the_last_tile_has_none_after_it),
        cmocka_unit_test(nothing_is_said_of_a_term_that_is_not_there),
        cmocka_unit_test(a_scale_is_that_of_another_group_or_head),
        cmocka_unit_test(codes_and_scales_are_read_otherwise),
        cmocka_unit_test(rows_of_pages_and_of_descriptors),
        cmocka_unit_test(maps_of_bits),
        cmocka_unit_test(weights_of_splits_and_narrow_sums),
        cmocka_unit_test(splits_that_meet_others),
        cmocka_unit_test(narrow_scales_and_angles),
        cmocka_unit_test(what_is_read_further_on_turned_in_place_or_rounded),
    };
    return cmocka_run_group_tests_name("oracle: search, in words", tests, NULL, NULL);
}
