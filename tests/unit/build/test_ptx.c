/* Inline PTX as the builder reads it. What it computes is tested with the executor: tests/simt/ptx.cu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/ptx.h"
#include "engine/build/scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const own[] = {"/root/engine/", NULL};

static int scan(const char *text, struct scan *result, struct err *err)
{
    *err = (struct err){0};
    *result = (struct scan){.own_folders = own, .compiled_path = "/cache/k.cu", .user_path = "k.cu"};
    return scan_preprocessed(result, text, err);
}

/* The C++ that a statement at line 7 becomes, with what stands around it. */
static void becomes(const char *statement, const char *want)
{
    char text[1024], all[1024];
    struct scan result;
    struct err err;
    snprintf(text, sizeof text, "# 7 \"k.cu\"\n%s\n", statement);
    snprintf(all, sizeof all, "# 7 \"k.cu\"\n%s\n", want);
    if (scan(text, &result, &err))
        fail_msg("`%s`: %s: %s", statement, err.where, err.message);
    assert_non_null(result.rewritten);
    assert_string_equal(result.rewritten, all);
    scan_free(&result);
}

static void test_statements(void **state)
{
    (void)state;
    becomes("if (x) asm volatile(\"cp.async.commit_group;\\n\" ::); else y;",
            "if (x) do { simt_ptx::cp_async_commit(); } while (0); else y;");
    becomes("asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(a[f(')', \")\")]));",
            "do { [[maybe_unused]] auto && simt_op0 = (y); [[maybe_unused]] const auto simt_op1 = (a[f(')', \")\")]); "
            "simt_ptx::put(simt_ptx::of_f32_ftz<exp2f>(simt_ptx::bits<uint32_t>(simt_op1)), simt_op0); } while (0);");
    becomes("__asm__ __volatile__(\"cp.async.wait_group %[left];\" :: [left] \"n\"(1'0) : \"memory\", \"cc\");",
            "do { [[maybe_unused]] const auto simt_op0 = (1'0); "
            "simt_ptx::cp_async_wait(simt_ptx::bits<uint32_t>(simt_op0)); } while (0);");
    becomes("asm volatile(\"\" ::: \"memory\"); asm(\"// nothing\\n\");", "do { } while (0); do { } while (0);");
    becomes(
        "asm(R\"x({ .reg .pred p; setp.ne.b32 p, 1, 0; @!p cp.async.wait_all; })x\");",
        "do { { [[maybe_unused]] bool simt_reg_p; simt_reg_p = 0; "
        "simt_ptx::put(simt_ptx::unequal(simt_ptx::bits<uint32_t>(1), "
        "simt_ptx::bits<uint32_t>(0)), simt_reg_p); if (!simt_reg_p) simt_ptx::cp_async_wait_all(); } } while (0);");
    /* Labels, and who jumps to them; a place in a tensor; results by reference. */
    becomes("asm(\"{ .reg .pred p; L: @p bra D; bra.uni L; D: }\");",
            "do { __label__ simt_label_L; __label__ simt_label_D; { [[maybe_unused]] bool simt_reg_p; simt_reg_p = 0; "
            "simt_label_L:; if (simt_reg_p) goto simt_label_D; "
            "goto simt_label_L; simt_label_D:; } } while (0);");
    becomes(
        "asm(\"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\" :: \"l\"(m), \"r\"(x), "
        "\"r\"(y), \"r\"(s));",
        "do { [[maybe_unused]] const auto simt_op0 = (m); [[maybe_unused]] const auto simt_op1 = (x); "
        "[[maybe_unused]] const auto simt_op2 = (y); [[maybe_unused]] const auto simt_op3 = (s); "
        "simt_ptx::tma_store<2>(simt_ptx::bits<uint64_t>(simt_op0), simt_ptx::regs<uint32_t, "
        "2>{{simt_ptx::bits<uint32_t>(simt_op1), simt_ptx::bits<uint32_t>(simt_op2)}}, simt_ptx::address(simt_op3, "
        "simt_ptx::offset(0))); } while (0);");
    /* A register called %rx, as CUTLASS has it; special ones come first. */
    becomes("asm(\"{ .reg .b32 %%rx; mov.u32 %%rx, %%laneid; setmaxnreg.dec.sync.aligned.u32 %%rx; }\");",
            "do { { [[maybe_unused]] uint32_t simt_reg_rx; simt_reg_rx = 0; simt_ptx::put(simt_ptx::copy<uint32_t>("
            "simt_ptx::bits<uint32_t>(simt_lane())), simt_reg_rx); simt_ptx::set_registers<false>("
            "simt_ptx::bits<uint32_t>(simt_reg_rx)); } } while (0);");
    becomes("puts(\"asm(x)\"); asm(\"cp.async.wait_all;\");",
            "puts(\"asm(x)\"); do { simt_ptx::cp_async_wait_all(); } while (0);");
}

