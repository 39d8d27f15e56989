#include "engine/base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Random123, kat_vectors, lines "philox4x32 10". */
static const struct {
    uint32_t counter[4], key[2], want[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void equals_published_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t got[4];
        philox4x32(known[i].counter, known[i].key, got);
        assert_memory_equal(got, known[i].want, sizeof got);
    }
}

static void output_may_overlay_counter(void **state)
{
    (void)state;
    uint32_t block[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
    philox4x32(block, known[2].key, block);
    assert_memory_equal(block, known[2].want, sizeof block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_published_vectors),
        cmocka_unit_test(output_may_overlay_counter),
    };
    return cmocka_run_group_tests_name("philox", tests, NULL, NULL);
}
