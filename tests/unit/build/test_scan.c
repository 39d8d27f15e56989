/* What the builder reads off the preprocessor's output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/diagnose.h"
#include "engine/build/scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const own[] = {"/root/probes/", "/root/engine/", NULL};

static int scan(const char *text, struct scan *result, struct err *err)
{
    *result = (struct scan){.own_folders = own, .compiled_path = "/cache/patched/k.cu", .user_path = "my/k.cu"};
    return scan_preprocessed(result, text, err);
}

static void test_sites(void **state)
{
    (void)state;
    struct scan result;
    struct err err = {0};
    const char *text = "# 0 \"/cache/patched/k.cu\"\n"
                       "# 1 \"/root/probes/attnscope.h\" 1\n"
                       "int asc_site(int channel, int line); asc_site(::asc_named::asc_q, 9);\n"
                       "# 2 \"/cache/patched/k.cu\" 2\n"
                       "#include \"mine.h\"\n"
                       "# 1 \"my/mine.h\" 1\n"
                       "f(asc_site ( ::asc_named::asc_lse , 1 ));\n"
                       "# 3 \"/cache/patched/k.cu\" 2\n"
                       "f(asc_site(::asc_named::asc_s, 3)); f(asc_site(::asc_named::asc_s, 3)); "
                       "f(asc_site(::asc_named::asc_alpha,3));\n"
                       "char *t = \"asc_site(::asc_named::asc_p, 4)\";\n"
                       "f(asc_site(::asc_named::asc_nothing, 5)); f(asc_site(::asc_named::asc_p 5)); xasc_site;\n"
                       "f(asc_site(::asc_named::asc_s, 6));";
    assert_int_equal(scan(text, &result, &err), 0);
    assert_int_equal(result.n_sites, 4);
    assert_int_equal(result.sites[0].channel, asc_lse);
    assert_string_equal(result.sites[0].file, "my/mine.h");
    assert_int_equal(result.sites[0].line, 1);
    assert_int_equal(result.sites[1].channel, asc_s);
    assert_string_equal(result.sites[1].file, "my/k.cu");
    assert_int_equal(result.sites[1].line, 3);
    assert_int_equal(result.sites[2].channel, asc_alpha);
    assert_int_equal(result.sites[3].line, 6);
    free(result.sites);
}

/* One line of a user's file, behind another; "" : clean, else what is said. */
static void construct(const char *line, const char *said)
{
    char text[512];
    struct scan result;
    struct err err = {0};
    snprintf(text, sizeof text, "# 41 \"my/k.cu\"\nint f();\n%s\n", line);
    int failed = scan(text, &result, &err);
    free(result.sites);
    if (!*said) {
        if (failed)
            fail_msg("`%s` is refused: %s", line, err.message);
        return;
    }
    if (!failed || !strstr(err.message, said) || !strstr(err.message, "GPU only"))
        fail_msg("`%s`: `%s` lacks `%s`", line, err.message, said);
    assert_int_equal(err.code, ERR_GPU_ONLY);
    assert_string_equal(err.where, "my/k.cu:42");
}

static void test_gpu_only(void **state)
{
    (void)state;
    construct("asm volatile(\"wgmma.fence;\");", ""); /* a trap: test_ptx.c */
    construct("#include <cutlass/gemm/kernel.h>", "");
    construct("#include <cub/cub.cuh>", "CUB");
    construct("#include <cuda/ptx>", "cuda::ptx");
    construct("#include <cuda/ptxx>", "");
    construct("#include <mma.h>", "");
    construct("wmma::precision::tf32 x;", "TF32");
    construct("k<<<grid, block>>>(x);", "");
    construct("cudaLaunchKernel(f, grid, block, args);", "untyped pointer");
    construct("__clusterRelativeBlockRank();", "cluster intrinsics");
    construct("CUtensorMap_st x;", "");
    construct("#include <cooperative_groups.h>", "");
    construct("#include <cooperative_groups/reduce.h>", "");
    construct("#include <cooperative_groups/scan.h>", "scans of cooperative groups");
    construct("cg::this_grid().sync();", "cooperative groups of a grid");
    construct("auto c = cg::this_cluster();", "");
    construct("__shared__ cg::block_tile_memory<256> m;", "tiles of more than a warp");
    construct("int plasma, asm_count, x_asm;", "");
    construct("puts(\"asm volatile\"); char c = '\"'; int n = 1'000; puts(\"k<<<1>>>\");", "");
    construct("puts(R\"x(asm \" )\" asm )x\"); int y;", "");
    construct("puts(R\"(\" asm )\"); cudaSurfaceObject_t x;", "surfaces");
    construct("puts(\"\\\"\"); cudaSurfaceObject_t x;", "surfaces");
}