/* Behind what __shared__ stands for, an attribute takes its place; elsewhere C++ has it as it is. */
static void test_alignas(void **state)
{
    (void)state;
    becomes("extern thread_local alignas(128) char x[];",
            "extern thread_local __attribute__((aligned(::simt::alignment<128>()))) char x[];");
    becomes("thread_local  alignas( f(2) ) T x; asm(\"cp.async.wait_all;\"); thread_local alignas(T) U y;",
            "thread_local  __attribute__((aligned(::simt::alignment< f(2) >()))) T x; "
            "do { simt_ptx::cp_async_wait_all(); } while (0); "
            "thread_local __attribute__((aligned(::simt::alignment<T>()))) U y;");
    static const char *const as_it_is[] = {"alignas(16) thread_local int x;", "struct alignas(16) S {};",
                                           "puts(\"thread_local alignas(16)\");", "thread_local alignas(16"};
    for (size_t i = 0; i < sizeof as_it_is / sizeof *as_it_is; i++) {
        struct scan result;
        struct err err;
        assert_int_equal(scan(as_it_is[i], &result, &err), 0);
        assert_null(result.rewritten);
        scan_free(&result);
    }
}

/* What follows a statement of several lines keeps its line. */
static void test_lines(void **state)
{
    (void)state;
    becomes("asm volatile(\"cp.async.\"\n  \"wait_all;\"\n  ::: \"memory\"); x;\ny;",
            "do { simt_ptx::cp_async_wait_all(); } while (0)\n# 9 \"k.cu\"\n; x;\ny;");
    becomes("asm(\"mov.b32 %0, %1;\" : \"=f\"(x) : \"f\"(-\n# 7 \"k.cu\" 3 4\nINF\n# 12 \"k.cu\"\n  ));\ny;",
            "do { [[maybe_unused]] auto && simt_op0 = (x); [[maybe_unused]] const auto simt_op1 = (- INF   ); "
            "simt_ptx::put(simt_ptx::copy<uint32_t>(simt_ptx::bits<uint32_t>(simt_op1)), simt_op0); } while (0)\n"
            "# 12 \"k.cu\"\n;\ny;");
    struct scan result;
    struct err err;
    assert_int_equal(scan("# 1 \"k.cu\"\nasm(\"cp.async.wait_all;\"\n);\nasm(\"a;\"];\n", &result, &err), -1);
    assert_string_equal(err.where, "k.cu:3");
}

/* Headers that are ours or the system's, and builds for a GPU, keep their assembly. */
static void test_what_stays(void **state)
{
    (void)state;
    struct scan result;
    struct err err;
    const char *foreign = "# 1 \"/usr/include/x.h\" 1 3\nasm(\"x\");\n# 1 \"/root/engine/y.h\" 1\nasm(\"y\");\n";
    assert_int_equal(scan(foreign, &result, &err), 0);
    assert_null(result.rewritten);
    result = (struct scan){.own_folders = own, .compiled_path = "", .user_path = "", .gpu_only_allowed = true};
    assert_int_equal(scan_preprocessed(&result, "# 1 \"k.cu\"\nasm(\"wgmma.x;\");\n", &err), 0);
    assert_null(result.rewritten);
    becomes("#include \"wrapper.h\"\nint i;\nasm(\"\");", "                    \nint i;\ndo { } while (0);");
}

/* nvcc's compiler takes it where a macro has put it. */
static void test_unroll(void **state)
{
    (void)state;
    becomes("f(); #pragma unroll 4\nfor (;;) g(\"#pragma unroll\"); #pragma unroll\nh();\n#pragma unroll",
            "f(); \nfor (;;) g(\"#pragma unroll\"); \nh();\n#pragma unroll");
}

