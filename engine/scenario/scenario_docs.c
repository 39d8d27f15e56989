#include "engine/scenario/keys.h"

static const char *const about[SECTION_COUNT] = {
#define SECTION(id, name, about) about,
#include "engine/scenario/sections.def"
#undef SECTION
};

static const struct {
    const char *name, *meaning;
} fills[] = {
#define FILL(id, name, meaning) {name, meaning},
#include "engine/scenario/fills.def"
#undef FILL
};

static const char intro[] =
    "# Scenarios\n\nA scenario describes what is run and what must be found. It is an INI file:\n\n    ; scores "
    "multiplied by the scale twice\n    [scenario]\n    kernel = kernels/v2b_scalar.cu\n    patch = "
    "double-scale.patch\n\n    [shape]\n    heads = 8\n    q_len = 512\n\n    [expect]\n    verdict = fail\n    first "
    "= s b0 h0 q0 k0\n    culprits = s\n\nEach key may appear once, in any order; an unknown key, section or value is "
    "an error that names its line. A line that\nbegins with `;` or `#` is a comment, and so is the rest of a line "
    "after a blank and `;`. Lines have at most 197\nbytes. On the command line a key is written with its section, as "
    "in `shape.causal`.\n";

int scenario_write_docs(FILE *out)
{
    fputs(intro, out);
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        if (i == 0 || key->section != key[-1].section)
            fprintf(out, "\n## [%s]\n\n%s\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
                    section_names[key->section], about[key->section]);
        fprintf(out, "| `%s` | %s | %s | %s |\n", key->name, key->expected, key->by_default, key->meaning);
    }
    fputs("\n## Fills\n\nValues are computed in float64 and rounded once, to nearest even, into the dtype, or into f16 "
          "where codes are made from them.\n\n"
          "| name | meaning |\n| --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++)
        fprintf(out, "| `%s` | %s |\n", fills[i].name, fills[i].meaning);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