/* What stands in a header is said to stand there, and who asked for the header. */
static void test_gpu_only_in_a_header(void **state)
{
    (void)state;
    struct scan result;
    struct err err = {0};
    const struct diagnose d = {"/cache/patched/k.cu", "my/k.cu", 0};
    const char *text = "# 0 \"/cache/patched/k.cu\"\n"
                       "# 1 \"/cache/patched/k.cu\"\n"
                       "#include \"attnscope.h\"\n"
                       "# 1 \"/root/probes/attnscope.h\" 1\n"
                       "#include <x.h>\n"
                       "# 1 \"/usr/include/x.h\" 1 3\n"
                       "# 2 \"/root/probes/attnscope.h\" 2\n"
                       "# 2 \"/cache/patched/k.cu\" 2\n"
                       "int before;\n"
                       "#include \"mine.h\"\n"
                       "# 1 \"my/mine.h\" 1\n"
                       "\n"
                       "#include \"deep/traits.h\"\n"
                       "# 1 \"my/deep/traits.h\" 1\n"
                       "int one;\n"
                       "%s\n"
                       "# 3 \"my/mine.h\" 2\n"
                       "%s\n"
                       "# 4 \"/cache/patched/k.cu\" 2\n"
                       "%s\n";
    char filled[1024];
    snprintf(filled, sizeof filled, text, "cudaSurfaceObject_t x;", "", "");
    assert_int_equal(scan(filled, &result, &err), -1);
    assert_string_equal(err.where, "my/deep/traits.h:2");
    assert_string_equal(err.message, "surfaces: GPU only: nothing stands in for their memory "
                                     "(in file included from my/mine.h:2, from my/k.cu:3)");
    snprintf(filled, sizeof filled, text, "", "asm(\"x;\"];", "");
    assert_int_equal(scan(filled, &result, &err), -1);
    assert_string_equal(err.where, "my/mine.h:3");
    assert_non_null(strstr(err.message, " (in file included from my/k.cu:3)"));
    snprintf(filled, sizeof filled, text, "", "", "#include <cub/cub.cuh>");
    assert_int_equal(scan(filled, &result, &err), -1);
    assert_string_equal(err.where, "my/k.cu:4");
    assert_string_equal(err.message, "CUB: GPU only: its headers are for nvcc");

    diagnose_compiler(&d,
                      "In file included from my/mine.h:3,\n"
                      "                 from /cache/patched/k.cu:2:\n"
                      "my/deep/traits.h:8:10: fatal error: cub/cub.cuh: No such file or directory\n",
                      &err);
    assert_int_equal(err.code, ERR_GPU_ONLY);
    assert_string_equal(err.where, "my/deep/traits.h:8");
    assert_string_equal(err.message,
                        "CUB: GPU only: its headers are for nvcc (in file included from my/mine.h:3, from my/k.cu:2)");
    diagnose_compiler(&d,
                      "In file included from my/mine.h:3:\n"
                      "my/x.h:1:1: warning: dull\n"
                      "my/k.cu:8:10: fatal error: cub/cub.cuh: No such file or directory\n",
                      &err);
    assert_string_equal(err.where, "my/k.cu:8");
    assert_string_equal(err.message, "CUB: GPU only: its headers are for nvcc");
}

static void test_raw_string_over_lines(void **state)
{
    (void)state;
    struct scan result;
    struct err err = {0};
    assert_int_equal(
        scan("# 1 \"my/k.cu\"\nputs(R\"(\nasm\n# 7 \"x\"\n)\"); f(asc_site(::asc_named::asc_s, 4));\n", &result, &err),
        0);
    assert_int_equal(result.n_sites, 1);
    free(result.sites);
    assert_int_equal(scan("# 1 \"my/k.cu\"\nputs(R\"(\nasm\n)\");\nasm(\"x;\"];\n", &result, &err), -1);
    assert_string_equal(err.where, "my/k.cu:4");
}

