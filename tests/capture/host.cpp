/* A process that is captured, without CUDA: its "kernel" runs on the host and writes through the bound state, as probes
   do. host TRACE WHAT [EXTRA JSON], on the driver that is none (tests/gpu/fake_cuda.c). */
#include "attnscope.h"
#include "attnscope_capture.h"
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <vector>

#ifndef BR
#define BR 8
#endif
#define TEXT(x) #x
#define PLAN(br) R"("plan": {"br": )" TEXT(br) R"(, "bc": 8, "threads": 32})"
enum { BATCH = 1, HEADS = 2, LENGTH = 24, D = 16, BC = 8, TILES = LENGTH / BR };

static asc_device state;

static int state_address(void **address)
{
    *address = &state;
    return 0;
}
/* As probes/record.h has it; this file holds no probe, for the reader of probe lines: ASC_RECORD(s, in a comment. */
__attribute__((used)) static asc_noted_module asc_module_noted = {ASC_ABI_VERSION, sizeof state, 1, 0, SOURCE,
                                                                  nullptr,         state_address};
__asm__(".pushsection .note.attnscope, \"a\", %note\n"
        ".balign 4\n.long 10, 8, 1\n.asciz \"attnscope\"\n.balign 4\n.quad _ZL16asc_module_noted - .\n"
        ".popsection");

/* What ASC_TWICE goes by is right whenever the process ends of its own accord. */
static const struct bound_is_said {
    ~bound_is_said()
    {
        if (asc_module_noted.bound != (state.batch != 0))
            _exit(9);
    }
} bound_is_said;

static int batch; /* of the sequence that is worked on */

static void record(int channel, int head, int q_tile, int kv, int row, int col, float value)
{
    const int slot = asc_module_noted.bound ? state.slot[(batch * HEADS + head) * TILES + q_tile] : -1;
    const asc_channel_map &map = state.channel[channel];
    if (slot < 0 || map.dtype < 0)
        return;
    unsigned char *tile = state.trace + map.offset + slot * map.slot_stride + kv * map.kv_stride;
    reinterpret_cast<float *>(tile)[row * map.cols + col] = value;
    unsigned char *stamp = state.stamps + state.stamp[channel].offset + slot * state.stamp[channel].slot_stride +
                           kv * state.stamp[channel].kv_stride;
    *reinterpret_cast<uint64_t *>(stamp) = 1 + kv;
}

/* What stands beside the products: a bias for each head, and ALiBi; or a mask of each head; or a formula. */
static struct {
    std::vector<float> bias, slopes;
    std::vector<uint8_t> mask;
    bool formula;
} terms;

static float term(int head, int i, int j)
{
    if (!terms.mask.empty() && !terms.mask[(head * LENGTH + i) * LENGTH + j])
        return -INFINITY;
    if (terms.formula)
        return -0.125f * fabsf(float(i - j));
    if (terms.bias.empty())
        return 0;
    return terms.bias[(head * LENGTH + i) * LENGTH + j] - terms.slopes[head] * fabsf(float(i - j));
}

enum { PAGE = 5 };