/* In the place of the whole statement stands a call that ends the run which comes to it. */
static void refused(const char *statement, const char *said, int line)
{
    char text[1024], trap[256];
    struct scan result;
    struct err err;
    snprintf(text, sizeof text, "# 7 \"k.cu\"\nif (x) %s\nelse y;\n", statement);
    const int opcode = !strchr(said, ' ');
    snprintf(trap, sizeof trap, "if (x) simt_ptx::refused(\"inline PTX %s: %s\", %d)", said,
             opcode ? "not known to the CPU executor (GPU only, or misspelt)" : "GPU only", line);
    if (scan(text, &result, &err))
        fail_msg("`%s`: %s: %s", statement, err.where, err.message);
    if (!result.rewritten || !strstr(result.rewritten, trap) || !strstr(result.rewritten, ";\nelse y;\n"))
        fail_msg("`%s` lacks `%s`", result.rewritten ? result.rewritten : text, trap);
    scan_free(&result);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("asm volatile(\"tcgen05.wait::ld.sync.aligned;\" ::: \"memory\");", "tcgen05.wait::ld.sync.aligned", 7);
    refused("asm volatile(\"cp.async.wait_all;\\n\"\n\"mbarrier.pending_count.b64 %0, 1;\"\n:: \"r\"(x));",
            "mbarrier.pending_count.b64", 8);
    refused("asm(R\"(cp.async.wait_all;\n\nredux.async.u32 40;)\");", "redux.async.u32", 9);
    refused("asm(\"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0}, {%0}, {%0}, {%0};\" : \"+f\"(x));",
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 7);
    refused("asm(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %0}, [%1];\" : \"=r\"(x) : \"r\"(y));",
            "with operands like those of ldmatrix.sync.aligned.m8n8.x4.shared.b16", 7);
    refused("asm(\"ex2.approx.f32 %0, [%0];\" : \"+f\"(x));", "with operands like those of ex2.approx.f32", 7);
    refused("asm(\"ex2.approx.f32 %0, %1\" : \"=f\"(x) : \"f\"(y));", "with operands like those of ex2.approx.f32", 7);
    refused("asm(\"ex2.approx.f32 %0, %2;\" : \"=f\"(x) : \"f\"(y));", "without an operand %2", 7);
    refused("asm(\"ex2.approx.f32 %0, %[z];\" : \"=f\"(x) : [y] \"f\"(y));", "without an operand %[z]", 7);
    refused("asm(\"ex2.approx.f32 %1, %0;\" : \"=f\"(x) : \"f\"(y));", "that writes its input %1", 7);
    refused("asm(\"ex2.approx.f32 %0, t;\" : \"=f\"(x));", "register t", 7);
    refused("asm(\"mov.u32 %0, %%clock;\" : \"=r\"(x));", "register %clock", 7);
    refused("asm(\".reg .b32 t<4>;\");", ".reg .b32 t<4>", 7);
    refused("asm(\"bra AGAIN;\");", "without a label for bra", 7);
    refused("asm(\"bar.sync 0;bar.sync 1, 64;bar.arrive 1;\");", "with operands like those of bar.arrive", 7);
    refused("asm(\"\" : \"=x\"(x));", "with the constraint '=x'", 7);
    refused("asm(\"\" : \"r\"(x));", "with the constraint 'r'", 7);
    refused("asm goto(\"\" : : : : out);", "that is not a plain asm statement", 7);
    struct scan result;
    struct err err;
    assert_int_equal(scan("# 7 \"k.cu\"\nasm(\"\" : : \"r\"(x) ];\n", &result, &err), -1);
    assert_int_equal(err.code, ERR_GPU_ONLY);
    assert_string_equal(err.message, "inline PTX that does not end as asm statements do: GPU only");
    assert_string_equal(err.where, "k.cu:7");
}

/* Whatever is cut off, and whatever one character becomes, it is refused or taken, never read beyond. */
static void test_broken(void **state)
{
    (void)state;
    static const char whole[] = "asm volatile(\"{\\n .reg .pred p;\" R\"x(setp.ne.b32 p, %0, 0; // why\n)x\"\n"
                                "\"@!p st.shared.v4.u32 [%[to]+16], {%2, 0f3F800000, -1, %%laneid};}\"\n"
                                ": : \"r\"((int)a['\\'']), [to] \"r\"(f(\")\")), \"n\"(4) : \"memory\")";
    char text[sizeof whole];
    struct ptx_translation out = {.line = 1};
    assert_int_equal(ptx_translate(whole, &out), 0);
    assert_int_equal(out.line, 4);
    assert_ptr_equal(out.end, whole + sizeof whole - 1);
    free(out.code);
    for (size_t n = 3; n < sizeof whole - 1; n++) {
        char *cut = malloc(n + 1); /* so that ASan sees its end */
        assert_non_null(cut);
        memcpy(cut, whole, n);
        cut[n] = '\0';
        out.line = 1;
        assert_int_equal(ptx_translate(cut, &out), -1);
        assert_string_not_equal(out.refused, "");
        free(cut);
    }
    static const char put[] = "\"'(){}[]%;,.:\\@\n#R";
    for (size_t i = 3; i < sizeof whole - 1; i++)
        for (const char *c = put; *c; c++) {
            memcpy(text, whole, sizeof whole);
            text[i] = *c;
            out.line = 1;
            if (ptx_translate(text, &out) == 0) {
                assert_true(out.end <= text + sizeof whole - 1);
                free(out.code);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements), cmocka_unit_test(test_lines),    cmocka_unit_test(test_alignas),
        cmocka_unit_test(test_what_stays), cmocka_unit_test(test_refusals), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_unroll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