/* What stands in a line of the user's becomes this. */
static void rewritten(const char *line, const char *wanted)
{
    char text[1024];
    struct scan result;
    struct err err = {0};
    snprintf(text, sizeof text, "# 42 \"my/k.cu\"\n%s\nint after;\n", line);
    if (scan(text, &result, &err))
        fail_msg("`%s` is refused: %s", line, err.message);
    char *begin = strchr(result.rewritten, '\n') + 1;
    begin[strlen(begin) - strlen("\nint after;\n")] = '\0';
    assert_string_equal(begin, wanted);
    scan_free(&result);
}

#define LAUNCH(name, code)                                                                                             \
    "::simt::raw_launch(\"" name "\", [&](auto &&...simt_args) { " code                                                \
    "(static_cast<decltype(simt_args)>(simt_args)...); }).at("

static void test_launches(void **state)
{
    (void)state;
    rewritten("k<<<g, b>>>(x, y);", LAUNCH("k", "k") "g, b)(x, y);");
    rewritten("if (a < b) ns::k<T, (3 > 2), f<1>()><<<dim3(n >> 5), 64, 0, s>>>(x);",
              "if (a < b) " LAUNCH("ns::k<T,(3>2),f<1>()>", "ns::k<T, (3 > 2), f<1>()>") "dim3(n >> 5), 64, 0, s)(x);");
    rewritten("::k <<< g, b >>> (x);", LAUNCH("::k", "::k ") " g, b ) (x);");
    rewritten("return (*p)<<<1, 2>>>();", "return " LAUNCH("(*p)", "(*p)") "1, 2)();");
    rewritten("t->of[i]<<<1, 2>>>(__null, a(__null)); p = __null;",
              LAUNCH("t->of[i]", "t->of[i]") "1, 2)(nullptr, a(nullptr)); p = __null;");
    rewritten("k<64,\n  true>\n<<<g,\nb>>>(x,\n__null);",
              LAUNCH("k<64,true>", "k<64,\n  true>\n") "g,\nb)(x,\nnullptr);");
    rewritten("if (n) ::k<T><<<1, 2>>>(); else ::k<<<3, 4>>>();",
              "if (n) " LAUNCH("::k<T>", "::k<T>") "1, 2)(); else " LAUNCH("::k", "::k") "3, 4)();");
    rewritten("pick(1)<<<1, 2>>>(x);", LAUNCH("pick(1)", "pick(1)") "1, 2)(x);");
    rewritten("if (n) (*p)<<<1, 2>>>(x);", "if (n) " LAUNCH("(*p)", "(*p)") "1, 2)(x);");
    rewritten("k<<<1, 2>>>([=](int i) { o[i] = 0; });", LAUNCH("k", "k") "1, 2)([=](int i) { o[i] = 0; });");
    rewritten("k<<<1, 0>>>(x, 0, f(1, 0),\n 0 );",
              "::simt::raw_launch(\"k\", [&](auto &&...simt_args) -> decltype(void(k"
              "(static_cast<decltype(simt_args)>(simt_args)...))) { k"
              "(static_cast<decltype(simt_args)>(simt_args)...); }).at(1, 0)"
              "(x, ::simt::zero(), f(1, 0),\n ::simt::zero() );");
    static const char *const broken[] = {"# 42 \"my/k.cu\"\n<<<g, b>>>(x);\n", "# 42 \"my/k.cu\"\nk<<<g, b>>>;\n",
                                         "# 42 \"my/k.cu\"\nk<<<g, b; x >>> (y);\n"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct scan result;
        struct err err = {0};
        assert_int_equal(scan(broken[i], &result, &err), -1);
        assert_string_equal(err.where, "my/k.cu:42");
        assert_non_null(strstr(err.message, "a <<<...>>> launch"));
    }
    struct scan result;
    struct err err = {0};
    assert_int_equal(scan("# 42 \"my/k.cu\"\nk<<<1, {2, 3}>>>(x,\n {1, 2});\n", &result, &err), -1);
    assert_string_equal(err.message, "an argument of a <<<...>>> launch is a list in braces: name its type, T{...}");
    rewritten("k<<<1, 2>>>(x); g<<<3, 4>>>(y);", LAUNCH("k", "k") "1, 2)(x); " LAUNCH("g", "g") "3, 4)(y);");
}

/* A kernel says its clusters in its body, where the parameters of its template are known; a declaration says nothing.
 */
static void test_clusters(void **state)
{
    (void)state;
    rewritten("void __cluster_dims__(2, 1, 1) k(int x = f({1}));", "void  k(int x = f({1}));");
    rewritten("template <int n> void __cluster_dims__(n,1,1) a k(int x) { f(x); }",
              "template <int n> void  a k(int x) { ::simt::cluster_dims(n,1,1);  f(x); }");
}