/* Of a sequence of so many rows; keys in pages of PAGE rows, where there are any. */
static void attention(const float *q, const float *k, const float *v, const asc_tensor &layout, float *o, float *lse,
                      bool mistaken, int length = LENGTH, int64_t o_row = D, int64_t o_head = LENGTH * D,
                      const int *pages = nullptr)
{
    const auto key = [&](int h, int j) {
        return h * layout.stride[1] + (pages ? pages[j / PAGE] * PAGE + j % PAGE : j) * layout.stride[2];
    };
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < length; i++) {
            float m = -INFINITY, l = 0, u[D] = {};
            for (int t = 0; t * BC < length; t++) {
                const int keys = length - t * BC < BC ? length - t * BC : BC;
                float s[BC], p[BC], before = m;
                for (int j = 0; j < keys; j++) {
                    s[j] = 0;
                    for (int d = 0; d < D; d++)
                        s[j] += q[h * layout.stride[1] + i * layout.stride[2] + d] * k[key(h, t * BC + j) + d];
                    s[j] = s[j] * 0.25f + term(h, i, t * BC + j);
                    m = fmaxf(m, s[j]);
                    record(asc_s, h, i / BR, t, i % BR, j, s[j]);
                }
                const float alpha = expf(before - m);
                l *= alpha;
                for (int d = 0; d < D; d++)
                    u[d] *= mistaken && t ? 1 : alpha;
                for (int j = 0; j < keys; j++) {
                    l += p[j] = expf(s[j] - m);
                    for (int d = 0; d < D; d++)
                        u[d] += p[j] * v[key(h, t * BC + j) + d];
                    record(asc_p, h, i / BR, t, i % BR, j, p[j]);
                }
                record(asc_m, h, i / BR, t, i % BR, 0, m);
                record(asc_l, h, i / BR, t, i % BR, 0, l);
                for (int d = 0; d < D; d++)
                    record(asc_u, h, i / BR, t, i % BR, d, u[d]);
            }
            for (int d = 0; d < D; d++)
                o[h * o_head + i * o_row + d] = u[d] / l;
            lse[h * LENGTH + i] = m + logf(l);
        }
}

/* Rows of codes, and how they are described. */
static const struct coding {
    const char *what, *problem;
    int rows, dims; /* of a scale; 0: all of a head */
    float tensor;
} codings[] = {{"codes", R"("dtype": "u8")", 0, 0, 1},
               {"s8", R"("dtype": "s8")", 0, 0, 1},
               {"s8-as-u8", R"("dtype": "u8")", 0, 0, 1},
               {"mxfp8", R"("dtype": "e4m3", "scale_rows": 1, "scale_dims": 8, "scale_type": "e8m0")", 1, 8, 1},
               {"mxfp4", R"("dtype": "e2m1", "scale_rows": 1, "scale_dims": 8, "scale_type": "e8m0")", 1, 8, 1},
               {"nvfp4", R"("dtype": "e2m1", "scale_rows": 1, "scale_dims": 8, "scale_type": "e4m3",
                "q_tensor_scale": 0.5, "k_tensor_scale": 0.5, "v_tensor_scale": 0.5)",
                1, 8, 0.5f}};

static float decode(const std::string &what, uint8_t code)
{
    const int magnitude = code & 7, exponent = code >> 3 & 15;
    if (what == "codes")
        return float(code - 128);
    if (what.substr(0, 2) == "s8")
        return float(int8_t(code));
    const float of_e4m3 = exponent ? ldexpf(1 + magnitude / 8.0f, exponent - 7) : ldexpf(magnitude / 8.0f, -6);
    const float of_e2m1 = magnitude < 2 ? 0.5f * magnitude : ldexpf(1 + 0.5f * (magnitude & 1), (magnitude >> 1) - 1);
    return what == "mxfp8" ? code & 128 ? -of_e4m3 : of_e4m3 : code & 8 ? -of_e2m1 : of_e2m1;
}

/* Q or K as RoPE turns it, pairs i and i + D / 2. */
static void turn(std::vector<float> &rows)
{
    for (size_t row = 0; row < rows.size() / D; row++)
        for (int i = 0; i < D / 2; i++) {
            const double angle = double(row % LENGTH) * pow(10000.0, -2.0 * i / D);
            const float c = float(cos(angle)), s = float(sin(angle));
            float *x = &rows[row * D + i], *y = x + D / 2, before = *x;
            *x = before * c - *y * s;
            *y = before * s + *y * c;
        }
}

/* Two sequences, one behind the other, keys in pages or not, or each of LENGTH rows, keys at their end, as attention()
   has one. */
