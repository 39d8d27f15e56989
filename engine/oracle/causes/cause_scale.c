#include "engine/oracle/causes/cause_scale.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include <stdio.h>

/* Another scale than its own: of a neighboring group or the first, of a neighboring head or the first, the largest of
   the tensor as if there were one for all of it, or that of another input. */
enum other_scale {
    GROUP_BEFORE,
    GROUP_BEHIND,
    GROUP_FIRST,
    HEAD_BEFORE,
    HEAD_BEHIND,
    HEAD_FIRST,
    LARGEST,
    OF_Q,
    OF_K,
    OF_V,
    OTHER_SCALES
};

static const char *const other_scale_names[OTHER_SCALES] = {"that of the rows before",
                                                            "that of the rows behind",
                                                            "that of the head's first rows",
                                                            "that of the head before",
                                                            "that of the head behind",
                                                            "that of the first head",
                                                            "the largest of the tensor",
                                                            "that of Q",
                                                            "that of K",
                                                            "that of V"};

static double at(const float *scale, int group, int groups)
{
    return scale && group >= 0 && group < groups ? (double)scale[group] : NAN;
}

/* Groups lie in memory head by head. */
static double other_scale(const struct oracle_case *c, enum asc_channel ch, enum other_scale which, int r)
{
    const struct coding *coding = codes_of(c, ch);
    const int groups = coding->groups, group = coding->rows > 0 ? (coding->first + r) / coding->rows : 0;
    const enum asc_channel input = which == OF_Q ? asc_q : which == OF_K ? asc_k : asc_v;
    if (which <= GROUP_FIRST && groups == 1)
        return NAN; /* a neighboring head's, or its own */
    switch (which) {
    case GROUP_BEFORE:
        return group > 0 ? at(coding->scale, group - 1, groups) : at(coding->before, groups - 1, groups);
    case GROUP_BEHIND:
        return group + 1 < groups ? at(coding->scale, group + 1, groups) : at(coding->behind, 0, groups);
    case GROUP_FIRST:
        return at(coding->scale, 0, groups);
    case HEAD_BEFORE:
        return at(coding->before, group, groups);
    case HEAD_BEHIND:
        return at(coding->behind, group, groups);
    case HEAD_FIRST:
        return at(coding->head0, group, groups);
    case LARGEST:
        return coding->largest > 0 ? coding->largest : NAN;
    default:
        return input == ch ? NAN : at(codes_of(c, input)->scale, group, codes_of(c, input)->groups);
    }
}

double cause_scale(const struct oracle_case *c, enum asc_channel ch, enum cause_scale wrong, int parameter, int r)
{
    const double right = codes_scale(codes_of(c, ch), r);
    if (wrong == SCALE_MISSING)
        return 1;
    return wrong == SCALE_TWICE ? right * right : other_scale(c, ch, (enum other_scale)parameter, r);
}

/* Missing or twice: 0 both, 1 Q's, 2 K's. Another: those of Q, then those of K. */
enum { BOTH, Q_ONLY, K_ONLY, WHOSE };

double cause_scale_of_pair(const struct oracle_case *c, enum asc_channel ch, enum cause_scale wrong, int parameter,
                           int r)
{
    const int other = wrong == SCALE_OTHER, of_k = other ? parameter >= OTHER_SCALES : parameter == K_ONLY;
    const int concerned = (!other && parameter == BOTH) || of_k == (ch == asc_k);
    if (codes_use(c, ch) == CODES_NONE)
        return concerned && (other || parameter != BOTH) ? NAN : 1;
    return concerned ? cause_scale(c, ch, wrong, parameter % OTHER_SCALES, r) : codes_scale(codes_of(c, ch), r);
}

double cause_decode(enum cause_format format, uint8_t code)
{
    static const enum dtype types[FORMATS] = {
        [FORMAT_U8] = DTYPE_U8, [FORMAT_E4M3] = DTYPE_E4M3, [FORMAT_E5M2] = DTYPE_E5M2};
    if (format == FORMAT_I8)
        return code < 128 ? code : code - 256;
    return values_code(types[format], code);
}

/* A zero point that is left out, or one that is off by one, of Q, K or both. */
static const double zero_points[] = {ASC_U8_MIDPOINT, -ASC_U8_MIDPOINT, 1, -1};
enum { ZERO_POINTS = sizeof zero_points / sizeof zero_points[0] };

struct cause_zero_point cause_code_zero_point(int parameter)
{
    const int whose = parameter / ZERO_POINTS;
    return (struct cause_zero_point){zero_points[parameter % ZERO_POINTS], whose != K_ONLY, whose != Q_ONLY};
}

static double below(int i, int n)
{
    return i < n ? i : NAN;
}

static double other_scale_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, OTHER_SCALES);
}

static void other_scale_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    (void)c;
    snprintf(text, bytes, "%s", other_scale_names[(int)value]);
}

const struct cause_parameter parameter_wrong_scale_of_v = {other_scale_value, other_scale_describe};

static double wrong_of_qk_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, 2 * OTHER_SCALES);
}

static void wrong_of_qk_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const int i = (int)value;
    (void)c;
    snprintf(text, bytes, "for %s's %s", i < OTHER_SCALES ? "Q" : "K", other_scale_names[i % OTHER_SCALES]);
}

const struct cause_parameter parameter_wrong_scale_of_qk = {wrong_of_qk_value, wrong_of_qk_describe};

static double which_scale_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, WHOSE);
}

static void which_scale_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    static const char *const names[WHOSE] = {"both", "Q's", "K's"};
    (void)c;
    snprintf(text, bytes, "%s", names[(int)value]);
}

const struct cause_parameter parameter_which_scale = {which_scale_value, which_scale_describe};

/* The format that it is. */
static enum cause_format own_format(const struct oracle_case *c, enum asc_channel ch)
{
    const enum dtype t = codes_input(c, ch)->dtype;
    return t == DTYPE_E4M3 ? FORMAT_E4M3 : t == DTYPE_E5M2 ? FORMAT_E5M2 : FORMAT_U8;
}

static double format_value(const struct walk_tile *tile, enum asc_channel ch, int i)
{
    return below(i + (i >= (int)own_format(tile->c, ch)), FORMATS);
}

static double format_of_q_value(const struct walk_tile *tile, int i)
{
    return format_value(tile, asc_q, i);
}

static double format_of_k_value(const struct walk_tile *tile, int i)
{
    return format_value(tile, asc_k, i);
}

static double format_of_v_value(const struct walk_tile *tile, int i)
{
    return format_value(tile, asc_v, i);
}

static void format_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    static const char *const names[FORMATS] = {"u8 around 128", "signed bytes", "e4m3", "e5m2"};
    (void)c;
    snprintf(text, bytes, "as %s", names[(int)value]);
}

const struct cause_parameter parameter_format_of_q = {format_of_q_value, format_describe};
const struct cause_parameter parameter_format_of_k = {format_of_k_value, format_describe};
const struct cause_parameter parameter_format_of_v = {format_of_v_value, format_describe};

static double code_zero_point_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, WHOSE * ZERO_POINTS);
}

static void code_zero_point_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const struct cause_zero_point z = cause_code_zero_point((int)value);
    (void)c;
    snprintf(text, bytes, "%s codes of %s",
             z.z > 0    ? (z.z > 1 ? "128 more," : "1 more,")
             : z.z < -1 ? "128 less,"
                        : "1 less,",
             z.of_q && z.of_k ? "Q and K"
             : z.of_q         ? "Q"
                              : "K");
}

const struct cause_parameter parameter_code_zero_point = {code_zero_point_value, code_zero_point_describe};