static void test_foreign_lines(void **state)
{
    (void)state;
    struct scan result;
    struct err err = {0};
    const char *text = "# 1 \"/usr/include/x.h\" 1 3\nasm(\"x\");\n"
                       "# 1 \"/root/engine/simt/include/y.h\" 1\nasm(\"y\"); k<<<1>>>;\n"
                       "# 1 \"<command-line>\"\nasm\n"
                       "# 9 \"my/k.cu\" 3 4\nasm(\"of a system macro\")\n"
                       "# 9 \"my/k.cu\"\n;\n";
    assert_int_equal(scan(text, &result, &err), 0);
    assert_int_equal(scan("", &result, &err), 0);
}

static void test_compiler_words(void **state)
{
    (void)state;
    const struct diagnose d = {"/cache/patched/k.cu", "my/k.cu", 0};
    struct err err = {0};
    diagnose_compiler(&d,
                      "/cache/patched/k.cu:3:1: warning: dull\n/cache/patched/k.cu: In function 'f':\n"
                      "/cache/patched/k.cu:12:5: error: 'x' was not declared\n   12 |  x;\n",
                      &err);
    assert_int_equal(err.code, ERR_BUILD);
    assert_string_equal(err.where, "my/k.cu:12");
    assert_string_equal(err.message, "'x' was not declared\n   12 |  x;");
    diagnose_compiler(&d,
                      "/root/probes/attnscope.h: In instantiation of 'struct t<int*>':\n"
                      "/cache/patched/k.cu:7:5:   required from here\n"
                      "/root/probes/attnscope.h:90:9: error: static assertion failed: no such type\n",
                      &err);
    assert_string_equal(err.where, "my/k.cu:7");
    assert_non_null(strstr(err.message, "attnscope.h:90:9: error: static assertion failed: no such type"));
    diagnose_compiler(&d,
                      "my/k.cu(7): error: namespace \"asc_named\" has no member \"asc_mm\"\n"
                      "  do { constexpr int asc_ch = ::asc_site(::asc_named::asc_mm, 7);\n",
                      &err);
    assert_string_equal(err.where, "my/k.cu:7");
    assert_non_null(strstr(err.message, "'mm' is not a channel; the channels are q, k, v"));
    /* A name of the user's that begins like ours. */
    diagnose_compiler(&d, "my/k.cu:9:5: error: 'asc_mine' was not declared\n    9 |  ASC_RECORD(asc_mine);\n", &err);
    assert_string_equal(err.where, "my/k.cu:9");
    assert_string_equal(err.message, "'asc_mine' was not declared\n    9 |  ASC_RECORD(asc_mine);");
    diagnose_compiler(&d, "my/k.cu:2:10: fatal error: cub/x.h: No such file or directory\n", &err);
    assert_int_equal(err.code, ERR_GPU_ONLY);
    assert_string_equal(err.where, "my/k.cu:2");
    assert_string_equal(err.message, "CUB: GPU only: its headers are for nvcc");
    diagnose_compiler(&d, "my/k.cu:2:10: fatal error: cute/x.h: No such file or directory\n", &err);
    assert_int_equal(err.code, ERR_BUILD);
    assert_non_null(strstr(err.message, "cute/x.h: No such file or directory; -I DIR"));
    diagnose_compiler(&d, "my/k.cu:2:10: fatal error: own.h: No such file or directory\n", &err);
    assert_int_equal(err.code, ERR_BUILD);
    diagnose_compiler(&d,
                      "ptxas /tmp/tmpxft_0-6_k.ptx, line 3473; error   : Feature 'mma with FP8 floating point type' "
                      "requires .target sm_89 or higher\nptxas fatal   : Ptx assembly aborted due to errors\n",
                      &err);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.message, "needs sm_89 or higher, for mma with FP8 floating point type: this GPU is older");
    diagnose_compiler(&d,
                      "ptxas /tmp/tmpxft_0-6_k.ptx, line 23; error   : Instruction 'wgmma.fence' not supported on "
                      ".target 'sm_80'\n",
                      &err);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.where, "my/k.cu");
    assert_string_equal(err.message, "uses wgmma.fence, which this GPU (sm_80) does not have");
    diagnose_compiler(&d, "ptxas k.ptx, line 4; error   : Unknown symbol 'p'\n", &err);
    assert_int_equal(err.code, ERR_BUILD);
    diagnose_compiler(&d, "", &err);
    assert_int_equal(err.code, ERR_BUILD);
    assert_true(err.message[0] != '\0');
}