static int sequences(const char *path, bool paged, bool left_pad)
{
    const int lens[2] = {LENGTH, 13}, rows = 2 * LENGTH;
    const int tables[2][5] = {{7, 2, 0, 9, 4}, {1, 6, 3}};
    std::vector<float> q, k, v, o(rows * HEADS * D), lse(2 * HEADS * LENGTH, NAN);
    for (auto *one : {&q, &k, &v})
        for (int i = 0; i < 10 * PAGE * HEADS * D; i++)
            one->push_back(float(rand()) / float(RAND_MAX) - 0.5f);
    const asc_tensor row = {nullptr, {HEADS * D, D, 1}}, page = {nullptr, {PAGE * HEADS * D, HEADS * D, D, 1}};
    asc_tensors tensors = {};
    tensors.q = row;
    tensors.k = tensors.v = paged ? page : row;
    const asc_tensor padded = {nullptr, {LENGTH * HEADS * D, HEADS * D, D, 1}};
    if (left_pad)
        tensors.q = tensors.k = tensors.v = padded;
    tensors.q.data = q.data();
    tensors.k.data = k.data();
    tensors.v.data = v.data();
    const std::string json =
        R"({"problem": {"batch": 2, "heads": 2, "q_len": 24, "head_dim": 16, "dtype": "f32", "layout": )" +
        std::string(left_pad ? R"("BLHD", "left_pad": 1)" : R"("THD")") +
        std::string(paged ? R"(, "page_size": 5, "pages": 10)" : "") +
        R"(}, "sequences": {"q_lens": [24, 13], "kv_lens": [24, 13])" +
        (paged ? R"(, "page_table": [[7, 2, 0, 9, 4], [1, 6, 3, 0, 0]])" : "") +
        R"(}, "plan": {"br": 8, "bc": 8, "threads": 32}, "conventions": {"s_unit": "scaled", "m_unit": "scaled"},
        "capture": {"path": ")" +
        path + "\"}}";
    asc_capture *capture = nullptr;
    char why[1280];
    int failed = asc_capture_begin(json.c_str(), &tensors, &capture, why, sizeof why);
    const asc_tensor layout = {nullptr, {0, D, HEADS * D, 1}}, of_lse = {lse.data(), {}};
    for (int64_t begin = 0; !failed && batch < 2; begin += (left_pad ? LENGTH : lens[batch]) * HEADS * D, batch++) {
        const int64_t keys = paged ? 0 : begin + (left_pad ? (LENGTH - lens[batch]) * HEADS * D : 0);
        attention(q.data() + begin, k.data() + keys, v.data() + keys, layout, o.data() + begin,
                  lse.data() + batch * HEADS * LENGTH, false, lens[batch], HEADS * D, D,
                  paged ? tables[batch] : nullptr);
    }
    asc_tensor of_o = left_pad ? padded : row;
    of_o.data = o.data();
    failed = failed || asc_capture_end(capture, &of_o, &of_lse, why, sizeof why);
    if (failed)
        fprintf(stderr, "%s\n", why);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const std::string what = argv[2];
    if (what == "varlen" || what == "paged" || what == "left-pad")
        return sequences(argv[1], what == "paged", what == "left-pad");
    const bool by_row = what == "strides"; /* heads side by side in a row of one packed array */
    std::vector<float> data[3], o(HEADS * LENGTH * D), lse(HEADS * LENGTH);
    for (auto &one : data)
        for (int i = 0; i < HEADS * LENGTH * D; i++)
            one.push_back(float(rand()) / float(RAND_MAX) - 0.5f);
    asc_tensors tensors = {};
    asc_tensor *const inputs[] = {&tensors.q, &tensors.k, &tensors.v};
    for (int i = 0; i < 3; i++) {
        const asc_tensor dense = {data[i].data(), {HEADS * LENGTH * D, LENGTH * D, D, 1}};
        const asc_tensor packed = {data[i].data(), {HEADS * LENGTH * D, D, HEADS * D, 1}};
        *inputs[i] = by_row ? packed : dense;
    }
    if (what == "turned")
        tensors.k.stride[3] = 2;
    if (what == "no-v")
        tensors.v.data = nullptr;
    /* The kernel multiplies what codes stand for. */
    const coding *coded = nullptr;
    for (const coding &one : codings)
        if (what == one.what)
            coded = &one;
    std::vector<uint8_t> codes[3];
    std::vector<float> scales[3];
    asc_tensor *const of_scales[] = {&tensors.q_scale, &tensors.k_scale, &tensors.v_scale};
    for (int i = 0; i < 3 && coded; i++) {
        const int share = coded->rows ? coded->dims : LENGTH * D,
                  bits = what.substr(1) == "xfp4" || what == "nvfp4" ? 15 : 255;
        scales[i] = {0.0078125f * float(1 + i), 0.015625f};
        for (int e = 0; coded->rows && e < HEADS * LENGTH * D / share; e++)
            scales[i].resize(size_t(e) + 1, 0), scales[i][size_t(e)] = ldexpf(1, rand() % 3 - (bits == 255 ? 7 : 2));
        for (int e = 0; e < HEADS * LENGTH * D; e++) {
            const int code = rand() & bits;
            codes[i].push_back(uint8_t(what == "mxfp8" && (code & 127) == 127 ? code & 128 : code));
            data[i][e] = decode(what, codes[i][e]) * scales[i][e / share] * coded->tensor;
        }
        inputs[i]->data = codes[i].data();
        of_scales[i]->data = scales[i].data();
    }
    if (what == "terms") {
        for (int e = 0; e < HEADS * LENGTH * LENGTH; e++)
            terms.bias.push_back(float(rand()) / float(RAND_MAX));
        terms.slopes = {0.5f, 0.125f};
        tensors.bias.data = terms.bias.data();
        tensors.alibi.data = terms.slopes.data();
    }
    if (what == "mask") {
        for (int e = 0; e < HEADS * LENGTH * LENGTH; e++)
            terms.mask.push_back(e % LENGTH == 0 || rand() % 3);
        tensors.mask.data = terms.mask.data();
    }
    terms.formula = what == "score-mod";
    std::vector<float> given[2] = {data[0], data[1]};
    if (what == "rope")
        for (int i = 0; i < 2; i++) {
            turn(data[i]);
            inputs[i]->data = given[i].data();
        }
    std::string json = R"({"problem": {"batch": 1, "heads": 2, "q_len": 24, "head_dim": 16, "dtype": "f32"},
        )" PLAN(BR) R"(, "conventions": {"s_unit": "scaled", "m_unit": "scaled"},
        "capture": {"path": ")" +
                       std::string(argv[1]) + "\"" + (argc > 3 ? argv[3] : "") + "}}";
    const char *more = coded                 ? coded->problem
                       : what == "terms"     ? R"("dtype": "f32", "has_alibi": 1, "bias_kind": "per-head")"
                       : what == "mask"      ? R"("dtype": "f32", "mask_kind": "per-head")"
                       : what == "score-mod" ? R"--("dtype": "f32", "score_mod": "s - 0.125 * abs(i - j)")--"
                       : what == "rope"
                           ? R"("dtype": "f32", "rope": "half", "rope_dim": 16, "rope_offset": 0, "rope_base": 10000)"
                           : R"("dtype": "f32")";
    json.replace(json.find(R"("dtype": "f32")"), 14, more);
    if (coded)
        json.insert(json.find(R"("plan")"), R"("types": {"o": "f32"}, )");
    if (what == "json")
        json = argv[3];
    asc_capture *capture = nullptr;
    char why[1280];
    if (asc_capture_begin(json.c_str(), &tensors, &capture, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (what == "late") {
        if (!dlopen(argv[4], RTLD_NOW))
            return 3;
        printf("%d\n", asc_capture_late(capture, 0));
    }
    attention(data[0].data(), data[1].data(), data[2].data(), tensors.q, o.data(), lse.data(), what == "mistake");
    if (what == "killed")
        kill(getpid(), SIGKILL);
    if (what == "drop") {
        asc_capture_drop(capture);
        return state.batch ? 4 : 0;
    }
    const asc_tensor of_o = {o.data(), {}}, of_lse = {lse.data(), {}};
    const int failed = asc_capture_end(capture, &of_o, what == "no-lse" ? nullptr : &of_lse, why, sizeof why);
    if (failed || *why)
        fprintf(stderr, "%s\n", why);
    return failed ? 1 : state.batch ? 4 : 0;
}