/* What ASC_VALUES becomes; probes of its names are sites of channels behind the fixed ones. */
static void test_values(void **state)
{
    (void)state;
    struct scan result;
    struct err err = {0};
    assert_int_equal(scan("# 3 \"my/k.cu\"\n"
                          "static_assert(::asc_values_are(\"(raw, bc), (out, head_dim_v, F16)\"), \"\");\n"
                          "f(asc_site(::asc_named::asc_out, 4)); f(asc_site(::asc_named::asc_s, 4));\n",
                          &result, &err),
                     0);
    assert_string_equal(result.values[0].name, "raw");
    assert_int_equal(result.values[0].cols, ASC_COLS_BC);
    assert_int_equal(result.values[0].dtype, ASC_F32);
    assert_string_equal(result.values[1].name, "out");
    assert_int_equal(result.values[1].cols, ASC_COLS_HEAD_DIM_V);
    assert_int_equal(result.values[1].dtype, ASC_F16);
    assert_string_equal(result.values[2].name, "");
    assert_int_equal(result.n_sites, 2);
    assert_int_equal(result.sites[0].channel, ASC_CHANNELS + 1);
    assert_int_equal(result.sites[1].channel, asc_s);
    scan_free(&result);
    static const struct {
        const char *text, *message;
    } wrong[] = {{"(raw, br)", "the columns of raw are 'br'"},
                 {"(raw, bc, F7)", "the type of raw is 'F7'"},
                 {"(raw)", "found '(raw)'"},
                 {"(k3, 1)", "'k3' means a place"},
                 {"(nan, 1)", "'nan' is a word of conditions"},
                 {"(lse, 1)", "'lse' is a channel already"},
                 {"raw", "expected (NAME, COLUMNS)"},
                 {"", "is empty"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[128];
        snprintf(text, sizeof text, "# 3 \"my/k.cu\"\nasc_values_are(\"%s\");\n", wrong[i].text);
        assert_int_equal(scan(text, &result, &err), -1);
        assert_string_equal(err.where, "my/k.cu:3");
        assert_non_null(strstr(err.message, wrong[i].message));
    }
}

static void test_long_words(void **state)
{
    (void)state;
    const struct diagnose d = {"k.cu", "k.cu", 0};
    struct err err = {0};
    char said[20000];
    size_t n = (size_t)snprintf(said, sizeof said, "k.cu:1:1: error: first\n");
    while (n < 19000)
        n += (size_t)snprintf(said + n, sizeof said - n, "k.cu:2:1: error: and another line of many\n");
    diagnose_compiler(&d, said, &err);
    assert_int_equal(strncmp(err.message, "first\n", 6), 0);
    const char *last = strrchr(err.message, '\n');
    assert_string_equal(last, "\n(more follows)");
    assert_true(strlen(err.message) > 3000);
}

static void test_linker_words(void **state)
{
    (void)state;
    const struct diagnose d = {"my/k.cu", "my/k.cu", 0};
    struct err err = {0};
    diagnose_linker(&d, "/usr/bin/ld: main.o: in function `m':\nmain.c:4: undefined reference to `asc_describe'\n",
                    &err);
    assert_string_equal(err.where, "my/k.cu");
    assert_string_equal(err.message, "does not register a kernel: ASC_RUN(name, ...) is missing, or ASC_KERNEL(name)");
    diagnose_linker(&d,
                    "/usr/bin/ld: k.o: in function `f':\n/home/u/my/k.cu:12: undefined reference to `g(int)'\n"
                    "collect2: error: ld returned 1 exit status\n",
                    &err);
    assert_int_equal(err.code, ERR_BUILD);
    assert_string_equal(err.where, "my/k.cu:12");
    assert_int_equal(strncmp(err.message, "undefined reference to `g(int)'", 31), 0);
    diagnose_linker(&d, "/usr/bin/ld: cannot find -lbacktrace: No such file or directory\n", &err);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_non_null(strstr(err.message, "cannot find -lbacktrace"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_gpu_only),
        cmocka_unit_test(test_foreign_lines),
        cmocka_unit_test(test_gpu_only_in_a_header),
        cmocka_unit_test(test_raw_string_over_lines),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_compiler_words),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_linker_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
